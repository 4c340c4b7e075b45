"""Exploration: schedules and noise that policies added to their actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.keys import was_default
from rllib_compat.config.rule import Outcome, Rule, drop_aloud, dropped, kept, needless
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import Config, Fields
from rllib_compat.config.values.kinds import Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "exploration"
OLD = "env_runners.exploration_config"

#: What an RLModule of this package does, too.
SOFT_Q, PARAMETER_NOISE = "SoftQ", "ParameterNoise"

# What an RLModule of the new stack does by itself.
DEFAULT_TYPES = ("StochasticSampling", "EpsilonGreedy")
# All exploration classes that any RLlib had (`rllib/utils/exploration`).
TYPES = Words(
    (
        *("StochasticSampling", "EpsilonGreedy", "PerWorkerEpsilonGreedy", "Random", "SoftQ"),
        *("GaussianNoise", "PerWorkerGaussianNoise", "OrnsteinUhlenbeckNoise"),
        *("PerWorkerOrnsteinUhlenbeckNoise", "ParameterNoise", "Curiosity", "RE3"),
        *("SlateEpsilonGreedy", "SlateSoftQ", "ThompsonSampling", "UpperConfidenceBound"),
    ),
    classes=True,
)
FRAMEWORKS = Words(("tf", "tf2", "tfe", "torch"))
_SCALARS = {
    **dict.fromkeys(("initial_epsilon", "final_epsilon"), v.SHARE),
    **dict.fromkeys(
        ("epsilon_timesteps", "warmup_timesteps", "random_timesteps", "scale_timesteps"), v.STEPS
    ),
    **dict.fromkeys(
        (
            *("stddev", "initial_scale", "final_scale", "initial_stddev", "temperature"),
            *("ou_theta", "ou_sigma", "ou_base_scale", "beta", "eta", "lr", "rho"),
        ),
        v.NUMBER,
    ),
    **dict.fromkeys(("feature_dim", "embeds_dim", "k_nn"), v.CELL),
    **dict.fromkeys(("inverse_net_hiddens", "forward_net_hiddens"), v.LAYERS),
    **dict.fromkeys(("inverse_net_activation", "forward_net_activation"), v.ACTIVATION),
    "beta_schedule": Words(("constant", "linear_decay")),
    "feature_net_config": Config("model", raw=True),
    "encoder_net_config": Config("model", raw=True),
    "framework": FRAMEWORKS,
    # Ray makes a schedule of it with `from_config`; only points in a row have names here.
    "epsilon_schedule": Fields(
        {
            "type": Words(("PiecewiseSchedule",)) | v.CODE,
            "endpoints": v.SCHEDULED_SHARE,
            "outside_value": v.SHARE,
            "framework": FRAMEWORKS,
        }
    )
    | v.CODE,
    "scale_schedule": v.CODE,
}
#: Ray hands its `type` to `from_config`, and the rest to the class as arguments. Where one of them
#: explores with the help of another, that one has no helper.
EXPLORATION = Fields(
    {
        "type": TYPES | v.CODE,
        **_SCALARS,
        "sub_exploration": Fields({"type": TYPES | v.CODE, **_SCALARS}),
    }
)
EPSILON = {"initial_epsilon": 1.0, "final_epsilon": 0.05, "epsilon_timesteps": 10000}


def type_name(config: Any) -> str | None:
    """The name of the class that an exploration config asks for, without its place."""
    kind = config.get("type") if isinstance(config, Mapping) else None
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", None)
    return name.rpartition(".")[2] if name else None


def noise_on_weights(config: Mapping[str, Any]) -> dict[str, Any]:
    """What modules and configs of this package are told of `ParameterNoise`.

    Args:
        config: The exploration config; empty where a switch asked for it, before Ray 0.8.1.
    """
    return {"initial_stddev": config.get("initial_stddev", 1.0)}


def needs_old(config: Any) -> bool:
    """Whether only policies of the old API stack explore so."""
    name = type_name(config)
    return name is not None and name not in DEFAULT_TYPES


def of_config(value: Any, context: Context) -> Outcome:
    """What becomes of an `exploration_config`."""
    if context.stack == "old":
        return Outcome({OLD: dict(value)} if value else {}, Verdict.KEPT)
    if not value:
        return Outcome(verdict=Verdict.DROPPED, message="nothing was asked for")
    if not isinstance(value, Mapping):
        return drop_aloud(value, context)
    settings: dict[str, Any] = {}
    if context.algorithm in ("DQN", "APEX", "R2D2") and any(
        k in value for k in (*EPSILON, "warmup_timesteps")
    ):
        settings = {"training.epsilon": epsilon_of(value)}
    if context.algorithm == "SAC" and value.get("random_timesteps"):
        settings = _random_start(value["random_timesteps"], context)
    used = {*EPSILON, "warmup_timesteps"} if "training.epsilon" in settings else {"type"}
    used |= {"random_timesteps"} if len(settings) and context.algorithm == "SAC" else set()
    for key in value:
        if key not in used and key != "type":
            context.note(
                Verdict.DROPPED,
                f".{key}",
                f"{context.algorithm}'s module explores without it",
                severity=Severity.INFO if _idle(key, value[key], context) else Severity.WARNING,
                hint="" if _idle(key, value[key], context) else "api_stack='old' keeps it",
            )
    message = "" if settings else "the module samples from its action distribution by itself"
    return Outcome(settings, None if settings else Verdict.DROPPED, message)


def _idle(key: str, value: Any, context: Context) -> bool:
    return needless(value) or was_default(
        f"exploration_config.{key}", value, context.legacy_algorithm
    )


def _random_start(steps: int, context: Context) -> dict[str, Any]:
    if any(context.get(k) is not None for k in LEARNING_STARTS):
        return {}
    return {"training.num_steps_sampled_before_learning_starts": steps}


LEARNING_STARTS = ("learning_starts", "num_steps_sampled_before_learning_starts")


def epsilon_of(config: Mapping[str, Any]) -> list[list[float]]:
    """The schedule of epsilon that an exploration config of epsilon-greedy describes."""
    first, last, steps = (config.get(k, default) for k, default in EPSILON.items())
    warmup = config.get("warmup_timesteps") or 0
    points = [[0, first], [warmup, first]] if warmup else [[0, first]]
    return [*points, [int(warmup + max(1, steps)), last]]


def _before_0_8(_: Any, context: Context) -> Outcome:
    """Epsilon fell from 1.0 over `exploration_fraction × schedule_max_timesteps` steps."""
    if context.algorithm not in ("DQN", "APEX", "QMIX"):
        return drop_aloud(None, context)
    steps = context.get("exploration_fraction", 0.1) * context.get("schedule_max_timesteps", 100000)
    first = context.get("exploration_initial_eps", 1.0)
    last = context.get("exploration_final_eps", 0.02)
    points = [[0, first], [max(1, int(steps)), last]]
    if context.stack == "old":
        names = ("initial_epsilon", "final_epsilon", "epsilon_timesteps")
        values = (first, last, points[1][0])
        return Outcome({f"{OLD}.{n}": v for n, v in zip(names, values, strict=True)})
    return Outcome({"training.epsilon": points})


def typed(kind: str, **arguments: str) -> Any:
    """A pre-0.8 switch that became a `type` of the exploration config."""

    def convert(value: Any, context: Context) -> Outcome:
        if needless(value) or context.stack == "new":
            return drop_aloud(value, context)
        extra = {f"{OLD}.{name}": context.get(key, 1.0) for name, key in arguments.items()}
        return Outcome({f"{OLD}.type": kind, **extra}, Verdict.CONVERTED)

    return convert


def _temperature(value: Any, context: Context) -> Outcome:
    if context.stack == "old" and context.get("soft_q"):
        return Outcome({f"{OLD}.temperature": value}, Verdict.MOVED)
    return Outcome(message="only `soft_q` read it")


RULES = (
    *kept(FAMILY, "env_runners", {v.FLAG: "explore"}),
    Rule(
        FAMILY,
        "exploration_enabled",
        Verdict.RENAMED,
        "renamed in Ray 0.8.3",
        target="env_runners.explore",
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "exploration_config",
        Verdict.CONVERTED,
        "an exploration class of the old policies",
        target="training.epsilon",
        old_target=OLD,
        convert=of_config,
        value=EXPLORATION,
        needs_old=needs_old,
        hint="",
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.CONVERTED,
            "together they were the epsilon schedule",
            target="training.epsilon",
            old_target=OLD,
            convert=_before_0_8,
            value=value,
        )
        for key, value in (
            ("schedule_max_timesteps", v.STEPS),
            ("exploration_fraction", v.AMOUNT),
            ("exploration_final_eps", v.SHARE),
            ("exploration_initial_eps", v.SHARE),
        )
    ),
    Rule(
        FAMILY,
        "soft_q",
        Verdict.DROPPED,
        "sampling from softened Q-values runs on the old API stack only",
        old_target=f"{OLD}.type",
        convert=typed("SoftQ", temperature="softmax_temp"),
        value=v.FLAG,
        needs_old=bool,
    ),
    Rule(
        FAMILY,
        "softmax_temp",
        Verdict.DROPPED,
        "the temperature of `soft_q`",
        old_target=f"{OLD}.temperature",
        convert=_temperature,
        value=v.AMOUNT,
    ),
    Rule(
        FAMILY,
        "parameter_noise",
        Verdict.DROPPED,
        "parameter noise runs on the old API stack only",
        old_target=f"{OLD}.type",
        convert=typed("ParameterNoise"),
        value=v.FLAG,
        needs_old=bool,
    ),
    Rule(
        FAMILY,
        "per_worker_exploration",
        Verdict.DROPPED,
        "an epsilon of its own for each worker exists on the old API stack only",
        old_target=f"{OLD}.type",
        convert=typed("PerWorkerEpsilonGreedy"),
        value=v.FLAG,
        needs_old=bool,
    ),
    *dropped(
        FAMILY,
        "_prior_exploration_config __prior_exploration_config",
        "kept by Ray to switch between the API stacks",
    ),
)
