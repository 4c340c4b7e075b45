"""The rollout worker of Ray 0.6 – 2.x, as a view on an env runner."""

from __future__ import annotations

import copy
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from packaging.version import Version

from rllib_compat.formats.msgpack.codec import pack, unpack
from rllib_compat.ray_versions import connectors as ray_connectors
from rllib_compat.ray_versions import env_runners, episodes, old_stack, timers
from rllib_compat.ray_versions.types import AnyBatch, EnvRunner
from rllib_compat.registry.legacy_api import GONE, missing, names_with
from rllib_compat.runtime.acting_policies import PolicyOwner
from rllib_compat.runtime.batches import rollout_batch
from rllib_compat.runtime.envs import find_creator
from rllib_compat.runtime.learner_info import WorkerLearning
from rllib_compat.runtime.policies import CriticModules, LegacyPolicies, LegacyPolicy
from rllib_compat.runtime.policy_mapping import ONLY_POLICY, MappingFn
from rllib_compat.runtime.results import EpisodeRecord, take_records
from rllib_compat.runtime.user_envs import LegacyBaseEnv, list_environments, user_env, with_user_api


class _Filters(dict[str, Any]):
    """Filters by policy."""

    def __setitem__(self, policy: str, other: Any) -> None:
        self[policy].sync(other)


class LegacyWorker:
    """A rollout worker around an env runner; attributes that it lacks are the env runner's.

    Attributes:
        env_runner: The env runner.
        policies: The trainer's view of its policies; None if it is not a trainer's local worker.
        config: The config of the env runner.
        policy_config: The config as a dict; of a trainer's local worker, the trainer's.
        global_vars: The training's progress: `timestep`.
        critics: The critics of its policies, if it is not a trainer's local worker.
        extra_episodes: Episodes that a callback has added, for the next sample.
        last_batch: None: the last batch of workers with a fake sampler.
    """

    fake_sampler = False
    last_batch = None
    recreated_worker = False
    tf_sess = None
    default_policy_class = None

    def __init__(self, env_runner: Any) -> None:
        self.env_runner = env_runner
        self.policies: PolicyOwner | None = None
        self.global_vars: dict[str, Any] = {"timestep": 0}
        self.critics = CriticModules(env_runner)
        self.extra_episodes: list[Any] = []
        self._policy_config: Mapping[str, Any] | None = None
        self._iterator: Any = None

    def set_trainer(self, policies: PolicyOwner | None, config: Mapping[str, Any] | None) -> None:
        """Makes this the local worker of a trainer.

        Args:
            policies: The trainer's view of its policies; None if these are only copies.
            config: The trainer's config.
        """
        self.policies, self._policy_config = policies, config

    def __repr__(self) -> str:
        return f"<worker {self.worker_index}: {', '.join(self.policy_map)}>"

    # Policies

    @property
    def policy_map(self) -> LegacyPolicies:
        """The policies by id."""
        return LegacyPolicies(self.env_runner, self.policies, self.critics)

    @property
    def policy_dict(self) -> dict[str, Any]:
        """The `PolicySpec` of each policy, by id."""
        return self.policy_map.policy_specs

    @property
    def callbacks(self) -> Any:
        """The user's callbacks object in this process."""
        return getattr(self._adapter, "user_callbacks", None)

    @property
    def legacy_ray(self) -> Version | None:
        """The Ray that the trainer's config was written for, if known."""
        return getattr(self._adapter, "legacy_ray", None)

    @property
    def _adapter(self) -> Any:
        """The object that calls the callbacks in this process."""
        found = episodes.callbacks_of(self.env_runner)
        return next((one for one in found if hasattr(one, "user_callbacks")), None)

    @property
    def multiagent(self) -> bool:
        """Whether there are other policies than the default one."""
        return set(self.policy_map) != {ONLY_POLICY}

    @property
    def policy_config(self) -> dict[str, Any]:
        """The trainer's config; in another process, the env runner's config as a dict."""
        if self._policy_config is not None:
            return dict(self._policy_config)
        return dict(self.env_runner.config.to_dict())

    def get_policy(self, policy_id: str = ONLY_POLICY) -> LegacyPolicy | None:
        """The policy of that id, or None."""
        return self.policy_map.get(policy_id)

    def for_policy(
        self, func: Callable[..., Any], policy_id: str = ONLY_POLICY, **kwargs: object
    ) -> Any:
        """Calls `func(policy)`."""
        policy = self.policy_map[policy_id]
        return func(policy, **kwargs)

    def foreach_policy(self, func: Callable[..., Any], **kwargs: object) -> list[Any]:
        """Calls `func(policy, policy_id)` for all policies."""
        return [func(self.policy_map[name], name, **kwargs) for name in self.policy_map]

    def foreach_trainable_policy(self, func: Callable[..., Any], **kwargs: object) -> list[Any]:
        """Calls `func(policy, policy_id)` for the policies that are trained."""
        return [
            func(self.policy_map[policy_id], policy_id, **kwargs)
            for policy_id in self.get_policies_to_train()
        ]

    foreach_policy_to_train = foreach_trainable_policy

    def is_policy_to_train(self, policy_id: str, batch: object = None) -> bool:
        """Whether a policy learns."""
        to_train = self.env_runner.config.policies_to_train
        if callable(to_train):
            return bool(to_train(policy_id, batch))
        return to_train is None or policy_id in to_train

    def get_policies_to_train(self, batch: object = None) -> list[str]:
        """The ids of the policies that learn."""
        return [policy for policy in self.policy_map if self.is_policy_to_train(policy, batch)]

    @property
    def policies_to_train(self) -> list[str]:
        """The ids of the policies that learn."""
        return self.get_policies_to_train()

    def set_policies_to_train(self, policies_to_train: Any = None) -> None:
        """Sets which policies learn: ids, or a function of (policy id, batch).

        The learners follow only if `trainer.workers.foreach_worker` has called this.
        """
        if policies_to_train is not None:
            ids = policies_to_train if callable(policies_to_train) else list(policies_to_train)
            self.env_runner.config.multi_agent(policies_to_train=ids)

    set_is_policy_to_train = set_policies_to_train

    def set_policy_mapping_fn(self, policy_mapping_fn: Callable[..., str] | None = None) -> None:
        """Sets the function that maps agents to policies, from the next episode on."""
        if policy_mapping_fn is not None:
            mapping = MappingFn(policy_mapping_fn)
            self.env_runner.config.multi_agent(policy_mapping_fn=mapping)

    @property
    def policy_mapping_fn(self) -> Callable[..., str]:
        """The function from (agent id, episode) to a policy id."""
        found: Callable[..., str] = self.env_runner.config.policy_mapping_fn
        return found

    def add_policy(self, policy_id: str, *args: object, **kwargs: object) -> Any:
        """Adds a policy; see `Trainer.add_policy`.

        Raises:
            GoneError: The worker is not a trainer's local worker.
        """
        return self._owner("add_policy").add_policy(policy_id, *args, **kwargs)

    def remove_policy(self, *, policy_id: str = ONLY_POLICY, **kwargs: object) -> None:
        """Removes a policy; see `Trainer.remove_policy`.

        Raises:
            GoneError: The worker is not a trainer's local worker.
        """
        self._owner("remove_policy").remove_policy(policy_id, **kwargs)

    def _owner(self, name: str) -> PolicyOwner:
        if self.policies is None:
            raise missing(self, "remote worker", name)
        return self.policies

    # Environments

    @property
    def base_env(self) -> LegacyBaseEnv:
        """All environments of this worker."""
        env = self.env_runner.env
        request_reset = partial(env_runners.reset_at_the_next_sample, self.env_runner)
        return LegacyBaseEnv(getattr(env, "unwrapped", env), request_reset)

    @property
    def env(self) -> Any:
        """The user's first environment, or None; with the old gym API if it was made by name."""
        made = next(iter(self.base_env.wrapped_environments()), None)
        own = user_env(made)
        # Environments of gymnasium need its wrappers, such as TimeLimit.
        return with_user_api(made if made is not None and own is made.unwrapped else own)

    async_env = base_env

    @property
    def env_context(self) -> Any:
        """The env context of the first environment."""
        return self._context(0)

    @property
    def env_creator(self) -> Callable[..., Any] | None:
        """The function from an env context to the user's environment."""
        creator = find_creator(self.env_runner.config.env)
        return creator and (lambda context: with_user_api(user_env(creator(context))))

    def make_sub_env_fn(self, vector_index: int = 0) -> Any:
        """Creates another environment of the same kind."""
        creator = self.env_creator
        return creator and creator(self._context(vector_index))

    make_env_fn = make_sub_env_fn

    @property
    def preprocessors(self) -> dict[str, Any]:
        """Ray's preprocessor of each policy, by id."""
        from ray.rllib.models.preprocessors import get_preprocessor

        spaces = {policy: module.observation_space for policy, module in self.policy_map.items()}
        originals = {p: getattr(s, "original_space", s) for p, s in spaces.items()}
        return {policy: get_preprocessor(space)(space) for policy, space in originals.items()}

    @property
    def preprocessing_enabled(self) -> bool:
        """Whether observations are preprocessed."""
        return not self.policy_config.get("_disable_preprocessor_api", False)

    def foreach_env(self, func: Callable[[Any], Any]) -> list[Any]:
        """Calls `func(env)` for all of the user's environments."""
        return [func(env) for env in self.base_env.get_sub_environments()]

    def foreach_env_with_context(self, func: Callable[[Any, Any], Any]) -> list[Any]:
        """Calls `func(env, env_context)` for all of the user's environments."""
        return [
            func(env, self._context(number))
            for number, env in enumerate(self.base_env.get_sub_environments())
        ]

    def _context(self, vector_index: int) -> Any:
        from ray.rllib.env.env_context import EnvContext

        config = dict(self.env_runner.config.env_config)
        return EnvContext(config, self.worker_index, vector_index, num_workers=self.num_workers)

    # Sampling and learning

    def sample(self, **asked: Any) -> Any:
        """Samples a fragment, which no train batch has and no counter of the trainer counts.

        Args:
            **asked: Arguments of the env runner's `sample`; old workers took none.

        Returns:
            The postprocessed `SampleBatch`, or a `MultiAgentBatch` with several policies.
        """
        with env_runners.not_counted(self.env_runner):
            sampled = self.env_runner.sample(**asked)
        return rollout_batch(sampled, self.policy_map, self.legacy_ray)

    def sample_with_count(self) -> tuple[Any, int]:
        """Samples a fragment, and returns it with its number of steps."""
        batch = self.sample()
        return batch, batch.count

    def sample_and_learn(
        self,
        expected_batch_size: int,
        num_sgd_iter: int,
        sgd_minibatch_size: int,
        standardize_fields: Collection[str],
    ) -> tuple[dict[str, Any], int]:
        """Samples, and learns from it in minibatches.

        Returns:
            The policies' mean statistics, and the number of steps.
        """
        batch = self.sample()
        while batch.count < expected_batch_size:
            batch = batch.concat(self.sample())
        stats = self._learning.learn_in_minibatches(
            batch, num_sgd_iter, sgd_minibatch_size, standardize_fields
        )
        return stats, batch.count

    @property
    def _learning(self) -> WorkerLearning:
        return WorkerLearning(self.policy_map, self.is_policy_to_train, self.legacy_ray)

    def learn_on_batch(self, samples: AnyBatch) -> dict[str, Any]:
        """Learns from a batch, with the learners.

        Returns:
            The statistics by policy; until Ray 0.8 those of a single policy without its id.
        """
        return self._learning.learn_on_batch(samples)

    def compute_gradients(self, samples: AnyBatch, single_agent: bool | None = None) -> Any:
        """Computes gradients from a batch.

        Args:
            samples: The batch.
            single_agent: Whether to return a single policy's gradients without its id, as Rays
                until 1.11 did for a batch of one policy.

        Returns:
            The gradients by policy, and their statistics.
        """
        return self._learning.gradients(samples, single_agent)

    def apply_gradients(self, grads: Any) -> None:
        """Applies gradients, by policy or of a single policy."""
        by_policy = grads if isinstance(grads, Mapping) else {ONLY_POLICY: grads}
        for policy_id, gradients in by_policy.items():
            self.policy_map[policy_id].apply_gradients(gradients)

    def get_metrics(self) -> list[EpisodeRecord]:
        """Returns the records of the episodes that have ended since the last call."""
        times = timers.sampler_times(self.env_runner)
        return [replace(record, perf_stats=times) for record in take_records(self.env_runner)]

    @property
    def sampler(self) -> SimpleNamespace:
        """The sampler (`evaluation/sampler.py` of Ray 0.5 – 2.x) returns what the worker does.

        It has no extra batches: the next batch has the steps that callbacks have added.
        """
        return SimpleNamespace(
            get_data=self.sample,
            next=self.sample,
            get_metrics=self.get_metrics,
            get_extra_batches=list,
        )

    input_reader = sampler

    @property
    def output_writer(self) -> Any:
        """The writer of samples: a `NoopOutput` if the config has no output."""
        from ray.rllib.evaluation.rollout_worker import NoopOutput

        if self.env_runner.config.output:
            raise missing(self, "worker", "output_writer")
        return NoopOutput()

    @property
    def reward_estimators(self) -> list[Any]:
        """An empty list; off-policy estimators are set with `config.evaluation(…)`."""
        return []

    # Settings

    @property
    def worker_index(self) -> int:
        """The worker's number; the local one has 0."""
        return int(getattr(self.env_runner, "worker_index", 0) or 0)

    @property
    def num_workers(self) -> int:
        """The number of remote workers."""
        return int(getattr(self.env_runner.config, "num_env_runners", 0) or 0)

    @property
    def batch_mode(self) -> str:
        """`truncate_episodes` or `complete_episodes`."""
        return str(self.env_runner.config.batch_mode)

    @property
    def count_steps_by(self) -> str:
        """`env_steps` or `agent_steps`."""
        return str(self.env_runner.config.count_steps_by)

    @property
    def compress_observations(self) -> bool:
        """Whether observations are compressed."""
        return bool(self.policy_config.get("compress_observations", False))

    @property
    def rollout_fragment_length(self) -> int:
        """The number of steps of each environment in a sample."""
        index = self.worker_index
        return int(self.env_runner.config.get_rollout_fragment_length(worker_index=index))

    sample_batch_size = rollout_fragment_length

    @property
    def total_rollout_fragment_length(self) -> int:
        """The number of steps of all environments in a sample."""
        return self.rollout_fragment_length * int(self.env_runner.num_envs)

    @property
    def spaces(self) -> dict[str, Any]:
        """The observation and action space by policy."""
        found: dict[str, Any] = self.env_runner.get_spaces()
        return found

    @property
    def seed(self) -> int | None:
        """The seed of the config."""
        found: int | None = self.env_runner.config.seed
        return found

    @property
    def weights_seq_no(self) -> int:
        """The sequence number of its weights."""
        return env_runners.number_of_weights(self.env_runner)

    @property
    def log_dir(self) -> str:
        """The folder of its trainer's files; empty without a trainer."""
        return "" if self.policies is None else self.policies.logdir

    @property
    def io_context(self) -> Any:
        """The context for input readers and output writers."""
        from ray.rllib.offline import IOContext

        return IOContext(None, self.env_runner.config, self.worker_index, self)

    def creation_args(self) -> dict[str, Any]:
        """Returns the constructor arguments of an old rollout worker."""
        return creation_args(self)

    # The machine

    def apply(self, func: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Calls `func` with this worker."""
        return func(self, *args, **kwargs)

    def get_host(self) -> str:
        """Returns the name of its machine."""
        return socket.gethostname()

    def get_node_ip(self) -> str:
        """Returns the IP address of its machine."""
        import ray

        return str(ray.util.get_node_ip_address())

    def find_free_port(self) -> int:
        """Returns an unused port of its machine."""
        with socket.socket() as found:
            found.bind(("", 0))
            return int(found.getsockname()[1])

    # State

    def get_global_vars(self) -> dict[str, Any]:
        """Returns the training's progress: the sampled steps, as `timestep`."""
        return self.global_vars

    def set_global_vars(
        self, global_vars: Mapping[str, Any], policy_ids: Collection[str] | None = None
    ) -> None:
        """Sets the training's progress, also in the policies."""
        self.global_vars = dict(global_vars)
        for policy_id in policy_ids if policy_ids is not None else self.policy_map:
            self.policy_map[policy_id].on_global_var_update(self.global_vars)

    @property
    def filters(self) -> dict[str, Any]:
        """The observation filter of each policy; one that is set gives it its statistics."""
        from ray.rllib.utils.filter import NoFilter

        connector = ray_connectors.filter_connector(self.env_runner)
        if hasattr(connector, "add_filters"):
            modules = {policy: self.env_runner.module[policy] for policy in self.policy_map}
            connector.add_filters({key: one.observation_space for key, one in modules.items()})
        found = ray_connectors.observation_filters(self.env_runner)
        return _Filters(
            (policy, found.get(policy) or found.get(None) or NoFilter())
            for policy in self.policy_map
        )

    @property
    def observation_filter(self) -> str:
        """The name of the observation filter."""
        return next((type(one).__name__ for one in self.filters.values()), "NoFilter")

    def get_filters(self, flush_after: bool = False) -> dict[str, Any]:
        """Returns copies of the filters; a flush clears their counts of new observations."""
        found = self.filters
        copies = {policy: copy.deepcopy(one.as_serializable()) for policy, one in found.items()}
        for one in found.values() if flush_after else ():
            one.reset_buffer()
        return copies

    def sync_filters(self, new_filters: Mapping[str, Any]) -> None:
        """Sets the filters' statistics to those of other filters."""
        for policy, own in self.filters.items():
            own.sync(new_filters[policy])

    def get_weights(self, policies: Any = None) -> dict[str, Any]:
        """Returns the weights by policy."""
        return {
            policy_id: policy.get_weights()
            for policy_id, policy in self.policy_map.items()
            if policies is None or policy_id in policies
        }

    def set_weights(
        self,
        weights: Mapping[str, Any],
        global_vars: Mapping[str, Any] | None = None,
        weights_seq_no: int | None = None,  # noqa: ARG002 - the learners number them
    ) -> None:
        """Sets weights by policy.

        In a trainer's local worker, this sets the learners' weights. In any other worker, they
        apply until the learners send theirs.
        """
        for policy_id, values in weights.items():
            self.policy_map[policy_id].set_weights(values)
        if global_vars:
            self.set_global_vars(global_vars)

    def export_policy_model(
        self, export_dir: str, policy_id: str = ONLY_POLICY, onnx: int | None = None
    ) -> Any:
        """Exports a policy's network; see `Trainer.export_policy_model`."""
        return self.policy_map[policy_id].export_model(export_dir, onnx)

    def export_policy_checkpoint(
        self, export_dir: str, filename_prefix: str = "model", policy_id: str = ONLY_POLICY
    ) -> Any:
        """Exports a policy as a checkpoint; see `Trainer.export_policy_checkpoint`."""
        return self.policy_map[policy_id].export_checkpoint(export_dir, filename_prefix)

    def save(self) -> bytes:
        """Returns weights and progress as bytes for `restore`."""
        state = {"weights": self.get_weights(), "global_vars": self.global_vars}
        return pack(state)

    def restore(self, objs: bytes) -> None:
        """Restores the bytes that `save` returned; they are data, and no code is run."""
        state = unpack(objs, where="worker.restore()")
        self.set_weights(state["weights"], state["global_vars"])

    def earlier_chunks(self, episode_id: object) -> list[Any]:
        """Returns the chunks of an ongoing episode that earlier samples had."""
        return env_runners.earlier_chunks(self.env_runner, episode_id)

    def keeps_observations(self) -> bool:
        """Whether episodes have the environment's observations: no connector replaces them."""
        connectors = ray_connectors.env_to_module(self.env_runner).connectors
        return not any(map(ray_connectors.replaces_observations, connectors))

    def action_space(self, policy_id: str) -> Any:
        """Returns the action space of a policy."""
        return self.policy_map[policy_id].action_space

    def sub_environments(self) -> list[Any]:
        """Returns the environments with this package's wrappers."""
        env = self.env_runner.env
        unwrapped = getattr(env, "unwrapped", env)
        return [e.unwrapped for e in list_environments(unwrapped)]

    def __dir__(self) -> list[str]:
        return [*names_with(self, "worker", self.env_runner), *old_stack.ITERATOR]

    def __getattr__(self, name: str) -> Any:
        if name in GONE["worker"] or name.startswith("_") or name == "env_runner":
            raise missing(self, "worker", name)
        if name in old_stack.ITERATOR:
            if self._iterator is None:
                self._iterator = old_stack.worker_iterator(self.sample)
            return getattr(self._iterator, name)
        return getattr(self.env_runner, name)


def as_legacy(env_runner: EnvRunner) -> Any:
    """Returns the worker around an env runner; on the old API stack, that is the env runner."""
    return worker_of(env_runner) if hasattr(env_runner, "module") else env_runner


def worker_of(env_runner: EnvRunner) -> LegacyWorker:
    """Returns the worker around an env runner of the new API stack, always the same object."""
    known: dict[str, Any] = vars(env_runner)
    worker: LegacyWorker = known.setdefault("legacy_worker", LegacyWorker(env_runner))
    return worker


#: Argument → its default. The config's key has the same name.
_OF_CONFIG: dict[str, Any] = {
    "disable_env_checking": False,
    "input_evaluation": [],
    "log_level": "WARN",
    "no_done_at_end": False,
    "preprocessor_pref": "deepmind",
    "remote_env_batch_wait_ms": 0,
    "sample_async": False,
    "soft_horizon": False,
}
#: Argument → the config's key.
_RENAMED = {
    "episode_horizon": "horizon",
    "extra_python_environs": "extra_python_environs_for_worker",
    "model_config": "model",
}
#: Arguments that are attributes of the worker.
_OWN = (
    "batch_mode",
    "compress_observations",
    "count_steps_by",
    "env_creator",
    "fake_sampler",
    "num_workers",
    "observation_filter",
    "recreated_worker",
    "rollout_fragment_length",
    "seed",
    "worker_index",
)
#: Arguments that are attributes of its env runner's config.
_OF_RUNNER = ("clip_actions", "clip_rewards", "normalize_actions", "remote_worker_envs")
#: Before `_CLASS`, a single policy was given as its class; before `_POLICY`, as `policy`.
_CLASS, _POLICY = Version("1.4"), Version("1.0")


def creation_args(worker: Any) -> dict[str, Any]:
    """Returns the constructor arguments of an old rollout worker.

    Functions such as `input_creator` return the worker's own objects; `tf_session_creator` raises.
    """
    config = worker.policy_config
    agents = config.get("multiagent") or {}
    ray = worker.legacy_ray
    one_class = ray is not None and ray < _CLASS and not worker.multiagent
    policies = type(worker.get_policy()) if one_class else worker.policy_dict
    named_policy = ray is not None and ray < _POLICY

    def make_session() -> Any:
        raise missing(worker, "policy", "get_session")

    return {
        **{name: getattr(worker, name) for name in _OWN},
        **{name: getattr(worker.env_runner.config, name) for name in _OF_RUNNER},
        **{name: config.get(name, default) for name, default in _OF_CONFIG.items()},
        **{name: config.get(key) for name, key in _RENAMED.items()},
        "_fake_sampler": False,
        "callbacks": type(worker.callbacks),
        "env_config": dict(worker.env_context),
        "input_creator": lambda _: worker.input_reader,
        "log_dir": worker.log_dir,
        "monitor_path": None,
        "num_envs": worker.env_runner.num_envs,
        "observation_fn": agents.get("observation_fn"),
        "output_creator": lambda _: worker.output_writer,
        "policies_to_train": agents.get("policies_to_train"),
        "policy": policies if named_policy else None,
        "policy_config": config,
        "policy_mapping_fn": agents.get("policy_mapping_fn"),
        "policy_spec": None if named_policy else policies,
        "record_env": bool(config.get("record_env", False)),
        "spaces": None,
        "tf_session_creator": make_session,
        "validate_env": None,
    }
