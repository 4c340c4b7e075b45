"""The arguments with which a client with local inference creates its own rollout worker.

Ray pickled the server's own arguments with their code, so that client and server needed the same
Ray and Python. Here they consist of names of the client's Ray and plain data, without code;
anything else raises an error. The function that maps agents to policies stays here: in its place, a
client gets a `PolicyClient` that sends the id of an agent, and the answer is the id of its policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

from packaging.version import Version

from rllib_compat.neutral.errors import ConfigError
from rllib_compat.registry import keys
from rllib_compat.runtime.external.messages import OldCall, OldName

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
