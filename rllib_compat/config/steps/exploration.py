"""Exploration on the old API stack."""

from __future__ import annotations

from rllib_compat.config.context import Context
from rllib_compat.config.steps.step import ABSENT, COMPUTED, Change, Given, Step

CONFIG = "env_runners.exploration_config"


def _one_by_one(given: Given, _: Context) -> Change | None:
    """Gives each key of a whole `exploration_config` a setting of its own."""
    config = given.get(CONFIG)
    if not isinstance(config, dict):
        return None
    apart = {f"{CONFIG}.{key}": value for key, value in config.items()}
    given_apart = set(given.below(CONFIG))
    return Change({CONFIG: ABSENT, **{k: v for k, v in apart.items() if k not in given_apart}})


STEPS = (
    Step(
        "exploration_config",
        "What stands in `exploration_config` and what comes from keys of its own is put together.",
        stack="old",
        reads=(CONFIG,),
        sets={CONFIG: COMPUTED},
        change=_one_by_one,
    ),
    Step(
        "epsilon_greedy",
        "The old API stack's policies need an exploration type, which Ray's configs no longer "
        "have by default. DQN explored by epsilon.",
        algorithms=("DQN",),
        stack="old",
        sets={f"{CONFIG}.type": "EpsilonGreedy"},
        fills=True,
    ),
    Step(
        "stochastic_sampling",
        "The old API stack's policies need an exploration type, which Ray's configs no longer "
        "have by default. All but DQN sampled their actions.",
        stack="old",
        sets={f"{CONFIG}.type": "StochasticSampling"},
        fills=True,
    ),
)
