"""Reads the flat vectors of PG: Ray 0.5 – 0.7 kept only what the loss depended on.

That was the policy; the value function that the model had made was not stored.
"""

from __future__ import annotations

import math

import numpy as np

from rllib_compat.networks.heads.fcnet import Shape
from rllib_compat.networks.heads.policy_only import policy_only
from rllib_compat.networks.names.unnamed import cut
from rllib_compat.networks.network import Network
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError
from rllib_compat.neutral.report import Finding


def read_vector(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads a fully connected policy without a value function.

    Raises:
        MissingInformationError: The spaces have to be given.
        CheckpointError: The vector does not fit the config and the spaces.
    """
    where = f"policies.{policy.policy_id}.weights"
    vector = np.asarray(policy.weights)
    if policy.observation_space is None or policy.action_space is None:
        raise MissingInformationError(
            f"The weights are one vector of {vector.size} numbers without names; both spaces are "
            "needed to cut it.",
            where=where,
            fix="Give --observation-space 'Box(4,)' and --action-space 'Discrete(2)', or --env.",
        )
    hiddens = (256, 256) if settings.hiddens is None else settings.hiddens
    inputs, outputs = policy.observation_space.flat_size(), distribution_inputs(policy.action_space)
    # Ray 0.7.5 – 0.8.5 ignored `free_log_std` on TensorFlow.
    for free_log_std in (settings.free_log_std, False):
        rows = Shape(inputs, hiddens, outputs or 0, True, free_log_std).policy()
        if sum(math.prod(size) for _, size in rows) == vector.size:
            return policy_only(cut(vector, rows), settings.activation, "vector"), []
    raise CheckpointError(
        f"The vector of {vector.size} numbers fits no policy with {inputs} inputs, hidden layers "
        f"{list(hiddens)} and {outputs} outputs.",
        where=where,
        fix="Check that the config (params.json) and the spaces belong to this checkpoint.",
    )
