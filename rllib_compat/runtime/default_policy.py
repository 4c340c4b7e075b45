"""Multi-agent configs without policies: one default policy for all agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.external_multi_agent_env import ExternalMultiAgentEnv
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from rllib_compat.neutral.policy_id import SHARED
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import tune
from rllib_compat.registry import keys
from rllib_compat.runtime.envs import find_creator

_KINDS = (MultiAgentEnv, ExternalMultiAgentEnv)


def with_default_policy(config: Mapping[str, Any]) -> dict[str, Any]:
    """Adds one policy for all agents to a multi-agent config without policies.

    A class shows whether it has several agents. For a registered name, a path or a function, an
    environment is created to find out, as the driver's own worker did in old Rays.
    """
    if keys.policies_of(config) or not _has_many_agents(config):
        return dict(config)
    multi_agent = dict(config.get("multiagent") or {})
    multi_agent["policies"] = {SHARED: (None, None, None, {})}
    multi_agent["policy_mapping_fn"] = to_shared_policy
    return {**config, "multiagent": multi_agent}


@public("rllib_compat.adapters")
def to_shared_policy(*_: object, **__: object) -> str:
    """Returns the id of the policy for all agents."""
    return SHARED


def _has_many_agents(config: Mapping[str, Any]) -> bool:
    env = config.get("env")
    if isinstance(env, type):
        return issubclass(env, _KINDS)
    is_path = isinstance(env, str) and ("." in env or ":" in env)
    if not (callable(env) or is_path or tune.is_registered_env(env)):
        return False
    try:
        if (creator := find_creator(env)) is None:
            return False
        made = creator(EnvContext(config.get("env_config") or {}, worker_index=0))
    except Exception:  # the env runner, which creates it again, raises this error
        return False
    getattr(made, "close", lambda: None)()
    return isinstance(made, _KINDS)
