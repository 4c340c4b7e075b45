"""The linear bandits and Random, which this package has for the new API stack."""

from __future__ import annotations

from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, dropped, kept
from rllib_compat.config.rules.exploration import EXPLORATION, type_name
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Number
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "bandits"
#: Algorithm → how it explores; the second name was that of Ray 0.8 – 1.10.
EXPLORES = {
    "BanditLinTS": ("ThompsonSampling", "ThompsonSampling"),
    "BanditLinUCB": ("UpperConfidenceBound", "UCB"),
}
BANDITS = tuple(EXPLORES)


def _exploration(value: Any, context: Context) -> Outcome:
    asked = type_name(value)
    if asked is None or context.algorithm not in EXPLORES or asked in EXPLORES[context.algorithm]:
        return Outcome(message="the algorithm's name says how it explores")
    other = next((name for name, kinds in EXPLORES.items() if asked in kinds), None)
    return Outcome(
        {},
        Verdict.REFUSED,
        f"{context.algorithm} explores in its own way, not by {asked}",
        Severity.ERROR,
        f"the algorithm that does is {other}" if other else "leave exploration_config out",
    )


def _model(key: str) -> Rule:
    return Rule(
        FAMILY,
        f"model.{key}",
        Verdict.RENAMED,
        "a setting of the algorithm, no longer of its model",
        target=f"training.{key}",
        value=Number(0),
        algorithms=BANDITS,
    )


RULES = (
    _model("alpha"),
    _model("lambda_"),
    Rule(
        FAMILY,
        "exploration_config",
        Verdict.DROPPED,
        "the algorithm's name says how it explores",
        convert=_exploration,
        value=EXPLORATION,
        algorithms=(*BANDITS, "Random"),
    ),
    *kept(FAMILY, "training", {v.SOME: "rollouts_per_iteration"}, algorithms=("Random",)),
    *dropped(
        FAMILY,
        "normalize_actions clip_actions",
        "what is drawn from the action space goes to the environment as it is",
        algorithms=("Random",),
    ),
    *dropped(FAMILY, "lr", "there are no gradients", algorithms=(*BANDITS, "Random")),
)
