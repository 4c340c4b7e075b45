"""QMIX, which this package has for the new API stack, and APEX_QMIX, which trains as it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.keys import was_default
from rllib_compat.config.rule import (
    Outcome,
    Rule,
    drop_aloud,
    dropped,
    kept,
    needless,
    renamed,
)
from rllib_compat.config.rules.exploration import EPSILON, EXPLORATION, epsilon_of, type_name
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "qmix"
OLD_MODEL = "a ModelV2 class runs on the old API stack only"
QMIX = registry.family("QMIX")


def _exploration(value: Any, context: Context) -> Outcome:
    if not isinstance(value, Mapping):
        return drop_aloud(value, context)
    kind = type_name(value)
    if was_default("exploration_config", value, context.legacy_algorithm):
        kind = None
    if kind not in (None, "EpsilonGreedy", "PerWorkerEpsilonGreedy"):
        return Outcome(
            {},
            Verdict.REFUSED,
            f"QMIX explores with epsilon-greedy actions, not by {kind}",
            Severity.ERROR,
            "override `_forward_exploration` of rllib_compat.modules.QMIXModule",
        )
    if kind == "PerWorkerEpsilonGreedy":
        context.note(
            Verdict.CONVERTED,
            ".type",
            "each worker had an epsilon of its own; all have the same now",
            severity=Severity.WARNING,
        )
    if not needless(value.get("epsilon_schedule")):
        context.note(
            Verdict.DROPPED,
            ".epsilon_schedule",
            "epsilon falls in a straight line",
            severity=Severity.WARNING,
            hint="training(epsilon=[[step, epsilon], …])",
        )
    if not any(key in value for key in (*EPSILON, "warmup_timesteps")):
        return Outcome(verdict=Verdict.DROPPED, message="epsilon-greedy, as by default")
    return Outcome({"training.epsilon": epsilon_of(value)}, Verdict.CONVERTED)


def _refused(nothing: Callable[[Any], bool], idle: str, why: str, hint: str) -> Any:
    """Refuses what was asked for, unless that was nothing."""

    def convert(value: Any, _: Context) -> Outcome:
        if nothing(value):
            return Outcome(verdict=Verdict.DROPPED, message=idle)
        return Outcome({}, Verdict.REFUSED, why, Severity.ERROR, hint)

    return convert


def _rule(
    key: str, value: Any, why: str, convert: Any, target: str = "", verdict: Any = None
) -> Rule:
    return Rule(
        FAMILY,
        key,
        verdict or Verdict.DROPPED,
        why,
        target=target,
        convert=convert,
        value=value,
        algorithms=QMIX,
    )


RULES = (
    *kept(
        FAMILY,
        "training",
        {
            Words(("qmix", "vdn")): "mixer",
            v.CELL: "mixing_embed_dim",
            v.FLAG: "double_q",
            v.AMOUNT: "optim_alpha optim_eps",
            v.SHARE: "tau",
            v.STEPS: "target_network_update_freq",
            v.SCHEDULED_SHARE: "epsilon",
        },
        algorithms=QMIX,
    ),
    *renamed(
        FAMILY,
        "training",
        {
            v.CELL: {"model.lstm_cell_size": "lstm_cell_size"},
            v.LENGTH: {"model.max_seq_len": "max_seq_len"},
        },
        why="a setting of the algorithm, no longer of its model",
        algorithms=QMIX,
    ),
    _rule(
        "exploration_config",
        EXPLORATION,
        "the module explores by itself, with epsilon",
        _exploration,
        "training.epsilon",
        Verdict.CONVERTED,
    ),
    _rule(
        "observation_filter",
        Words(("NoFilter", "MeanStdFilter", "ConcurrentMeanStdFilter")) | v.CODE,
        "groups' observations are not filtered",
        _refused(
            lambda value: value in (None, "NoFilter"),
            "no filter was asked for",
            "it filtered action masks along with what is observed",
            "scale the observations in the environment",
        ),
    ),
    _rule(
        "model.custom_model",
        v.CODE,
        OLD_MODEL,
        _refused(
            needless,
            "nothing was asked for",
            OLD_MODEL,
            "write an RLModule, a subclass of rllib_compat.modules.QMIXModule",
        ),
    ),
    *dropped(FAMILY, "adam_epsilon", "it learns with RMSprop", algorithms=QMIX),
)
