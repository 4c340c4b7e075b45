"""The messages between policy clients and servers, which Ray pickled on both sides.

The pickle machine reads requests: nothing that they name is imported or called. Answers name only
what exists since Python 3.6 and numpy 1.16, so that clients of any Ray can read them. Batches and
metrics of clients with local inference are objects of their Ray, which are read as inert records.
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

# The classes of commands, which are enumerations since Ray 2.0 and were strings before.
_COMMANDS = "Commands", "RLlink"
#: The command of a request that is only the id of an agent, whose policy a client asks for.
GET_POLICY = "GET_POLICY"
# Protocol 4 is the newest that Python 3.6 reads.
_PROTOCOL = 4


def read_request(body: bytes) -> dict[str, Any]:
    """Reads a request of a client of Ray 0.5 – 2.x.

    Returns:
        The request as a dict with `command`; objects of classes are inert records. The id of an
        agent is a request for its policy: `worker_args` says who sends it.

    Raises:
        CorruptCheckpointError: It is damaged, hostile, or not a request.
    """
    request = load(body, budget=Budget(), where="request").value
    if isinstance(request, (str, int, float, tuple, np.generic)):
        return {"command": GET_POLICY, "agent_id": request}
    command = request.get("command") if isinstance(request, dict) else None
    if isinstance(command, StandIn) and command.qualified.rpartition(".")[2] in _COMMANDS:
        command = command.args[0] if command.args else None
    if not isinstance(command, str):
        raise CorruptCheckpointError(
            "The request has no command, so it is not from a PolicyClient.",
            where="request",
            fix="connect with a PolicyClient of Ray 0.5 - 2.x",
        )
    return {**request, "command": command}


def plain(value: object, where: str) -> Any:
    """Returns a request's value for an environment or policy: arrays and plain data.

    Raises:
        CorruptCheckpointError: It contains an object of a class.
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value if value.flags.writeable else value.copy()
    if isinstance(value, Mapping):
        return {key: plain(inner, where) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(inner, where) for inner in value)
    if is_stand_in(value) or isinstance(value, np.ndarray):
        raise CorruptCheckpointError(
            f"The request contains an object that is neither an array nor plain data: {value!r}.",
            where=where,
            fix="send only numbers, strings, arrays, and lists, tuples and dicts of these",
        )
    return value


class _Writer(pickle.Pickler):
    """A pickler that writes arrays by names which numpy 1 and numpy 2 share."""

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


def write_answer(answer: object) -> bytes:
    """Pickles an answer for clients of any Ray."""
    file = io.BytesIO()
    _Writer(file, _PROTOCOL).dump(answer)
    return file.getvalue()


class _OldObject:
    """An object of an old Ray, which there is when unpickled."""

    def __call__(self, *args: object, **attributes: object) -> OldCall:
        """Returns a call of it, whose result gets these attributes."""
        return OldCall(self, args, attributes)

    def attribute(self, name: str) -> OldCall:
        """Returns an attribute of it."""
        return OldCall(getattr, (self, name))


class OldName(_OldObject):
    """The name of a class or function of an old Ray, which is looked up when unpickled."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        import pydoc  # old imports replace the functions of `importlib`, which clients have not

        return pydoc.locate, (f"{self.module}.{self.name}",)


class OldCall(_OldObject):
    """A call that is made when unpickled."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[object, ...],
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        self.function = function
        self.args = args
        self.attributes = attributes

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.args, self.attributes or None


_FIX = "send a batch of RolloutWorker.sample() of a Ray with PolicyClient"
_WHERE = "request → samples"
#: The columns that every batch has.
_NEEDED = "obs", "actions", "rewards"


def batch_of(sent: object, policies: Mapping[str, Any]) -> Any:
    """Converts a client's batch to one of the installed Ray.

    Args:
        sent: The record of a `SampleBatch` or `MultiAgentBatch` of Ray 0.8 – 2.x.
        policies: The trainer's policies by their ids.

    Raises:
        CorruptCheckpointError: It is not a batch, or is of other policies.
    """
    from ray.rllib.policy.sample_batch import MultiAgentBatch

    state = _state_of(sent)
    parts = state.get("policy_batches", {ONE_POLICY: sent})
    if not isinstance(parts, dict) or not set(parts) <= set(policies.keys()):
        raise CorruptCheckpointError(
            f"The batch has policies that the trainer lacks ({parts!r:.80}).",
            where=_WHERE,
            fix=f"use the trainer's policies: {', '.join(policies)}",
        )
    batches = {name: _sample_batch(part) for name, part in parts.items()}
    count = max(batch.count for batch in batches.values())
    env_steps = state.get("count", state.get("_env_steps", count))
    return MultiAgentBatch(batches, int(env_steps) if isinstance(env_steps, int) else count)


def _state_of(sent: object) -> dict[Any, Any]:
    if isinstance(sent, StandIn) and (sent.state is None or isinstance(sent.state, dict)):
        return sent.state or {}
    raise CorruptCheckpointError("The request has no batch.", where=_WHERE, fix=_FIX)


def _sample_batch(sent: object) -> Any:
    from ray.rllib.policy.sample_batch import SampleBatch

    state = _state_of(sent)
    assert isinstance(sent, StandIn)
    # A SampleBatch is a dict since Ray 1.1; before, it had one as an attribute.
    columns = dict(sent.pairs) or state.get("data")
    if not isinstance(columns, dict) or not all(name in columns for name in _NEEDED):
        raise CorruptCheckpointError("The request has no batch.", where=_WHERE, fix=_FIX)
    arrays = {str(name): _column(str(name), value) for name, value in columns.items()}
    if DONES in arrays:
        dones = arrays.pop(DONES).astype(bool)
        arrays |= {"terminateds": dones, "truncateds": np.zeros_like(dones)}
    try:
        return SampleBatch(arrays)
    except (AssertionError, ValueError) as error:
        raise CorruptCheckpointError(
            f"The columns of the batch do not match: {error}.", where=_WHERE, fix=_FIX
        ) from error


def _column(name: str, value: object) -> Any:
    if isinstance(value, str):  # `compress_observations`
        value = unpack(value, f"{_WHERE} → {name}")
    if name == "infos" and isinstance(value, (list, np.ndarray)):
        return np.array([info if isinstance(info, dict) else {} for info in value], dtype=object)
    array = np.asarray(plain(value, f"{_WHERE} → {name}"))
    if array.dtype.hasobject:
        raise CorruptCheckpointError(
            "The column is not an array of numbers.", where=f"{_WHERE} → {name}", fix=_FIX
        )
    return array


#: The fields of an episode's metrics, in the order of the named tuple.
_METRICS = "episode_length", "episode_reward", "agent_rewards", "custom_metrics", "perf_stats"


def metrics_of(sent: object) -> Any:
    """Converts the metrics of an episode of a client's worker.

    Raises:
        CompatError: The value is not an episode's metrics.
    """
    from ray.rllib.evaluation.metrics import RolloutMetrics

    if not isinstance(sent, StandIn):
        raise CompatError("The request has no metrics.", where="request → metrics", fix=_FIX)
    fields = dict(zip(_METRICS, sent.args, strict=False))
    return RolloutMetrics(
        **{name: plain(f, f"request → metrics → {name}") for name, f in fields.items()}
    )
