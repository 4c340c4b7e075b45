"""The names of a policy's arrays without what the framework put around them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import Table, to_canonical
from rllib_compat.neutral.checkpoint import PolicyState

#: MARWIL's running mean of squared advantages, a scalar among its weights (Ray 0.6 – 2.x).
MOVING_AVERAGE = "moving_average_of_advantage_norm"

#: Scalars that policies kept among their variables, and no network has.
SCALARS = ("kl_coeff", "entropy_coeff", "lr")

#: Constants that an RLModule registers as buffers; they hold no training.
BUFFERS = tuple(
    f"{part}.log_std_clip_param_const"
    for part in ("pi", "vf", "_old_pi", "_pi_head", "af", "_target_af", "_target_vf")
)


def plain_name(policy: PolicyState, name: str) -> str:
    """A variable's name without TensorFlow's scope and output number.

    The scope is the policy's id, with the number of a rollout worker in some Rays
    (`default_policy_wk0/`), or `default/`.
    """
    scope = rf"(default|{re.escape(policy.old_id)}(_wk\d+)?)/"
    return re.sub(rf"^{scope}", "", name).removesuffix(":0")


def plain_names(policy: PolicyState) -> tuple[dict[str, Array], dict[str, float]]:
    """The named arrays of a policy without TensorFlow's scope and output number.

    Returns:
        `fc_1/kernel` for `default_policy/fc_1/kernel:0`, and the scalars that are no weights.
    """
    assert isinstance(policy.weights, dict)
    plain = {plain_name(policy, k): np.asarray(v) for k, v in policy.weights.items()}
    found = [name for name in SCALARS if name in plain and plain[name].ndim == 0]
    scalars = {name: float(plain.pop(name)) for name in found}
    for name in [name for name in plain if name.endswith(MOVING_AVERAGE)]:
        scalars[MOVING_AVERAGE] = float(plain.pop(name).reshape(()))
    return {k: v for k, v in plain.items() if k not in BUFFERS}, scalars


def best_scheme(schemes: Mapping[str, Table], plain: Mapping[str, Array]) -> str:
    """The scheme whose table leaves the fewest names over; the first of them."""

    def left(scheme: str) -> tuple[bool, int]:
        arrays, left = to_canonical(schemes[scheme], plain)
        return not arrays, len(left)

    return min(schemes, key=left)
