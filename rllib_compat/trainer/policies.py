"""Policies of a running algorithm: weights, adding, removing and exporting them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from packaging.version import Version

from rllib_compat.formats.paths import local_path
from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import CompatError, GoneError
from rllib_compat.ray_versions import (
    configs,
    connectors,
    env_runners,
    metrics,
    modules,
    old_stack,
)
from rllib_compat.ray_versions.learners import local_learner
from rllib_compat.registry.legacy_api import missing
from rllib_compat.runtime.policies import LegacyPolicies, LegacyPolicy
from rllib_compat.runtime.policy_mapping import ONLY_POLICY, MappingFn, resolve_policy_id
from rllib_compat.trainer.build import AlgorithmBuilder
from rllib_compat.trainer.inference import agent_of
from rllib_compat.trainer.running import RunningAlgorithm
from rllib_compat.trainer.workers import ToTrain

if TYPE_CHECKING:
    import gymnasium
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.core.learner import Learner
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.env.env_runner import EnvRunner

#: A space of gymnasium or gym, or a record of one.
AnySpace: TypeAlias = Any


class Policies:
    """The policies of a trainer."""

    def __init__(
        self, running: RunningAlgorithm, builder: AlgorithmBuilder, config: Mapping[str, Any]
    ) -> None:
        self._running = running
        self._builder = builder
        self._config = config
        self._known: dict[str, LegacyPolicy] = {}

    @property
    def _algorithm(self) -> Algorithm:
        return self._running.algorithm

    @property
    def logdir(self) -> str:
        """The folder of the trainer's files."""
        return self._builder.logdir

    def get_policy(self, policy_id: str = ONLY_POLICY) -> Any:
        """The policy of that id, or None; weights that are set in it reach the learners."""
        runner = self._running.local_runner()
        if self._algorithm.learner_group is None:
            return runner.get_policy(policy_id)  # the old API stack's own
        return LegacyPolicies(runner, self).get(policy_id)

    def with_learners(self, policy: LegacyPolicy) -> LegacyPolicy:
        """The same policy, connected to the learners; one object for each module."""
        known = self._known.get(policy.policy_id)
        if known is None or known.module is not policy.module:
            known = LegacyPolicy(
                policy.policy_id, policy.module, self._algorithm.config, owner=self
            )
            self._known[policy.policy_id] = known
        return known

    # For policies

    def local_learner(self) -> Learner | None:
        """The learner, if it is in this process."""
        group = self._algorithm.learner_group
        return None if group is None or group.is_remote else local_learner(self._algorithm)

    def config_of(self, policy_id: str) -> Mapping[str, Any]:
        """The legacy config of a policy: the trainer's, with the policy's own keys."""
        in_dict = (self._config.get("multiagent") or {}).get("policies")
        spec = in_dict or self._config.get("policies")  # as in configs of Ray 2.x
        named = spec.get(policy_id) if isinstance(spec, Mapping) else None
        own = getattr(named, "config", None) or (named[3] if isinstance(named, tuple) else {})
        return {**self._config, **(own if isinstance(own, Mapping) else {})}

    def callbacks(self) -> Any:
        """The user's callbacks object."""
        return next((adapter.user_callbacks for adapter in self._running.adapters), None)

    def timestep(self) -> int:
        """How many steps of the environment were sampled so far."""
        return metrics.count_so_far(self._algorithm, "sampled")

    def refresh(self) -> None:
        """Sends the newest weights to the env runner of this process."""
        self._running.sync_local_runner()

    def weights_changed(self) -> None:
        """Marks that the learner's weights have changed."""
        self._running.mark_weights_stale()

    def get_weights(self, policies: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """The weights by policy and name, as arrays."""
        if isinstance(policies, str):
            policies = [policies]
        if policies is not None:
            there = self._algorithm.config.policies
            policies = [resolve_policy_id(policy, there) for policy in policies]
        return dict(self._algorithm.get_weights(policies))

    def set_weights(self, weights: Mapping[str, Mapping[str, Any]]) -> None:
        """Sets weights by policy and name, in the learners and in all workers.

        Raises:
            CompatError: A policy has no weights of such a name.
        """
        there = self._algorithm.config.policies
        weights = {resolve_policy_id(policy, there): values for policy, values in weights.items()}
        if self._algorithm.learner_group is None:
            self._algorithm.set_weights(weights)
            self._running.send_weights()
            return
        known = self.get_weights(weights)
        for policy, values in weights.items():
            # torch would load what fits, and ignore the rest silently.
            if unknown := sorted(values.keys() - known.get(policy, values).keys()):
                raise CompatError(
                    f"Policy {policy!r} has no weights {', '.join(unknown[:5])}.",
                    where="set_weights()",
                    fix="give them the names that get_weights() returns",
                )
        learner = {"rl_module": {policy: dict(values) for policy, values in weights.items()}}
        # `Algorithm.set_weights` does this, and then calls a method that only raises an error.
        self._algorithm.set_state({"learner_group": {"learner": learner}})
        self._running.send_weights()

    def add_policy(
        self,
        policy_id: str,
        policy_cls: type | None = None,
        policy: LegacyPolicy | None = None,
        *,
        observation_space: AnySpace = None,
        action_space: AnySpace = None,
        config: Mapping[str, Any] | None = None,
        policy_state: Mapping[str, Any] | None = None,
        policy_mapping_fn: Callable[..., str] | None = None,
        policies_to_train: ToTrain = None,
        evaluation_workers: bool = True,
        workers: object = None,
        module_spec: RLModuleSpec | None = None,
    ) -> Any:
        """Adds a policy to learners and workers.

        Args:
            policy_id: Its id.
            policy_cls: One of RLlib's policy classes or None; both mean the algorithm's own.
            policy: A policy of this trainer, whose weights the new one starts with.
            observation_space: The observation space of its agents; by default of those that are
                mapped to the policy.
            action_space: Their action space; by default as above.
            config: Keys that differ for this policy, by legacy names.
            policy_state: What `get_state` of a policy returned; the new one starts with it.
            policy_mapping_fn: Which policy an agent has from the next episode on.
            policies_to_train: Which policies learn from now on. Without it, and without the
                config's, the first ones until Ray 2.0, and all since then.
            evaluation_workers: Whether to add it to the evaluation workers, too.
            workers: Not supported any more: a policy is always added to all workers.
            module_spec: The `RLModuleSpec` of the policy, instead of the config's.

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
        if policies_to_train is None and self._new_ones_do_not_learn():
            policies_to_train = sorted(self._algorithm.config.policies)
        if self._algorithm.learner_group is None:
            return self._algorithm.add_policy(
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
        if not configs.is_multi_agent(self._algorithm.config):
            raise CompatError(
                "The trainer has one policy for all, and no agents.",
                where="add_policy()",
                fix="give the config a multiagent section with `policies`",
            )
        mapping = None if policy_mapping_fn is None else MappingFn(policy_mapping_fn)
        policies_to_train = _collection(policies_to_train)
        if policy_cls is LegacyPolicy:  # what type(trainer.get_policy(…)) is
            policy_cls = None
        both = self._spaces(policy_id, mapping, _space(observation_space), _space(action_space))
        named = (policy_cls, None, None, dict(config or {}))
        spec, overrides = self._builder.module_spec(policy_id, named, both)
        self._algorithm.add_module(
            policy_id,
            module_spec or spec,
            config_overrides=overrides or None,
            new_agent_to_module_mapping_fn=mapping,
            new_should_module_be_updated=policies_to_train,
            add_to_eval_env_runners=evaluation_workers,
        )
        if (explores := overrides.get("explore")) is not None:
            self._call_in_runners(partial(_set_explores, policy_id, bool(explores)))
        self.update_workers(mapping, policies_to_train)
        state = policy_state or (policy.get_state() if policy is not None else None)
        if state is not None:
            self.set_weights({policy_id: state.get("weights", state)})
        return self.get_policy(policy_id)

    def _new_ones_do_not_learn(self) -> bool:
        """Whether added policies don't learn, if nothing names those that do."""
        ray = self._builder.origin.legacy_ray
        is_unset = self._algorithm.config.policies_to_train is None
        return is_unset and ray is not None and Version(ray) < Version("2.1")

    def remove_policy(
        self,
        policy_id: str = ONLY_POLICY,
        *,
        policy_mapping_fn: Callable[..., str] | None = None,
        policies_to_train: ToTrain = None,
        evaluation_workers: bool = True,
    ) -> None:
        """Removes a policy from learners and workers."""
        if self._algorithm.learner_group is None:
            self._algorithm.remove_policy(
                policy_id,
                policy_mapping_fn=policy_mapping_fn,
                policies_to_train=policies_to_train,
            )
            return
        mapping = None if policy_mapping_fn is None else MappingFn(policy_mapping_fn)
        policies_to_train = _collection(policies_to_train)
        self._algorithm.remove_module(
            policy_id,
            new_agent_to_module_mapping_fn=mapping,
            new_should_module_be_updated=policies_to_train,
            remove_from_eval_env_runners=evaluation_workers,
        )
        self.update_workers(mapping, policies_to_train)

    def update_workers(self, mapping: MappingFn | None, to_train: ToTrain) -> None:
        """Updates the configs of all env runners; some Rays update only a part of them."""
        new = {"policy_mapping_fn": mapping, "policies_to_train": to_train}
        new = {name: value for name, value in new.items() if value is not None}
        self._call_in_runners(partial(_set_multi_agent, new))
        self._running.mark_weights_stale()

    def _call_in_runners(self, function: Callable[[EnvRunner], None]) -> None:
        algorithm = self._algorithm
        for group in (algorithm.env_runner_group, algorithm.eval_env_runner_group):
            if group is not None:
                env_runners.foreach_env_runner(group, function)

    # Exports

    def export_policy_model(
        self, export_dir: str, policy_id: str = ONLY_POLICY, onnx: int | None = None
    ) -> str:
        """Exports a policy's network.

        Args:
            export_dir: The folder to write into.
            policy_id: The policy.
            onnx: The opset of `model.onnx`; without, `model.pt` is TorchScript, which
                `torch.jit.load` loads and calls as a `ModelV2`.

        Returns:
            The file, or on the old API stack the folder.

        Raises:
            CompatError: There is no such policy, or a package that ONNX needs is not installed.
        """
        algorithm = self._algorithm
        if algorithm.learner_group is None:
            folder = str(local_path(export_dir).absolute())
            algorithm.export_policy_model(folder, policy_id, onnx)
            return folder
        return self._policy(policy_id).export_model(export_dir, onnx)

    def import_policy_model_from_h5(self, import_file: str, policy_id: str = ONLY_POLICY) -> None:
        """Makes a policy's custom model, which has `import_from_h5`, read weights.

        Raises:
            FileNotFoundError: There is no such file.
            GoneError: The model is one of RLlib, which could not read such a file in any Ray.
        """
        file = local_path(import_file)
        if not file.exists():
            raise FileNotFoundError(f"There is no file {file} to import a model from.")
        runner = self._running.local_runner()
        on_old_stack = self._algorithm.learner_group is None
        policy: Any = runner.get_policy(policy_id) if on_old_stack else self._policy(policy_id)
        if on_old_stack and not old_stack.reads_h5(policy):
            raise missing(policy, "policy", "import_model_from_h5")
        policy.import_model_from_h5(str(file))
        self._running.mark_weights_stale()

    def export_policy_checkpoint(
        self,
        export_dir: str,
        filename_prefix: str = "model",  # noqa: ARG002  # part of TensorFlow's file names
        policy_id: str = ONLY_POLICY,
    ) -> str:
        """Exports a policy as a checkpoint that `RLModule.from_checkpoint` loads.

        Args:
            export_dir: The folder to write into.
            filename_prefix: Ignored: Ray names the files.
            policy_id: The policy.

        Returns:
            The folder.
        """
        algorithm = self._algorithm
        if algorithm.learner_group is None:
            folder = str(local_path(export_dir).absolute())
            algorithm.export_policy_checkpoint(folder, policy_id)
            return folder
        return self._policy(policy_id).export_checkpoint(export_dir)

    def _policy(self, policy_id: str) -> LegacyPolicy:
        policies = LegacyPolicies(self._running.local_runner())
        if policy_id not in policies:
            raise CompatError(
                f"There is no policy {policy_id!r}.",
                where="policy_id",
                fix=f"the policies are {', '.join(map(repr, policies))}",
            )
        return policies[policy_id]

    def _spaces(
        self,
        policy_id: str,
        mapping: MappingFn | None,
        observation: gymnasium.Space[Any] | None,
        action: gymnasium.Space[Any] | None,
    ) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        """The observation space of a policy's module after all connectors, and its action space."""
        runner = self._algorithm.env_runner
        pipeline = connectors.env_to_module(runner)
        agent = agent_of(runner, policy_id, mapping)
        if observation is None:
            observation = pipeline.input_observation_space[agent]
        if action is None:
            action = pipeline.input_action_space[agent]
        for other, module in runner.module.items():
            if pipeline.input_observation_space[agent_of(runner, other)] == observation:
                return module.observation_space, action
        return _flat(observation), action


def _set_explores(policy_id: str, value: bool, env_runner: EnvRunner) -> None:
    modules.set_explores(env_runner.module[policy_id], value)


def _set_multi_agent(new: Mapping[str, object], env_runner: EnvRunner) -> None:
    env_runner.config.multi_agent(**new)


def _space(space: AnySpace) -> gymnasium.Space[Any] | None:
    record = spaces.from_object(space)
    return space if record is None else spaces.to_gymnasium(record)


def _flat(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    """The space that `FlattenObservations` makes of one that is no Box."""
    from gymnasium.spaces import Box
    from gymnasium.spaces.utils import flatten_space

    from rllib_compat.runtime.observation_connectors import set_original_space

    return space if isinstance(space, Box) else set_original_space(flatten_space(space), space)


def _collection(policies: ToTrain) -> ToTrain:
    return policies if policies is None or callable(policies) else list(policies)
