"""Configs that are made by calls, as in Ray 2.0 – 2.9."""

import pickle

import pytest

import rllib_compat as compat
from rllib_compat.config import translate
from rllib_compat.trainer import config_class

PPOConfig, AlgorithmConfig = config_class("PPOConfig"), config_class("AlgorithmConfig")


def made():
    return (
        PPOConfig()
        .environment("CartPole-v1", env_config={"size": 3})
        .rollouts(num_rollout_workers=1, rollout_fragment_length=50)
        .training(lr=0.01, lambda_=0.9, num_sgd_iter=2, model={"fcnet_hiddens": [8]})
        .exploration(explore=False)
        .framework("torch")
    )


def test_calls_are_the_dict_that_they_were():
    assert made().to_dict() == {
        "env": "CartPole-v1",
        "env_config": {"size": 3},
        "num_workers": 1,
        "rollout_fragment_length": 50,
        "lr": 0.01,
        "lambda": 0.9,
        "num_sgd_iter": 2,
        "model": {"fcnet_hiddens": [8]},
        "explore": False,
        "framework": "torch",
    }


def test_a_later_call_adds_to_the_model_and_replaces_the_rest():
    config = made().training(model={"fcnet_activation": "relu"}, lr=0.1)
    assert config.to_dict()["model"] == {"fcnet_hiddens": [8], "fcnet_activation": "relu"}
    assert config.lr == 0.1


def test_settings_are_attributes_and_defaults_can_be_read():
    config = made()
    config.lr = 0.5
    config["gamma"] = 0.8
    assert (config.to_dict()["lr"], config.to_dict()["gamma"]) == (0.5, 0.8)
    assert config.clip_param == 0.3
    assert "clip_param" not in list(config.to_dict())
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = config.nothing_of_the_kind


def test_what_is_changed_in_a_setting_that_was_read_is_set():
    config = PPOConfig()
    config.model["fcnet_hiddens"] = [7]
    config["env_config"]["size"] = 1
    config.training(model={"fcnet_activation": "relu"})
    model = {"fcnet_hiddens": [7], "fcnet_activation": "relu"}
    assert config.to_dict() == {"model": model, "env_config": {"size": 1}}
    assert (config.model["use_lstm"], PPOConfig().model["fcnet_hiddens"]) == (False, [256, 256])
    other = config.copy()
    other.model["fcnet_hiddens"].append(8)
    assert config.model["fcnet_hiddens"] == [7]


def test_a_dict_of_a_config_has_its_defaults_too():
    found = PPOConfig().rollouts(num_rollout_workers=0).to_dict()
    assert (found["lr"], found.get("gamma"), found.get("nothing")) == (5e-5, 0.99, None)
    found["model"]["fcnet_hiddens"] = [3]
    assert "num_sgd_iter" in found
    translation = translate(found, algorithm="PPO")
    assert translation.legacy_config["model"]["fcnet_hiddens"] == [3]
    assert "num_sgd_iter" not in list(translation.legacy_config)


def test_a_config_says_what_it_is_for():
    assert (PPOConfig().algo_class, AlgorithmConfig().algo_class) == (compat.PPOTrainer, None)
    assert not PPOConfig().is_multi_agent()
    assert PPOConfig().multi_agent({"a"}).is_multi_agent()
    frozen = made().copy()
    frozen.freeze()
    with pytest.raises(AttributeError, match="frozen"):
        frozen.lr = 1.0
    assert frozen.copy(copy_frozen=False).training(lr=1.0).lr == 1.0


def test_a_copy_is_changed_for_itself():
    config = made()
    config.copy().training(lr=9.0, model={"fcnet_hiddens": [1]})
    assert (config.lr, config["model"]["fcnet_hiddens"]) == (0.01, [8])


def test_they_translate_as_their_dict_does():
    config = translate(made().to_dict(), algorithm="PPO").algorithm_config
    assert (config.num_env_runners, config.num_epochs, config.lambda_) == (1, 2, 0.9)
    assert not config.explore


def test_classes_and_configs_survive_pickling():
    assert pickle.loads(pickle.dumps(PPOConfig)) is PPOConfig
    assert pickle.loads(pickle.dumps(made())).to_dict() == made().to_dict()


def test_who_calls_todays_methods_gets_todays_config():
    assert made().todays() is None
    config = PPOConfig().api_stack(enable_rl_module_and_learner=True).training(lr=0.25)
    assert config.todays().lr == 0.25
    assert config.todays().enable_rl_module_and_learner


def test_a_switch_of_the_stack_in_a_config_of_ray_2_3_is_no_call_of_today():
    config = PPOConfig().rl_module(_enable_rl_module_api=False).training(lr=0.25)
    assert config.todays() is None
    assert translate(config.to_dict(), algorithm="PPO").algorithm_config.lr == 0.25
    assert PPOConfig().rl_module(rl_module_spec=None).todays() is not None


def test_user_code_gets_them_where_ray_had_them():
    from rllib_compat.legacy import lookup

    assert lookup("ray.rllib.algorithms.ppo", "PPOConfig") is PPOConfig
    assert lookup("ray.rllib.algorithms.ppo.ppo", "PPOConfig") is PPOConfig
