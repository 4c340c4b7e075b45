"""What policy clients and servers say to each other, which Ray pickled on both sides.

A request is read by the pickle machine: whatever it names, nothing is imported or called. An answer
names only what Python and numpy have had since Python 3.6 and numpy 1.16, so that clients of any
Ray read it. Batches and metrics of clients with local inference are objects of their Ray: records.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rllib_compat.formats.pickles import Budget, load
from rllib_compat.neutral.errors import CompatError, CorruptCheckpointError
from rllib_compat.neutral.records import StandIn, is_stand_in
from rllib_compat.runtime.offline.files import DONES, ONE_POLICY, unpack

# What has been an enumeration since Ray 2.0; before, commands were texts.
_COMMANDS = "Commands", "RLlink"
# Protocol 4 is the newest that Python 3.6 reads.
_PROTOCOL = 4


def read_request(body: bytes) -> dict[str, Any]:
    """A request of a client of Ray 0.5 – 2.x: its command and what belongs to it.

    Returns:
        The request; objects of classes are inert records.

    Raises:
        CorruptCheckpointError: It is damaged, hostile, or no request.
    """
    request = load(body, budget=Budget(), where="request").value
    command = request.get("command") if isinstance(request, dict) else None
    if isinstance(command, StandIn) and command.qualified.rpartition(".")[2] in _COMMANDS:
        command = command.args[0] if command.args else None
    if not isinstance(command, str):
        raise CorruptCheckpointError(
            "It is no request of a PolicyClient: it has no command.",
            where="request",
            fix="Connect with a PolicyClient of Ray 0.5 - 2.x.",
        )
    return {**request, "command": command}


def plain(value: object, where: str) -> Any:
    """A value of a request that goes on to an environment or a policy: arrays and plain data.

    Raises:
        CorruptCheckpointError: There is an object of some class in it.
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value if value.flags.writeable else value.copy()
    if isinstance(value, Mapping):
        return {key: plain(inner, where) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(inner, where) for inner in value)
    if is_stand_in(value) or isinstance(value, np.ndarray):
        raise CorruptCheckpointError(
            f"There is an object in it that is no array and no plain data: {value!r}.",
            where=where,
            fix="Send numbers, texts, arrays, and lists, tuples and dicts of them.",
        )
    return value


class _Writer(pickle.Pickler):
    """Writes arrays by names that numpy 1 and numpy 2 share: numpy 2 names modules of its own."""

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                return np.array, (value.tolist(), "O")
            data = bytearray(np.ascontiguousarray(value).tobytes())
            return np.ndarray, (value.shape, value.dtype.str, data)
        if isinstance(value, np.generic):
            item = value.item()
            kind = type(value) if type(item) in (int, float) else type(item)
            return kind, (item,)
        return NotImplemented


def write_answer(answer: Mapping[str, Any]) -> bytes:
    """An answer as clients of any Ray read it."""
    file = io.BytesIO()
    _Writer(file, _PROTOCOL).dump(dict(answer))
    return file.getvalue()


class OldName:
    """The name of a class or function of an old Ray, which is looked up where it is unpickled."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *args: object) -> OldCall:
        """A call of it, which is made where it is unpickled."""
        return OldCall(self, args)

    def attribute(self, name: str) -> OldCall:
        """An attribute of it, which is looked up there, too."""
        return OldCall(getattr, (self, name))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        import importlib

        return getattr, (OldCall(importlib.import_module, (self.module,)), self.name)


class OldCall:
    """A call that is made where it is unpickled."""

    def __init__(self, function: Callable[..., Any], args: tuple[object, ...]) -> None:
        self.function = function
        self.args = args

    def __call__(self, *args: object) -> OldCall:
        """A call of what the call returns."""
        return OldCall(self, args)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.function, self.args


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
