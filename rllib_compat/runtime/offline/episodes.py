"""Converts recorded batches to the episodes that Ray's offline algorithms read.

A line of a recording is a fragment, with parts of several episodes. Ray's readers need complete
episodes. So the fragments of an episode are joined if they are consecutive, and an incomplete
episode ends as truncated.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.neutral.errors import ConfigError, CorruptCheckpointError
from rllib_compat.ray_versions import episodes
from rllib_compat.runtime.offline.files import DONES, read_lines

# The columns of a step; other columns were outputs of the policy.
STEPS = {"obs", "new_obs", "actions", "rewards", "infos", "t", DONES, "terminateds", "truncateds"}
_LABELS = {"eps_id", "agent_index", "unroll_id", "agent_id", "env_id", "policy_id"}
# Computed from other columns; learners compute them again.
_DERIVED = {"prev_actions", "prev_rewards", "advantages", "value_targets", "weights", "type"}
_FLAGS = (DONES, "terminateds", "truncateds")
#: The required numpy kinds of columns that the reading depends on.
_KINDS = {
    **dict.fromkeys((*_FLAGS, "rewards"), "biuf"),
    **dict.fromkeys(("t", "agent_index"), "iuf"),
    "eps_id": "iufU",
}

Columns = Mapping[str, Any]


def episodes_of(files: Iterable[Path]) -> Iterator[Any]:
    """Yields the recorded episodes, as `SingleAgentEpisode`s of arrays.

    Raises:
        ConfigError: The recording is of several policies.
        CorruptCheckpointError: A line lacks a required column, or its columns do not match.
    """
    policies: set[str] = set()
    count = 0
    for file in files:
        # Lines are consecutive only within a file, which one worker has written.
        open_ends: dict[tuple[str, Any, Any], list[dict[str, Any]]] = {}
        for policy, columns in read_lines(file):
            policies.add(policy)
            if len(policies) > 1:
                raise ConfigError(
                    f"The recording is of several policies: {', '.join(sorted(policies))}.",
                    where="$.input",
                    fix="train each policy separately, with a recording of only its agents",
                )
            for key, fragment in _fragments(policy, columns, str(file)):
                earlier = open_ends.pop(key, [])
                if earlier and fragment["t"][0] != earlier[-1]["t"][-1] + 1:
                    yield _episode(earlier, count, str(file))
                    earlier, count = [], count + 1
                parts = [*earlier, fragment]
                if fragment["terminated"] or fragment["truncated"]:
                    yield _episode(parts, count, str(file))
                    count += 1
                else:
                    open_ends[key] = parts
        for parts in open_ends.values():
            yield _episode(parts, count, str(file))
            count += 1


def episodes_of_batch(columns: Columns, where: str) -> list[Any]:
    """Converts a batch of steps to `SingleAgentEpisode`s of arrays, or chunks of them.

    Args:
        columns: Observations, actions, rewards, and other outputs of the policy.
        where: The name of the batch in errors.

    Raises:
        CorruptCheckpointError: The batch lacks observations, actions or rewards.
    """
    fragments = _fragments("", columns, where)
    return [_episode([part], uuid.uuid4().hex, where) for _, part in fragments]


def _fragments(
    policy: str, columns: Columns, where: str
) -> Iterator[tuple[tuple[str, Any, Any], dict[str, Any]]]:
    """Splits a batch by episodes, and yields each part with the key of its episode."""
    arrays = _arrays(columns, where)
    length = len(arrays["rewards"])
    flags = {name: arrays.get(name, np.zeros(length, bool)) for name in _FLAGS}
    done = flags[DONES] | flags["terminateds"] | flags["truncateds"]
    ids = arrays.get("eps_id", np.cumsum(done) - done)
    agents = arrays.get("agent_index", np.zeros(length, int))
    cuts = done[:-1] | (ids[1:] != ids[:-1]) | (agents[1:] != agents[:-1])
    edges = [0, *(np.flatnonzero(cuts) + 1).tolist(), length]
    steps = arrays.get("t", np.arange(length))
    for start, stop in itertools.pairwise(edges):
        if start == stop:
            continue
        part = {name: values[start:stop] for name, values in arrays.items() if name not in _LABELS}
        truncated = bool(flags["truncateds"][stop - 1])
        part["t"] = steps[start:stop]
        part["truncated"] = truncated
        part["terminated"] = bool(done[stop - 1]) and not truncated
        yield (policy, ids[start], agents[start]), part


def _arrays(columns: Columns, where: str) -> dict[str, Any]:
    """Converts the columns to arrays with a row for each step."""
    with _contradictions(where):
        arrays = {name: _column(name, v) for name, v in columns.items() if name not in _DERIVED}
    for name in ("obs", "actions", "rewards"):
        if name not in arrays:
            raise CorruptCheckpointError(f"A recorded batch has no `{name}`.", where=where)
    length = len(arrays["rewards"]) if arrays["rewards"].ndim else 0
    for name, array in arrays.items():
        if not array.ndim or len(array) != length:
            raise CorruptCheckpointError(
                f"`{name}` does not have one row for each of the {length} steps.", where=where
            )
        kinds = _KINDS.get(name)
        if kinds and (array.ndim != 1 or array.dtype.kind not in kinds):
            raise CorruptCheckpointError(f"`{name}` is not one number for each step.", where=where)
    return arrays | {name: arrays[name].astype(bool) for name in _FLAGS if name in arrays}


@contextmanager
def _contradictions(where: str) -> Iterator[None]:
    """Converts the errors of numpy and Ray about columns that do not match."""
    try:
        yield
    except (ValueError, TypeError, LookupError, OverflowError, AssertionError) as error:
        raise CorruptCheckpointError(
            f"The columns of a recorded batch do not match: {error!r}"[:500], where=where
        ) from error


def _episode(parts: list[dict[str, Any]], number: int | str, where: str) -> Any:
    with _contradictions(where):
        return _joined(parts, number)


def _joined(parts: list[dict[str, Any]], number: int | str) -> Any:
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    def join(name: str) -> Any:
        return np.concatenate([part[name] for part in parts])

    last = parts[-1]
    observations = join("obs")
    length = len(observations)
    # Without the observation after the last step, the last one is repeated.
    final = last["new_obs"][-1:] if "new_obs" in last else observations[-1:]
    outputs = [name for name in last if name not in STEPS | {"terminated", "truncated"}]
    infos = list(join("infos")) if "infos" in last else [{}] * length
    episode = SingleAgentEpisode(
        id_=f"recorded_{number}",
        observations=[*observations, *final],
        actions=list(join("actions")),
        rewards=list(join("rewards")),
        # Infos are those of the observations after steps; the first observation has none.
        infos=[{}, *(info if isinstance(info, dict) else {} for info in infos)],
        extra_model_outputs={
            name: list(join(name)) for name in outputs if all(name in part for part in parts)
        },
        terminated=last["terminated"],
        truncated=not last["terminated"],
        len_lookback_buffer=0,
    )
    return episodes.to_numpy(episode)


def _column(name: str, values: object) -> Any:
    array = np.asarray(values)
    if name in ("obs", "new_obs", "actions") and array.dtype.kind in "US":
        raise ValueError(f"`{name}` is text")
    # Modules take floats; only images stay bytes, which layers convert. An observation that is a
    # single number is discrete.
    is_vector = name in ("obs", "new_obs") and array.dtype != object and array.ndim in (2, 3)
    # JSON has only 64-bit floats, and modules take 32-bit ones.
    return array.astype(np.float32) if is_vector or array.dtype == np.float64 else array
