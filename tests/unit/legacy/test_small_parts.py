"""Parts of old Rays, taken by their own imports: they compute what those have recorded."""

import importlib.util
import tracemalloc
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray")

from rllib_compat import legacy
from rllib_compat.errors import CompatError, GoneError
from rllib_compat.runtime import postprocess
from tests.legacy.parts import record
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

PARTS = Path(record.__file__).parent


@cache
def computed(group):
    """What the group's script computes with what its imports give today."""
    legacy.activate()  # until the test ends
    try:
        return record.compute(group)
    finally:
        tracemalloc.stop()  # callbacks that track memory start it, and all that follows is slower


def recorded(file):
    with np.load(file) as arrays:
        return dict(arrays)


RECORDED = {
    (file.stem, name): value
    for file in sorted(PARTS.glob("*/*.npz"))
    for name, value in recorded(file).items()
}


@pytest.mark.parametrize(("group", "name"), RECORDED)
def test_what_a_part_computes_is_what_the_old_ray_did(group, name):
    ours, theirs = computed(group)[name], RECORDED[group, name]
    assert ours.shape == theirs.shape
    assert ours.dtype.kind == theirs.dtype.kind
    if theirs.dtype.kind in "US":
        assert ours.tolist() == theirs.tolist()
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", {"use_gae": True}),
        ("_without_gae", {"use_gae": False}),
        ("_without_critic", {"use_gae": False, "use_critic": False}),
    ],
)
def test_policies_expect_of_a_fragment_what_old_ones_did(name, told):
    batch = {"rewards": np.arange(4.0), "vf_preds": np.ones(4, np.float32)}
    # Policies without GAE, or without a critic, expected nothing after the last step.
    config = SimpleNamespace(gamma=0.9, lambda_=0.8, **told)
    postprocess(batch, config, lambda _: 0.5)
    last = 0.0 if name else 0.5
    for column in ("advantages", "value_targets"):
        theirs = RECORDED["small", column + name]
        ahead = (0.5 - last) * 0.9 ** np.arange(4, 0, -1)
        expected = theirs - ahead if np.any(theirs) else theirs
        np.testing.assert_allclose(batch[column], expected, rtol=1e-6)


def test_a_batch_of_ones_own_has_dones_however_it_is_cut():
    legacy.activate()
    from ray.rllib.policy.sample_batch import SampleBatch

    rewards = np.arange(4.0)
    batch = SampleBatch({"rewards": rewards, "dones": np.array([False, True, False, True])})
    assert "dones" in batch
    assert [part["rewards"].tolist() for part in batch.split_by_episode()] == [[0, 1], [2, 3]]
    assert batch.slice(1, 3)["dones"].tolist() == [True, False]
    named = SampleBatch(rewards=rewards, dones=np.zeros(4, bool))
    named["dones"] = batch["dones"]
    assert SampleBatch.concat_samples([batch, named])["dones"].sum() == 4


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is not None, reason="it is installed")
@pytest.mark.parametrize("least", [{"min_reward": 5}, {"min_value": 5, "evaluation": False}])
def test_what_trials_have_reached_is_checked_by_old_keys(least, capsys):
    from rllib_compat.legacy.utilities import check_learning_achieved

    reached = [{"episode_reward_mean": 3.0}, {"episode_reward_mean": 7.0}]
    analysis = SimpleNamespace(trials=[SimpleNamespace(last_result=each) for each in reached])
    check_learning_achieved(analysis, **least)
    check_learning_achieved([SimpleNamespace(metrics=each) for each in reached], 7)
    assert "has a `episode_reward_mean` of 7.0: 7 or more." in capsys.readouterr().out
    with pytest.raises(ValueError, match="of 8 not reached"):
        check_learning_achieved(analysis, 8)
    evaluated = [SimpleNamespace(metrics={**reached[0], "evaluation": reached[1]})]
    check_learning_achieved(evaluated, 5)


def test_code_for_tensorflow_says_that_it_is_not_installed():
    legacy.activate()
    try:
        from ray.rllib.utils import try_import_tf
    finally:
        legacy.deactivate()
    tf1, tf, version = found = try_import_tf()
    assert version is None
    assert not tf1
    for old in (tf, found):  # one value until Ray 0.8.5
        with pytest.raises(CompatError, match=r"pip install 'rllib-compat\[tensorflow\]'"):
            old.keras.layers.Dense(3)


def test_models_of_ones_own_read_their_options_by_the_old_key_and_gone_parts_say_what_to_do():
    from ray.rllib.models.catalog import RLLIB_MODEL, _global_registry

    class Small:
        def __init__(self, seen, acts, outputs, told, name, **own):
            self.told, self.own = told, own

    legacy.activate()
    try:
        from ray.rllib.models import ModelCatalog
    finally:
        legacy.deactivate()
    ModelCatalog.register_custom_model("small of old", Small)
    made = _global_registry.get(RLLIB_MODEL, "small of old")(
        None, None, 2, {"custom_model_config": {"size": 3}}, "name", size=3
    )
    assert isinstance(made, Small)
    assert made.told["custom_options"] == made.own == {"size": 3}
    with pytest.raises(GoneError, match="ObservationWrapper"):
        ModelCatalog.register_custom_preprocessor("mine", Small)
