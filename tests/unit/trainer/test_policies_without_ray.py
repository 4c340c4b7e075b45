"""Policies of trainers for which no Ray is started: what they learn, and what they export."""

import contextlib
import json
import re
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import ray
import torch
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.fcnet import FullyConnectedNetwork
from ray.rllib.policy.sample_batch import SampleBatch

import rllib_compat as compat
from rllib_compat import gym
from rllib_compat.errors import GoneError
from tests import legacy_api
from tests.legacy.policies import calls, learning
from tests.marks import OTHERS_WARNINGS, marked

pytestmark = OTHERS_WARNINGS

RECORDED = Path(learning.__file__).with_name("learning_steps")
FOLDERS = {f"{path.parent.name}-{path.name}": path for path in sorted(RECORDED.glob("*/*"))}
NEWEST = [case for case in FOLDERS if case.startswith("1.13")]
#: Arrays of target networks, by their names in today's modules.
TARGET = re.compile("target_")
#: Case → statistics that are not the same number: the old Rays told the first of sequences with
#: their padding, and the other as it was after the step (until 1.0).
NOT_COMPARED = {"ppo-lstm": {"vf_explained_var"}, "sac": {"log_alpha_value"}}


@contextlib.contextmanager
def trainer_of(case, release, **more):
    algorithm, config = calls.config_of(case)
    env = calls.make_env(gym)
    nothing = {"init": mock.DEFAULT, "cluster_resources": dict, "put": lambda value, **_: value}
    with mock.patch.multiple(ray, **nothing):
        config = {**config, "framework": "torch", **more}
        made = compat.Trainer(config, env=env, algorithm=algorithm, legacy_ray=release)
        yield made
        made.stop()


def checkpoint(folder, name):
    return next((folder / name).glob("checkpoint-*"))


def weights(trainer):
    return {name: np.array(array) for name, array in trainer.get_policy().get_weights().items()}


@pytest.mark.parametrize("case", marked(FOLDERS, [*NEWEST, "1.0.1-a2c"]))
def test_weights_after_some_steps_are_those_of_the_old_ray(case):
    recorded = FOLDERS[case]
    with trainer_of(recorded.name, recorded.parent.name) as trainer:
        told = learn_as_recorded(learning.learn, trainer, recorded)
    steps = json.loads((recorded / "told.json").read_text())["steps"]
    for ours, theirs in zip(told, steps, strict=True):
        names = sorted(ours.keys() & theirs.keys() - NOT_COMPARED.get(recorded.name, set()))
        assert names
        np.testing.assert_allclose(
            [ours[name] for name in names],
            [theirs[name] for name in names],
            rtol=1e-4,
            atol=1e-5,
            err_msg=str(names),
        )


@pytest.mark.parametrize("case", marked(FOLDERS, ["1.13.0-dqn"]))
def test_gradients_that_are_applied_make_the_same_steps(case):
    recorded = FOLDERS[case]
    # So they did in the old Rays, but for SAC, which refused its own gradients there.
    assert not json.loads((recorded / "told.json").read_text())["by_gradients_apart"]
    with trainer_of(recorded.name, recorded.parent.name) as trainer:
        learn_as_recorded(learning.learn_by_gradients, trainer, recorded)


def learn_as_recorded(learn, trainer, recorded):
    with np.load(recorded / "batch.npz", allow_pickle=False) as file:
        columns = dict(file)
    trainer.restore(checkpoint(recorded, "before"))
    before = weights(trainer)
    with learning.draws(torch):
        told = learn(trainer.get_policy(), lambda: SampleBatch(columns))
    found = weights(trainer)
    trainer.restore(checkpoint(recorded, "after"))
    for name, array in weights(trainer).items():
        if TARGET.search(name):  # no checkpoint of theirs has targets; a step leaves them alone
            np.testing.assert_array_equal(found[name], before[name], err_msg=name)
        else:
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5, err_msg=name)
    return told


@pytest.mark.parametrize("case", marked(["ppo", "ppo-lstm", "dqn", "sac"], ["ppo-lstm"]))
def test_an_exported_model_is_called_as_that_of_ray_1_13(case, tmp_path):
    with trainer_of(case, "1.13.0") as trainer:
        policy = trainer.get_policy()
        model = torch.jit.load(policy.export_model(str(tmp_path)))
        for count in (1, 5):
            obs = torch.linspace(-1, 1, 4 * count).reshape(count, 4)
            state = [torch.full((count, *np.shape(s)), 0.3) for s in policy.get_initial_state()]
            given = {"obs": obs, "obs_flat": obs}
            out, after = model(given, state or [torch.ones(count)], torch.ones(count))
            _, states, told = policy.compute_actions(obs, state, explore=False)
            np.testing.assert_allclose(out.detach(), told["action_dist_inputs"], atol=1e-6)
            for ours, theirs in zip(after, states, strict=bool(state)):
                np.testing.assert_allclose(ours.detach(), theirs, atol=1e-6)


@pytest.mark.parametrize("case", marked(["ppo", "dqn", "sac"], ["ppo"]))
def test_each_name_of_each_era_is_there_or_says_what_to_do(case):
    with trainer_of(case, "1.13.0") as trainer:
        policy = trainer.get_policy()
        for kind, asked in (("policy", policy), ("model", policy.model)):
            for name in legacy_api.names_of(kind):
                with contextlib.suppress(GoneError):  # which says what to do
                    getattr(asked, name)
        if case == "ppo":
            assert policy.lr_schedule.value(7) == pytest.approx(policy.cur_lr)
            assert policy.entropy_coeff_schedule.value(7) == policy.entropy_coeff


class Reading(FullyConnectedNetwork):
    """A model that reads weights from a file, as `trainer.import_model` asked for it."""

    def import_from_h5(self, file):
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.fill_(float(Path(file).read_text("utf-8")))


def test_a_model_of_ones_own_imports_weights(tmp_path):
    ModelCatalog.register_custom_model("reading", Reading)
    with trainer_of("ppo", "1.13.0", model={"custom_model": "reading"}) as trainer:
        (tmp_path / "weights.h5").write_text("0.5", "utf-8")
        trainer.import_model(str(tmp_path / "weights.h5"))
        assert all(np.all(array == 0.5) for array in weights(trainer).values())
        with pytest.raises(FileNotFoundError):
            trainer.import_model("nothing")


def test_what_is_sampled_by_hand_is_no_part_of_a_train_batch():
    with trainer_of("ppo", "1.13.0") as trainer:
        worker = trainer.workers.local_worker()
        assert [worker.sample().count for _ in range(2)] == [20, 20]
        results = [trainer.train() for _ in range(2)]
        # As in Ray 1.0.1 and 1.13.0.
        assert [result["timesteps_total"] for result in results] == [40, 80]
        assert [result["info"]["num_steps_trained"] for result in results] == [40, 80]
        assert [result["episodes_this_iter"] for result in results] == [8, 4]
