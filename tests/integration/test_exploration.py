"""Trainers that explore by noisy nets, soft Q and noise on weights, and what they save."""

import numpy as np
import pytest
import torch

import rllib_compat as compat
from rllib_compat.ray_versions import modules as ray_modules
from tests.marks import TRAINERS, marked

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

NOISE = {"exploration_config": {"type": "ParameterNoise", "random_timesteps": 40}}
WAYS = {
    "noisy nets": ("DQNTrainer", {"noisy": True, "sigma0": 0.3}),
    "noisy nets, distributions": ("DQNTrainer", {"noisy": True, "num_atoms": 5, "v_max": 20.0}),
    "soft Q": ("SimpleQTrainer", {"soft_q": True, "softmax_temp": 0.5}),
    "noise on weights": ("DQNTrainer", NOISE),
    "noise on weights, a worker": ("DQNTrainer", {**NOISE, "num_workers": 1}),
    "noise on weights and actions": ("TD3Trainer", NOISE),
}
ON_EACH_PUSH = ("noisy nets, distributions", "noise on weights and actions")


def config_of(name):
    trainer, config = WAYS[name]
    small = {"num_workers": 0, "learning_starts": 50, "timesteps_per_iteration": 150}
    small |= {"min_iter_time_s": 0, "train_batch_size": 16}
    if trainer == "TD3Trainer":
        return trainer, {**small, "env": "Pendulum-v1", "pure_exploration_steps": 10, **config}
    return trainer, {**small, "env": "CartPole-v1", "hiddens": [8], **config}


def noise_of(trainer):
    """How large noise on weights is, in the trainer's own env runner."""
    pipeline = trainer.algorithm.env_runner._env_to_module
    found = [c for c in pipeline.connectors if type(c).__name__ == "ParameterNoise"]
    return [connector.get_state()["deviations"] for connector in found]


def computed(module, seen):
    """What a module chooses actions by."""
    with torch.no_grad():
        if hasattr(module, "actions_of"):
            return module.actions_of(seen).numpy()
        return ray_modules.q_values(module, seen).numpy()


@pytest.mark.parametrize("name", marked(WAYS, ON_EACH_PUSH))
def test_it_trains_is_saved_is_restored_and_read(name, make, tmp_path):
    kind, config = config_of(name)
    trainer = make(kind, config=config)
    before = trainer.get_weights()["default_policy"]
    for _ in range(2):
        result = trainer.train()
    assert result["timesteps_total"] >= 300
    after = trainer.get_weights()["default_policy"]
    moved = {key for key in before if not np.array_equal(before[key], after[key])}
    assert not {key for key in before if "sigma" in key and "target" not in key} - moved
    assert moved
    path = trainer.save(str(tmp_path / "saved"))
    space = trainer.algorithm.env_runner.module.observation_space
    seen = {"obs": torch.from_numpy(np.stack([space.sample().clip(-3, 3) for _ in range(5)]))}
    expected = computed(trainer.algorithm.env_runner.module, seen)

    again = make(kind, config=config)
    again.restore(path)
    np.testing.assert_array_equal(computed(again.algorithm.env_runner.module, seen), expected)
    assert noise_of(again) == noise_of(trainer)
    assert again.train()["timesteps_total"] > result["timesteps_total"]

    loaded = compat.load(path)
    try:
        module = loaded.env_runner.module
        np.testing.assert_allclose(computed(module, seen), expected, rtol=1e-4, atol=1e-5)
        assert type(module).__module__ == "rllib_compat.modules"
        loaded.train()
    finally:
        loaded.stop()


@pytest.mark.matrix
def test_policies_of_one_trainer_explore_each_in_its_own_way(make):
    from ray.rllib.examples.envs.classes.multi_agent import MultiAgentCartPole

    policies = {
        "noisy": (None, None, None, {"noisy": True}),
        "soft": (None, None, None, {"soft_q": True, "softmax_temp": 0.7}),
        "plain": (None, None, None, {}),
    }
    names = list(policies)
    trainer = make(
        "DQNTrainer",
        config={
            "env": MultiAgentCartPole,
            "env_config": {"num_agents": 3},
            "num_workers": 0,
            "learning_starts": 50,
            "timesteps_per_iteration": 100,
            "multiagent": {
                "policies": policies,
                "policy_mapping_fn": lambda agent, *_, **__: names[int(agent)],
            },
        },
    )
    trainer.train()
    modules = trainer.algorithm.env_runner.module
    told = {name: modules[name].model_config for name in names}
    assert told["noisy"].get("sigma0") == 0.5
    assert told["soft"].get("soft_q_temperature") == 0.7
    noisy = {n: any("sigma" in key for key, _ in modules[n].named_parameters()) for n in names}
    assert noisy == {"noisy": True, "soft": False, "plain": False}
