"""Policies that `convert --to safetensors` and `--to policy` wrote: a network and how it acts.

A file of safetensors is a header in JSON (names, types, shapes, places) before the arrays' bytes.
Its metadata has the network's graph, and under `acting` the spaces and what of the config decides
actions. A `.rlpolicy` is a zip archive with one such file.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.formats.files import parse_json
from rllib_compat.formats.layouts.folder import Folder, LayoutMismatch, as_mapping
from rllib_compat.formats.spaces import from_ray_dict
from rllib_compat.formats.zip_errors import DAMAGED_ZIP
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import Array, LegacyCheckpoint, PolicyState, Source
from rllib_compat.neutral.errors import CorruptCheckpointError, UnknownLayoutError

name = "policy of this package"

#: A file of arrays, an archive with one, and what that is called in it.
ARRAYS, ARCHIVE, MEMBER = ".safetensors", ".rlpolicy", "policy.safetensors"
#: The module of ours that computes a graph, which such a file is read as, and its arrays' prefix.
_MODULE, _PREFIX = "rllib_compat.modules.PolicyModule", "net."
_METADATA = "__metadata__"
_DTYPES = {
    **{f"{kind}{bits}": f"<{kind.lower()}{bits // 8}" for kind in "FIU" for bits in (16, 32, 64)},
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}


def read(path: Path, budget: Budget) -> LegacyCheckpoint:
    """Reads a file, or a folder with a file for each policy."""
    folder = Folder(path if path.is_dir() else path.parent, budget)
    files = [path.name] if path.is_file() else folder.files(".")
    found = [file for file in files if file.endswith((ARRAYS, ARCHIVE))]
    if not found:
        raise LayoutMismatch(f"no `*{ARRAYS}` and no `*{ARCHIVE}`")
    read_files = {file: _read_file(folder.content(file), budget, file) for file in found}
    facts = {file: metadata for file, (metadata, _) in read_files.items()}
    acting = {file: _json(metadata, "acting", budget, file) for file, metadata in facts.items()}
    if not all(acting.values()):
        raise UnknownLayoutError(
            "The file has only weights, and no description of the network.",
            where=str(path),
            fix="Convert the checkpoint that it was exported from again.",
        )
    names = [facts[file].get("policy") for file in found]
    ids = folder.policy_ids(names, ".")
    policies = []
    for file, policy_name in zip(found, names, strict=True):
        record, (metadata, arrays) = acting[file], read_files[file]
        dicts = (as_mapping(record.get(key)) for key in ("observation_space", "action_space"))
        seen, actions = (from_ray_dict(d, budget=budget, where=file) for d in dicts)
        module = {
            **as_mapping(record.get("module")),
            "graph": _json(metadata, "graph", budget, file),
        }
        policies.append(
            PolicyState(
                ids[policy_name],
                {_PREFIX + key: array for key, array in arrays.items()},
                observation_space=seen,
                action_space=actions,
                config=as_mapping(record.get("config")),
                policy_class=_MODULE,
                exploration=record.get("exploration"),
                extra={"module_config": module},
                found_as=ids.found_as(ids[policy_name]),
            )
        )
    first = facts[found[0]]
    algorithm, ray = first.get("algorithm") or None, first.get("ray_version") or None
    source = Source(path, name, ray)
    made = LegacyCheckpoint(source, algorithm, modules_alone=True).with_policies(policies)
    return folder.finish(replace(made, config=policies[0].config))


def _json(metadata: Mapping[str, Any], key: str, budget: Budget, where: str) -> Mapping[str, Any]:
    text = metadata.get(key, "{}")
    if not isinstance(text, str):
        raise _damaged(f"{key!r} of the metadata is not text", where)
    return as_mapping(
        parse_json(memoryview(text.encode("utf-8", "surrogatepass")), budget, f"{where}: {key}")
    )


def _read_file(
    data: memoryview, budget: Budget, where: str
) -> tuple[Mapping[str, Any], dict[str, Array]]:
    """The metadata and the arrays of a file; arrays are views on its bytes."""
    if where.endswith(ARCHIVE):
        data = _unpack(data, budget, where)
    size = int.from_bytes(data[:8], "little")
    rest = data[8 + size :]
    header = as_mapping(parse_json(data[8 : 8 + size], budget, where))
    metadata = as_mapping(header.get(_METADATA, {}))
    budget.spend("elements", len(header), where)
    arrays, total = {}, 0
    try:
        for key, entry in header.items():
            if key == _METADATA:
                continue
            start, end = entry["data_offsets"]
            shape = tuple(map(int, entry["shape"]))
            dtype = np.dtype(_DTYPES[entry["dtype"]])
            if not 0 <= start <= end <= len(rest) or min(shape, default=0) < 0:
                raise ValueError(f"{key!r:.100} lies outside of the file")
            if end - start != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{key!r:.100} has another size")
            arrays[key] = np.frombuffer(rest[start:end], dtype).reshape(shape)
            total += end - start
        if total != len(rest):  # no bytes are those of two arrays
            raise ValueError(f"{total} bytes are arrays, of {len(rest)}")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(f"{error!r:.200}", where) from error
    return metadata, arrays


def _unpack(data: memoryview, budget: Budget, where: str) -> memoryview:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            info = archive.getinfo(MEMBER)
            budget.spend("unpacked", info.file_size, where)
            return memoryview(archive.read(info))
    except (*DAMAGED_ZIP, KeyError) as error:
        raise _damaged(f"{error!r:.200}", where) from error


def _damaged(why: str, where: str) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        f"The file is damaged: {why}.", where=where, fix="Copy it again, or convert again."
    )
