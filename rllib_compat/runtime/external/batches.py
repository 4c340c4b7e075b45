"""Batches and metrics that clients with local inference send: objects of their Ray, as records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rllib_compat.neutral.errors import CompatError, CorruptCheckpointError
from rllib_compat.neutral.records import StandIn
from rllib_compat.runtime.external.messages import plain
from rllib_compat.runtime.offline.files import DONES, ONE_POLICY, unpack

_FIX = "Send what RolloutWorker.sample() of a Ray with PolicyClient gives."
_WHERE = "request → samples"
#: What batches are joined by; every policy has them.
_NEEDED = "obs", "actions", "rewards"


def batch_of(sent: object, policies: Mapping[str, Any]) -> Any:
    """A batch that a client has sampled, as one of the installed Ray.

    Args:
        sent: The record of a `SampleBatch` or `MultiAgentBatch` of Ray 0.8 – 2.x.
        policies: The trainer's policies by their ids.

    Raises:
        CorruptCheckpointError: It is none, or not one of these policies.
    """
    from ray.rllib.policy.sample_batch import MultiAgentBatch

    state = _state_of(sent)
    parts = state.get("policy_batches", {ONE_POLICY: sent})
    if not isinstance(parts, dict) or not set(parts) <= set(policies.keys()):
        raise CorruptCheckpointError(
            f"The batch is of policies that the trainer does not have ({parts!r:.80}).",
            where=_WHERE,
            fix=f"It has {', '.join(policies)}.",
        )
    batches = {name: _sample_batch(part) for name, part in parts.items()}
    count = max(batch.count for batch in batches.values())
    env_steps = state.get("count", state.get("_env_steps", count))
    return MultiAgentBatch(batches, int(env_steps) if isinstance(env_steps, int) else count)


def _state_of(sent: object) -> dict[Any, Any]:
    if isinstance(sent, StandIn) and (sent.state is None or isinstance(sent.state, dict)):
        return sent.state or {}
    raise CorruptCheckpointError("There is no batch in it.", where=_WHERE, fix=_FIX)


def _sample_batch(sent: object) -> Any:
    from ray.rllib.policy.sample_batch import SampleBatch

    state = _state_of(sent)
    assert isinstance(sent, StandIn)
    # It has been a dict since Ray 1.1, and held one before.
    columns = dict(sent.pairs) or state.get("data")
    if not isinstance(columns, dict) or not all(name in columns for name in _NEEDED):
        raise CorruptCheckpointError("There is no batch in it.", where=_WHERE, fix=_FIX)
    arrays = {str(name): _column(str(name), value) for name, value in columns.items()}
    if DONES in arrays:
        dones = arrays.pop(DONES).astype(bool)
        arrays |= {"terminateds": dones, "truncateds": np.zeros_like(dones)}
    try:
        return SampleBatch(arrays)
    except (AssertionError, ValueError) as error:
        raise CorruptCheckpointError(
            f"The columns of a batch don't fit each other: {error}.", where=_WHERE, fix=_FIX
        ) from error


def _column(name: str, value: object) -> Any:
    if isinstance(value, str):  # `compress_observations`
        value = unpack(value, f"{_WHERE} → {name}")
    if name == "infos" and isinstance(value, (list, np.ndarray)):
        return np.array([info if isinstance(info, dict) else {} for info in value], dtype=object)
    array = np.asarray(plain(value, f"{_WHERE} → {name}"))
    if array.dtype.hasobject:
        raise CorruptCheckpointError(
            "A column is no array of numbers.", where=f"{_WHERE} → {name}", fix=_FIX
        )
    return array


#: The fields of an episode's metrics, which were a named tuple, in this order, until Ray 2.x.
_METRICS = "episode_length", "episode_reward", "agent_rewards", "custom_metrics", "perf_stats"


def metrics_of(sent: object) -> Any:
    """The metrics of an episode that a client's worker has counted.

    Raises:
        CompatError: They are none.
    """
    from ray.rllib.evaluation.metrics import RolloutMetrics

    if not isinstance(sent, StandIn):
        raise CompatError("There are no metrics in it.", where="request → metrics", fix=_FIX)
    fields = dict(zip(_METRICS, sent.args, strict=False))
    return RolloutMetrics(
        **{name: plain(f, f"request → metrics → {name}") for name, f in fields.items()}
    )
