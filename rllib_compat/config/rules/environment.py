"""The environment: its name and config, and what RLlib used to do around it."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from rllib_compat.config.context import Context
from rllib_compat.config.deferred import SpaceLater
from rllib_compat.config.rule import (
    Outcome,
    Rule,
    drop_aloud,
    dropped,
    kept,
    lost,
    needless,
)
from rllib_compat.config.values import common as v
from rllib_compat.config.values.env_versions import gone
from rllib_compat.config.values.kinds import Words
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.neutral.space_text import parse_repr
from rllib_compat.neutral.spaces import from_object

FAMILY = "environment"

#: From this Ray on, `preprocessor_pref: None` meant no preprocessing at all.
_NO_PREPROCESSING = Version("2.1")


def _wrapper(name: str) -> Any:
    def convert(value: Any, _: Context) -> Outcome:
        if needless(value):
            return Outcome({f"env.{name}": None if value is None else value}, Verdict.KEPT)
        return Outcome({f"env.{name}": value})

    return convert


def _render(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"environment.render_env": value}, Verdict.KEPT)
    return drop_aloud(value, context)


def _env(value: Any, _: Context) -> Outcome:
    found = gone(value)
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


def _clip_rewards(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"environment.clip_rewards": value}, Verdict.KEPT)
    if value is None:
        return Outcome(
            {"env.clip_rewards": None}, message="clips to the sign, for Atari games only"
        )
    return Outcome({"env.clip_rewards": value})


def _preprocessor_pref(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"env_runners.preprocessor_pref": value}, Verdict.KEPT)
    ray = context.legacy_ray
    if value is None and ray is not None and Version(ray) < _NO_PREPROCESSING:
        value = "rllib"
    return Outcome({"env.preprocessor_pref": value})


def _space(name: str) -> Any:
    def convert(value: Any, _: Context) -> Outcome:
        if value is None:
            return Outcome(verdict=Verdict.DROPPED, message="it is taken from the environment")
        record = parse_repr(value) if isinstance(value, str) else from_object(value)
        if record is None and isinstance(value, (str, dict, list)):
            return Outcome(
                verdict=Verdict.DROPPED,
                message=f"{value!r} can't be read as a space",
                severity=Severity.WARNING,
                hint=f"pass the space itself to environment({name}=)",
            )
        return Outcome({f"environment.{name}": SpaceLater(value if record is None else record)})

    return convert


def _task_function(value: Any, _: Context) -> Outcome:
    if value is None:
        return Outcome(verdict=Verdict.DROPPED, message="there was none")
    return Outcome({"env.task_function": value})


RULES = (
    Rule(
        FAMILY,
        "env",
        Verdict.WRAPPED,
        "the environment, behind the adapters that its API and this config ask for",
        target="env.env",
        convert=_env,
        value=v.ENV,
    ),
    *kept(
        FAMILY,
        "environment",
        {
            v.ENV_CONFIG: "env_config",
            v.FLAG: "clip_actions normalize_actions disable_env_checking is_atari",
            Words(("action_mask",)) | v.TEXT: "action_mask_key",
        },
    ),
    Rule(FAMILY, "_is_atari", Verdict.RENAMED, target="environment.is_atari", value=v.FLAG),
    *(
        Rule(
            FAMILY,
            name,
            Verdict.KEPT,
            target=f"environment.{name}",
            convert=_space(name),
            value=v.SPACE,
        )
        for name in ("observation_space", "action_space")
    ),
    Rule(
        FAMILY,
        "horizon",
        Verdict.WRAPPED,
        "the environment is cut after so many steps",
        target="env.horizon",
        convert=_wrapper("horizon"),
        value=v.LIMIT_STEPS,
    ),
    Rule(
        FAMILY,
        "soft_horizon",
        Verdict.WRAPPED,
        "at the horizon the episode ends, but the environment goes on without a reset",
        target="env.soft_horizon",
        convert=_wrapper("soft_horizon"),
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "no_done_at_end",
        Verdict.WRAPPED,
        "the end of an episode counts as a truncation",
        target="env.no_done_at_end",
        convert=_wrapper("no_done_at_end"),
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "clip_rewards",
        Verdict.WRAPPED,
        "rewards are clipped around the environment",
        target="env.clip_rewards",
        old_target="environment.clip_rewards",
        convert=_clip_rewards,
        value=v.FLAG | v.AMOUNT,
    ),
    Rule(
        FAMILY,
        "preprocessor_pref",
        Verdict.WRAPPED,
        "Atari games get the DeepMind wrappers, or RLlib's own preprocessing of raw frames",
        target="env.preprocessor_pref",
        old_target="env_runners.preprocessor_pref",
        convert=_preprocessor_pref,
        value=Words(("deepmind", "rllib")),
    ),
    Rule(
        FAMILY,
        "render_env",
        Verdict.DROPPED,
        "env runners of the new API stack do not render",
        old_target="environment.render_env",
        convert=_render,
        value=v.FLAG,
        hint="render in a callback or with gymnasium.wrappers.RecordVideo",
    ),
    *lost(
        FAMILY,
        "monitor record_env",
        "RLlib does not record videos any more",
        hint="wrap the environment with gymnasium.wrappers.RecordVideo",
    ),
    Rule(
        FAMILY,
        "env_task_fn",
        Verdict.WRAPPED,
        "asked after each iteration for the task of every environment",
        target="env.task_function",
        convert=_task_function,
        value=v.CODE,
    ),
    *dropped(FAMILY, "auto_wrap_old_gym_envs", "legacy environments are always adapted"),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.DROPPED,
            "the new API stack has no such preprocessing",
            old_target=f"experimental.{key}",
            value=v.FLAG,
        )
        for key in ("_disable_preprocessor_api", "_disable_action_flattening")
    ),
)
