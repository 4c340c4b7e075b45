"""`PolicyServerInput` and `PolicyServer`: simulators in other processes get actions over HTTP.

Their clients are those of Ray 0.5 – 2.x, as they are (`ray/rllib/env/policy_client.py`). With
remote inference, a client sends each observation, and a worker here computes the action and makes
the batches. With local inference, it gets a policy once and its weights from time to time, and
sends batches. Both end in the same queue, which the trainer reads as its `input`, on the old API
stack: today's env runners take no batches from outside.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from ray.rllib.env.external_env import ExternalEnv
from ray.rllib.env.external_multi_agent_env import ExternalMultiAgentEnv
from ray.rllib.offline.input_reader import InputReader
from ray.rllib.policy.sample_batch import SampleBatch

from rllib_compat import registry
from rllib_compat.neutral.errors import CompatError, ConfigError, CorruptCheckpointError
from rllib_compat.ray_versions import environments, old_stack
from rllib_compat.runtime.external.envs import PolledEnv
from rllib_compat.runtime.external.messages import (
    batch_of,
    metrics_of,
    plain,
    read_request,
    write_answer,
)
from rllib_compat.runtime.external.worker_args import worker_args

logger = logging.getLogger(__name__)

#: A request must not be longer; batches of images are the longest.
MOST_BYTES = 256 << 20
_SECONDS_FOR_A_REQUEST = 60.0


def _part(request: Mapping[str, Any], name: str) -> Any:
    """A part of a request that has to be there: arrays and plain data."""
    if name not in request:
        raise CorruptCheckpointError(
            f"{request['command']} needs `{name}`, which is not there.",
            where="request",
            fix="Connect with a PolicyClient of Ray 0.5 - 2.x.",
        )
    return plain(request[name], f"request → {name}")


def _start_episode(env: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    enabled = request.get("training_enabled", True)
    return {"episode_id": env.start_episode(_part(request, "episode_id"), enabled)}


def _get_action(env: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": env.get_action(_part(request, "episode_id"), _observation(env, request))}


def _log_action(env: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    action = _part(request, "action")
    env.log_action(_part(request, "episode_id"), _observation(env, request), action)
    return {}


def _log_returns(env: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    dones = [_part(request, "done")] if request.get("done") else []
    reward = _part(request, "reward")
    env.log_returns(_part(request, "episode_id"), reward, request.get("info"), *dones)
    return {}


def _end_episode(env: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    env.end_episode(_part(request, "episode_id"), _observation(env, request))
    return {}


_EPISODE_COMMANDS: dict[str, Callable[[Any, Mapping[str, Any]], dict[str, Any]]] = {
    "START_EPISODE": _start_episode,
    "GET_ACTION": _get_action,
    "LOG_ACTION": _log_action,
    "LOG_RETURNS": _log_returns,
    "END_EPISODE": _end_episode,
}
# Those of local inference, which a server of one environment does not have.
_LOCAL_COMMANDS = "GET_WORKER_ARGS", "GET_WEIGHTS", "REPORT_SAMPLES"


def _observation(env: Any, request: Mapping[str, Any]) -> Any:
    """The observation of a request, if the environment can have such a one.

    A worker dies of another one, and with it the training of all clients.
    """
    given = _part(request, "observation")
    space = getattr(env, "observation_space", None)
    if space is None or isinstance(env, ExternalMultiAgentEnv):
        return given
    return as_element(space, given)


def as_element(space: Any, value: Any) -> Any:
    """A value of a client as an element of a space, with the types that the space has.

    Raises:
        CorruptCheckpointError: It is none.
    """
    import gymnasium

    try:
        if isinstance(space, gymnasium.spaces.Dict):
            found: Any = {name: as_element(part, value[name]) for name, part in space.items()}
        elif isinstance(space, gymnasium.spaces.Tuple):
            found = tuple(as_element(*pair) for pair in zip(space, value, strict=True))
        elif space.dtype is not None and space.shape is not None:
            found = np.asarray(value).astype(space.dtype)
        else:
            found = value
        fits = space.contains(found)
    except (LookupError, TypeError, ValueError):
        fits = False
    if not fits:
        raise CorruptCheckpointError(
            f"The observation {value!r} is not of the space {space}.",
            where="request → observation",
            fix="Send what the observation_space of the trainer's config describes.",
        )
    return found


class _Handler(BaseHTTPRequestHandler):
    timeout = _SECONDS_FOR_A_REQUEST

    def do_POST(self) -> None:
        try:
            code, answer = 200, write_answer(self.server.answer(read_request(self._body())))  # type: ignore[attr-defined]
        except CompatError as error:
            code, answer = 400, str(error).encode()
        except Exception as error:  # of an environment or a policy: the client hears of it
            logger.exception("A request of a policy client failed.")
            code, answer = 500, f"{type(error).__name__}: {error}".encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _body(self) -> bytes:
        if self.headers.get("Origin"):  # a page in a browser may ask any address of this machine
            raise CorruptCheckpointError("Pages in browsers are no clients.", where="Origin")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and int(length) <= MOST_BYTES):
            raise CorruptCheckpointError(
                f"A request has to say its length, of at most {MOST_BYTES} bytes.",
                where=f"Content-Length: {length[:40]}",
                fix="Send batches of fewer steps: a smaller rollout_fragment_length.",
            )
        return self.rfile.read(int(length))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in http.server
        logger.debug(format, *args)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answer: Callable[[Mapping[str, Any]], dict[str, Any]]

    def __init__(self, address: str, port: int) -> None:
        try:
            super().__init__((address, port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"No policy server can listen at {address}:{port}: {error}.",
                where="$.input",
                fix="Choose another port; with several workers each needs its own: "
                "port + ioctx.worker_index.",
            ) from error


class PolicyServer(_Server):
    """Serves one external environment to clients (Ray 0.5 – 0.8, `rllib/utils/policy_server.py`).

    Args:
        external_env: An `ExternalEnv`, whose `run` calls `serve_forever` of this.
        address: Where to listen.
        port: The port.
    """

    def __init__(self, external_env: Any, address: str = "localhost", port: int = 9900) -> None:
        super().__init__(address, port)
        self.env = external_env

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Does what a request asks for."""
        return _of_episodes(request["command"])(self.env, request)


def _of_episodes(command: str) -> Callable[[Any, Mapping[str, Any]], dict[str, Any]]:
    if command not in _EPISODE_COMMANDS:
        raise CorruptCheckpointError(
            f"There is no command {command!r}.",
            where="request → command",
            fix=f"A client may send {', '.join((*_EPISODE_COMMANDS, *_LOCAL_COMMANDS))}.",
        )
    return _EPISODE_COMMANDS[command]


class PolicyServerInput(InputReader):  # type: ignore[misc]  # Ray has no types
    """What policy clients sample, as the `input` of a trainer (Ray 0.8.1 – 2.x).

    Its config has `"input": lambda ioctx: PolicyServerInput(ioctx, "localhost", 9900)`.

    Args:
        ioctx: What Ray gives an input: its `worker` has the policies.
        address: Where to listen; only this machine by default.
        port: The port; 0 for any that is free (`server_port` says which).
        idle_timeout: After how many seconds without a batch the trainer gets an empty one, so that
            other workers need not wait.
        max_sample_queue_size: How many batches may wait; of more, the oldest is dropped, with a
            warning.
        client_ray: The Ray of clients with local inference; by default the trainer's `legacy_ray`.
    """

    def __init__(
        self,
        ioctx: Any,
        address: str = "localhost",
        port: int = 9900,
        idle_timeout: float = 3.0,
        max_sample_queue_size: int = 20,
        client_ray: str | None = None,
    ) -> None:
        self._worker = ioctx.worker
        self._client_ray = client_ray or getattr(self._worker.callbacks, "legacy_ray", None)
        self._sampling: _Sampling | None = None
        self._lock = threading.Lock()
        self._idle_timeout = idle_timeout
        self._batches: queue.Queue[Any] = queue.Queue(max_sample_queue_size)
        self._metrics: queue.Queue[Any] = queue.Queue()
        old_stack.take_metrics_from(self._worker, self._new_metrics)
        self._server = _Server(address, port)
        self._server.answer = self._answer
        self.server_name, self.server_port = self._server.server_name, self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def next(self) -> Any:
        """The next batch, or an empty one if no client has sent any for a while."""
        try:
            return self._batches.get(timeout=self._idle_timeout)
        except queue.Empty:
            return SampleBatch()

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def _worker_args(self) -> dict[str, Any]:
        if self._client_ray is None:
            raise ConfigError(
                "A client with local inference needs a policy of its own Ray, which is not known.",
                where="$.input",
                fix='PolicyServerInput(…, client_ray="1.13.0"), or legacy_ray="1.13.0" for the '
                'trainer; or PolicyClient(address, inference_mode="remote")',
            )
        algorithm = registry.find(self._worker.config.algo_class.__name__).name
        return worker_args(self._worker, algorithm, str(self._client_ray))

    def _new_metrics(self) -> list[Any]:
        return [self._metrics.get_nowait() for _ in range(self._metrics.qsize())]

    def _report(self, batch: Any, metrics: Iterable[Any]) -> None:
        while True:
            try:
                self._batches.put_nowait(batch)
                break
            except queue.Full:
                self._batches.get_nowait()
                logger.warning(
                    "Clients sample faster than the trainer learns: the oldest of %d batches, "
                    "max_sample_queue_size, was dropped.",
                    self._batches.maxsize,
                )
        for episode in metrics:
            self._metrics.put(episode)

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        worker = self._worker
        if request["command"] == "GET_WORKER_ARGS":
            return {"worker_args": self._worker_args()}
        if request["command"] == "GET_WEIGHTS":
            return {"weights": worker.get_weights(), "global_vars": worker.get_global_vars()}
        if request["command"] == "REPORT_SAMPLES":
            batch = batch_of(request.get("samples"), worker.policy_map)
            self._report(batch, map(metrics_of, request.get("metrics") or ()))
            return {}
        do = _of_episodes(request["command"])
        with self._lock:
            if self._sampling is None:
                self._sampling = _Sampling(self._worker, self._report)
        answer = do(self._sampling.running_env(), request)
        self._sampling.running_env()  # it may have failed while the client waited
        return answer


class _Sampling(threading.Thread):
    """Samples with the policies of a worker from an environment that clients step.

    Args:
        worker: The trainer's worker.
        report: Takes each batch, and the metrics of episodes that have ended.
    """

    def __init__(self, worker: Any, report: Callable[[Any, Iterable[Any]], None]) -> None:
        super().__init__(daemon=True)
        self._worker = worker
        self._report = report
        self._error: Exception | None = None
        self._env = _external_env(worker)
        self._sampler = old_stack.worker_with_env(worker, PolledEnv(self._env))
        self.start()

    def running_env(self) -> Any:
        """The environment, if somebody still asks it for steps.

        Raises:
            CompatError: Sampling has failed.
        """
        if self._error is not None:
            raise CompatError(
                f"Sampling has failed: {type(self._error).__name__}: {self._error}",
                where="policy server",
                fix="Mend it, and start the trainer again; its log has the whole error.",
            ) from self._error
        return self._env

    def run(self) -> None:
        try:
            while True:
                weights, counters = self._worker.get_weights(), self._worker.get_global_vars()
                self._sampler.set_weights(weights, counters)
                batch = self._sampler.sample()
                self._report(batch, self._sampler.get_metrics())
        except Exception as error:  # it is told to the clients
            logger.exception("Sampling for policy clients has failed.")
            self._error = error
            for episode in list(environments.ongoing_episodes(self._env).values()):
                episode.action_queue.put(None)  # for those who wait for an action


def _external_env(worker: Any) -> Any:
    """An environment of the worker's spaces; its own thread has nothing to do."""
    kind = ExternalMultiAgentEnv if worker.multiagent else ExternalEnv
    _, policy = next(iter(worker.policy_map.items()))

    class ServedToClients(kind):  # type: ignore[misc, valid-type]
        def run(self) -> None:
            while True:
                time.sleep(3600.0)

    space = old_stack.observation_space_of(policy)
    return ServedToClients(policy.action_space, space)
