"""What a config can't have on the old API stack is refused in words of the config."""

import pytest

from rllib_compat.config import translate
from rllib_compat.errors import ConfigError
from rllib_compat.trainer.refusals import refused

NOISE = {"exploration_config": {"type": "OrnsteinUhlenbeckNoise"}}


def error_of(call):
    try:
        call()
    except Exception as error:
        return error


def of_ray():
    from ray.rllib.utils.exploration.ornstein_uhlenbeck_noise import OrnsteinUhlenbeckNoise

    OrnsteinUhlenbeckNoise(None, framework="torch", policy_config={}, model=None)


def of_ray_without_a_word():
    from gymnasium.spaces import Tuple
    from ray.rllib.utils.exploration.parameter_noise import ParameterNoise

    ParameterNoise(Tuple([]), framework="torch", policy_config={}, model=None)


def of_the_user():
    raise ValueError("mine")


@pytest.mark.parametrize(
    ("config", "call", "is_said"),
    [
        (NOISE, of_ray, True),
        (NOISE, of_ray_without_a_word, True),
        (NOISE, of_the_user, False),
        ({"exploration_config": {"type": dict}}, of_ray, False),
        ({"model": {"custom_model": "mine"}}, of_ray, False),
        ({}, of_ray, False),
    ],
)
def test_an_error_of_ray_names_the_keys_unless_own_code_may_be_wrong(config, call, is_said):
    why = refused(error_of(call), translate(config, algorithm="DQN"))
    assert (why is not None) == is_said
    if is_said:
        assert isinstance(why, ConfigError)
        assert "$.exploration_config" in str(why)
        assert why.fix


def test_noise_on_weights_that_policies_fail_with_is_refused_by_name():
    config = {"exploration_config": {"type": "ParameterNoise"}}
    why = refused(error_of(of_ray), translate(config, algorithm="PG"))
    assert why.where == "exploration_config"
    assert "PG can't be built with 'ParameterNoise'" in str(why)


def test_a_model_that_is_no_whole_sac_is_told_where_it_belongs():
    class Layers:
        def __init__(self, observations, actions):
            pass

    config = {"model": {"custom_model": "layers"}}
    error = error_of(lambda: Layers(None, None, policy_model_config={}))
    why = refused(error, translate(config, algorithm="SAC"))
    assert why.where == "model.custom_model"
    assert "Q_model.custom_model" in why.fix
