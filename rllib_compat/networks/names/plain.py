"""The names of a policy's arrays without what the framework put around them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rllib_compat.networks.graph import Array
from rllib_compat.networks.heads.fcnet import BUFFERS
from rllib_compat.neutral.checkpoint import PolicyState

#: Scalars that TensorFlow policies kept among their variables, and no network has.
SCALARS = ("kl_coeff", "entropy_coeff", "lr")


def plain_names(policy: PolicyState) -> tuple[dict[str, Array], dict[str, float]]:
    """The named arrays of a policy without TensorFlow's scope and output number.

    Returns:
        `fc_1/kernel` for `default_policy/fc_1/kernel:0`, and the scalars that are no weights.
    """
    assert isinstance(policy.weights, dict)
    plain = {}
    for name, array in policy.weights.items():
        scope = "default/" if name.startswith("default/") else f"{policy.old_id}/"
        plain[name.removeprefix(scope).removesuffix(":0")] = np.asarray(array)
    scalars = {k: float(plain.pop(k)) for k in SCALARS if k in plain and plain[k].ndim == 0}
    return {k: v for k, v in plain.items() if k not in BUFFERS}, scalars


def keep_kl_coefficient(policy: PolicyState, scalars: Mapping[str, float]) -> None:
    """Puts PPO's coefficient, where it was a variable among the weights, where its state goes."""
    if policy.kl_coeff is None:
        policy.kl_coeff = scalars.get("kl_coeff")
