"""The msgpack form that this package wrote, read back exactly.

It is a 1.1 msgpack checkpoint as Ray lays it out. What Ray's form has no place for lies under one
key of each file (`state.OWN_KEY`), so that the neutral state comes back as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_compat.formats.layouts.folder import Folder, LayoutMismatch, as_mapping
from rllib_compat.formats.msgpack.state import OWN_KEY, from_plain
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState, Source
from rllib_compat.neutral.errors import CorruptCheckpointError

name = "1.1 msgpack of this package"

_ALGORITHM = "algorithm_state.msgpck"
_POLICY = "policy_state.msgpck"


def read(path: Path, budget: Budget) -> LegacyCheckpoint:
    """Reads a folder. Its source is that of the checkpoint that was converted, but for the path."""
    folder = Folder(path, budget)
    if not path.is_dir() or not folder.has(_ALGORITHM):
        raise LayoutMismatch(f"no `{_ALGORITHM}`")
    if folder.lacks(_ALGORITHM):
        raise LayoutMismatch(f"`{_ALGORITHM}` was not copied")
    state = folder.msgpack(_ALGORITHM)
    if not isinstance(state, Mapping) or OWN_KEY not in state:
        raise LayoutMismatch(f"`{_ALGORITHM}` was written by Ray")
    checkpoint: LegacyCheckpoint = _read_own_part(state, LegacyCheckpoint, _ALGORITHM, budget)
    parts: tuple[Any, Any] = (checkpoint.source, checkpoint.findings)
    if not isinstance(parts[0], Source) or not isinstance(parts[1], (list, tuple)):
        raise CorruptCheckpointError("The file has no source and no findings.", where=_ALGORITHM)
    policies: dict[str, PolicyState] = {}
    names = [path.name for path in folder.folders("policies")]
    ids = folder.policy_ids(names, "policies")
    for policy_name in names:
        file = f"policies/{policy_name}/{_POLICY}"
        if folder.lacks(file):
            continue
        policy: PolicyState = _read_own_part(folder.msgpack(file), PolicyState, file, budget)
        found: Any = policy.policy_id  # whatever the file says
        if not isinstance(found, str) or found != policy_name:
            raise CorruptCheckpointError("The file has the policy of another folder.", where=file)
        policy_id = ids[policy_name]
        found_as = ids.found_as(policy_id) or policy.found_as
        policies[policy_id] = replace(policy, policy_id=policy_id, found_as=found_as)
    found = policies.values() if folder.missing else _sort_policies(state, policies)
    source = replace(checkpoint.source, path=path)
    return folder.finish(replace(checkpoint.with_policies(found), source=source))


def _read_own_part(state: object, kind: type, file: str, budget: Budget) -> Any:
    value = from_plain(as_mapping(state).get(OWN_KEY), state, budget=budget, where=file)
    if not isinstance(value, kind):
        raise CorruptCheckpointError(f"The file has no {kind.__name__}.", where=file)
    return value


def _sort_policies(
    state: Mapping[str, Any], policies: Mapping[str, PolicyState]
) -> list[PolicyState]:
    """The policies as they were listed: their folders come in alphabetical order."""
    listed = as_mapping(state.get("worker")).get("policy_ids")
    names = listed if isinstance(listed, list) else []
    sound = all(isinstance(name, str) for name in names) and len(names) == len(policies)
    if not sound or set(names) != set(policies):
        raise CorruptCheckpointError(
            f"The list of policies does not match the folders: {sorted(policies)}.",
            where=_ALGORITHM,
            fix="Copy the checkpoint again, with the folder `policies`.",
        )
    return [policies[policy_id] for policy_id in names]
