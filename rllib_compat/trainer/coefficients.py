"""Temperatures and KL coefficients: learners use them in losses, and do not save them.

Ray's learners start with those of the config after each restore. Policies of old Rays saved them,
and continued with them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rllib_compat.formats.layouts.folder import Folder
from rllib_compat.formats.layouts.v2 import COEFFICIENTS as FILE
from rllib_compat.networks.named import MOVING_AVERAGE
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.ray_versions import learners, training_steps

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

    from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState

#: The attributes of Ray's learners → their values in an old policy's state.
STORED: Mapping[str, Callable[[PolicyState], float | None]] = {
    "curr_log_alpha": lambda policy: policy.log_alpha,
    "curr_kl_coeffs_per_module": lambda policy: policy.kl_coeff or None,
    "moving_avg_sqd_adv_norms_per_module": lambda policy: policy.extra.get(MOVING_AVERAGE),
}

Coefficients = dict[str, dict[str, float]]


def from_checkpoint(checkpoint: LegacyCheckpoint) -> Coefficients:
    """Those of an old checkpoint, by the learners' attribute and by policy."""
    return {
        attribute: {
            policy.policy_id: value
            for policy in checkpoint.policies.values()
            if (value := stored(policy)) is not None
        }
        for attribute, stored in STORED.items()
    }


def get(algorithm: Algorithm) -> Coefficients:
    """Those of an algorithm's learners, which all have the same; nothing where they have none."""
    if algorithm.learner_group is None:
        return {}
    ask = partial(learners.coefficients, names=tuple(STORED))
    held: Coefficients
    held, *_ = training_steps.foreach_learner(algorithm, ask)
    return held


def save(algorithm: Algorithm, folder: Path) -> None:
    """Writes those of an algorithm's learners into its checkpoint; nothing where it has none."""
    if held := get(algorithm):
        (folder / FILE).write_text(json.dumps(held, sort_keys=True), "utf-8")


def load(folder: Path) -> Coefficients:
    """Those that a trainer has written beside its checkpoint; none where it had none.

    Raises:
        CorruptCheckpointError: The file contains something else.
    """
    files = Folder(folder, Budget())
    if not files.has(FILE):
        return {}
    found = files.json(FILE)
    try:
        return {
            name: {module: _number(value) for module, value in found.get(name, {}).items()}
            for name in STORED
        }
    except (ValueError, AttributeError) as error:
        raise CorruptCheckpointError(
            f"It does not contain the coefficients of learners: {error}.",
            where=str(folder / FILE),
            fix="Without this file, learners continue with the coefficients of the config.",
        ) from error


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def restore(algorithm: Algorithm, values: Coefficients) -> None:
    """Sets these in an algorithm's learners."""
    if algorithm.learner_group is not None:
        give = partial(learners.set_coefficients, values=values)
        training_steps.foreach_learner(algorithm, give)
