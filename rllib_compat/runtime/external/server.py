"""`PolicyServerInput` and `PolicyServer`, which send actions to simulators over HTTP.

Their clients are the unchanged ones of Ray 0.5 – 2.x (`ray/rllib/env/policy_client.py`). With
remote inference, a client sends each observation, and a worker here computes the action and
collects batches. With local inference, a client gets a policy once and its weights regularly, and
sends batches. A queue has both kinds of batches, which the trainer reads as its `input` on the old
API stack: env runners take no external batches.

Ray pickled the arguments for a client's own worker with their code, so that client and server
needed the same Ray and Python. Here they consist of names of the client's Ray and plain data,
without code; anything else raises an error. The function that maps agents to policies stays here:
in its place, a client gets a `PolicyClient` that sends the id of an agent, and the answer is the id
of its policy.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import numpy as np
from packaging.version import Version
from ray.rllib.env.external_env import ExternalEnv
from ray.rllib.env.external_multi_agent_env import ExternalMultiAgentEnv
from ray.rllib.offline.input_reader import InputReader
from ray.rllib.policy.sample_batch import SampleBatch

from rllib_compat import registry
from rllib_compat.neutral.errors import CompatError, ConfigError, CorruptCheckpointError
from rllib_compat.ray_versions import environments, old_stack
from rllib_compat.registry import keys
from rllib_compat.runtime.env_settings import EnvSettings
from rllib_compat.runtime.external.envs import PolledEnv
from rllib_compat.runtime.external.messages import (
    GET_POLICY,
    OldCall,
    OldName,
    batch_of,
    metrics_of,
    plain,
    read_request,
    write_answer,
)

REMOTE = 'use PolicyClient(address, inference_mode="remote")'
_ALGORITHMS, _CONFIG_OBJECT = Version("2.0"), Version("2.3")
_SPEC, _OUTPUT, _BRANCHES = Version("1.0"), Version("1.9"), Version("0.8.6")

#: The prefixes of keys that are not a worker's, or that the config sets itself.
_NOT_OF_A_WORKER = ("_", "evaluation_", "multiagent", "policies", "policy_")
#: Keys of the new API stack, whose modules have other weights.
_NEW_STACK = {
    "_enable_learner_api",
    "_enable_rl_module_api",
    "_enable_rl_trainer_api",
    "enable_connectors",
}

_CLIENT = OldName("ray.rllib.env.policy_client", "PolicyClient")
_MULTI_AGENT_ENV = OldName("ray.rllib.env.multi_agent_env", "MultiAgentEnv")

#: An algorithm → the module of its torch policy in Ray 0.8 – 1.13 and in 2.x, and the class.
_POLICIES = {
    "A2C": ("a3c.a3c_torch_policy", "a3c.a3c_torch_policy", "A3CTorchPolicy"),
    "A3C": ("a3c.a3c_torch_policy", "a3c.a3c_torch_policy", "A3CTorchPolicy"),
    "APPO": ("ppo.appo_torch_policy", "appo.appo_torch_policy", "APPOTorchPolicy"),
    "DQN": ("dqn.dqn_torch_policy", "dqn.dqn_torch_policy", "DQNTorchPolicy"),
    "PG": ("pg.pg_torch_policy", "pg.pg_torch_policy", "PGTorchPolicy"),
    "PPO": ("ppo.ppo_torch_policy", "ppo.ppo_torch_policy", "PPOTorchPolicy"),
    "SAC": ("sac.sac_torch_policy", "sac.sac_torch_policy", "SACTorchPolicy"),
}


def worker_args(worker: Any, algorithm: str, client_ray: str, address: str) -> dict[str, Any]:
    """Returns the arguments for a client's worker.

    `address` is that by which the client knows this server.

    Raises:
        ConfigError: The config cannot be represented without code.
    """
    ray = Version(client_ray)
    if algorithm not in _POLICIES:
        raise ConfigError(
            f"Local inference needs one of {', '.join(_POLICIES)}, and this is {algorithm}.",
            where="inference_mode",
            fix=REMOTE,
        )
    if worker.multiagent and ray < _BRANCHES:
        raise ConfigError(
            f"Clients of Ray {client_ray} have no local inference of several agents.",
            where="inference_mode",
            fix=REMOTE,
        )
    old, new, name = _POLICIES[algorithm]
    home = "agents" if ray < _ALGORITHMS else "algorithms"
    policy_class = OldName(f"ray.rllib.{home}.{old if ray < _ALGORITHMS else new}", name)
    config = _policy_config(worker.config.to_dict(), algorithm, client_ray)
    agents = _agents(worker, algorithm, client_ray, policy_class, config, address)
    spaces = _spaces(next(iter(worker.policy_map.values())), ray)
    make = _MULTI_AGENT_ENV if agents else SimpleNamespace
    env = make(**spaces)
    config["callbacks"] = OldName(f"ray.rllib.{home}.callbacks", "DefaultCallbacks")
    config |= {"env": "external", "env_config": {"external": env}, "num_workers": 0}
    config |= {"framework": "torch", "use_pytorch": True, "in_evaluation": False, **spaces}
    if ray >= _CONFIG_OBJECT:
        config["clip_actions"] = worker.config.clip_actions
        return {
            "env_creator": itemgetter("external"),
            "default_policy_class": policy_class,
            "config": _config_object(config, algorithm, agents),
        }
    args: dict[str, Any] = {
        "env_creator": itemgetter("external"),
        "policy_spec" if ray >= _SPEC else "policy": agents.pop("policies", policy_class),
        "rollout_fragment_length": worker.config.rollout_fragment_length,
        "batch_mode": worker.config.batch_mode,
        "observation_filter": worker.config.observation_filter,
        "clip_rewards": worker.config.clip_rewards,
        "clip_actions": worker.config.clip_actions,
        "env_config": config["env_config"],
        "model_config": config["model"],
        "policy_config": config,
        "callbacks": config["callbacks"],
        "input_creator": None,
        **agents,
    }
    if ray >= _OUTPUT:
        args |= {"output_creator": None, "normalize_actions": worker.config.normalize_actions}
    return args


def _agents(
    worker: Any,
    algorithm: str,
    client_ray: str,
    policy_class: OldName,
    config: Mapping[str, Any],
    address: str,
) -> dict[str, Any]:
    """Returns the arguments of a worker of several agents, or none of a single agent's."""
    if not worker.multiagent:
        return {}
    policies = {}
    for name, policy in worker.policy_map.items():
        own = _policy_config(policy.config, algorithm, client_ray)
        spaces = _spaces(policy, Version(client_ray))
        changed = {key: value for key, value in own.items() if value != config[key]}
        policies[name] = (policy_class, *spaces.values(), changed)
    return {
        "policies": policies,
        "policy_mapping_fn": _CLIENT(address, "remote").attribute("_send"),
        "policies_to_train": list(worker.get_policies_to_train()),
    }


def _spaces(policy: Any, ray: Version) -> dict[str, OldCall]:
    """Returns a policy's spaces as calls of the client's own gym."""
    gym = "gymnasium" if ray >= _CONFIG_OBJECT else "gym"
    seen = getattr(policy.observation_space, "original_space", policy.observation_space)
    return {
        "observation_space": _space(seen, gym),
        "action_space": _space(policy.action_space, gym),
    }


def _config_object(config: Mapping[str, Any], algorithm: str, agents: Mapping[str, Any]) -> OldCall:
    """Creates a config object of Ray 2.3 – 2.9 from a dict, on the old API stack."""
    name = algorithm.lower()
    made = OldName(f"ray.rllib.algorithms.{name}.{name}", f"{algorithm}Config")
    read = (key for key in config if not key.startswith(_NOT_OF_A_WORKER))
    settings = {key: config[key] for key in read} | dict.fromkeys(_NEW_STACK & config.keys(), False)
    settings |= {"multiagent": agents} if agents else {}
    return made.attribute("from_dict")(settings)


def _policy_config(given: Mapping[str, Any], algorithm: str, client_ray: str) -> dict[str, Any]:
    """Returns a policy's config with the keys of the client's Ray and the values of this one."""
    config = keys.default_config(algorithm, client_ray)
    model = config["model"]
    for key in given.keys() & config.keys() - {"model", "multiagent"}:
        if _is_plain(given[key]) and not keys.is_placeholder(key, given[key]):
            config[key] = given[key]
    for key in given["model"].keys() & model.keys():
        if not keys.is_placeholder(f"model.{key}", given["model"][key]):
            model[key] = given["model"][key]
    if "lstm_use_prev_action_reward" in model:  # one key for both until Ray 1.1
        both = ("lstm_use_prev_action", "lstm_use_prev_reward")
        model["lstm_use_prev_action_reward"] = all(given["model"].get(key) for key in both)
    if Version(client_ray) < _BRANCHES and not model.get("vf_share_layers"):
        raise ConfigError(
            f"The torch networks of Ray {client_ray} always share layers of policy and value "
            "function.",
            where="model.vf_share_layers",
            fix=f'set "model": {{"vf_share_layers": True}}, or {REMOTE}',
        )
    for key, value in (("model", model), ("exploration_config", given.get("exploration_config"))):
        if value is not None and not _is_plain(value):
            raise ConfigError(
                f"`{key}` contains code, which is not sent to clients.",
                where=key,
                fix=REMOTE,
            )
    return config


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, bool))


def _space(space: Any, gym: str) -> OldCall:
    """Returns a space as a call of the client's own gym."""
    kind = type(space).__name__
    made = OldName(f"{gym}.spaces", kind)
    if kind == "Box":
        return made(space.low, space.high, None, space.dtype.name)
    if kind == "Discrete":
        return made(int(space.n))
    if kind == "MultiDiscrete":
        return made(space.nvec)
    if kind == "MultiBinary":
        return made(int(space.n))
    if kind == "Tuple":
        return made([_space(part, gym) for part in space.spaces])
    if kind == "Dict":
        return made({name: _space(part, gym) for name, part in space.spaces.items()})
    raise ConfigError(
        f"A {kind} space cannot be sent to a client.",
        where="observation_space",
        fix=REMOTE,
    )


logger = logging.getLogger(__name__)

#: The largest size of a request in bytes.
MOST_BYTES = 256 << 20
_SECONDS_FOR_A_REQUEST = 60.0


def _part(request: Mapping[str, Any], name: str) -> Any:
    """Returns a required part of a request: arrays and plain data."""
    if name not in request:
        raise CorruptCheckpointError(
            f"The request {request['command']} lacks `{name}`.",
            where="request",
            fix="connect with a PolicyClient of Ray 0.5 - 2.x",
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
# The commands of local inference, which `PolicyServer` lacks.
_LOCAL_COMMANDS = "GET_WORKER_ARGS", "GET_WEIGHTS", "REPORT_SAMPLES"


def _observation(env: object, request: Mapping[str, Any]) -> Any:
    """Returns the observation of a request, after a check against the space.

    Any other observation would end the worker, and so the training of all clients.
    """
    given = _part(request, "observation")
    space = getattr(env, "observation_space", None)
    if space is None or isinstance(env, ExternalMultiAgentEnv):
        return given
    return as_element(space, given)


def as_element(space: Any, value: Any) -> Any:
    """Converts a client's value to an element of a space, with its dtypes.

    Raises:
        CorruptCheckpointError: The value is not in the space.
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
            f"The observation {value!r} is not in the space {space}.",
            where="request → observation",
            fix="send observations of the observation_space in the trainer's config",
        )
    return found


class _Handler(BaseHTTPRequestHandler):
    timeout = _SECONDS_FOR_A_REQUEST

    def do_POST(self) -> None:
        try:
            request = {**read_request(self._body()), "address": self._address()}
            code, answer = 200, write_answer(self.server.answer(request))  # type: ignore[attr-defined]
        except CompatError as error:
            code, answer = 400, str(error).encode()
        except Exception as error:  # of an environment or a policy, sent to the client
            logger.exception("A request of a policy client failed.")
            code, answer = 500, f"{type(error).__name__}: {error}".encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _address(self) -> str:
        """Returns the address by which the client knows this server."""
        return f"http://{self.headers.get('Host')}{self.path}"

    def _body(self) -> bytes:
        if self.headers.get("Origin"):  # a web page may send requests to any local address
            raise CorruptCheckpointError(
                "The request is from a web page, which is not accepted.",
                where="Origin",
                fix="connect with a PolicyClient of Ray 0.5 - 2.x",
            )
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and int(length) <= MOST_BYTES):
            raise CorruptCheckpointError(
                f"A request must have a Content-Length of at most {MOST_BYTES} bytes.",
                where=f"Content-Length: {length[:40]}",
                fix="send smaller batches: set a smaller rollout_fragment_length",
            )
        return self.rfile.read(int(length))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in http.server
        logger.debug(format, *args)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answer: Callable[[Mapping[str, Any]], Any]

    def __init__(self, address: str, port: int) -> None:
        try:
            super().__init__((address, port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"The policy server cannot listen at {address}:{port}: {error}.",
                where="$.input",
                fix="choose another port; with several workers, use port + ioctx.worker_index",
            ) from error


class PolicyServer(_Server):
    """The server of one external environment (Ray 0.5 – 0.8, `rllib/utils/policy_server.py`)."""

    def __init__(self, external_env: Any, address: str = "localhost", port: int = 9900) -> None:
        super().__init__(address, port)
        self.env = external_env

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Executes a request."""
        return _find_command(request["command"])(self.env, request)


def _find_command(command: str) -> Callable[[Any, Mapping[str, Any]], dict[str, Any]]:
    if command not in _EPISODE_COMMANDS:
        raise CorruptCheckpointError(
            f"The command {command!r} is unknown.",
            where="request → command",
            fix=f"send one of {', '.join((*_EPISODE_COMMANDS, *_LOCAL_COMMANDS))}",
        )
    return _EPISODE_COMMANDS[command]


class PolicyServerInput(InputReader):  # type: ignore[misc]  # Ray has no types
    """The samples of policy clients as the `input` of a trainer (Ray 0.8.1 – 2.x).

    The config has `"input": lambda ioctx: PolicyServerInput(ioctx, "localhost", 9900)`.

    Args:
        ioctx: Ray's I/O context, whose `worker` has the policies.
        address: The address to listen at; by default only this machine.
        port: The port; 0 for any free one, which is `server_port`.
        idle_timeout: The time in s without a batch after which the trainer gets an empty one, so
            that other workers need not wait.
        max_sample_queue_size: The number of batches in the queue; if there are more, the oldest is
            dropped, with a warning.
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
        """Returns the next batch, or an empty one after `idle_timeout`."""
        try:
            return self._batches.get(timeout=self._idle_timeout)
        except queue.Empty:
            return SampleBatch()

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def _policy_of(self, agent_id: Any) -> str:
        """Returns the policy of an agent of a client with local inference."""
        try:
            policy = self._worker.policy_mapping_fn(agent_id, None, worker=self._worker)
            self._worker.policy_map[policy]
        except Exception as error:  # of the caller's function, which may need an episode
            raise ConfigError(
                f"The mapping function gives no policy to agent {agent_id!r} of a client with "
                f"local inference, whose episodes are not here: {type(error).__name__}: {error}",
                where="$.multiagent.policy_mapping_fn",
                fix=f"choose the policy by the agent's id alone, or {REMOTE}",
            ) from error
        return str(policy)

    def _worker_args(self, address: str) -> dict[str, Any]:
        if self._client_ray is None:
            raise ConfigError(
                "A client with local inference needs a policy of its own Ray, and that Ray is not "
                "known.",
                where="$.input",
                fix='set PolicyServerInput(…, client_ray="1.13.0"), or legacy_ray="1.13.0" for the '
                'trainer; or use PolicyClient(address, inference_mode="remote")',
            )
        algorithm = registry.find(self._worker.config.algo_class.__name__).name
        return worker_args(self._worker, algorithm, str(self._client_ray), address)

    def _new_metrics(self) -> list[Any]:
        return [self._metrics.get_nowait() for _ in range(self._metrics.qsize())]

    def _report(self, batch: object, metrics: Iterable[Any]) -> None:
        while True:
            try:
                self._batches.put_nowait(batch)
                break
            except queue.Full:
                self._batches.get_nowait()
                logger.warning(
                    "The oldest of %d batches (max_sample_queue_size) was dropped, because clients "
                    "sample faster than the trainer learns.",
                    self._batches.maxsize,
                )
        for episode in metrics:
            self._metrics.put(episode)

    def _answer(self, request: Mapping[str, Any]) -> Any:
        worker = self._worker
        if request["command"] == "GET_WORKER_ARGS":
            return {"worker_args": self._worker_args(request["address"])}
        if request["command"] == GET_POLICY:
            return self._policy_of(_part(request, "agent_id"))
        if request["command"] == "GET_WEIGHTS":
            return {"weights": worker.get_weights(), "global_vars": worker.get_global_vars()}
        if request["command"] == "REPORT_SAMPLES":
            batch = batch_of(request.get("samples"), worker.policy_map)
            self._report(batch, map(metrics_of, request.get("metrics") or ()))
            return {}
        do = _find_command(request["command"])
        with self._lock:
            if self._sampling is None:
                self._sampling = _Sampling(self._worker, self._report)
        answer = do(self._sampling.running_env(), request)
        self._sampling.running_env()  # raises an error of the time while the client waited
        return answer


class _Sampling(threading.Thread):
    """A thread that samples with a worker's policies from an environment that clients step."""

    def __init__(self, worker: Any, report: Callable[[Any, Iterable[Any]], None]) -> None:
        super().__init__(daemon=True)
        self._worker = worker
        self._report = report
        self._error: Exception | None = None
        self._env = _external_env(worker)
        spaces = {
            name: (old_stack.observation_space_of(policy), policy.action_space)
            for name, policy in worker.policy_map.items()
        }
        settings = EnvSettings(
            None, policy_spaces=spaces, policy_mapping_fn=worker.policy_mapping_fn, old_stack=True
        )
        self._sampler = old_stack.worker_with_env(worker, PolledEnv(self._env, settings))
        self.start()

    def running_env(self) -> Any:
        """Returns the environment, if the thread still samples.

        Raises:
            CompatError: Sampling has failed.
        """
        if self._error is not None:
            raise CompatError(
                f"Sampling has failed: {type(self._error).__name__}: {self._error}",
                where="policy server",
                fix="correct the error (its traceback is in the trainer's log), and restart it",
            ) from self._error
        return self._env

    def run(self) -> None:
        try:
            while True:
                weights, counters = self._worker.get_weights(), self._worker.get_global_vars()
                self._sampler.set_weights(weights, counters)
                batch = self._sampler.sample()
                self._report(batch, self._sampler.get_metrics())
        except Exception as error:  # `running_env` raises it in the requests of clients
            logger.exception("Sampling for policy clients has failed.")
            self._error = error
            for episode in list(environments.ongoing_episodes(self._env).values()):
                episode.action_queue.put(None)  # ends the wait for an action


def _external_env(worker: Any) -> Any:
    """Creates an environment with the worker's spaces, whose own thread does nothing."""
    kind = ExternalMultiAgentEnv if worker.multiagent else ExternalEnv
    _, policy = next(iter(worker.policy_map.items()))

    class ServedToClients(kind):  # type: ignore[misc, valid-type]
        def run(self) -> None:
            while True:
                time.sleep(3600.0)

    space = old_stack.observation_space_of(policy)
    return ServedToClients(policy.action_space, space)
