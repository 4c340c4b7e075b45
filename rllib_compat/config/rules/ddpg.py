"""DDPG and TD3, which this package has for the new API stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, drop_aloud, dropped, kept, needless
from rllib_compat.config.rules.exploration import (
    EXPLORATION,
    PARAMETER_NOISE,
    noise_on_weights,
    type_name,
)
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import Fields, Row
from rllib_compat.config.values.kinds import Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "ddpg"
DDPG = registry.family("DDPG")
NOISE, ON_WEIGHTS = "training.exploration_noise", "training.parameter_noise"
GAUSSIAN, OU = "GaussianNoise", "OrnsteinUhlenbeckNoise"
#: The classes by which each worker had noise of its own scale → what all would have.
PER_WORKER = {"PerWorkerOrnsteinUhlenbeckNoise": OU, "PerWorkerGaussianNoise": GAUSSIAN}
TYPES = (GAUSSIAN, OU, *PER_WORKER, "StochasticSampling", PARAMETER_NOISE)

#: What the module's noise can't do.
_HELPERS = ("scale_schedule", "sub_exploration")


def _needs_old(config: Any) -> bool:
    name = type_name(config)
    return name is not None and name not in TYPES


def _exploration_config(value: Any, context: Context) -> Outcome:
    if not value:
        return Outcome(verdict=Verdict.DROPPED, message="nothing was asked for")
    if not isinstance(value, Mapping):
        return drop_aloud(value, context)
    settings: dict[str, Any] = {}
    kind = type_name(value) or ""
    if kind == PARAMETER_NOISE:
        settings[ON_WEIGHTS] = noise_on_weights(value)
        value = _helper_of_noise_on_weights(value)
        kind = type_name(value) or ""
    if kind and context.algorithm == "APEX_DDPG":
        settings["training.per_worker_exploration"] = kind in PER_WORKER
    elif kind in PER_WORKER:
        context.note(
            Verdict.CONVERTED,
            ".type",
            "each worker had a scale of its own; all have the same now",
            severity=Severity.WARNING,
        )
    for key, one in value.items():
        if key in _HELPERS and not needless(one):
            context.note(
                Verdict.DROPPED,
                f".{key}",
                "the noise has a scale that falls in a straight line, and no helper",
                severity=Severity.WARNING,
                hint="override `_forward_exploration` of the RLModule",
            )
        elif key not in (*_HELPERS, "framework") and one is not None:
            settings[f"{NOISE}.{key}"] = PER_WORKER.get(kind, kind) if key == "type" else one
    return Outcome(settings, Verdict.CONVERTED, "the module adds the noise itself")


def _helper_of_noise_on_weights(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The noise on actions that went with that on weights."""
    steps = config.get("random_timesteps", 10_000)
    return config.get("sub_exploration") or {"type": OU, "random_timesteps": steps}


def _parameter_noise(value: Any, _: Context) -> Outcome:
    if needless(value):
        return Outcome(verdict=Verdict.DROPPED, message="nothing was asked for")
    told = dict(value) if isinstance(value, Mapping) else noise_on_weights({})
    return Outcome({ON_WEIGHTS: told})


def _kind(context: Context) -> str:
    """The noise of Ray 0.6 – 0.8.0, where a key of its own said which; TD3's was another."""
    by_default = "gaussian" if context.legacy_algorithm == "TD3" else "ou"
    if context.get("exploration_noise_type") is None and context.get("smooth_target_policy"):
        by_default = "gaussian"  # Ray 0.6 decided by this key
    return GAUSSIAN if context.get("exploration_noise_type", by_default) == "gaussian" else OU


def _as(name: str, only: str = "") -> Callable[[Any, Context], Outcome]:
    """What one key of Ray 0.5 – 0.8.0 said of the noise; nothing, if that was of another kind."""

    def convert(value: Any, context: Context) -> Outcome:
        if value is None or (only and only != _kind(context)):
            return Outcome(verdict=Verdict.DROPPED, message="the noise is of another kind")
        return Outcome({f"{NOISE}.{name}": value})

    return convert


def _type(_: Any, context: Context) -> Outcome:
    return Outcome({f"{NOISE}.type": _kind(context)})


def _base_scale(value: Any, context: Context) -> Outcome:
    """Ray 0.5 and 0.6: no steps at random, and always a schedule."""
    if _kind(context) != OU:
        return Outcome({f"{NOISE}.random_timesteps": 0})
    return Outcome({f"{NOISE}.ou_base_scale": value, f"{NOISE}.random_timesteps": 0})


def _length(_: Any, context: Context) -> Outcome:
    most, part = context.get("schedule_max_timesteps"), context.get("exploration_fraction")
    most, part = 100_000 if most is None else most, 0.1 if part is None else part
    return Outcome({f"{NOISE}.scale_timesteps": max(1, int(part * most))})


def _anneal(value: Any, _: Context) -> Outcome:
    if value:
        return Outcome(message="the noise's scale falls, as by default")
    return Outcome({f"{NOISE}.final_scale": 1.0})


def _final_scale(value: Any, context: Context) -> Outcome:
    if not context.get("exploration_should_anneal", True):
        return Outcome(verdict=Verdict.DROPPED, message="the noise's scale did not fall")
    return Outcome({f"{NOISE}.final_scale": value})


def _smooth(value: Any, _: Context) -> Outcome:
    """TD3's default was a tuple from Ray 2.0 to 2.10, where a comma had slipped in."""
    first = value[0] if isinstance(value, (list, tuple)) else value
    return Outcome({"training.smooth_target_policy": bool(first)})


def _was_torch(context: Context) -> bool:
    framework = context.get("framework", context.get("framework_str"))
    return framework == "torch" or (framework is None and bool(context.get("use_pytorch")))


def _l2_reg(value: Any, context: Context) -> Outcome:
    if value is None:
        return Outcome({"training.l2_reg": 0.0})
    if value and _was_torch(context):
        return Outcome(
            {"training.l2_reg": 0.0},
            Verdict.CONVERTED,
            "torch's policies added it to the losses without a gradient: it changed nothing",
            hint=f"training(l2_reg={value!r}) makes weights smaller, as with TensorFlow",
        )
    return Outcome({"training.l2_reg": value})


def _lr(value: Any, context: Context) -> Outcome:
    """Ray 0.6 had one optimizer for all; later ones read a rate for each."""
    if context.get("actor_loss_coeff") is None and context.get("critic_loss_coeff") is None:
        return Outcome(
            verdict=Verdict.DROPPED,
            message="no loss read it: `actor_lr` and `critic_lr` are what counts",
        )
    return Outcome({"training.actor_lr": value, "training.critic_lr": value})


def _custom_model(value: Any, context: Context) -> Outcome:
    if needless(value):
        return Outcome(verdict=Verdict.DROPPED, message="nothing was asked for")
    if not context.get("use_state_preprocessor"):
        return Outcome(
            verdict=Verdict.DROPPED,
            message="without `use_state_preprocessor` no network was made of it",
        )
    return Outcome(
        {},
        Verdict.REFUSED,
        "what comes before actor and critics can't be a ModelV2",
        Severity.ERROR,
        "write an RLModule, a subclass of rllib_compat.modules.DeterministicModule",
    )


#: Key → what it may be, what it becomes; all of them of Ray 0.5 – 0.8.0.
_OF_NOISE: Mapping[str, tuple[Any, Callable[[Any, Context], Outcome]]] = {
    "exploration_noise_type": (Words(("ou", "gaussian")), _type),
    "noise_scale": (v.AMOUNT, _base_scale),
    "exploration_theta": (v.NUMBER, _as("ou_theta", OU)),
    "exploration_sigma": (v.AMOUNT, _as("ou_sigma", OU)),
    "exploration_final_eps": (v.SHARE, _as("final_scale")),
    "act_noise": (v.AMOUNT, _as("stddev", GAUSSIAN)),
    "exploration_ou_noise_scale": (v.AMOUNT, _as("ou_base_scale", OU)),
    "exploration_ou_theta": (v.NUMBER, _as("ou_theta", OU)),
    "exploration_ou_sigma": (v.AMOUNT, _as("ou_sigma", OU)),
    "exploration_gaussian_sigma": (v.AMOUNT, _as("stddev", GAUSSIAN)),
    "exploration_should_anneal": (v.FLAG, _anneal),
    "exploration_final_scale": (v.AMOUNT, _final_scale),
    "exploration_fraction": (v.AMOUNT, _length),
    "schedule_max_timesteps": (v.STEPS, _length),
    "pure_exploration_steps": (v.STEPS, _as("random_timesteps")),
}


def _rule(key: str, value: Any, target: str, convert: Any, why: str = "", **more: Any) -> Rule:
    return Rule(
        FAMILY,
        key,
        Verdict.CONVERTED,
        why,
        target=target,
        convert=convert,
        value=value,
        algorithms=DDPG,
        **more,
    )


RULES = (
    *kept(
        FAMILY,
        "training",
        {
            v.FLAG: "twin_q use_huber use_state_preprocessor",
            v.SCHEDULED_RATE: "actor_lr critic_lr",
            v.LAYERS: "actor_hiddens critic_hiddens",
            v.ACTIVATION: "actor_hidden_activation critic_hidden_activation",
            v.AMOUNT: "huber_threshold target_noise target_noise_clip",
            v.SOME: "policy_delay",
        },
        algorithms=DDPG,
    ),
    _rule(
        "smooth_target_policy",
        v.FLAG | Row((v.FLAG,)),
        "training.smooth_target_policy",
        _smooth,
        "a flag; TD3's default was once a list of one",
    ),
    _rule(
        "l2_reg",
        v.AMOUNT,
        "training.l2_reg",
        _l2_reg,
        "torch's policies added it to the losses without a gradient",
    ),
    _rule("lr", v.RATE, "training.actor_lr", _lr, "one rate for each optimizer"),
    Rule(
        FAMILY,
        "noise_clip",
        Verdict.RENAMED,
        "renamed in Ray 0.7",
        target="training.target_noise_clip",
        value=v.AMOUNT,
        algorithms=DDPG,
    ),
    _rule(
        "exploration_config",
        EXPLORATION,
        NOISE,
        _exploration_config,
        "the module adds the noise itself",
        needs_old=_needs_old,
    ),
    _rule(
        "parameter_noise",
        v.FLAG | Fields({"initial_stddev": v.NUMBER}),
        ON_WEIGHTS,
        _parameter_noise,
        "the module has noise on its weights",
    ),
    Rule(
        FAMILY,
        "exploration_noise",
        Verdict.KEPT,
        "what this package's config calls it, in checkpoints of its own",
        target=NOISE,
        value=EXPLORATION,
        algorithms=DDPG,
    ),
    *(
        _rule(key, value, NOISE, convert, "together they describe the noise")
        for key, (value, convert) in _OF_NOISE.items()
    ),
    _rule(
        "model.custom_model",
        v.CODE,
        "",
        _custom_model,
        "a ModelV2 class runs on the old API stack only",
    ),
    *dropped(
        FAMILY,
        "actor_loss_coeff critic_loss_coeff",
        "Adam's steps do not depend on a loss's scale",
        algorithms=DDPG,
    ),
)
