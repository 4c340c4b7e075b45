"""Writes weights as safetensors, with names and metadata; needs neither Ray nor torch.

`<policy>.safetensors` has every array by its canonical name (`hidden.0.kernel`), as the network's
graph has it: kernels are `[in, out]` and `[h, w, in, out]`. Its metadata holds that graph as JSON,
so the file tells what is computed. Of networks that are not known, such as custom models, the
arrays keep the names that they had.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.conversion.decide import Plan
from rllib_compat.conversion.difference import WEIGHTS, Difference
from rllib_compat.conversion.write.extras import describe, dropped, require_library
from rllib_compat.networks import Network
from rllib_compat.networks.mapping import Array
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.errors import CheckpointError, VerificationError
from rllib_compat.neutral.report import Finding

#: What the format calls its own part of a file.
_RESERVED = "__metadata__"


def write(plan: Plan, target: Path) -> list[Finding]:
    """Writes a file for each policy.

    Returns:
        What is not in them.

    Raises:
        CompatError: The package safetensors is not installed.
        CheckpointError: It has no form for an array, or for a text.
    """
    require_library("safetensors", extra="safetensors")
    from safetensors import SafetensorError
    from safetensors.numpy import save

    for policy_id in plan.checkpoint.policies:
        told = dict(describe(plan, policy_id))
        network = plan.networks.get(policy_id)
        if isinstance(network, Network):
            told["graph"] = network.graph.to_plain()
        metadata = {k: v if isinstance(v, str) else json.dumps(v) for k, v in told.items()}
        arrays = arrays_of(plan, policy_id)
        try:
            if _RESERVED in arrays:
                raise ValueError(f"an array is called {_RESERVED}")
            data = save(arrays, metadata)
        except (SafetensorError, LookupError, ValueError) as error:
            raise CheckpointError(
                f"safetensors has no form for it: {error!r:.200}.",
                where=f"policies.{policy_id}",
                fix="`--to msgpack` keeps all of it.",
            ) from error
        # Its own writer would tell of a full disk in errors of its own.
        _file(target, policy_id).write_bytes(data)
    return dropped(plan)


def arrays_of(plan: Plan, policy_id: str) -> dict[str, Array]:
    """What is written of a policy: the arrays of its network, or its weights as they were found."""
    network = plan.networks.get(policy_id)
    found: Any = network.arrays if network else _named(plan.checkpoint, policy_id)
    # An array that is a view of another one's memory would be written with it.
    return {
        name: np.array(array, array.dtype.newbyteorder("="), order="C")
        for name, array in found.items()
    }


def _named(checkpoint: LegacyCheckpoint, policy_id: str) -> dict[str, Array]:
    weights = checkpoint.policies[policy_id].weights
    if isinstance(weights, dict):
        return weights
    listed = weights if isinstance(weights, list) else [weights]
    return {f"weights.{i}": array for i, array in enumerate(listed)}


def compare(plan: Plan, target: Path) -> list[Difference]:
    """Reads the files back and compares every bit.

    Raises:
        VerificationError: An array is missing, or differs.
    """
    from safetensors.numpy import load_file

    rows = []
    for policy_id in plan.checkpoint.policies:
        old, new = arrays_of(plan, policy_id), load_file(_file(target, policy_id))
        same = {name for name in old.keys() & new.keys() if _same(old[name], new[name])}
        if different := sorted((old.keys() | new.keys()) - same):
            raise VerificationError(
                f"Read back, these arrays differ: {', '.join(different)}.",
                where=f"policies.{policy_id}",
            )
        numbers = sum(array.size for array in old.values())
        rows.append(Difference(policy_id, WEIGHTS, 0.0, 0.0, numbers, ok=True, kind="stored"))
    return rows


def _same(old: Array, new: Array) -> bool:
    alike = old.dtype == new.dtype and old.shape == new.shape
    return alike and old.tobytes() == new.tobytes()


def _file(target: Path, policy_id: str) -> Path:
    return target / f"{policy_id}.safetensors"
