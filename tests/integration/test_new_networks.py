"""Trainers with networks that today's catalogs don't make: they train, save, restore and act."""

import gymnasium as gym
import numpy as np
import pytest

import rllib_compat as compat
from tests.envs import SampledEnv
from tests.legacy.new_networks import cases
from tests.marks import OTHERS_WARNINGS, marked

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("one_ray"), *OTHERS_WARNINGS]


class Env(SampledEnv):
    def __init__(self, config):
        super().__init__()
        self.observation_space = cases.space(config["seen"], gym.spaces)
        self.action_space = cases.space(config["acts"], gym.spaces)


SMALL = {
    "PPO": {"train_batch_size": 40, "sgd_minibatch_size": 20, "num_sgd_iter": 1},
    "IMPALA": {"train_batch_size": 20, "num_gpus": 0, "min_time_s_per_reporting": 0},
    "DQN": {"learning_starts": 20, "timesteps_per_iteration": 40, "train_batch_size": 8},
    "SAC": {"learning_starts": 20, "timesteps_per_iteration": 40, "train_batch_size": 8},
}


@pytest.mark.parametrize(
    "name",
    marked(
        [
            "PPO no-layers",
            "PPO camera",
            "PPO lstm-steps-before",
            "PPO attention-steps-before",
            "SAC of-dict",
            "PPO lstm-of-image",
            "IMPALA lstm",
            "DQN atoms-dueling",
            "SAC apart",
        ],
        {"PPO camera", "PPO lstm-of-image", "DQN atoms-dueling", "SAC apart"},
    ),
)
def test_a_trainer_trains_saves_restores_and_acts(name, make, tmp_path):
    algorithm, seen, acts, config = cases.cases()[name]
    config = {
        "env": Env,
        "env_config": {"seen": seen, "acts": acts},
        "num_workers": 0,
        "rollout_fragment_length": 20,
        **SMALL[algorithm],
        **config,
    }
    trainer = make("Trainer", algorithm=algorithm, config=config, legacy_ray="1.13.0")
    before = trainer.get_weights()["default_policy"]
    trainer.train()
    after = trainer.get_weights()["default_policy"]
    assert any((after[part] != before[part]).any() for part in after)
    path = trainer.save(str(tmp_path))
    other = make("Trainer", algorithm=algorithm, config=config, legacy_ray="1.13.0")
    other.restore(path)
    for part, array in other.get_weights()["default_policy"].items():
        np.testing.assert_array_equal(array, after[part])
    assert other.train()["training_iteration"] == 2
    saved = compat.load_policy(path)
    env = Env(config["env_config"])
    assert saved.network.arrays
    action = other.compute_single_action(env.reset()[0], **state(other))
    assert env.action_space.contains(action[0] if isinstance(action, tuple) else action)


def state(trainer):
    """What a recurrent policy is asked with."""
    first = trainer.get_policy().get_initial_state()
    return {"state": first} if first else {}
