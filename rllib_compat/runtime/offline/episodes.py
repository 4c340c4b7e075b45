"""Recorded batches as the episodes that today's offline algorithms read.

A line of a recording is a fragment: of several episodes, and seldom of whole ones. Today's readers
want whole episodes, each once. So fragments of one episode are joined again where they meet, and
what the recording has cut ends as truncated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.neutral.errors import ConfigError, CorruptCheckpointError
from rllib_compat.ray_versions import episodes
from rllib_compat.runtime.offline.files import DONES, read_lines

# What an episode has under names of its own; the other columns were outputs of the policy.
_OWN = {"obs", "new_obs", "actions", "rewards", "infos", "t", DONES, "terminateds", "truncateds"}
_LABELS = {"eps_id", "agent_index", "unroll_id", "agent_id", "env_id", "policy_id"}
# Computed from others; learners do it again.
_DERIVED = {"prev_actions", "prev_rewards", "advantages", "value_targets", "weights", "type"}
_FLAGS = (DONES, "terminateds", "truncateds")

Columns = Mapping[str, Any]


def episodes_of(files: Iterable[Path]) -> Iterator[Any]:
    """The recorded episodes, as `SingleAgentEpisode`s of arrays.

    Raises:
        ConfigError: Several policies were recorded.
        CorruptCheckpointError: A line lacks what every recording has, or contradicts itself.
    """
    policies: set[str] = set()
    count = 0
    for file in files:
        # Only within a file, which one worker wrote, do lines follow each other.
        open_ends: dict[tuple[str, Any, Any], list[dict[str, Any]]] = {}
        for policy, columns in read_lines(file):
            policies.add(policy)
            if len(policies) > 1:
                raise ConfigError(
                    f"The recording is of several policies: {', '.join(sorted(policies))}.",
                    where="$.input",
                    fix="Train each by itself, with a recording of its own agents alone.",
                )
            for key, fragment in _fragments(policy, columns, str(file)):
                earlier = open_ends.pop(key, [])
                if earlier and fragment["t"][0] != earlier[-1]["t"][-1] + 1:
                    yield _episode(earlier, count)
                    earlier, count = [], count + 1
                parts = [*earlier, fragment]
                if fragment["terminated"] or fragment["truncated"]:
                    yield _episode(parts, count)
                    count += 1
                else:
                    open_ends[key] = parts
        for parts in open_ends.values():
            yield _episode(parts, count)
            count += 1


def _fragments(
    policy: str, columns: Columns, where: str
) -> Iterator[tuple[tuple[str, Any, Any], dict[str, Any]]]:
    """The parts of a batch that belong to one episode, with what identifies it."""
    arrays = {name: _column(name, v) for name, v in columns.items() if name not in _DERIVED}
    for name in ("obs", "actions", "rewards"):
        if name not in arrays:
            raise CorruptCheckpointError(f"A recorded batch has no `{name}`.", where=where)
    length = len(arrays["rewards"])
    flags = {name: np.asarray(arrays.get(name, np.zeros(length, bool))) for name in _FLAGS}
    done = flags[DONES] | flags["terminateds"] | flags["truncateds"]
    ids = np.asarray(arrays.get("eps_id", np.cumsum(done) - done))
    agents = np.asarray(arrays.get("agent_index", np.zeros(length, int)))
    cuts = done[:-1] | (ids[1:] != ids[:-1]) | (agents[1:] != agents[:-1])
    edges = [0, *(np.flatnonzero(cuts) + 1).tolist(), length]
    steps = np.asarray(arrays.get("t", np.arange(length)))
    for start, stop in itertools.pairwise(edges):
        if start == stop:
            continue
        part = {name: values[start:stop] for name, values in arrays.items() if name not in _LABELS}
        truncated = bool(flags["truncateds"][stop - 1])
        part["t"] = steps[start:stop]
        part["truncated"] = truncated
        part["terminated"] = bool(done[stop - 1]) and not truncated
        yield (policy, ids[start], agents[start]), part


def _episode(parts: list[dict[str, Any]], number: int) -> Any:
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    def join(name: str) -> Any:
        return np.concatenate([part[name] for part in parts])

    last = parts[-1]
    observations = join("obs")
    length = len(observations)
    # Without the observation after the last step, nothing is bootstrapped from it: it is doubled.
    final = last["new_obs"][-1:] if "new_obs" in last else observations[-1:]
    outputs = [name for name in last if name not in _OWN | {"terminated", "truncated"}]
    infos = list(join("infos")) if "infos" in last else [{}] * length
    episode = SingleAgentEpisode(
        id_=f"recorded_{number}",
        observations=[*observations, *final],
        actions=list(join("actions")),
        rewards=list(join("rewards")),
        # An info came with the observation after the step; before the first, there was none.
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
    # Modules take floats; only images may stay bytes, of which their layers make floats. An
    # observation that is a number alone is no vector, but a choice.
    is_vector = name in ("obs", "new_obs") and array.dtype != object and array.ndim in (2, 3)
    # JSON has one kind of float, and modules compute with 32 bits.
    return array.astype(np.float32) if is_vector or array.dtype == np.float64 else array
