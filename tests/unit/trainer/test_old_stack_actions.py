"""What policies of the old API stack do with some actions only is refused with others, by name."""

import gymnasium.spaces as spaces
import numpy as np
import pytest

from rllib_compat.errors import ConfigError
from rllib_compat.trainer.refusals import require_actions

BOX = spaces.Box(-1, 1, (2,), np.float32)
BOTH = spaces.Tuple([spaces.Discrete(2), BOX])


@pytest.mark.parametrize(
    ("config", "takes", "refuses"),
    [
        ({"exploration_config": {"type": "SoftQ"}}, spaces.Discrete(2), BOX),
        ({"exploration_config": {"type": "Curiosity"}}, spaces.MultiDiscrete([2, 3]), BOTH),
        ({"exploration_config": {"type": "GaussianNoise"}}, BOX, spaces.Discrete(2)),
        ({"exploration_config": {"type": "ParameterNoise"}}, spaces.Discrete(2), BOX),
        ({"exploration_config": {"type": "ParameterNoise"}}, spaces.Discrete(2), BOTH),
        ({"model": {"attention_use_n_prev_actions": 2}}, BOX, BOTH),
    ],
)
def test_what_only_some_actions_have_is_refused_with_others(config, takes, refuses):
    require_actions(config, [takes, takes])
    with pytest.raises(ConfigError, match="only, in every Ray") as error:
        require_actions(config, [takes, refuses])
    assert error.value.where.partition(".")[0] in config
    assert error.value.fix


def test_actions_that_are_not_flattened_are_seen_whole():
    config = {"model": {"attention_use_n_prev_actions": 2}, "_disable_action_flattening": True}
    require_actions(config, [BOTH])


def test_distributions_of_ones_own_and_spaces_that_nobody_knows_are_not_judged():
    noise = {"exploration_config": {"type": "ParameterNoise"}}
    require_actions(noise, [None])
    require_actions({**noise, "model": {"custom_action_dist": "mine"}}, [BOX])
