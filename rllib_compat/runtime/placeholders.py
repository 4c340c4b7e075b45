"""A placeholder for the environment of a checkpoint, if this machine lacks it.

`Algorithm.from_checkpoint` creates environments, also on machines where only the weights are
needed. `LegacyEnvByName` creates the real one if its name is registered, otherwise a placeholder
with its spaces, which raises an error when it is reset or stepped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import gymnasium
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.public import public
from rllib_compat.runtime.env_settings import STORED, EnvSettings
from rllib_compat.runtime.envs import find_creator, make_env, why_not_importable


def placeholder_env(
    name: str | None,
    observation_space: spaces.Space,
    action_space: spaces.Space,
    env_config: Mapping[str, Any] | None = None,
) -> tuple[type, dict[str, Any]]:
    """Returns the `env` and `env_config` of a single-agent checkpoint."""
    stored = {"name": name, "spaces": (observation_space, action_space)}
    return LegacyEnvByName, {**(env_config or {}), STORED: stored}


def placeholder_multi_agent_env(
    name: str | None,
    policy_spaces: Mapping[str, tuple[spaces.Space, spaces.Space]],
    env_config: Mapping[str, Any] | None = None,
) -> tuple[type, dict[str, Any]]:
    """Returns the `env` and `env_config` of a multi-agent checkpoint.

    The placeholder has an agent for each policy, with the same id. Ray's check of multi-agent
    environments steps them once, so the config needs `disable_env_checking=True`.
    """
    stored = {"name": name, "policies": dict(policy_spaces)}
    return LegacyEnvByName, {**(env_config or {}), STORED: stored}


@public("rllib_compat.adapters")
class LegacyEnvByName:
    """A class whose call creates the environment that `env_config` names, or a placeholder.

    Ray pickles this class by reference, so that a converted checkpoint has no code.
    """

    #: `adapt_env` returns this class unchanged.
    is_adapted = True

    def __new__(cls, context: EnvContext) -> Any:  # noqa: D102
        own = context.copy_with_overrides()
        stored = own.pop(STORED)
        name, policies = stored["name"], stored.get("policies")
        creator = None if name is None else find_creator(name, trusted=False)
        has_spaces = policies is not None or "spaces" in stored
        if creator is not None and not (has_spaces and why_not_importable(name)):
            settings = EnvSettings(
                creator,
                multi_agent=policies is not None,
                policy_spaces=policies or {},
                **stored.get("settings", {}),
            )
            return make_env(settings, own)
        if policies is not None:
            return MultiAgentPlaceholder(name, policies)
        return Placeholder(name, *stored["spaces"])


class Placeholder(gymnasium.Env[Any, Any]):
    """An environment that only has spaces."""

    def __init__(
        self, name: str | None, observation_space: spaces.Space, action_space: spaces.Space
    ) -> None:
        self.observation_space = spaces.to_gymnasium(observation_space)
        self.action_space = spaces.to_gymnasium(action_space)
        self.name = name

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> NoReturn:  # noqa: ARG002
        """Raises the error that the environment is missing."""
        _missing(self.name)

    def step(self, action: object) -> NoReturn:  # noqa: ARG002
        """Raises the error that the environment is missing."""
        _missing(self.name)


class MultiAgentPlaceholder(MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
    """A multi-agent environment that only has the spaces of policies, with an agent for each."""

    def __init__(
        self, name: str | None, policies: Mapping[str, tuple[spaces.Space, spaces.Space]]
    ) -> None:
        self.agents = self.possible_agents = list(policies)
        super().__init__()
        self.observation_spaces = {p: spaces.to_gymnasium(o) for p, (o, _) in policies.items()}
        self.action_spaces = {p: spaces.to_gymnasium(a) for p, (_, a) in policies.items()}
        self.observation_space = gymnasium.spaces.Dict(self.observation_spaces)
        self.action_space = gymnasium.spaces.Dict(self.action_spaces)
        self.name = name

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> NoReturn:  # noqa: ARG002
        """Raises the error that the environment is missing."""
        _missing(self.name)

    def step(self, action_dict: object) -> NoReturn:  # noqa: ARG002
        """Raises the error that the environment is missing."""
        _missing(self.name)


def _missing(name: str | None) -> NoReturn:
    needs = "an environment: the config names none, and a checkpoint does not store it"
    fix = "pass it: rllib_compat.load(CHECKPOINT, env=MyEnv), or env=MyEnv of a trainer"
    if name:
        why = why_not_importable(name)
        found = f"cannot be created ({why.rstrip('.')})" if why else "is not registered"
        needs = f"the checkpoint's environment `{name}`, which {found} on this machine"
        fix = "install the package" if why else f"call ray.tune.register_env({name!r}, creator)"
        fix += " before Algorithm.from_checkpoint(…)"
    raise LegacyEnvError(f"Training needs {needs}.", where="$.env", fix=fix)
