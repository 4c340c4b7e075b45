"""Each setting of each algorithm makes a policy of the old API stack, too."""

import gymnasium
import pytest

pytest.importorskip("ray")

from rllib_compat import registry, translate
from rllib_compat.errors import CompatError
from rllib_compat.registry import keys
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

SCHEDULES = {
    "lr_schedule": [[0, 1e-3], [1000, 1e-4]],
    "entropy_coeff_schedule": [[0, 0.1], [1000, 0.0]],
}
#: What says nothing to a policy, or (`use_critic`) nothing alone, as the old Ray said, too.
OF_OTHERS = {"callbacks", "env", "framework", "multiagent", "use_critic"}
#: With these, CQL's loss failed in Ray 1.13.0 as it does now.
FAILED_THEN = {"_deterministic_loss", "_use_beta_distribution", "normalize_actions"}
ACTS_BY_NUMBERS = {"APEX_DDPG", "BC", "CQL", "DDPG", "MARWIL", "TD3"}


def others(value):
    """A value of a setting that is not its default."""
    if isinstance(value, bool):
        return not value
    return value * 2 or 1 if isinstance(value, (int, float)) else value


def made(algorithm, setting, value):
    """What is made of a setting: a policy of the old API stack, or the refusal of it."""
    told = {"framework": "torch", "env": "CartPole-v1", setting: value}
    how = {"legacy_ray": "1.13.0", "api_stack": "old", "on_unknown": "warn"}
    try:
        config = translate(told, algorithm=algorithm, **how).algorithm_config
    except CompatError as refusal:
        return refusal
    policy = config.algo_class.get_default_policy_class(config)
    if not isinstance(policy, type):
        return None
    actions = gymnasium.spaces.Discrete(2)
    if algorithm in ACTS_BY_NUMBERS:
        actions = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    return policy(gymnasium.spaces.Box(-1.0, 1.0, (4,)), actions, config.to_dict())


#: Those whose policies of that stack are this package's own; the night runs the others.
OURS = {"A2C", "A3C", "PG"}
ALGORITHMS = [
    pytest.param(row.name, marks=() if row.name in OURS else pytest.mark.nightly)
    for row in registry.trained()
]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_setting_makes_a_policy(algorithm):
    defaults = keys.default_config(algorithm, "1.13.0")
    own = {key: others(defaults[key]) for key in keys.section(algorithm) if key in defaults}
    left_out = OF_OTHERS | (FAILED_THEN if algorithm == "CQL" else set())
    for setting, value in {**own, **SCHEDULES}.items():
        if setting not in left_out:
            found = made(algorithm, setting, value)
            if isinstance(found, CompatError):
                assert found.fix or found.findings
