"""Exploration: what a way to explore needs of other settings."""

from __future__ import annotations

from rllib_compat.config.context import Context
from rllib_compat.config.rules.ddpg import ON_WEIGHTS
from rllib_compat.config.rules.q_exploration import EPSILON, NOISE, TEMPERATURE
from rllib_compat.config.steps.step import ABSENT, COMPUTED, Change, Given, Step

BATCH_MODE = "env_runners.batch_mode"
CONFIG = "env_runners.exploration_config"


def _one_by_one(given: Given, _: Context) -> Change | None:
    """Gives each key of a whole `exploration_config` a setting of its own."""
    config = given.get(CONFIG)
    if not isinstance(config, dict):
        return None
    apart = {f"{CONFIG}.{key}": value for key, value in config.items()}
    given_apart = set(given.below(CONFIG))
    return Change({CONFIG: ABSENT, **{k: v for k, v in apart.items() if k not in given_apart}})


def _ends_above_zero(epsilon: object) -> bool:
    return bool(epsilon[-1][1] if isinstance(epsilon, list) else epsilon)


STEPS = (
    Step(
        "soft_q",
        "Soft Q drew actions by their values, whatever epsilon was; today's modules know both.",
        stack="new",
        reads=(TEMPERATURE, EPSILON),
        sets={EPSILON: 0.0},
        when=lambda g: TEMPERATURE in g and _ends_above_zero(g.effective(EPSILON)),
        says="soft Q drew actions by their values, whatever epsilon was",
    ),
    Step(
        "parameter_noise",
        "Noise on weights is for whole episodes, which are looked at once they have ended. RLlib "
        "asked for `complete_episodes` with it, too.",
        stack="new",
        key="batch_mode",
        reads=(NOISE, ON_WEIGHTS, BATCH_MODE),
        sets={BATCH_MODE: "complete_episodes"},
        when=lambda g: (NOISE in g or ON_WEIGHTS in g) and g.get(BATCH_MODE) != "complete_episodes",
        says="noise on weights needs whole episodes",
    ),
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
