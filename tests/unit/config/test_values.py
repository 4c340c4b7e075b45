"""Values of a wrong kind: what people are told about their own configs."""

import pytest

from rllib_compat.config import translate
from rllib_compat.errors import RefusedKeysError
from rllib_compat.ray_versions import releases

WRONG = [
    ({"sampler_perf_stats_ema_coef": 1.5}, "$.sampler_perf_stats_ema_coef", "from 0 to 1"),
    ({"num_workers": "two"}, "$.num_workers", "a whole number from 0 to 1,000,000"),
    ({"num_workers": 1.5}, "$.num_workers", "a whole number from 0 to 1,000,000"),
    ({"lr": "fast"}, "$.lr", "a number from 0 on"),
    ({"use_gae": "false"}, "$.use_gae", "true or false"),
    ({"batch_mode": "truncate"}, "$.batch_mode", '"truncate_episodes", "complete_episodes"'),
    ({"framework": "theano"}, "$.framework", '"torch"'),
    ({"model": {"fcnet_hiddens": 256}}, "$.model.fcnet_hiddens", "a list of layer sizes"),
    ({"model": {"fcnet_hiddens": [256, -1]}}, "$.model.fcnet_hiddens", "from 1 on"),
    ({"model": {"conv_filters": [[16, 8]]}}, "$.model.conv_filters[0]", "a whole number"),
    ({"model": [256, 256]}, "$.model", "a dict"),
    ({"env_config": "size=5"}, "$.env_config", "a dict of plain data"),
    ({"callbacks": 5}, "$.callbacks", "a callbacks class"),
    ({"multiagent": {"policies": {"a": (None, None, None, {"lr": "x"})}}}, "policies.a[3].lr", "0"),
    ({"evaluation_config": {"explore": "no"}}, "$.evaluation_config.explore", "true or false"),
    ({"exploration_config": {"type": 3}}, "$.exploration_config.type", '"EpsilonGreedy"'),
    ({"custom_resources_per_worker": {"tpu": "all"}}, "per_worker.tpu", "a number from 0"),
    ({"train_batch_size": float("nan")}, "$.train_batch_size", "nan is not a valid value"),
]


@pytest.mark.parametrize(("config", "path", "expected"), WRONG, ids=lambda x: str(x)[:40])
def test_a_value_of_a_wrong_kind_is_refused_with_its_path_and_what_it_may_be(
    config, path, expected
):
    translation = translate(config, algorithm="PPO")
    with pytest.raises(RefusedKeysError) as error:
        translation.algorithm_config  # noqa: B018
    (finding,) = error.value.findings
    assert finding.path.endswith(path)
    assert expected in finding.message
    assert finding.hint


def test_numbers_that_yaml_takes_for_text_are_numbers():
    settings = translate({"lr": "5e-5", "train_batch_size": "1e3"}, algorithm="PPO").calls
    assert settings["training"] == {"lr": 5e-5, "train_batch_size_per_learner": 1000}


@pytest.mark.skipif(
    not releases.at_least("2.52"),
    reason="Ray 2.40 has no such setting, and those until 2.51 want the name",
)
def test_a_member_of_an_enum_that_a_ray_dumped_by_name_is_its_value():
    calls = translate({"gym_env_vectorize_mode": "SYNC"}, algorithm="PPO").calls
    assert calls["env_runners"] == {"gym_env_vectorize_mode": "sync"}
    silent = translate({}, algorithm="PPO", legacy_ray="2.46.0").calls.get("env_runners", {})
    assert silent.get("gym_env_vectorize_mode", "sync") != "SYNC"


def test_objects_whose_kind_nobody_knows_pass():
    """A search space of Tune, for example, is sampled before Ray sees the config."""
    domain = object()
    assert translate({"gamma": domain}, algorithm="PPO").calls["training"]["gamma"] is domain


def test_a_config_that_contains_itself_is_an_error_with_a_sentence():
    from rllib_compat.errors import ConfigError

    config = {"env_config": {}}
    config["env_config"]["again"] = config
    with pytest.raises(ConfigError, match="contains itself"):
        translate(config, algorithm="PPO")


def test_a_dict_space_in_an_environments_config_stays_a_space():
    from gymnasium.spaces import Dict, Discrete

    space = Dict({"a": Discrete(2), "b": Dict({"c": Discrete(3)})})
    found = translate({"env": "CartPole-v1", "env_config": {"space": space}}, algorithm="PPO")
    assert found.algorithm_config.env_config["space"] is space
    assert found.env_settings.env_config["space"] is space
