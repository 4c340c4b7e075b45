"""DDPG and TD3: their configs of every era, what is refused, and noise."""

import pytest

pytest.importorskip("ray")


from rllib_compat.algorithms import DEFAULTS
from rllib_compat.config import translate
from rllib_compat.errors import ConfigError, RefusedKeysError
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
        ({"replay_buffer_config": {"type": "MultiAgentReplayBuffer"}}, "is not one"),
        ({"policy_delay": 0}, "policy_delay must be at least 1"),
    ],
)
def test_settings_of_ddpg_that_nothing_can_run_are_told(wrong, words):
    config = configs.todays_config("DDPG").environment("Pendulum-v1").training(**wrong)
    with pytest.raises(ConfigError, match=words):
        config.validate()


def test_a_fragment_that_holds_no_target_is_told():
    config = configs.todays_config("DDPG").training(n_step=3)
    config.environment("Pendulum-v1").env_runners(rollout_fragment_length=2)
    with pytest.raises(ConfigError, match="targets of 3 steps"):
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
    with pytest.raises(ConfigError, match="needs complete episodes"):
        config.validate()
