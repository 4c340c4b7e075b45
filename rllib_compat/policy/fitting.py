"""How a Ray made the actions of a policy fit their space, before the environment got them.

Ray 0.6 – 1.3 clipped (`clip_actions`), and stretched only where the config said so
(`normalize_actions`, a wrapper of the environment then). Since Ray 1.4, actions are stretched from
-1 … 1 to the bounds of their space, and not clipped otherwise.
Source: `ray/rllib/utils/spaces/space_utils.py`, `unsquash_action` and `clip_action`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rllib_compat.config import keys as table
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box, DictSpace, Space, TupleSpace


@frozen
class Fitting:
    """What becomes of actions.

    Attributes:
        unsquash: Whether they are stretched from -1 … 1 to their space.
        clip: Whether they are clipped to their space.
    """

    unsquash: bool
    clip: bool

    def __call__(self, actions: Any, space: Space) -> Any:
        """Fits a batch of actions, in the structure of their space."""
        if isinstance(space, TupleSpace):
            return tuple(self(a, s) for a, s in zip(actions, space.spaces, strict=True))
        if isinstance(space, DictSpace):
            return {key: self(actions[key], part) for key, part in space.spaces.items()}
        if not isinstance(space, Box):
            return actions
        if self.unsquash and space.bounded and space.dtype.startswith("float"):
            stretched = space.low + (actions + 1.0) * (space.high - space.low) / 2.0
            return np.clip(stretched, space.low, space.high).astype(space.dtype)
        if self.clip:
            return np.clip(actions, space.low, space.high)
        return actions


def of_checkpoint(
    checkpoint: LegacyCheckpoint, policy: PolicyState
) -> tuple[Fitting, tuple[Finding, ...]]:
    """What the config of a checkpoint says, with the defaults of its Ray.

    Returns:
        It, and a warning where nothing tells which defaults there were.
    """
    known: Mapping[str, Any] = {**checkpoint.config, **policy.config}
    ray = checkpoint.source.ray_version
    if ray is not None and checkpoint.algorithm is not None:
        known = {**table.default_config(checkpoint.algorithm, ray), **known}
    fitting = Fitting(bool(known.get("normalize_actions")), bool(known.get("clip_actions")))
    missing = [key for key in ("normalize_actions", "clip_actions") if key not in known]
    if ray is not None or not missing or not _has_numbers(policy.action_space):
        return fitting, ()
    return fitting, (
        Finding(
            "actions",
            Severity.WARNING,
            Verdict.DERIVED,
            f"policies.{policy.policy_id}.action_space",
            f"neither the config nor a Ray version gives {' and '.join(missing)}; actions are "
            "returned as if that were off",
            "give them: load_policy(…, config={…, 'clip_actions': True})",
        ),
    )


def _has_numbers(space: Space | None) -> bool:
    if isinstance(space, TupleSpace):
        return any(map(_has_numbers, space.spaces))
    if isinstance(space, DictSpace):
        return any(map(_has_numbers, space.spaces.values()))
    return isinstance(space, Box)
