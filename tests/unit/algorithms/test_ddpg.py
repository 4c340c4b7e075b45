"""DDPG and TD3: their configs of every era, what is refused, and noise."""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch

from rllib_compat.algorithms import DEFAULTS
from rllib_compat.config import translate
from rllib_compat.errors import ConfigError, RefusedKeysError
from rllib_compat.networks.modules.exploration import Noise
from rllib_compat.neutral import Verdict
from rllib_compat.ray_versions import configs
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS


@pytest.mark.parametrize("name", ["DDPG", "TD3"])
@pytest.mark.parametrize(
    "config",
    [
        {"observation_filter": lambda shape: None},
        {"exploration_config": {"type": "Curiosity"}},
    ],
    ids=["filter", "noise"],
)
def test_what_only_the_old_api_stack_could_run_of_ddpg_is_refused_with_what_to_do(name, config):
    translation = translate({"env": "Pendulum-v1", **config}, algorithm=name)
    assert translation.api_stack == "new"
    (refused,) = (f for f in translation.report if f.verdict is Verdict.REFUSED)
    assert "take it out" in refused.hint
    with pytest.raises(RefusedKeysError):
        _ = translation.algorithm_config
    asked = translate({"env": "Pendulum-v1"}, algorithm=name, api_stack="old")
    assert asked.refused


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"exploration_noise": {"type": "PerWorkerGaussianNoise"}}, "PerWorkerGaussianNoise"),
        ({"exploration_noise": {"type": "GaussianNoise", "ou_theta": 0.1}}, "ou_theta"),
        ({"replay_buffer_config": {"type": "MultiAgentReplayBuffer"}}, "holds none"),
        ({"policy_delay": 0}, "policy_delay is at least 1"),
    ],
)
def test_settings_of_ddpg_that_nothing_can_run_are_told(wrong, words):
    config = configs.todays_config("DDPG").environment("Pendulum-v1").training(**wrong)
    with pytest.raises(ConfigError, match=words):
        config.validate()


def test_a_fragment_that_holds_no_target_is_told():
    config = configs.todays_config("DDPG").training(n_step=3)
    config.environment("Pendulum-v1").env_runners(rollout_fragment_length=2)
    with pytest.raises(ConfigError, match="target of 3 steps"):
        config.validate()


def test_noise_of_another_type_has_none_of_the_defaults_keys():
    config = configs.todays_config("DDPG")
    config.training(exploration_noise={"ou_theta": 0.3})
    assert config.exploration_noise == {**DEFAULTS["DDPG"]["exploration_noise"], "ou_theta": 0.3}
    config.update_from_dict({"exploration_noise": {"type": "GaussianNoise", "stddev": 0.4}})
    assert config.exploration_noise == {"type": "GaussianNoise", "stddev": 0.4}
    assert DEFAULTS["DDPG"]["exploration_noise"]["ou_theta"] == 0.15


#: The keys of four eras → the noise, of which a config says what its Ray did not have by default.
ERAS = {
    "0.6.6": (
        {"noise_scale": 0.3, "exploration_theta": 0.2, "exploration_final_eps": 0.1},
        {"ou_base_scale": 0.3, "ou_theta": 0.2, "final_scale": 0.1, "random_timesteps": 0},
    ),
    "0.7.6": (
        {"exploration_ou_noise_scale": 0.3, "pure_exploration_steps": 7},
        {"ou_base_scale": 0.3, "random_timesteps": 7, "final_scale": 1.0},
    ),
    "0.8.5": (
        {"exploration_config": {"ou_base_scale": 0.3}},
        {"ou_base_scale": 0.3, "random_timesteps": 1000, "final_scale": 1.0},
    ),
    "1.13.0": (
        {"exploration_config": {"ou_base_scale": 0.3}},
        {"ou_base_scale": 0.3, "random_timesteps": 1000, "final_scale": 0.02},
    ),
}


@pytest.mark.parametrize("ray", ERAS)
def test_noise_of_every_era_is_the_noise_that_its_ray_made(ray):
    given, wanted = ERAS[ray]
    translation = translate({"env": "Pendulum-v1", **given}, algorithm="DDPG", legacy_ray=ray)
    noise = translation.algorithm_config.exploration_noise
    assert noise["type"] == "OrnsteinUhlenbeckNoise"
    assert {name: noise[name] for name in wanted} == wanted
    assert noise["scale_timesteps"] == 10_000
    assert translation.algorithm_config.normalize_actions == (ray == "1.13.0")


def test_torch_regularized_nothing_and_tensorflow_did():
    for framework, l2_reg in (("torch", 0.0), ("tf", 0.3)):
        config = {"env": "Pendulum-v1", "l2_reg": 0.3, "framework": framework}
        assert translate(config, algorithm="TD3").algorithm_config.l2_reg == l2_reg


BOX = gymnasium.spaces.Box(np.float32([-1, -2]), np.float32([1, 3]))


def test_noise_is_scaled_as_its_schedule_says_and_stays_within_the_bounds():
    torch.manual_seed(3)
    noise = Noise({"type": "GaussianNoise", "random_timesteps": 10, "stddev": 0.2}, BOX)
    zeros = torch.zeros(4000, 2)
    drawn = noise(zeros, 9)
    assert (drawn.min(0).values < torch.tensor([-0.9, -1.9])).all()
    assert (drawn.max(0).values > torch.tensor([0.9, 2.9])).all()
    for step, size in ((10, 0.2), (5010, 0.2 * 0.51), (10_010, 0.2 * 0.02), (10**6, 0.2 * 0.02)):
        np.testing.assert_allclose(noise(zeros, step).std(0), size, rtol=0.06)
    assert noise(torch.full((100, 2), 0.99), 10).max() <= 1.0 + 2.0


def test_ornstein_uhlenbeck_noise_goes_back_to_nothing_and_is_as_wide_as_the_range():
    torch.manual_seed(3)
    noise = Noise({"type": "OrnsteinUhlenbeckNoise", "random_timesteps": 0}, BOX)
    drawn = torch.stack([noise(torch.zeros(1, 2), 0)[0] for _ in range(4000)])
    # Its variance is sigma² / (1 - (1 - theta)²), that of its neighbours (1 - theta) times as much.
    wanted = 0.1 * 0.2 / (1 - 0.85**2) ** 0.5 * torch.tensor([2.0, 5.0])
    np.testing.assert_allclose(drawn.std(0), wanted, rtol=0.15)
    together = (drawn[1:] * drawn[:-1]).mean(0) / drawn.var(0)
    np.testing.assert_allclose(together, 0.85, atol=0.05)


@pytest.mark.parametrize("name", ["DDPG", "TD3", "APEX_DDPG"])
@pytest.mark.parametrize(
    ("old", "noise", "deviation"),
    [
        (
            {"exploration_config": {"type": "ParameterNoise", "random_timesteps": 7}},
            {"type": "OrnsteinUhlenbeckNoise", "random_timesteps": 7},
            1.0,
        ),
        (
            {
                "exploration_config": {
                    "type": "ParameterNoise",
                    "initial_stddev": 0.3,
                    "sub_exploration": {"type": "GaussianNoise", "stddev": 0.4},
                }
            },
            {"type": "GaussianNoise", "stddev": 0.4},
            0.3,
        ),
        ({"parameter_noise": True}, {}, 1.0),
    ],
)
def test_noise_on_weights_is_kept_with_its_helper(name, old, noise, deviation):
    translation = translate({"env": "Pendulum-v1", **old}, algorithm=name)
    config = translation.algorithm_config
    assert config.parameter_noise == {"initial_stddev": deviation}
    assert noise.items() <= config.exploration_noise.items()
    assert config.batch_mode == "complete_episodes"
    assert "parameter_noise" in translation.to_python()
    config.validate()


def test_noise_on_weights_needs_whole_episodes():
    config = configs.todays_config("DDPG").training(parameter_noise={"initial_stddev": 1.0})
    with pytest.raises(ConfigError, match="lasts for an episode"):
        config.validate()
