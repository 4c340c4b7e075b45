"""ES and ARS, which this package has for the new API stack."""

from __future__ import annotations

from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, dropped, kept, renamed
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Whole, Words
from rllib_compat.neutral.report import Verdict

FAMILY = "evolution"
ES, ARS = ("ES",), ("ARS",)
BOTH = (*ES, *ARS)

HIDDENS = "rl_module.model_config.fcnet_hiddens"
#: A gigabyte of noise, which is the default.
NOISE = Whole(1, ample=250_000_000)
LINEAR = "LinearPolicy"


def _stepsize(value: Any, context: Context) -> Outcome:
    """ARS of Ray 0.5 had it by the name that ES has for it."""
    if context.algorithm == "ARS":
        return Outcome({"training.sgd_stepsize": value}, Verdict.RENAMED)
    return Outcome({"training.stepsize": value})


def _policy_type(value: Any, _: Context) -> Outcome:
    if value == LINEAR:
        return Outcome({HIDDENS: []}, Verdict.CONVERTED, "a network without hidden layers")
    return Outcome(verdict=Verdict.DROPPED, message="fcnet_hiddens has its layers")


def _hiddens(value: Any, context: Context) -> Outcome:
    if context.get("policy_type", LINEAR) in (None, LINEAR):
        return Outcome(verdict=Verdict.DROPPED, message="a linear policy has no hidden layers")
    return Outcome({HIDDENS: value})


RULES = (
    *kept(
        FAMILY,
        "training",
        {
            v.AMOUNT: "noise_stdev action_noise_std",
            v.SHARE: "eval_prob",
            v.SOME: "report_length",
            NOISE: "noise_size",
        },
        algorithms=BOTH,
    ),
    *kept(
        FAMILY,
        "training",
        {v.AMOUNT: "l2_coeff", v.SOME: "episodes_per_batch"},
        algorithms=ES,
    ),
    *kept(
        FAMILY,
        "training",
        {v.RATE: "sgd_stepsize", v.SOME: "num_rollouts rollouts_used", v.NUMBER: "offset"},
        algorithms=ARS,
    ),
    *renamed(
        FAMILY,
        "training",
        {v.SOME: {"num_deltas": "num_rollouts", "deltas_used": "rollouts_used"}},
        algorithms=ARS,
    ),
    Rule(
        FAMILY,
        "stepsize",
        Verdict.KEPT,
        convert=_stepsize,
        target="training.stepsize",
        value=v.RATE,
        algorithms=BOTH,
    ),
    Rule(
        FAMILY,
        "policy_type",
        Verdict.CONVERTED,
        convert=_policy_type,
        target=HIDDENS,
        value=Words((LINEAR, "MLPPolicy")),
        algorithms=ARS,
    ),
    Rule(
        FAMILY,
        "fcnet_hiddens",
        Verdict.RENAMED,
        convert=_hiddens,
        target=HIDDENS,
        value=v.LAYERS,
        algorithms=ARS,
    ),
    *dropped(
        FAMILY,
        "return_proc_mode",
        "there never was another",
        value=Words(("centered_rank",)),
        algorithms=ES,
    ),
    *dropped(FAMILY, "tf_single_threaded", "networks are torch's", algorithms=BOTH),
    *dropped(
        FAMILY,
        "normalize_actions clip_actions",
        "what the network gives goes to the environment as it is, as it always did",
        algorithms=BOTH,
    ),
)
