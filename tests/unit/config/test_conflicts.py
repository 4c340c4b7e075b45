"""Two keys of a config that give one setting different values: one wins, and the other is told."""

import pytest

from rllib_compat.config import translate
from rllib_compat.neutral import Severity, Verdict
from tests.unit.config.samples import setting

ENVS = "env_runners.num_envs_per_env_runner"


def both_ways(config, algorithm, path):
    """The setting, whichever of the keys comes first."""
    turned = dict(reversed(config.items()))
    values = [setting(translate(c, algorithm=algorithm), path) for c in (config, turned)]
    assert values[0] == values[1]
    return values[0]


def test_a_newer_key_wins_over_an_older_one():
    config = {"num_envs_per_worker": 3, "num_envs_per_env_runner": 4}
    assert both_ways(config, "PPO", ENVS) == 4


def test_an_algorithms_own_key_wins_over_a_common_one_even_if_that_is_newer():
    config = {"hiddens": [8], "model": {"post_fcnet_hiddens": [7]}}
    assert both_ways(config, "DQN", "rl_module.model_config.head_fcnet_hiddens") == [8]


def test_what_somebody_chose_wins_over_a_default_even_if_that_is_newer():
    config = {"num_envs_per_worker": 3, "num_envs_per_env_runner": 1}
    assert both_ways(config, "PPO", ENVS) == 3


@pytest.mark.parametrize(("older", "severity"), [(3, Severity.WARNING), (1, Severity.INFO)])
def test_a_value_that_lost_is_a_warning_only_if_somebody_chose_it(older, severity):
    config = {"num_envs_per_worker": older, "num_envs_per_env_runner": 4}
    report = translate(config, algorithm="PPO").report
    (row,) = [f for f in report if f.path == "$.num_envs_per_worker"]
    assert (row.verdict, row.severity) == (Verdict.DROPPED, severity)
    assert "num_envs_per_env_runner decides" in row.message


def test_values_that_agree_are_no_conflict():
    config = {"num_envs_per_worker": 4, "num_envs_per_env_runner": 4}
    assert both_ways(config, "PPO", ENVS) == 4
    assert not [f for f in translate(config, algorithm="PPO").report if "decides" in f.message]


def test_a_grid_search_whose_alternatives_need_different_settings_is_a_warning():
    config = {"lr_schedule": {"grid_search": [None, [[0, 0.1], [10, 0.2]]]}}
    (row,) = [f for f in translate(config, algorithm="PPO").report if "lr_schedule" in f.path]
    assert row.severity is Severity.WARNING
    assert "alternatives" in row.message
