"""How gradients are clipped."""

from __future__ import annotations

from packaging.version import Version

from rllib_compat.config.context import Context
from rllib_compat.config.rules.framework import TENSORFLOW
from rllib_compat.config.steps.step import Change, Given, Step

CLIP, BY = "training.grad_clip", "training.grad_clip_by"

#: The first Ray with the key `framework`; before it, TensorFlow was all there was by default.
_FRAMEWORK = Version("0.8.6")


def _was_tensorflow(context: Context) -> bool:
    framework = context.get("framework", context.get("framework_str"))
    if framework is not None:
        return framework in TENSORFLOW
    torch = context.get("use_pytorch")
    if torch is not None:
        return not torch
    return context.legacy_ray is not None and Version(context.legacy_ray) < _FRAMEWORK


def _each_by_itself(given: Given, context: Context) -> Change | None:
    if given.get(BY) not in (None, "global_norm"):  # which those policies never read
        return None
    if given.effective(CLIP) is None or not _was_tensorflow(context):
        return None
    return Change({BY: "norm"}, "TensorFlow's policies clipped the gradient of each variable")


STEPS = (
    Step(
        "grad_clip",
        "DQN, R2D2, SAC and DDPG clipped each variable's gradient by its norm where they ran on "
        "TensorFlow (`minimize_and_clip`). Torch, today's Ray and all other algorithms clip by the "
        "norm of all gradients together.",
        algorithms=("DQN", "APEX", "R2D2", "SAC", "CQL", "DDPG", "APEX_DDPG", "TD3"),
        stack="new",
        reads=(CLIP, BY),
        sets={BY: "norm"},
        key="grad_clip",
        change=_each_by_itself,
    ),
)
