"""A case's policies as `load_policy` gives them, and what the old Ray was seen to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rllib_compat import load_policy
from rllib_compat.conversion.recordings import OUTPUTS
from rllib_compat.neutral import spaces
from rllib_compat.policy import Policy
from tests.legacy.cases import Case
from tests.legacy.networks import given_if_asked, raw_space


@dataclass(frozen=True)
class Seen:
    """What one policy of a case took and gave.

    Attributes:
        observations: 16 raw observations, as one structure with batches as leaves.
        state: The recurrent state before them, or None.
        previous: The actions and rewards before them, or None.
        arrays: All that was recorded, by its stored name.
    """

    observations: Any
    state: list[np.ndarray] | None
    previous: tuple[np.ndarray | None, np.ndarray | None]
    arrays: dict[str, np.ndarray]


def policies(case: Case) -> dict[str, Policy]:
    """Every policy of a case, by the id under which its outputs were recorded."""
    given = given_if_asked(case)
    found = {}
    for policy_id in case.policies:
        raw = raw_space(case, policy_id)
        own = given
        if raw is not None and not isinstance(raw, spaces.Box):
            own = replace(given, observation_spaces={**given.observation_spaces, policy_id: raw})
        # What Ray 0.5 called the only policy is not a name that can be asked for any more.
        asked = None if policy_id == "default" else policy_id
        found[policy_id] = load_policy(case.checkpoint, asked, given=own)
    return found


def seen(case: Case, policy_id: str, policy: Policy) -> Seen:
    """What was recorded of a policy."""
    expected = case.expected(policy_id)
    arrays = dict(expected.arrays)
    leaves = dict(expected.observations)
    observations = leaves[""] if "" in leaves else _nested(leaves, policy.observation_space)
    return Seen(
        observations,
        _state(arrays, policy),
        (arrays.get("prev_actions"), arrays.get("prev_rewards")),
        arrays,
    )


def outputs(found: Seen) -> dict[str, np.ndarray]:
    """The recorded outputs of the network, by today's names."""
    return {
        name: next(found.arrays[n] for n in theirs if n in found.arrays)
        for name, theirs in OUTPUTS.items()
        if any(n in found.arrays for n in theirs)
    }


def _nested(leaves: dict[str, np.ndarray], space: spaces.Space, path: str = "") -> Any:
    if isinstance(space, spaces.DictSpace):
        return {k: _nested(leaves, s, f"{path}{k}.") for k, s in space.spaces.items()}
    if isinstance(space, spaces.TupleSpace):
        return tuple(_nested(leaves, s, f"{path}{i}.") for i, s in enumerate(space.spaces))
    return leaves[path.removesuffix(".")]


def _state(arrays: dict[str, np.ndarray], policy: Policy) -> list[np.ndarray] | None:
    graph = policy.network.graph
    names = [n for n in arrays if n.startswith("state_in")]
    if not graph.states or len(names) != len(graph.states):
        return None
    if any("/" in name for name in names):  # two LSTMs of a module, by name
        parts = {"h": "actor/h", "c": "actor/c", "critic_h": "critic/h", "critic_c": "critic/c"}
        names = [f"state_in/{parts[name]}" for name in graph.states]
    else:
        names = sorted(names)
    shapes = [graph.inputs[name] for name in graph.states]
    return [arrays[n].reshape(-1, *shape) for n, shape in zip(names, shapes, strict=True)]
