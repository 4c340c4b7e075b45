"""A converted policy for images trains on, on observations as cameras give them (uint8)."""

import gymnasium as gym
import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat import Given, convert
from rllib_compat.networks import DEFAULT, plan_optimizers
from rllib_compat.ray_versions import learners
from tests.legacy.cases import MUSEUM, find
from tests.marks import CONVERSIONS

pytestmark = CONVERSIONS

CASE = next(c for c in find(ray="1.13.0", framework="torch") if c.variant == "images")


class Images(gym.Env):
    """Random images; the reward likes the first action."""

    observation_space = gym.spaces.Box(0, 255, (10, 10, 3), np.uint8)
    action_space = gym.spaces.Discrete(3)

    def __init__(self, config=None):
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), float(action == 0), self.steps >= 10, False, {}


def test_training_goes_on_with_images_weights_and_moments(tmp_path):
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.tune.registry import register_env

    register_env("images", Images)
    done = convert(
        CASE.checkpoint, tmp_path / "new", given=Given(algorithm="PPO", env="images"), inputs=50
    )
    algorithm = Algorithm.from_checkpoint(str(tmp_path / "new"))
    try:
        learner = learners.local_learner(algorithm)
        module = learner.module["default_policy"]
        assert module.observation_space == Images.observation_space
        network = done.networks["default_policy"]
        for name, theirs in network.module_state().items():
            np.testing.assert_array_equal(module.get_state()[name], theirs)
        states, _ = plan_optimizers(done.checkpoint.policies, done.networks)
        slots = learner.get_optimizer("default_policy").state.values()
        assert {float(slot["step"]) for slot in slots} == {states["default_policy"][DEFAULT].step}
        before = module.get_state()
        result = algorithm.train()
        assert np.isfinite(result["learners"]["default_policy"]["total_loss"])
        after = module.get_state()
        assert all(not np.array_equal(before[name], after[name]) for name in before)
    finally:
        algorithm.stop()


class Table(Images):
    """Random tables of bytes, which the old Rays flattened for their networks."""

    observation_space = gym.spaces.Box(0, 255, (6, 4), np.uint8)


@pytest.mark.parametrize("trial", ["0.8.5-ppo-table", "0.8.5-dqn-table"])
def test_training_goes_on_with_tables_of_bytes(trial):
    algorithm = compat.load(MUSEUM / "trials" / trial / "checkpoint_1", env=Table)
    try:
        before = {k: v.detach().clone() for k, v in algorithm.get_module().named_parameters()}
        # Until Ray 2.52, all steps ever sampled count for the first iteration after a restore, so
        # on a slow machine it can end before enough are sampled to learn from.
        algorithm.train()
        result = algorithm.train()
        assert result["training_iteration"] == 3
        after = dict(algorithm.get_module().named_parameters())
        assert any((before[name] != after[name]).any() for name in before)
    finally:
        algorithm.stop()


OF_TRAINERS = {
    "PPOTrainer": {"train_batch_size": 100, "sgd_minibatch_size": 50, "num_sgd_iter": 1},
    "DQNTrainer": {"learning_starts": 20, "timesteps_per_iteration": 80},
}


@pytest.mark.parametrize(
    ("name", "ray", "last"),
    [
        ("PPOTrainer", None, [5, [5, 5], 1]),
        ("DQNTrainer", None, [5, [5, 5], 1]),
        ("PPOTrainer", "today", [5, [3, 3], 2]),
    ],
)
def test_a_new_trainer_learns_from_images_of_bytes(name, ray, last):
    """It died in its first step. Old filters end in one pixel, today's need not."""
    config = {"env": Images, "num_workers": 0, "min_iter_time_s": 0, **OF_TRAINERS[name]}
    config["model"] = {"conv_filters": [[4, [3, 3], 2], last]}
    trainer = getattr(compat, name)(config=config, legacy_ray=ray)
    try:
        before = trainer.get_weights()["default_policy"]
        for _ in range(2):  # Ray 2.40's first iteration of DQN ends before learning starts
            result = trainer.train()
        assert result["timesteps_total"] >= 160
        after = trainer.get_weights()["default_policy"]
        convolutions = [part for part, array in after.items() if array.ndim == 4]
        assert convolutions
        assert any((after[part] != before[part]).any() for part in convolutions)
        assert trainer.compute_action(Images.observation_space.sample()) in range(3)
    finally:
        trainer.stop()
