"""Conversions of exploration: schedules and noise that policies added to their actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rllib_compat.config.deferred import ImportedName
from rllib_compat.config.rule import Context, Convert, Outcome, drop, is_off, refuse
from rllib_compat.config.rules.common import for_new_stack, warn_if_set, warn_unless
from rllib_compat.networks.families.q_head import EXPLORING
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.registry.keys import was_default

OLD = "env_runners.exploration_config"
EXPLORE = "env_runners.explore"
EPSILON = "training.epsilon"
#: What modules of this package are given for policies of Q-values.
SIGMA, TEMPERATURE, NOISE_ON_WEIGHTS = (f"rl_module.model_config.{name}" for name in EXPLORING)
MODULE_EPSILON = "rl_module.model_config.epsilon"
PER_WORKER = "training.per_worker_exploration"
#: DDPG's noise on actions and on weights.
NOISE, PARAMETER_NOISE = "training.exploration_noise", "training.parameter_noise"

SOFT_Q, ON_WEIGHTS, RANDOM = "SoftQ", "ParameterNoise", "Random"
EPSILON_GREEDY, SAMPLING = "EpsilonGreedy", "StochasticSampling"
PER_WORKER_EPSILON = "PerWorkerEpsilonGreedy"
GAUSSIAN, OU = "GaussianNoise", "OrnsteinUhlenbeckNoise"
#: The classes by which each worker had noise of its own scale → what all would have.
_PER_WORKER_NOISE = {"PerWorkerOrnsteinUhlenbeckNoise": OU, "PerWorkerGaussianNoise": GAUSSIAN}
_TYPES_OF_DDPG = (GAUSSIAN, OU, *_PER_WORKER_NOISE, SAMPLING, ON_WEIGHTS, RANDOM)
#: How modules of this package explore by Q-values. Policies that drew of their distribution had the
#: Q-values for its logits: soft Q with a temperature of 1.
_OF_Q = (SOFT_Q, SAMPLING, ON_WEIGHTS)
#: More steps than anybody samples.
_ALWAYS = 10**15
#: What the noise of DDPG's module can't do.
_HELPERS = ("scale_schedule", "sub_exploration")
#: The bandits' ways to explore; the second name was that of Ray 0.8 – 1.10.
_BANDITS = {
    "BanditLinTS": ("ThompsonSampling", "ThompsonSampling"),
    "BanditLinUCB": ("UpperConfidenceBound", "UCB"),
}
BANDITS = tuple(_BANDITS)
_BEST = _BANDITS["BanditLinUCB"]
#: Whose old policies on torch took the best action each time if the config named that class,
#: with Discrete actions: by Q-values, or by what a distribution is made of. All others, and all
#: with Thompson sampling, failed (asked of Ray 1.13.0).
_BEST_BY_Q = ("DQN", "SimpleQ", "APEX", "R2D2")
_BEST_OF_DISTRIBUTION = ("A2C", "A3C", "PG", "MARWIL", "BC")
_SCHEDULE = {"initial_epsilon": 1.0, "final_epsilon": 0.05, "epsilon_timesteps": 10000}
#: What epsilon fell to at once behind the random steps of `ParameterNoise`.
_AFTER_RANDOM_STEPS = 0.01


def type_name(config: object) -> str | None:
    """The name of the class that an exploration config asks for, without its place."""
    kind = config.get("type") if isinstance(config, Mapping) else None
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", None)
    return name.rpartition(".")[2] if name else None


def samples(config: object) -> bool:
    """Whether an exploration config asks for what the action distribution draws, and no more."""
    return type_name(config) in (None, SAMPLING)


def needs_old(config: object) -> bool:
    """Whether only policies of the old API stack explore so."""
    return not samples(config) and type_name(config) not in _BEST


def needs_old_of_recorded(config: object) -> bool:
    """The same where recordings are learned from, and only an evaluation would explore."""
    return type_name(config) != EPSILON_GREEDY and needs_old(config)


def needs_old_of_q(config: object) -> bool:
    """Whether only old policies of Q-values explore so."""
    return type_name(config) not in (None, EPSILON_GREEDY, *_OF_Q, *_BEST)


def needs_old_of_apex(config: object) -> bool:
    """Whether only old policies of APEX explore so."""
    return type_name(config) != PER_WORKER_EPSILON and needs_old_of_q(config)


def needs_old_of_ddpg(config: object) -> bool:
    """Whether only old policies of DDPG and TD3 explore so."""
    return type_name(config) not in (None, *_TYPES_OF_DDPG)


def _noise_on_weights(config: Mapping[str, Any]) -> dict[str, Any]:
    """What modules and configs of this package are given for `ParameterNoise`."""
    return {"initial_stddev": config.get("initial_stddev", 1.0)}


def _epsilon_schedule(config: Mapping[str, Any]) -> list[list[float]]:
    """The schedule of epsilon that an exploration config of epsilon-greedy describes."""
    first, last, steps = (config.get(k, default) for k, default in _SCHEDULE.items())
    warmup = config.get("warmup_timesteps") or 0
    points = [[0, first], [warmup, first]] if warmup else [[0, first]]
    return [*points, [int(warmup + max(1, steps)), last]]


# `exploration_config`, algorithm by algorithm


def exploration_config(value: Any, context: Context) -> Outcome:
    """Epsilon for DQN; what else it says is dropped with a note."""
    asked = type_name(value)
    if any(asked in kinds for kinds in _BANDITS.values()):
        return _explore_as_a_bandit(asked, value, context)
    if asked == "RE3":
        return refuse(
            "RE3 was written for TensorFlow alone, which RLlib has no more",
            "leave it out, or explore by Curiosity",
        )
    if asked == "Curiosity" and context.algorithm in ("IMPALA", "APPO"):
        return refuse(
            f"torch's policies of {context.algorithm} never trained the networks of Curiosity",
            "leave it out, or train PPO",
        )
    if asked == "Curiosity" and context.algorithm in ("APEX", "DQN", "SAC", "SimpleQ"):
        return refuse(
            "policies with a target network have no place for the networks of Curiosity; with it, "
            "Ray 1.13.0 failed, too",
            "leave it out, or train PPO",
        )
    if context.stack == "old":
        if asked == RANDOM:  # Ray's draws single arrays only
            value = {**value, "type": ImportedName("rllib_compat.adapters", "RandomActions")}
        return Outcome({OLD: dict(value)} if value else {}, Verdict.KEPT)
    if not value:
        return drop("nothing was asked for")
    if not isinstance(value, Mapping):
        return warn_if_set(value, context)
    settings: dict[str, Any] = {}
    if context.algorithm in ("DQN", "APEX", "R2D2") and any(
        k in value for k in (*_SCHEDULE, "warmup_timesteps")
    ):
        settings = {EPSILON: _epsilon_schedule(value)}
    used = {*_SCHEDULE, "warmup_timesteps"} if EPSILON in settings else set()
    for key in value:
        if key not in used and key != "type":
            idle = is_off(value[key]) or was_default(
                f"exploration_config.{key}", value[key], context.legacy_algorithm
            )
            context.note(
                Verdict.DROPPED,
                f".{key}",
                f"{context.algorithm}'s module explores without it",
                Severity.INFO if idle else Severity.WARNING,
                "" if idle else "api_stack='old' keeps it",
            )
    message = "" if settings else "the module samples from its action distribution by itself"
    return Outcome(settings, None if settings else Verdict.DROPPED, message)


def _explore_as_a_bandit(asked: str | None, value: Any, context: Context) -> Outcome:
    """What became of an algorithm without a bandit's model: the best action each time, or none."""
    by_q = context.legacy_algorithm in _BEST_BY_Q
    of_all = context.legacy_algorithm in _BEST_OF_DISTRIBUTION and ".policies." not in context.path
    if asked not in _BEST or not (by_q or of_all):
        return refuse(
            f"only models of the linear bandits explore by {asked}, and {context.legacy_algorithm} "
            "has none",
            "leave it out, or train BanditLinTS or BanditLinUCB",
        )
    if context.stack == "old":
        return Outcome({OLD: dict(value)}, Verdict.KEPT)
    settings: dict[str, Any] = {EPSILON: 0.0} if by_q else {EXPLORE: False}
    message = "without a bandit's model, it took the best action each time"
    return Outcome(settings, Verdict.CONVERTED, message)


def exploration_config_of_q(value: Any, context: Context) -> Outcome:
    """Epsilon, or a module of this package with soft Q or noise on its weights."""
    kind = type_name(value)
    if context.stack == "old":
        return exploration_config(value, context)
    if kind not in _OF_Q:
        outcome = exploration_config(value, context)
        if kind is None:  # the type is the one that all policies have
            return outcome
        return _without(outcome, context, TEMPERATURE, NOISE_ON_WEIGHTS)
    soft = kind != ON_WEIGHTS
    settings, known = (_soft_q if soft else _parameter_noise)(value, context)
    for key, one in value.items():
        if key not in ("type", "framework", *known):
            severity = Severity.INFO if is_off(one) else Severity.WARNING
            context.note(Verdict.DROPPED, f".{key}", f"{kind} did not read it", severity)
    settings |= _reset_of_policy(context, NOISE_ON_WEIGHTS if soft else TEMPERATURE)
    message = f"a module of this package explores by {kind}"
    return Outcome(settings, Verdict.CONVERTED, message)


def _reset_of_policy(context: Context, *targets: str) -> dict[str, None]:
    """Takes from a policy of many what all others may have; elsewhere there is nothing to take."""
    return dict.fromkeys(targets) if ".policies." in context.path else {}


def _without(outcome: Outcome, context: Context, *targets: str) -> Outcome:
    """The same outcome, of a policy that does not explore by these."""
    if context.stack == "old":
        return outcome
    return replace(outcome, settings={**_reset_of_policy(context, *targets), **outcome.settings})


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
    if helper and type_name(helper) not in (None, EPSILON_GREEDY):
        message = f"the helper is epsilon-greedy, not {type_name(helper)}"
        hint = "api_stack='old' keeps it"
        context.note(Verdict.DROPPED, ".sub_exploration", message, Severity.WARNING, hint)
        helper = None
    steps = config.get("random_timesteps", 10_000)
    by_default = [[0, 1.0], [steps + 1, 1.0], [steps + 2, _AFTER_RANDOM_STEPS]]
    settings = {
        NOISE_ON_WEIGHTS: _noise_on_weights(config),
        EPSILON: _epsilon_of_helper(helper, context) if helper else by_default,
    }
    return settings, ("initial_stddev", "random_timesteps", "sub_exploration")


def _epsilon_of_helper(helper: Mapping[str, Any], context: Context) -> list[list[float]]:
    schedule = helper.get("epsilon_schedule")
    points = schedule.get("endpoints") if isinstance(schedule, Mapping) else None
    if points:
        return [list(point) for point in points]
    if schedule:
        where, message = ".sub_exploration.epsilon_schedule", f"{schedule!r} names no endpoints"
        hint = "training(epsilon=[[step, epsilon], …])"
        context.note(Verdict.DROPPED, where, message, Severity.WARNING, hint)
    return _epsilon_schedule(helper)


def exploration_config_of_sequences(value: Any, context: Context) -> Outcome:
    """As DQN's without noise; RNNSAC's is its distribution unless the config says otherwise.

    Asked of Ray 1.13.0, R2D2 and RNNSAC failed with ParameterNoise (when they replayed),
    GaussianNoise, OrnsteinUhlenbeckNoise (Discrete actions have no bounds) and Curiosity, on torch
    and, of R2D2, on TensorFlow.
    """
    kind, of_q = type_name(value), context.algorithm == "R2D2"
    if kind == PER_WORKER_EPSILON:  # without workers, it was no other than epsilon-greedy
        outcome = exploration_config_of_sequences({**value, "type": EPSILON_GREEDY}, context)
        return replace(outcome, settings={**outcome.settings, PER_WORKER: True})
    if kind == RANDOM:
        return Outcome({EPSILON: 1.0}, Verdict.CONVERTED, "all actions are drawn at random")
    if of_q and kind in _BEST:
        return exploration_config(value, context)
    if kind not in (None, EPSILON_GREEDY, SOFT_Q, SAMPLING):
        ways = "with epsilon-greedy actions, by soft Q, by sampling or at random"
        failed = "with that, Ray 1.13.0 failed, too"
        return refuse(
            f"{context.algorithm} explores {ways}, not by {kind}; {failed}",
            "leave it out, or override `_forward_exploration` of "
            f"rllib_compat.modules.{context.algorithm}Module",
        )
    if of_q or kind == SOFT_Q:
        return exploration_config_of_q({**value, "type": kind} if value else value, context)
    if kind == EPSILON_GREEDY:
        settings = {EPSILON: _epsilon_schedule(value)}
        return Outcome(settings, Verdict.CONVERTED, "the best action, or one at random")
    return exploration_config(value, context)


def exploration_config_of_apex(value: object, context: Context) -> Outcome:
    """As for DQN; whether each env runner has its own epsilon is a setting."""
    outcome = exploration_config_of_q(value, context)
    kind = type_name(value)
    if context.stack == "old" or kind is None:
        return outcome
    settings = {**outcome.settings, PER_WORKER: kind == PER_WORKER_EPSILON}
    return Outcome(settings, Verdict.CONVERTED, "each env runner may have an epsilon of its own")


#: What a bandit's module takes for ways to explore that are no bandit's.
_EXPECTING: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    RANDOM: lambda _: {MODULE_EPSILON: 1.0},
    EPSILON_GREEDY: lambda config: {MODULE_EPSILON: _epsilon_schedule(config)},
    SAMPLING: lambda _: {TEMPERATURE: 1.0},
    SOFT_Q: lambda config: {TEMPERATURE: config.get("temperature", 1.0)},
}


def exploration_config_of_bandits(value: Any, context: Context) -> Outcome:
    """Nothing, if it asks for what the algorithm's name says, or one of the ways of Q-networks.

    With these, policies of Ray 1.13.0 chose by what they expected, without a bonus.
    """
    asked = type_name(value)
    own = _BANDITS.get(context.algorithm)
    if asked is None or own is None or asked in own:
        return Outcome(message="the algorithm's name says how it explores")
    if asked in _EXPECTING:
        settings = _EXPECTING[asked](value)
        return Outcome(settings, Verdict.CONVERTED, "arms are chosen by what is expected of them")
    other = next((name for name, kinds in _BANDITS.items() if asked in kinds), None)
    return refuse(
        f"{context.algorithm} explores in its own way, not by {asked}",
        f"the algorithm that does is {other}" if other else "leave exploration_config out",
    )


def exploration_config_of_qmix(value: object, context: Context) -> Outcome:
    """Epsilon-greedy, and nothing else."""
    if not isinstance(value, Mapping):
        return warn_if_set(value, context)
    kind = type_name(value)
    if was_default("exploration_config", value, context.legacy_algorithm):
        kind = None
    if kind not in (None, EPSILON_GREEDY, PER_WORKER_EPSILON):
        return refuse(
            f"QMIX explores with epsilon-greedy actions, not by {kind}",
            "override `_forward_exploration` of rllib_compat.modules.QMIXModule",
        )
    if kind == PER_WORKER_EPSILON:
        message = "each worker had an epsilon of its own; all have the same now"
        context.note(Verdict.CONVERTED, ".type", message, Severity.WARNING)
    if not is_off(value.get("epsilon_schedule")):
        message = "epsilon falls in a straight line"
        hint = "training(epsilon=[[step, epsilon], …])"
        context.note(Verdict.DROPPED, ".epsilon_schedule", message, Severity.WARNING, hint)
    if not any(key in value for key in (*_SCHEDULE, "warmup_timesteps")):
        return drop("epsilon-greedy, as by default")
    return Outcome({context.target: _epsilon_schedule(value)}, Verdict.CONVERTED)


def exploration_config_of_ddpg(value: object, context: Context) -> Outcome:
    """Noise on actions, and on weights."""
    if context.legacy_ray == "0.8.2":
        return drop("policies of Ray 0.8.2 read other keys; its common config had this one already")
    if not value:
        return drop("nothing was asked for")
    if not isinstance(value, Mapping):
        return warn_if_set(value, context)
    settings: dict[str, Any] = {}
    kind = type_name(value) or ""
    if kind == RANDOM:
        settings = {f"{NOISE}.type": GAUSSIAN, f"{NOISE}.random_timesteps": _ALWAYS}
        return Outcome(settings, Verdict.CONVERTED, "all actions are drawn at random")
    if kind == ON_WEIGHTS:
        settings[PARAMETER_NOISE] = _noise_on_weights(value)
        # The noise on actions that went with that on weights.
        steps = value.get("random_timesteps", 10_000)
        value = value.get("sub_exploration") or {"type": OU, "random_timesteps": steps}
        kind = type_name(value) or ""
    if kind and context.algorithm == "APEX_DDPG":
        settings[PER_WORKER] = kind in _PER_WORKER_NOISE
    elif kind in _PER_WORKER_NOISE:
        message = "each worker had a scale of its own; all have the same now"
        context.note(Verdict.CONVERTED, ".type", message, Severity.WARNING)
    for key, one in value.items():
        if key in _HELPERS and not is_off(one):
            message = "the noise has a scale that falls in a straight line, and no helper"
            hint = "override `_forward_exploration` of the RLModule"
            context.note(Verdict.DROPPED, f".{key}", message, Severity.WARNING, hint)
        elif key not in (*_HELPERS, "framework") and one is not None:
            is_type = key == "type"
            settings[f"{NOISE}.{key}"] = _PER_WORKER_NOISE.get(kind, kind) if is_type else one
    return Outcome(settings, Verdict.CONVERTED, "the module adds the noise itself")


#: CRR does not explore: only what is evaluated draws actions.
exploration_config_of_crr = warn_unless(samples)
exploration_config_of_maddpg = warn_unless(
    samples, "override `_forward_exploration` of rllib_compat.modules.MADDPGModule"
)


# Single keys for epsilon, soft Q and noise on weights


def epsilon(value: object, context: Context) -> Outcome:
    """The new stack's schedule; before Ray 2.40, policies explored by `exploration_config`."""
    if context.stack == "old":
        return drop("`exploration_config` says it there")
    before = context.legacy_ray is not None and Version(context.legacy_ray) < Version("2.40")
    by_default = was_default("epsilon", value, "DQN")
    if before and by_default and not context.get("enable_env_runner_and_connector_v2"):
        return drop("the old API stack, which was the default, explored by `exploration_config`")
    return Outcome({context.target: value})


def epsilon_before_0_8(_: object, context: Context) -> Outcome:
    """Epsilon fell from 1.0 over `exploration_fraction × schedule_max_timesteps` steps."""
    if context.algorithm not in ("DQN", "APEX", "QMIX"):
        return warn_if_set(None, context)
    steps = context.get("exploration_fraction", 0.1) * context.get("schedule_max_timesteps", 100000)
    first = context.get("exploration_initial_eps", 1.0)
    last = context.get("exploration_final_eps", 0.02)
    points = [[0, first], [max(1, int(steps)), last]]
    if context.stack == "old":
        values = (first, last, points[1][0])
        return Outcome({f"{OLD}.{k}": v for k, v in zip(_SCHEDULE, values, strict=True)})
    return Outcome({EPSILON: points})


def old_type(kind: str, **arguments: str) -> Convert:
    """A pre-0.8 switch that became a `type` of the exploration config."""

    def convert(value: object, context: Context) -> Outcome:
        if is_off(value) or context.stack == "new":
            return warn_if_set(value, context)
        extra = {f"{OLD}.{name}": context.get(key, 1.0) for name, key in arguments.items()}
        return Outcome({f"{OLD}.type": kind, **extra}, Verdict.CONVERTED)

    return convert


_old_soft_q = old_type(SOFT_Q, temperature="softmax_temp")
_old_parameter_noise = old_type(ON_WEIGHTS)


def softmax_temp(value: object, context: Context) -> Outcome:
    """The temperature of `soft_q`."""
    if context.stack == "old" and context.get("soft_q"):
        return Outcome({context.target: value}, Verdict.MOVED)
    return Outcome(message="only `soft_q` read it")


def per_worker_exploration(value: object, context: Context) -> Outcome:
    """Whether each worker of a distributed replay explores by a share of its own."""
    if context.stack == "old":
        return old_type(PER_WORKER_EPSILON)(value, context)
    return Outcome({context.target: bool(value)})


@for_new_stack
def noisy_of_q(value: object, context: Context) -> Outcome:
    """Whether layers have noise, and how much: today's setting is sigma itself."""
    if not value:
        settings = _reset_of_policy(context, context.target)
        return Outcome(settings, Verdict.DROPPED, "its layers had no noise")
    return Outcome({context.target: context.get("sigma0", 0.5)})


@for_new_stack
def sigma_of_q(value: object, context: Context) -> Outcome:
    """The noise of noisy layers at first."""
    if context.get("noisy"):
        return Outcome({context.target: value}, Verdict.MOVED)
    return drop("only noisy nets read it")


def soft_q_of_q(value: object, context: Context) -> Outcome:
    """Whether actions are drawn by their values: today's setting is the temperature."""
    if context.stack == "old" or is_off(value):
        return _without(_old_soft_q(value, context), context, TEMPERATURE)
    return Outcome({context.target: context.get("softmax_temp", 1.0)})


def softmax_temp_of_q(value: object, context: Context) -> Outcome:
    """The temperature of `soft_q`."""
    if not context.get("soft_q"):
        return drop("only `soft_q` read it")
    return Outcome({context.target: value})


def parameter_noise_of_q(value: object, context: Context) -> Outcome:
    """Whether weights have noise."""
    if context.stack == "old" or is_off(value):
        return _without(_old_parameter_noise(value, context), context, NOISE_ON_WEIGHTS)
    return Outcome({context.target: _noise_on_weights({})})


# Single keys for the noise of DDPG and TD3


def parameter_noise_of_ddpg(value: object, _: Context) -> Outcome:
    """Whether weights have noise: a switch, or in checkpoints of this package a dict."""
    if is_off(value):
        return drop("nothing was asked for")
    noise = dict(value) if isinstance(value, Mapping) else _noise_on_weights({})
    return Outcome({PARAMETER_NOISE: noise})


def _noise_type(context: Context) -> str:
    """The noise of Ray 0.6 – 0.8.0, where a key of its own said which; TD3's was another."""
    by_default = "gaussian" if context.legacy_algorithm == "TD3" else "ou"
    if context.get("exploration_noise_type") is None and context.get("smooth_target_policy"):
        by_default = "gaussian"  # Ray 0.6 decided by this key
    return GAUSSIAN if context.get("exploration_noise_type", by_default) == "gaussian" else OU


def noise_argument(name: str, only: str = "") -> Convert:
    """What one key of Ray 0.5 – 0.8.0 said of the noise; nothing, if that was of another kind."""

    def convert(value: object, context: Context) -> Outcome:
        if value is None or (only and only != _noise_type(context)):
            return drop("the noise is of another kind")
        return Outcome({f"{NOISE}.{name}": value})

    return convert


def noise_type(_: object, context: Context) -> Outcome:
    """The class of the noise: Gaussian or Ornstein-Uhlenbeck."""
    return Outcome({f"{NOISE}.type": _noise_type(context)})


def noise_scale(value: object, context: Context) -> Outcome:
    """Ray 0.5 and 0.6: no steps at random, and always a schedule."""
    scale = {f"{NOISE}.ou_base_scale": value} if _noise_type(context) == OU else {}
    return Outcome({**scale, f"{NOISE}.random_timesteps": 0})


def noise_length(_: object, context: Context) -> Outcome:
    """After how many steps the noise's scale has fallen: a fraction of a number of steps."""
    most, part = context.get("schedule_max_timesteps"), context.get("exploration_fraction")
    most, part = 100_000 if most is None else most, 0.1 if part is None else part
    return Outcome({f"{NOISE}.scale_timesteps": max(1, int(part * most))})


def noise_anneals(value: object, _: Context) -> Outcome:
    """Whether the noise's scale falls."""
    if value:
        return Outcome(message="the noise's scale falls, as by default")
    return Outcome({f"{NOISE}.final_scale": 1.0})


def noise_final_scale(value: object, context: Context) -> Outcome:
    """What the noise's scale falls to, if it falls."""
    if not context.get("exploration_should_anneal", True):
        return drop("the noise's scale did not fall")
    return Outcome({f"{NOISE}.final_scale": value})
