"""Conversions of what concerns sampling: the environment, env runners, callbacks, evaluation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.config import values as v
from rllib_compat.config.deferred import (
    AdaptedCallbacks,
    AdaptedEnv,
    DeferredSpace,
    MeanStdConnector,
)
from rllib_compat.config.rule import Context, Outcome, drop, is_off, nested, refuse
from rllib_compat.config.rules.common import for_new_stack, refuse_unless
from rllib_compat.networks.families.q_head import EXPLORING
from rllib_compat.neutral.deferred import PublicCall
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.neutral.spaces import from_object, parse_repr
from rllib_compat.ray_versions import configs
from rllib_compat.registry.keys import CALLBACK_EVENTS
from rllib_compat.runtime.atari import atari_settings
from rllib_compat.runtime.env_settings import SWITCHES, EnvSettings

#: From this Ray on, `preprocessor_pref: None` meant no preprocessing at all.
_NO_PREPROCESSING = Version("2.1")
#: RLlib's base classes of callbacks do nothing.
_BASE_CALLBACKS = ("DefaultCallbacks", "RLlibCallback")
#: Arguments whose attribute has another name; an evaluation config is a dict of attributes.
_ATTRIBUTES = {
    "framework": "framework_str",
    "env_to_module_connector": "_env_to_module_connector",
    "module_to_env_connector": "_module_to_env_connector",
}
_EPSILON, _MODEL_CONFIG = "training.epsilon", "rl_module.model_config"


# The environment


@frozen
class Gone:
    """Versions of one environment that gymnasium no longer makes.

    Attributes:
        stem: The name without its version.
        versions: Those that are gone.
        now: The one that takes their place: the next that gymnasium has.
        differs: What is not the same there.
        matters: Whether an agent would notice.
    """

    stem: str
    versions: tuple[int, ...]
    now: int
    differs: str
    matters: bool = True


_BINDINGS = (
    "it runs on MuJoCo's own bindings instead of mujoco-py, and versions before 3 took no options"
)
_ROBOTS = ("HalfCheetah", "Hopper", "Swimmer", "Walker2d")
_STEPS = "; version 1 ended episodes earlier"

#: By the version histories in gymnasium's documentation (1.0), and gym's release notes.
GONE = (
    Gone("Pendulum", (0,), 1, "the equations were simplified; rewards and limits stay", False),
    Gone(
        "LunarLander",
        (1, 2),
        3,
        "wind and turbulence, off by default, restart with each episode, and resets with one "
        "seed are alike; rewards and limits stay those of version 2",
    ),
    Gone(
        "LunarLanderContinuous",
        (1, 2),
        3,
        "wind and turbulence, off by default, restart with each episode, and resets with one "
        "seed are alike; rewards and limits stay those of version 2",
    ),
    Gone("BipedalWalker", (1, 2), 3, "lidar gives the closest trace, not the furthest"),
    Gone("BipedalWalkerHardcore", (1, 2), 3, "lidar gives the closest trace, not the furthest"),
    Gone(
        "CarRacing",
        (0, 1, 2),
        3,
        "a lap counts as done by other rules, and a finished lap terminates the episode",
    ),
    Gone("FrozenLake", (0,), 1, "rewards were mended"),
    Gone("FrozenLake8x8", (0,), 1, "rewards were mended"),
    Gone("Taxi", (0, 1, 2), 3, "the map was corrected"),
    Gone("Blackjack", (0,), 1, "a natural is rewarded as the rules of the game say"),
    Gone("CliffWalking", (0,), 1, "it can be slippery, which is off by default", False),
    Gone("Acrobot", (0,), 1, "observations hold sine and cosine of the angles; 500 steps, not 200"),
    *(Gone(stem, (1,), 4, _BINDINGS + _STEPS) for stem in _ROBOTS),
    *(Gone(stem, (2, 3), 4, _BINDINGS) for stem in _ROBOTS),
    *(
        Gone(
            "Ant",
            versions,
            4,
            f"{_BINDINGS}; observations have 27 numbers instead of 111, without contact forces, "
            f"and contacts cost nothing{tail}",
        )
        for versions, tail in (((1,), _STEPS), ((2, 3), ""))
    ),
    Gone("Humanoid", (1,), 4, _BINDINGS + _STEPS),
    Gone("Humanoid", (2, 3), 4, f"{_BINDINGS}; contacts cost nothing"),
    *(
        Gone(stem, (1, 2), 4, _BINDINGS)
        for stem in ("Reacher", "Pusher", "InvertedPendulum", "InvertedDoublePendulum")
    ),
    Gone("HumanoidStandup", (1, 2), 4, _BINDINGS),
)


def _find_successor(name: object) -> tuple[str, Gone] | None:
    """The name that takes the place of a version that is gone, and what differs."""
    match = (
        re.fullmatch(r"(?P<stem>\w+)-v(?P<version>\d+)", name) if isinstance(name, str) else None
    )
    if match is None:
        return None
    for row in GONE:
        if row.stem == match["stem"] and int(match["version"]) in row.versions:
            return f"{row.stem}-v{row.now}", row
    return None


def env(value: object, _: Context) -> Outcome:
    """The environment; with a warning where gymnasium's next version of it is another."""
    found = _find_successor(value)
    if found is None:
        return Outcome({"env.env": value})
    name, row = found
    return Outcome(
        {"env.env": value},
        message=f"gymnasium has no `{value}` any more, `{name}` is the next that it has: "
        f"{row.differs}",
        severity=Severity.WARNING if row.matters else None,
        hint="compare returns with those of a run in the new version" if row.matters else "",
    )


def wrap(value: object, context: Context) -> Outcome:
    """A setting of the wrapper around the environment."""
    return Outcome({context.target: value}, Verdict.KEPT if is_off(value) else None)


@for_new_stack
def clip_rewards(value: object, context: Context) -> Outcome:
    """Whether rewards are clipped; None is for Atari games to decide."""
    message = "clips to the sign, for Atari games only" if value is None else ""
    return Outcome({context.target: value}, message=message)


@for_new_stack
def preprocessor_pref(value: object, context: Context) -> Outcome:
    """How frames are preprocessed."""
    ray = context.legacy_ray
    if value is None and ray is not None and Version(ray) < _NO_PREPROCESSING:
        value = "rllib"
    return Outcome({context.target: value})


def space(value: object, context: Context) -> Outcome:
    """A space: an object of gym or gymnasium, a record, or its `repr`."""
    if value is None:
        return drop("it is taken from the environment")
    record = parse_repr(value) if isinstance(value, str) else from_object(value)
    if record is None and isinstance(value, (str, dict, list)):
        hint = f"pass the space itself to environment({context.rule.key}=)"
        return drop(f"{value!r} can't be read as a space", Severity.WARNING, hint)
    return Outcome({context.target: DeferredSpace(value if record is None else record)})


def keep_function(value: object, context: Context) -> Outcome:
    """A function, if there was one."""
    return drop("there was none") if value is None else Outcome({context.target: value})


# Env runners


@for_new_stack
def observation_filter(value: object, context: Context) -> Outcome:
    """A filter of observations: a connector on the new API stack."""
    if registry.of(context.algorithm).reader == "evolution" and value in v.FILTER_NAME.words:
        return _filter_of_evolution(value, context)
    if value in (None, "NoFilter"):
        return drop("no filter was asked for")
    if value in ("MeanStdFilter", "ConcurrentMeanStdFilter"):
        return Outcome({context.target: MeanStdConnector(multi_agent=context.has_policies)})
    return refuse(
        f"no connector does what the filter {value!r} did",
        "write it as a ConnectorV2 and pass it as env_to_module_connector",
    )


def _filter_of_evolution(value: object, context: Context) -> Outcome:
    """ES and ARS normalise by default."""
    if context.path.startswith("$.evaluation_config"):
        return drop("evaluation sees what training sees")
    if value == "NoFilter":
        return Outcome({context.target: None}, message="no filter")
    return Outcome(verdict=Verdict.KEPT, message="observations are normalised by default")


observation_filter_of_qmix = refuse_unless(
    lambda value: value in (None, "NoFilter"),
    "no filter was asked for",
    "it filtered action masks along with what is observed",
    "scale the observations in the environment",
)


def remote_worker_envs(value: object, context: Context) -> Outcome:
    """Environments in processes of their own: gymnasium's asynchronous vector environment."""
    if context.stack == "old":
        return Outcome({context.target: bool(value)}, Verdict.KEPT)
    if not value:
        return drop("it was switched off, as it is by default")
    return vectorize_mode("async", context)


def vectorize_mode(value: object, _: Context) -> Outcome:
    """By the installed Ray's spelling; a legacy default comes by that of its own."""
    mode = configs.vectorize_mode(value) if isinstance(value, str) else value
    return Outcome({"env_runners.gym_env_vectorize_mode": mode})


def synchronize_filters(value: object, context: Context) -> Outcome:
    """Whether the filters of the env runners are merged, as connectors always are."""
    if context.stack == "old":
        return Outcome({context.target: bool(value)})
    if value:
        return drop("the new connectors are always merged")
    return drop("filters of the env runners are merged all the same", Severity.WARNING)


# Callbacks


def callbacks(value: object, context: Context) -> Outcome:
    """A dict of functions, of which those that Ray called are kept, or a class, or several."""
    if value is None or value == {} or value == []:
        return drop("there were none")
    if getattr(value, "__name__", "") in _BASE_CALLBACKS:
        return drop("the base class, which does nothing")
    if isinstance(value, Mapping):
        value = _usable_functions(value, context)
        if not value:
            return drop("no function of it can be called")
    return Outcome({context.target: AdaptedCallbacks(value)})


def _usable_functions(functions: Mapping[str, Any], context: Context) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for event, function in functions.items():
        where = f".{event}"
        if event not in CALLBACK_EVENTS:
            message = "RLlib never called a function of this name"
            hint = f"it called {', '.join(CALLBACK_EVENTS)}"
            context.note(Verdict.UNKNOWN, where, message, Severity.WARNING, hint)
        elif function is None:
            context.note(Verdict.DROPPED, where, "there was none")
        elif not callable(function):
            message = f"{function!r:.60} can't be called"
            hint = "pass the function itself"
            context.note(Verdict.DROPPED, where, message, Severity.WARNING, hint)
        else:
            kept[event] = function
            message = "called with the old `info` dict"
            if event == "on_postprocess_traj" and context.stack == "new":
                message += "; what it writes is learned from, only advantages it can't write"
            context.note(Verdict.WRAPPED, where, message)
    return kept


# Evaluation


def evaluation_num_episodes(value: object, context: Context) -> Outcome:
    """A duration in episodes; since Ray 1.10 it has a unit of its own."""
    return Outcome({context.target: value, "evaluation.evaluation_duration_unit": "episodes"})


def enable_async_evaluation(value: object, context: Context) -> Outcome:
    """Evaluation beside training, which is asynchronous by itself today."""
    return Outcome({context.target: True}) if value else drop("it was switched off")


def custom_evaluation(value: object, context: Context) -> Outcome:
    """A function that evaluates, behind an adapter for its old arguments."""
    if value is None:
        return drop("there was none")
    return Outcome({context.target: PublicCall("EvaluationFunction", (value,))})


def input_evaluation(value: object, _: Context) -> Outcome:
    """Off-policy estimators, which the new API stack does not have."""
    if is_off(value) or value == -1:
        return drop("none was asked for")
    return drop(
        "the new API stack has no off-policy estimators",
        Severity.WARNING,
        "evaluate in the environment: evaluation(evaluation_interval=)",
    )


def evaluation_config(value: object, context: Context) -> Outcome:
    """Translates the inner config; what it does to the environment joins the outer settings."""
    if is_off(value):
        return drop("it changed nothing")
    if not isinstance(value, Mapping):
        return Outcome({context.target: value}, Verdict.KEPT)
    assert context.translate is not None
    attributes: dict[str, Any] = {}
    translated = context.translate(value, context.path, context)
    wrapper = nested(translated, "env")
    if wrapper.get("env") is None and context.get("env") is None:
        wrapper.pop("atari", None)  # without an environment, there is nothing to wrap
    for setting, inner in translated.items():
        method, _, argument = setting.partition(".")
        head, _, tail = argument.partition(".")
        if method == "env" or setting == _EPSILON:
            continue
        if method == "rl_module" or head == "replay_buffer_config":
            context.note(
                Verdict.DROPPED,
                f".{tail or head}",
                "evaluation runs the module that is trained, without a replay buffer",
            )
        elif tail:
            attributes.setdefault(_ATTRIBUTES.get(head, head), {})[tail] = inner
        else:
            attributes[_ATTRIBUTES.get(head, head)] = inner
    if _EPSILON in translated and not any(f"{_MODEL_CONFIG}.{k}" in translated for k in EXPLORING):
        explores = _is_above_zero(translated[_EPSILON])
        attributes["explore"] = attributes.get("explore", True) and explores
    if _changes_env(wrapper, context):
        attributes["env"] = AdaptedEnv(_env_of_evaluation(wrapper, context))
    return Outcome({context.target: attributes} if attributes else {})


def _is_above_zero(epsilon: object) -> bool:
    return any(e > 0 for _, e in epsilon) if isinstance(epsilon, list) else bool(epsilon)


def ray_of_env(config: Mapping[str, Any], ray: str | None) -> dict[str, Any]:
    """The settings of an environment that say its Ray, and what that did with observations."""
    if ray is None:
        return {}
    found: dict[str, Any] = {"legacy_ray": ray}
    if EnvSettings(None, legacy_ray=ray).checks_observations:
        connectors = config.get("enable_env_runner_and_connector_v2")
        for name, key in SWITCHES.items():
            if connectors or config.get(key):
                found[name] = False
    return found


def _changes_env(wrapper: Mapping[str, Any], context: Context) -> bool:
    """Whether evaluation has another environment than training, or wraps it otherwise."""
    name = wrapper.get("env")
    is_other = not isinstance(name, str) or name != context.get("env")
    return bool(wrapper) and (len(wrapper) > 1 or is_other)


def _env_of_evaluation(wrapper: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The environment of training, with what the evaluation config changes."""
    keys = ("env", "horizon", "soft_horizon", "no_done_at_end", "preprocessor_pref")
    settings = {"env": None, **{k: context.config[k] for k in keys if k in context.config}}
    settings |= {**ray_of_env(context.config, context.legacy_ray), **wrapper}
    frames = atari_settings(context.get("model") or {}) | wrapper.get("atari", {})
    return {**settings, "atari": frames} if frames else settings
