"""Policies of a running Trainer: their weights, and adding and removing them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from rllib_compat.config import Translation, translate
from rllib_compat.league.memory import has_policies, share_frozen
from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import CompatError, GoneError, RayNotSupportedError
from rllib_compat.ray_versions import configs, connectors, env_runners
from rllib_compat.runtime.policies import LegacyPolicy
from rllib_compat.runtime.policy_mapping import ONLY_POLICY, MappingFn, known_as
from rllib_compat.trainer import inference, templates
from rllib_compat.trainer.defaults import merge
from rllib_compat.trainer.workers import LegacyWorkers


class Policies:
    """The part of a Trainer that has policies and workers. See `Trainer` for the attributes."""

    algorithm: Any
    translation: Translation
    raw_user_config: Mapping[str, Any]
    _asked: Mapping[str, Any]
    _local_is_stale: bool
    name_networks: Callable[..., None]

    @property
    def workers(self) -> LegacyWorkers:
        """All workers; those that evaluate, where an algorithm learns from recordings alone.

        Raises:
            RayNotSupportedError: There are none: Ray 2.41 – 2.47 make none for such an algorithm.
        """
        if self._group is None:
            raise RayNotSupportedError(
                "On this Ray, what learns from recordings alone has no worker to act with.",
                where="trainer.workers",
                fix="set `evaluation_interval` in the config, which makes one",
            )
        return LegacyWorkers(self, self._group)

    @property
    def _group(self) -> Any:
        return self.algorithm.env_runner_group or self.algorithm.eval_env_runner_group

    @property
    def evaluation_workers(self) -> LegacyWorkers | None:
        """All workers that evaluate, if the config asks for any."""
        group = self.algorithm.eval_env_runner_group
        return LegacyWorkers(self, group) if group is not None else None

    @property
    def local_evaluator(self) -> Any:
        """The worker in this process, by its name of Ray 0.5 and 0.6."""
        return self.workers.local_worker()

    @property
    def remote_evaluators(self) -> list[Any]:
        """The actors of the other workers, by their name of Ray 0.5 and 0.6."""
        return self.workers.remote_workers()

    def local_runner(self) -> Any:
        """The env runner in this process, with the weights that were trained last."""
        return self.workers.local_worker().env_runner

    def sync_local_runner(self) -> None:
        """Gives the local env runner the weights that were trained last.

        Ray sends them only to those that sample.
        """
        if self._local_is_stale:
            self._send_weights()

    def _send_weights(self) -> None:
        if self._group is not None:
            env_runners.send_weights(self.algorithm, self._group)
        self._local_is_stale = False

    def share_frozen_policies(self) -> None:
        """Lets all env runners of a node share the weights of policies that are not trained."""
        if not has_policies(self.algorithm):
            return
        given = self.translation.legacy_config
        capacity = given.get("multiagent", {}).get("policy_map_capacity")
        if capacity is None:
            capacity = given.get("policy_map_capacity")
        share_frozen(self.algorithm, capacity=capacity)

    def get_policy(self, policy_id: str = ONLY_POLICY) -> Any:
        """The policy of that id, or None; what is set in it reaches the learners."""
        found = self.workers.local_worker().get_policy(policy_id)
        if not isinstance(found, LegacyPolicy):
            return found  # nothing, or the old API stack's own policy
        policy_id = found.policy_id
        return LegacyPolicy(
            policy_id,
            found.model,
            self.algorithm.config,
            store=lambda weights: self.set_weights({policy_id: weights}),
            load=lambda: self.get_weights([policy_id])[policy_id],
        )

    def get_weights(self, policies: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """The weights by policy and name, as arrays."""
        if policies is not None:
            there = self.algorithm.config.policies
            policies = [known_as(policy, there) for policy in policies]
        return dict(self.algorithm.get_weights(policies))

    def set_weights(self, weights: Mapping[str, Mapping[str, Any]]) -> None:
        """Sets weights by policy and name, in the learners and in all workers."""
        there = self.algorithm.config.policies
        weights = {known_as(policy, there): values for policy, values in weights.items()}
        if self.algorithm.learner_group is None:
            self.algorithm.set_weights(weights)
            self._send_weights()
            return
        learner = {"rl_module": {policy: dict(values) for policy, values in weights.items()}}
        # `Algorithm.set_weights` does this, and then calls a method that only raises.
        self.algorithm.set_state({"learner_group": {"learner": learner}})
        self._send_weights()

    def add_policy(
        self,
        policy_id: str,
        policy_cls: Any = None,
        policy: Any = None,
        *,
        observation_space: Any = None,
        action_space: Any = None,
        config: Mapping[str, Any] | None = None,
        policy_state: Mapping[str, Any] | None = None,
        policy_mapping_fn: Callable[..., str] | None = None,
        policies_to_train: Collection[str] | Callable[..., bool] | None = None,
        evaluation_workers: bool = True,
        workers: Any = None,
        module_spec: Any = None,
    ) -> Any:
        """Adds a policy to learners and workers.

        Args:
            policy_id: Its id.
            policy_cls: One of RLlib's policy classes or None; both mean the algorithm's own.
            policy: A policy of this trainer, whose weights the new one begins with.
            observation_space: What the environment gives its agents; None for what it gives those
                that are mapped to the policy.
            action_space: What its agents do; None as above.
            config: What is different for this policy, by legacy keys.
            policy_state: What `get_state` of a policy returned; the new one begins with it.
            policy_mapping_fn: Which policy an agent has from the next episode on.
            policies_to_train: Which policies learn from now on.
            evaluation_workers: Whether evaluation knows the policy, too.
            workers: Means nothing any more: only all workers together can have a policy.
            module_spec: The `RLModuleSpec` of the policy, in the place of what the config says.

        Returns:
            The policy.

        Raises:
            GoneError: The policy class is none of RLlib's own, or `workers` was given.
            CompatError: The trainer was made for a single policy.
        """
        if workers is not None:
            raise GoneError(
                "A policy can't be added to some workers only.",
                where="add_policy(workers=)",
                fix="leave it out, and let policy_mapping_fn decide who uses the policy",
            )
        if self.algorithm.learner_group is None:
            return self.algorithm.add_policy(
                policy_id,
                policy_cls,
                policy,
                observation_space=observation_space,
                action_space=action_space,
                config=config,
                policy_state=policy_state,
                policy_mapping_fn=policy_mapping_fn,
                policies_to_train=policies_to_train,
            )
        if not configs.is_multi_agent(self.algorithm.config):
            raise CompatError(
                "The trainer has one policy for all, and no agents.",
                where="add_policy()",
                fix="give the config a multiagent section with `policies`",
            )
        mapping = None if policy_mapping_fn is None else MappingFn(policy_mapping_fn)
        policies_to_train = _collection(policies_to_train)
        given = (policy_cls, _space(observation_space), _space(action_space), dict(config or {}))
        spec, overrides = self._module_spec(policy_id, given, mapping)
        self.algorithm.add_module(
            policy_id,
            module_spec or spec,
            config_overrides=overrides or None,
            new_agent_to_module_mapping_fn=mapping,
            new_should_module_be_updated=policies_to_train,
            add_to_eval_env_runners=evaluation_workers,
        )
        self.tell_workers(mapping, policies_to_train)
        state = policy_state or (policy.get_state() if policy is not None else None)
        if state is not None:
            self.set_weights({policy_id: state.get("weights", state)})
        return self.get_policy(policy_id)

    def remove_policy(
        self,
        policy_id: str = ONLY_POLICY,
        *,
        policy_mapping_fn: Callable[..., str] | None = None,
        policies_to_train: Collection[str] | Callable[..., bool] | None = None,
        evaluation_workers: bool = True,
    ) -> None:
        """Removes a policy from learners and workers.

        Args:
            policy_id: Its id.
            policy_mapping_fn: Which policy an agent has from now on.
            policies_to_train: Which policies learn from now on.
            evaluation_workers: Whether to remove it from evaluation, too.
        """
        if self.algorithm.learner_group is None:
            self.algorithm.remove_policy(
                policy_id,
                policy_mapping_fn=policy_mapping_fn,
                policies_to_train=policies_to_train,
            )
            return
        mapping = None if policy_mapping_fn is None else MappingFn(policy_mapping_fn)
        policies_to_train = _collection(policies_to_train)
        self.algorithm.remove_module(
            policy_id,
            new_agent_to_module_mapping_fn=mapping,
            new_should_module_be_updated=policies_to_train,
            remove_from_eval_env_runners=evaluation_workers,
        )
        self.tell_workers(mapping, policies_to_train)

    def tell_workers(self, mapping: MappingFn | None, to_train: Any) -> None:
        """Tells all env runners what Ray tells some, depending on its release."""
        new: dict[str, Any] = {"policy_mapping_fn": mapping, "policies_to_train": to_train}
        new = {name: value for name, value in new.items() if value is not None}
        for group in (self.algorithm.env_runner_group, self.algorithm.eval_env_runner_group):
            if group is not None:
                env_runners.foreach_env_runner(group, partial(_set_multi_agent, new))
        self._local_is_stale = True

    def _module_spec(
        self, policy_id: str, policy: tuple[Any, ...], mapping: MappingFn | None
    ) -> tuple[Any, dict[str, Any]]:
        """The spec of a new module and its overrides, as if the config had had the policy."""
        from ray.rllib.policy.policy import PolicySpec

        policy_cls, observation_space, action_space, config = policy
        if policy_cls is LegacyPolicy:  # what type(trainer.get_policy(…)) is
            policy_cls = None
        given = {"multiagent": {"policies": {policy_id: (policy_cls, None, None, config)}}}
        own = templates.own_keys(type(self), self.raw_user_config)
        whole = {key: v for key, v in merge(self.raw_user_config, given).items() if key not in own}
        translated = translate(whole, **self._asked).algorithm_config
        self.name_networks(translated, given)
        obs, act = self._module_spaces(policy_id, mapping, observation_space, action_space)
        policies = {policy_id: PolicySpec(observation_space=obs, action_space=act)}
        specs = translated.get_multi_rl_module_spec(policy_dict=policies).rl_module_specs
        overrides = translated.algorithm_config_overrides_per_module.get(policy_id)
        return specs[policy_id], dict(overrides or {})

    def _module_spaces(
        self, policy_id: str, mapping: MappingFn | None, observation: Any, action: Any
    ) -> tuple[Any, Any]:
        """What the module of a policy gets after all connectors, and what it gives."""
        runner = self.algorithm.env_runner
        pipeline = connectors.env_to_module(runner)
        agent = inference.agent_of(runner, policy_id, mapping)
        if observation is None:
            observation = pipeline.input_observation_space[agent]
        if action is None:
            action = pipeline.input_action_space[agent]
        for other, module in runner.module.items():
            of_other = inference.agent_of(runner, other)
            if pipeline.input_observation_space[of_other] == observation:
                return module.observation_space, action
        return _flat(observation), action


def _set_multi_agent(new: Mapping[str, Any], env_runner: Any) -> None:
    env_runner.config.multi_agent(**new)


def _space(space: Any) -> Any:
    record = spaces.from_object(space)
    return space if record is None else spaces.to_gymnasium(record)


def _flat(space: Any) -> Any:
    """What `FlattenObservations` makes of a space that is no Box."""
    from gymnasium.spaces import Box
    from gymnasium.spaces.utils import flatten_space

    from rllib_compat.runtime.observation_connectors import with_original

    return space if isinstance(space, Box) else with_original(flatten_space(space), space)


def _collection(policies: Collection[str] | Callable[..., bool] | None) -> Any:
    return policies if policies is None or callable(policies) else list(policies)
