"""A worker's policies by id: a dict in Ray 0.5 – 1.3, a `PolicyMap` since."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from rllib_compat.registry.legacy_api import missing
from rllib_compat.runtime.policies import LegacyPolicy
from rllib_compat.runtime.policy_mapping import ONLY_POLICY, resolve_policy_id
from rllib_compat.runtime.policy_owner import PolicyOwner

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner
    from rllib_compat.runtime.critic_modules import CriticModules


if TYPE_CHECKING:
    _Dict = dict[str, LegacyPolicy]
else:

    class _Dict(MutableMapping, dict):
        """A dict for `isinstance`, whose items are computed: the dict itself stays empty."""


class LegacyPolicies(_Dict):
    """The policies of an env runner by id; each is created on access.

    Adding or removing a policy of a trainer's local worker does the same in the learners.

    Args:
        env_runner: The env runner; its module may be replaced at any time.
        policies: The trainer's view of its policies; None in another process.
        critics: The critics of the policies without a trainer; None: there are none.
    """

    #: Where the map of Ray 1.4 – 2.9 stored policies on disk; this one stores none.
    extension = path = ""
    policy_states_are_swappable = False

    def __init__(
        self,
        env_runner: EnvRunner,
        policies: PolicyOwner | None = None,
        critics: CriticModules | None = None,
    ) -> None:
        self._env_runner = env_runner
        self._policies = policies
        self._critics = critics

    def __getitem__(self, policy_id: str) -> LegacyPolicy:
        modules = self._modules()
        policy_id = resolve_policy_id(policy_id, modules)
        config = self._env_runner.config
        policy = LegacyPolicy(policy_id, modules[policy_id], config, critics=self._critics)
        return policy if self._policies is None else self._policies.with_learners(policy)

    def __setitem__(self, policy_id: str, policy: LegacyPolicy) -> None:
        """Adds a policy with the weights of another one, or sets an existing policy's weights."""
        if policy_id in self:
            self[policy_id].set_weights(policy.get_weights())
        else:
            self._owner("add_policy").add_policy(policy_id, policy=policy)

    def __delitem__(self, policy_id: str) -> None:
        """Removes a policy from learners and workers."""
        self._owner("remove_policy").remove_policy(policy_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules())

    def __len__(self) -> int:
        return len(self._modules())

    def __repr__(self) -> str:
        return f"<policies {', '.join(self)}>"

    def copy(self) -> dict[str, LegacyPolicy]:
        """The policies as a dict."""
        return dict(self)

    def create_policy(
        self,
        policy_id: str,
        policy_cls: type | None = None,
        observation_space: object = None,
        action_space: object = None,
        config_override: Mapping[str, Any] | None = None,
        merged_config: object = None,  # noqa: ARG002 - the trainer's config with the override
    ) -> None:
        """Adds a policy to learners and workers; see `Trainer.add_policy`."""
        self._owner("add_policy").add_policy(
            policy_id,
            policy_cls,
            observation_space=observation_space,
            action_space=action_space,
            config=config_override,
        )

    @property
    def cache(self) -> dict[str, LegacyPolicy]:
        """The policies that are in memory: all of them."""
        return dict(self)

    @property
    def deque(self) -> collections.deque[str]:
        """The ids of the policies that are in memory."""
        return collections.deque(self)

    @property
    def valid_keys(self) -> set[str]:
        """The ids of all policies."""
        return set(self)

    @property
    def capacity(self) -> int:
        """The number of policies that fit in memory: all."""
        return len(self)

    @property
    def policy_specs(self) -> dict[str, Any]:
        """The `PolicySpec` of each policy."""
        from ray.rllib.policy.policy import PolicySpec

        return {
            policy_id: PolicySpec(
                policy_class=LegacyPolicy,
                observation_space=module.observation_space,
                action_space=module.action_space,
                config={},
            )
            for policy_id, module in self._modules().items()
        }

    @property
    def policy_config(self) -> dict[str, Any]:
        """The config of the env runner."""
        return dict(self._env_runner.config.to_dict())

    @property
    def worker_index(self) -> int:
        """The number of the worker."""
        return int(self._env_runner.worker_index or 0)

    @property
    def num_workers(self) -> int:
        """The number of remote workers."""
        return int(self._env_runner.config.num_env_runners or 0)

    @property
    def seed(self) -> int | None:
        """The seed of the config."""
        found: int | None = self._env_runner.config.seed
        return found

    def _owner(self, name: str) -> PolicyOwner:
        if self._policies is None:
            raise missing(self, "remote worker", name)
        return self._policies

    def __getattr__(self, name: str) -> Any:
        raise missing(self, "policy_map", name)

    def _modules(self) -> dict[str, Any]:
        module = self._env_runner.module
        return dict(module.items()) if hasattr(module, "items") else {ONLY_POLICY: module}
