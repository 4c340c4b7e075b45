"""How policies of Q-values explored, beside epsilon: noisy nets, soft Q, noise on weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, needless
from rllib_compat.config.rules import exploration
from rllib_compat.config.rules.dqn import PLAIN
from rllib_compat.config.rules.exploration import (
    OLD,
    PARAMETER_NOISE,
    SOFT_Q,
    epsilon_of,
    noise_on_weights,
    type_name,
    typed,
)
from rllib_compat.config.values import common as v
from rllib_compat.networks.heads.q_head import EXPLORING
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "q_exploration"
#: What modules of this package are told.
SIGMA, TEMPERATURE, NOISE = (f"rl_module.model_config.{name}" for name in EXPLORING)
EPSILON = "training.epsilon"
#: What epsilon fell to at once behind the random steps of `ParameterNoise`.
_AFTER_RANDOM_STEPS = 0.01


def needs_old(config: Any) -> bool:
    """Whether only policies of the old API stack explore so."""
    return type_name(config) not in (SOFT_Q, PARAMETER_NOISE) and exploration.needs_old(config)


def of_config(value: Any, context: Context) -> Outcome:
    """What becomes of the `exploration_config` of a policy of Q-values."""
    kind = type_name(value)
    if context.stack == "old":
        return exploration.of_config(value, context)
    if kind not in (SOFT_Q, PARAMETER_NOISE):
        outcome = exploration.of_config(value, context)
        if kind is None:  # the type is the one that all policies have
            return outcome
        return _without(outcome, context, TEMPERATURE, NOISE)
    settings, known = (_soft_q if kind == SOFT_Q else _parameter_noise)(value, context)
    for key, one in value.items():
        if key not in ("type", "framework", *known):
            context.note(
                Verdict.DROPPED,
                f".{key}",
                f"{kind} did not read it",
                severity=Severity.INFO if needless(one) else Severity.WARNING,
            )
    settings |= _not(context, NOISE if kind == SOFT_Q else TEMPERATURE)
    return Outcome(settings, Verdict.CONVERTED, f"a module of this package explores by {kind}")


def _not(context: Context, *targets: str) -> dict[str, None]:
    """Takes from a policy of many what all others may have; elsewhere there is nothing to take."""
    return dict.fromkeys(targets) if ".policies." in context.path else {}


def _without(outcome: Outcome, context: Context, *targets: str) -> Outcome:
    """The same outcome, of a policy that does not explore by these."""
    if context.stack == "old":
        return outcome
    return Outcome(
        {**_not(context, *targets), **outcome.settings},
        outcome.verdict,
        outcome.message,
        outcome.severity,
        outcome.hint,
    )


def _soft_q(config: Mapping[str, Any], _: Context) -> tuple[dict[str, Any], tuple[str, ...]]:
    steps = config.get("random_timesteps") or 0
    settings = {
        TEMPERATURE: config.get("temperature", 1.0),
        EPSILON: [[0, 1.0], [steps, 1.0], [steps + 1, 0.0]] if steps else 0.0,
    }
    return settings, ("temperature", "random_timesteps")


def _parameter_noise(
    config: Mapping[str, Any], context: Context
) -> tuple[dict[str, Any], tuple[str, ...]]:
    helper = config.get("sub_exploration")
    if helper and type_name(helper) not in (None, "EpsilonGreedy"):
        context.note(
            Verdict.DROPPED,
            ".sub_exploration",
            f"the helper is epsilon-greedy, not {type_name(helper)}",
            severity=Severity.WARNING,
            hint="api_stack='old' keeps it",
        )
        helper = None
    steps = config.get("random_timesteps", 10_000)
    by_default = [[0, 1.0], [steps + 1, 1.0], [steps + 2, _AFTER_RANDOM_STEPS]]
    settings = {
        NOISE: noise_on_weights(config),
        EPSILON: _epsilon_of_helper(helper, context) if helper else by_default,
    }
    return settings, ("initial_stddev", "random_timesteps", "sub_exploration")


def _epsilon_of_helper(helper: Mapping[str, Any], context: Context) -> list[list[float]]:
    schedule = helper.get("epsilon_schedule")
    points = schedule.get("endpoints") if isinstance(schedule, Mapping) else None
    if points:
        return [list(point) for point in points]
    if schedule:
        context.note(
            Verdict.DROPPED,
            ".sub_exploration.epsilon_schedule",
            f"{schedule!r} names no endpoints",
            severity=Severity.WARNING,
            hint="training(epsilon=[[step, epsilon], …])",
        )
    return epsilon_of(helper)


def _noisy(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"training.noisy": value}, Verdict.KEPT)
    if not value:
        return Outcome(_not(context, SIGMA), Verdict.DROPPED, "its layers had no noise")
    return Outcome({SIGMA: context.get("sigma0", 0.5)})


def _sigma(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"training.sigma0": value}, Verdict.KEPT)
    if context.get("noisy"):
        return Outcome({SIGMA: value}, Verdict.MOVED)
    return Outcome(verdict=Verdict.DROPPED, message="only noisy nets read it")


def _soft(value: Any, context: Context) -> Outcome:
    if context.stack == "old" or needless(value):
        outcome: Outcome = typed(SOFT_Q, temperature="softmax_temp")(value, context)
        return _without(outcome, context, TEMPERATURE)
    return Outcome({TEMPERATURE: context.get("softmax_temp", 1.0)})


def _temperature(value: Any, context: Context) -> Outcome:
    if not context.get("soft_q"):
        return Outcome(verdict=Verdict.DROPPED, message="only `soft_q` read it")
    return Outcome({f"{OLD}.temperature" if context.stack == "old" else TEMPERATURE: value})


def _noise(value: Any, context: Context) -> Outcome:
    if context.stack == "old" or needless(value):
        outcome: Outcome = typed(PARAMETER_NOISE)(value, context)
        return _without(outcome, context, NOISE)
    return Outcome({NOISE: noise_on_weights({})})


def _rule(key: str, why: str, target: str, old_target: str, convert: Any, value: Any) -> Rule:
    return Rule(
        FAMILY,
        key,
        Verdict.MOVED,
        why,
        target=target,
        old_target=old_target,
        convert=convert,
        value=value,
        algorithms=PLAIN,
    )


RULES = (
    Rule(
        FAMILY,
        "exploration_config",
        Verdict.CONVERTED,
        "how policies explored",
        target=EPSILON,
        old_target=OLD,
        convert=of_config,
        value=exploration.EXPLORATION,
        needs_old=needs_old,
        algorithms=tuple(name for name in PLAIN if name != "APEX"),
        hint="",
    ),
    _rule(
        "noisy",
        "a module of this package has noisy layers",
        SIGMA,
        "training.noisy",
        _noisy,
        v.FLAG,
    ),
    _rule(
        "sigma0", "the noise of noisy layers at first", SIGMA, "training.sigma0", _sigma, v.NUMBER
    ),
    _rule(
        "soft_q",
        "a module of this package draws actions by their values",
        TEMPERATURE,
        f"{OLD}.type",
        _soft,
        v.FLAG,
    ),
    _rule(
        "softmax_temp",
        "what values are divided by in soft Q",
        TEMPERATURE,
        f"{OLD}.temperature",
        _temperature,
        v.AMOUNT,
    ),
    _rule(
        "parameter_noise",
        "a module of this package explores with noise on its weights",
        NOISE,
        f"{OLD}.type",
        _noise,
        v.FLAG,
    ),
)
