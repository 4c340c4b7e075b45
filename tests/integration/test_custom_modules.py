"""`--model`: weights of custom models in a user's RLModules, as real old Rays used them."""

from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from rllib_compat import Given, convert, load
from rllib_compat.conversion import recordings
from rllib_compat.errors import CheckpointError, MissingInformationError
from rllib_compat.formats import layouts
from rllib_compat.ray_versions import algorithms
from tests.envs import SampledEnv
from tests.legacy.cases import find
from tests.marks import CONVERSIONS

pytestmark = [*CONVERSIONS, pytest.mark.newest]

(PARTS,) = find(variant="custom-parts")
(FILTER,) = find(variant="custom-meanstd")
(KERAS,) = find(variant="custom-keras")
ROOT = Path(__file__).parents[2]
OURS = "tests.integration.users_modules"


def module(name):
    return Given(algorithm="PPO", model=name if ":" in name else f"{OURS}:{name}")


@pytest.fixture(autouse=True)
def guide(monkeypatch):
    """The module of the guide's worked example is found as its reader's would be."""
    monkeypatch.syspath_prepend(ROOT / "migration_guide" / "examples")


class World(SampledEnv):
    """Observations of a mask and what is seen."""

    observation_space = gymnasium.spaces.Dict(
        {k: gymnasium.spaces.Box(-2, 2, (n,), np.float32) for k, n in (("mask", 3), ("seen", 4))}
    )
    action_space = gymnasium.spaces.Discrete(3)
    liked = 0


def test_a_module_gets_a_dict_in_parts_and_trains_on():
    algorithm = load(PARTS.checkpoint, env=World, given=module("Masked"), num_workers=0)
    try:
        old = {k: np.copy(v) for k, v in algorithm.get_module().get_state().items()}
        assert isinstance(algorithm.get_module().observation_space, gymnasium.spaces.Dict)
        stored = layouts.read(PARTS.checkpoint).policies["default_policy"].weights
        assert all(np.array_equal(old[name], stored[name]) for name in stored)
        algorithm.train()
        new = algorithm.get_module().get_state()
        assert not np.array_equal(new["out.weight"], old["out.weight"])
    finally:
        algorithms.stop_algorithm(algorithm)


def test_the_guides_converted_module_is_given_again_and_loads(tmp_path):
    import my_model

    convert(FILTER.checkpoint, tmp_path / "new", given=module("my_model:MyModule"))
    with pytest.raises(MissingInformationError) as asked:
        load(tmp_path / "new")
    assert "my_model:MyModule" in asked.value.fix
    algorithm = load(tmp_path / "new", model=my_model.MyModule)
    try:
        assert type(algorithm.get_module()) is my_model.MyModule
        assert algorithm.iteration == FILTER.about["iteration"]
    finally:
        algorithms.stop_algorithm(algorithm)


@pytest.mark.parametrize(
    ("case", "name"),
    [(PARTS, "Masked"), (PARTS, "Flat"), (FILTER, "my_model:MyModule"), (KERAS, "Keras")],
    ids=["parts", "flat", "filter", "keras"],
)
def test_a_custom_model_computes_what_the_old_ray_recorded(case, name, tmp_path):
    arrays = recordings.load(case.path / "expected.npz")
    done = convert(case.checkpoint, tmp_path / "new", given=module(name), recorded=arrays)
    rows = {row.output: row.ok for row in done.differences if row.kind == "recorded"}
    assert rows["action_dist_inputs"]
    assert rows["vf_preds"]
    assert ("filter" in rows) is (case is FILTER)
    assert done.report.facts["result"] == "resumes training"
    (note,) = [f for f in done.report if f.rule == "custom-model"]
    assert ("in parts" in note.message) is (name == "Masked")
    moments = [f for f in done.report if f.rule == "optimizer"]
    assert "both moments" in moments[0].message


def test_arrays_without_names_go_by_shape_where_the_optimizer_tells_no_names(tmp_path, monkeypatch):
    read = layouts.read

    def without_optimizer(path, *budget):
        checkpoint = read(path, *budget)
        if not checkpoint.source.layout.startswith("0"):
            return checkpoint
        return checkpoint.with_policies(
            replace(p, optimizer=None) for p in checkpoint.policies.values()
        )

    monkeypatch.setattr(layouts, "read", without_optimizer)
    arrays = recordings.load(KERAS.path / "expected.npz")
    done = convert(KERAS.checkpoint, tmp_path / "new", given=module("Renamed"), recorded=arrays)
    assert {r.output for r in done.differences if r.kind == "recorded"} >= {"action_dist_inputs"}
    (note,) = [f for f in done.report if f.rule == "custom-model"]
    assert "by shape" in note.message


def test_a_module_that_can_not_be_built_is_named_and_the_file_is_not_called_damaged(tmp_path):
    with pytest.raises(CheckpointError, match=r"users_modules:Broken .*KeyError: 'no such layer'"):
        convert(PARTS.checkpoint, tmp_path / "new", given=module("Broken"))
    assert not (tmp_path / "new").exists()
