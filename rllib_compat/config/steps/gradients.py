"""How gradients are clipped."""

from __future__ import annotations

from rllib_compat.config.context import Context
from rllib_compat.config.rules.framework import was_tensorflow
from rllib_compat.config.steps.step import Change, Given, Step

CLIP, BY = "training.grad_clip", "training.grad_clip_by"


def _each_by_itself(given: Given, context: Context) -> Change | None:
    if given.get(BY) not in (None, "global_norm"):  # which those policies never read
        return None
    if given.effective(CLIP) is None or not was_tensorflow(context):
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
