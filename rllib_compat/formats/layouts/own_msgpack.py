"""The msgpack form that this package wrote, read back exactly.

It is a 1.1 msgpack checkpoint as Ray lays it out. What Ray's form has no place for lies under one
key of each file (`plain.OWN_KEY`), so that the neutral state comes back as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_compat.formats.layouts.base import Miss
from rllib_compat.formats.layouts.folder import Folder
from rllib_compat.formats.msgpack.plain import OWN_KEY, from_plain
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.neutral.policy_id import PolicyIds

name = "1.1 msgpack of this package"

_ALGORITHM = "algorithm_state.msgpck"
_POLICY = "policy_state.msgpck"


def read(path: Path) -> LegacyCheckpoint:
    """Reads a folder; its source tells of the checkpoint that was converted, with today's path."""
    folder = Folder(path)
    if not path.is_dir() or not folder.has(_ALGORITHM):
        raise Miss(f"no `{_ALGORITHM}`")
    state = folder.msgpack(_ALGORITHM)
    if not isinstance(state, Mapping) or OWN_KEY not in state:
        raise Miss(f"`{_ALGORITHM}` was written by Ray")
    checkpoint: LegacyCheckpoint = _own_part(state, LegacyCheckpoint, _ALGORITHM)
    policies: dict[str, PolicyState] = {}
    names = [path.name for path in folder.folders("policies")]
    ids = PolicyIds(names)
    for policy_name in names:
        file = f"policies/{policy_name}/{_POLICY}"
        if not folder.has(file):
            raise CorruptCheckpointError(
                "A policy's file is missing.",
                where=file,
                fix="Copy the checkpoint again, with the folder `policies`.",
            )
        policy: PolicyState = _own_part(folder.msgpack(file), PolicyState, file)
        if policy.policy_id != policy_name:
            raise CorruptCheckpointError("It holds the policy of another folder.", where=file)
        policy_id = ids[policy_name]
        found_as = ids.found_as(policy_id) or policy.found_as
        policies[policy_id] = replace(policy, policy_id=policy_id, found_as=found_as)
    checkpoint = checkpoint.with_policies(_in_order(state, policies))
    source = replace(checkpoint.source, path=path)
    return replace(checkpoint, source=source).with_findings(ids.findings())


def _own_part(state: Any, kind: type, file: str) -> Any:
    own = state.get(OWN_KEY) if isinstance(state, Mapping) else None
    value = from_plain(own, state, where=file)
    if not isinstance(value, kind):
        raise CorruptCheckpointError(f"It holds no {kind.__name__}.", where=file)
    return value


def _in_order(state: Mapping[str, Any], policies: Mapping[str, PolicyState]) -> list[PolicyState]:
    """The policies as they were listed: their folders come in alphabetical order."""
    worker = state.get("worker")
    listed = worker.get("policy_ids") if isinstance(worker, Mapping) else None
    if not isinstance(listed, list) or set(listed) != set(policies):
        raise CorruptCheckpointError(
            f"The policies {sorted(policies)} are there, {listed} are listed.",
            where=_ALGORITHM,
            fix="Copy the checkpoint again, with the folder `policies`.",
        )
    return [policies[policy_id] for policy_id in listed]
