"""Custom models of TensorFlow, with which a config stays TensorFlow's on the old API stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rllib_compat.config import values as v
from rllib_compat.config.rule import Context, Outcome, Settings, drop
from rllib_compat.config.rules.models import SAC_NETWORKS
from rllib_compat.config.rules.multi_agent import fields_of
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.ray_versions import tensorflow
from rllib_compat.registry import keys

_FRAMEWORK = "framework.framework"
_NAMES = {"tfe": "tf2", "tf1": "tf"}
_TORCH = "write it with torch (TorchModelV2)"


def _custom_parts(config: Mapping[str, Any], path: str = "$") -> Iterator[tuple[str, str, object]]:
    """Paths, keys and values of a config that name a model, or an action distribution."""
    for section in ("model", *SAC_NETWORKS):
        model = config.get(section)
        for key in ("custom_model", "custom_action_dist"):
            if isinstance(model, Mapping) and model.get(key):
                yield f"{path}.{section}.{key}", key, model[key]
    for name, spec in keys.policies_of(config).items():
        own = fields_of(spec).get("config")
        if isinstance(own, Mapping):
            yield from _custom_parts(own, f"{path}.multiagent.policies.{name}")


def _part_of_tensorflow(config: Mapping[str, Any]) -> str | None:
    parts = _custom_parts(config)
    return next((p for p, key, value in parts if tensorflow.is_for_tensorflow(key, value)), None)


def _stays(context: Context) -> bool:
    return context.stack == "old" and _part_of_tensorflow(context.config) is not None


def framework(value: object, context: Context) -> Outcome:
    """Torch, with a warning where it was TensorFlow; TensorFlow where a custom model is its own."""
    if value not in v.TENSORFLOW:
        return Outcome({context.target: "torch"})
    if _stays(context):
        eager = context.get("eager") or context.get("use_eager")
        name = "tf2" if eager else _NAMES.get(str(value), value)
        return Outcome({context.target: name}, Verdict.KEPT, "the custom model is TensorFlow's")
    unknown = any(
        tensorflow.is_unknown(key, part) for _, key, part in _custom_parts(context.config)
    )
    return Outcome(
        {context.target: "torch"},
        Verdict.CONVERTED,
        f"RLlib has no {value!r} any more; torch trains the same networks",
        Severity.WARNING,
        "a custom model of TensorFlow keeps it where it is registered: run the script itself"
        if unknown
        else "",
    )


def use_pytorch(value: object, context: Context) -> Outcome:
    """What Ray had in the place of `framework` until 0.8.6."""
    return framework("torch" if value else "tf", context)


def eager(value: object, context: Context) -> Outcome:
    """TensorFlow's eager mode (Ray 0.7 – 0.8.6), which torch always has."""
    if _stays(context):
        return Outcome(message="the framework is 'tf2' for it" if value else "it was switched off")
    return Outcome(message="torch is always eager" if value else "it was switched off")


def tracing(value: object, context: Context) -> Outcome:
    """A switch of TensorFlow's eager mode."""
    return Outcome({context.target: value}, Verdict.KEPT) if _stays(context) else Outcome()


def session_argument(_: object, context: Context) -> Outcome:
    """A setting of TensorFlow's sessions, which are the installed Ray's."""
    if _stays(context):
        return drop("TensorFlow's sessions have the installed Ray's settings", Severity.WARNING)
    return Outcome()


def about_model(settings: Settings, context: Context) -> list[Finding]:
    """What prevents the training of a custom model of TensorFlow; nothing without one."""
    where = _part_of_tensorflow(context.config) if context.stack == "old" else None
    if where is None:
        return []
    missing = tensorflow.what_is_missing()
    if context.algorithm not in tensorflow.ALGORITHMS:
        why = f"it is TensorFlow's, and {context.algorithm} has policies for torch alone"
        hint = f"{_TORCH}; those of TensorFlow train with {', '.join(tensorflow.ALGORITHMS)}"
    elif settings.get(_FRAMEWORK, "torch") == "torch":
        why = "it is TensorFlow's, and the framework is torch"
        hint = f"set framework to 'tf2', or {_TORCH}"
    elif missing:
        why = f"it is TensorFlow's, and {missing}"
        hint = (
            "pip install 'rllib-compat[tensorflow]', and set the environment variable "
            f"TF_USE_LEGACY_KERAS=1 before TensorFlow is imported; or {_TORCH}"
        )
    else:
        return []
    return [Finding("framework.custom_model", Severity.ERROR, Verdict.REFUSED, where, why, hint)]
