"""The old API stack (Ray 2.40 – 2.60): its state, workers and episodes, and execution plans."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from rllib_compat.ray_versions import tensorflow
from rllib_compat.ray_versions.connectors import running_stat_state
from rllib_compat.ray_versions.episodes import callbacks_of
from rllib_compat.ray_versions.types import (
    Algorithm,
    AlgorithmConfig,
    EnvRunnerGroup,
    EpisodeV2,
)

#: What of a policy's state is data that its training continues from.
POLICY_STATE = (
    "weights",
    "global_timestep",
    "num_grad_updates",
    "_optimizer_variables",
    "_exploration_state",
)


def set_state_of_old_stack(
    algorithm: Algorithm,
    *,
    policies: Mapping[str, Mapping[str, Any]],
    filters: Mapping[str, Sequence[tuple[int, Any, Any]]],
    counters: Mapping[str, Any],
    iteration: int,
) -> None:
    """Makes an algorithm of the old API stack continue from data; its functions stay its own.

    Filters have, for each leaf, how many observations were seen, their mean, and the sum of squared
    deviations from it.
    """
    own = algorithm.env_runner.filters
    known = algorithm.env_runner.policy_map
    states = {name: dict(state) for name, state in policies.items() if name in known}
    for name, state in states.items():
        tensorflow.make_optimizer_variables(known[name], state)
    worker = {
        "policy_states": states,
        "filters": {name: _with_statistics(own[name], filters.get(name)) for name in own},
    }
    state = {"worker": worker, "counters": defaultdict(int, counters)}
    if algorithm.eval_env_runner_group is not None:
        state["eval_policy_mapping_fn"] = algorithm.eval_env_runner.policy_mapping_fn
    algorithm.__setstate__({**state, "training_iteration": iteration})
    for callbacks in callbacks_of(algorithm):
        callbacks.on_checkpoint_loaded(algorithm=algorithm)


def copy_state(algorithm: Algorithm) -> dict[str, Any]:
    """What `set_state_of_old_stack` changes, as `__setstate__` takes it."""
    whole: Any = algorithm.__getstate__()
    policies = {
        name: {part: copy.deepcopy(value) for part, value in state.items() if part in POLICY_STATE}
        for name, state in whole["worker"]["policy_states"].items()
    }
    filters = copy.deepcopy(whole["worker"]["filters"])
    counted = {part: copy.deepcopy(whole[part]) for part in ("counters", "training_iteration")}
    kept = {part: whole[part] for part in whole.keys() & {"eval_policy_mapping_fn"}}
    return {**kept, **counted, "worker": {"policy_states": policies, "filters": filters}}


def _with_statistics(own: Any, stats: Sequence[tuple[int, Any, Any]] | None) -> Any:
    """A policy's own filter with other statistics."""
    if not stats:
        return own
    import tree
    from ray.rllib.utils.filter import RunningStat

    made = own.as_serializable()  # the concurrent one has a lock
    parts = [RunningStat.from_state(running_stat_state(*stat)) for stat in stats]
    made.running_stats = tree.unflatten_as(own.running_stats, parts)
    return made


# Workers: Ray's connectors (2.0 and later, `connectors/util.py`) know its own observation filters
# by name, and policies that say `is_recurrent`. Before, a filter could be a function of the
# observations' shape, and a policy kept a state if `get_initial_state` gave one.


def agent_steps(episode: EpisodeV2, agent: object) -> int:
    """How many steps of an agent an episode of the old API stack has, which counts no other way."""
    return len(episode._agent_reward_history[agent])


class LegacyPolicyWorker:
    """What a `RolloutWorker` needs to make connectors for policies and filters of old."""

    policy_map: Mapping[str, Any]
    filters: dict[str, Any]

    def _update_filter_dict(self, policy_dict: Mapping[str, Any]) -> None:
        own: dict[str, Any] = {}
        for policy_id in policy_dict:
            policy = self.policy_map[policy_id]
            if policy.agent_connectors is not None:
                continue
            _say_that_it_keeps_a_state(policy)
            if callable(made_by := policy.config.get("observation_filter")):
                own[policy_id] = made_by
                policy.config["observation_filter"] = "NoFilter"
        super()._update_filter_dict(policy_dict)  # type: ignore[misc]
        for policy_id, made_by in own.items():
            policy = self.policy_map[policy_id]
            policy.config["observation_filter"] = made_by
            self.filters[policy_id] = _insert_filter(policy, made_by)


def _say_that_it_keeps_a_state(policy: Any) -> None:
    from ray.rllib.policy.policy import Policy

    says = type(policy).is_recurrent is not Policy.is_recurrent
    if not says and type(policy).get_initial_state is not Policy.get_initial_state:
        policy.is_recurrent = lambda: bool(policy.get_initial_state())


def _insert_filter(policy: Any, made_by: Any) -> Any:
    """Puts a filter of the user's where Ray's are: after preprocessing."""
    from ray.rllib.connectors.agent.state_buffer import StateBufferConnector
    from ray.rllib.connectors.connector import ConnectorContext

    made = made_by(policy.observation_space.shape)
    connector = _connector_class()(ConnectorContext.from_policy(policy), made)
    policy.agent_connectors.insert_before(StateBufferConnector.__name__, connector)
    return made


@cache
def _connector_class() -> type:
    from ray.rllib.connectors.agent.synced_filter import SyncedFilterAgentConnector
    from ray.rllib.policy.sample_batch import SampleBatch

    class OwnFilterConnector(SyncedFilterAgentConnector):  # type: ignore[misc]
        """Calls a filter of the user's own."""

        def __init__(self, ctx: object, made: Callable[..., Any]) -> None:
            super().__init__(ctx)
            self.filter = made

        def transform(self, ac_data: Any) -> Any:
            """Filters observations; they count for its statistics in training only."""
            for column in (SampleBatch.OBS, SampleBatch.NEXT_OBS):
                if column in ac_data.data:
                    observation = ac_data.data[column]
                    ac_data.data[column] = self.filter(observation, update=self._is_training)
            return ac_data

        def to_state(self) -> tuple[str, Any]:
            """Its name; the filter's own state is saved among those of the worker."""
            return type(self).__name__, None

    return OwnFilterConnector


# Episodes: since Ray 2.1 they are `EpisodeV2`, with the same steps in their agents' collectors.

_ONLY_AGENT = "agent0"

_extended_classes: dict[type, type] = {}


def add_legacy_methods(episode: EpisodeV2) -> None:
    """Gives an episode of the old API stack the methods that it has lost; it stays the same one."""
    cls = type(episode)
    if not issubclass(cls, _LegacyEpisodeMethods):
        if cls not in _extended_classes:
            _extended_classes[cls] = type(cls.__name__, (_LegacyEpisodeMethods, cls), {})
        episode.__class__ = _extended_classes[cls]


class _LegacyEpisodeMethods:
    """What an episode knew of its agents' last steps."""

    policy_map: Any
    _agent_collectors: dict[Any, Any]

    def last_observation_for(self, agent_id: object = _ONLY_AGENT) -> Any:
        """What the policy saw last, or None."""
        return self._last("obs", agent_id)

    def last_raw_obs_for(self, agent_id: object = _ONLY_AGENT) -> Any:
        """What the environment gave last, or None; images are as the policy saw them."""
        obs = self._last("obs", agent_id)
        original = getattr(self._policy(agent_id).observation_space, "original_space", None)
        if original is None or obs is None or np.shape(obs) == (original.shape or ()):
            return obs
        from gymnasium.spaces.utils import flatdim, unflatten

        return unflatten(original, obs) if flatdim(original) == np.size(obs) else obs

    def last_action_for(self, agent_id: object = _ONLY_AGENT) -> Any:
        """The last action; zeros before the first."""
        return self._action(agent_id, 1)

    def prev_action_for(self, agent_id: object = _ONLY_AGENT) -> Any:
        """The action before the last; zeros before the second."""
        return self._action(agent_id, 2)

    def last_reward_for(self, agent_id: object = _ONLY_AGENT) -> float:
        """The last reward; 0 before the first."""
        return float(self._last("rewards", agent_id) or 0.0)

    def prev_reward_for(self, agent_id: object = _ONLY_AGENT) -> float:
        """The reward before the last; 0 before the second."""
        return float(self._last("rewards", agent_id, 2) or 0.0)

    def last_done_for(self, agent_id: object = _ONLY_AGENT) -> bool:
        """Whether the agent has come to its end."""
        done: bool = self.is_done(agent_id)  # type: ignore[attr-defined]
        return done

    def last_pi_info_for(self, agent_id: object = _ONLY_AGENT) -> dict[str, Any]:
        """What the policy computed beside its last action."""
        names = ("action_prob", "action_logp", "action_dist_inputs", "vf_preds", "q_values")
        found = {name: self._last(name, agent_id) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def rnn_state_for(self, agent_id: object = _ONLY_AGENT) -> list[Any]:
        """The state after the last step, or the one that the policy begins with."""
        states = []
        for index, initial in enumerate(self._policy(agent_id).get_initial_state()):
            state = self._last(f"state_out_{index}", agent_id)
            states.append(initial if state is None else state)
        return states

    def _policy(self, agent_id: object) -> Any:
        return self.policy_map[self.policy_for(agent_id)]  # type: ignore[attr-defined]

    def _action(self, agent_id: object, back: int) -> Any:
        action = self._last("actions", agent_id, back)
        if action is not None:
            return action
        from ray.rllib.utils.spaces.space_utils import flatten_to_single_ndarray

        like = self._policy(agent_id).action_space.sample()
        return np.zeros_like(flatten_to_single_ndarray(like))

    def _last(self, column: str, agent_id: object, back: int = 1) -> Any:
        """A value of a column, so many steps ago, or None."""
        import tree

        collector = self._agent_collectors.get(agent_id)
        if collector is None or not (parts := collector.buffers.get(column)):
            return None
        # What the policy is still to compute has a place already.
        back += int(column in collector.data_cols_with_dummy_values)
        if len(parts[0]) < back:
            return None
        values = [part[-back] for part in parts]
        struct = collector.buffer_structs.get(column)
        if struct is None or len(values) == 1:
            return values[0]
        return tree.unflatten_as(struct, values)


# Execution plans (Ray 0.8.5 – 1.13): their iterators are still in Ray, below `ray.util`.

# A counter of plans → the algorithm's.
_COUNTERS = {
    "num_steps_sampled": "num_env_steps_sampled",
    "num_agent_steps_sampled": "num_agent_steps_sampled",
    "num_steps_trained": "num_env_steps_trained",
    "num_agent_steps_trained": "num_agent_steps_trained",
    "num_target_updates": "num_target_updates",
    "last_target_update_ts": "last_target_update_ts",
}


def plan_iterator(make: Callable[[], Iterator[Any]], **counters: int) -> Any:
    """An iterator with the methods that plans are made of, `for_each` and the like."""
    from ray.util.iter import LocalIterator
    from ray.util.iter_metrics import SharedMetrics

    def base(timeout: object = None) -> Iterator[Any]:
        del timeout
        return make()

    metrics = SharedMetrics()
    metrics.get().counters.update(counters)
    return LocalIterator(base, metrics)


#: What a worker was, besides, as one of the iterators that plans are made of (Ray 0.8 – 2.x).
ITERATOR = (
    "item_generator",
    "local_it",
    "next_ith_buffer",
    "par_iter_init",
    "par_iter_next",
    "par_iter_next_batch",
    "par_iter_slice",
    "par_iter_slice_batch",
    "transforms",
)


def worker_iterator(sample: Callable[[], Any]) -> Any:
    """The iterator over a worker's samples, which has the members of `ITERATOR`."""
    from ray.util.iter import ParallelIteratorWorker

    def samples() -> Iterator[Any]:
        while True:
            yield sample()

    return ParallelIteratorWorker(samples, False)


def add_legacy_batch_names() -> None:
    """Lets Ray's batches answer to what they had until Ray 1.2.

    `total()` was the agents' steps of a batch of several policies (0.8); `data` the columns. Rows
    and `data` have `dones` again, which is `terminateds` since Ray 2.1; `concat_samples` raises
    since Ray 2.x as a method, and is a function. `batch["dones"]` can be set again: Ray raises a
    KeyError, and does not say that it has the column.
    """
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch, concat_samples

    if hasattr(SampleBatch, "dont_check_lens"):
        return  # it was done
    rows = SampleBatch.rows
    SampleBatch.__contains__ = lambda batch, name: dict.__contains__(
        batch, "terminateds" if isinstance(name, str) and name == "dones" else name
    )
    SampleBatch.__setitem__ = _takes_dones(SampleBatch.__setitem__)
    MultiAgentBatch.total = MultiAgentBatch.agent_steps
    MultiAgentBatch.concat_samples = SampleBatch.concat_samples = staticmethod(concat_samples)
    SampleBatch.rows = lambda batch: map(_with_dones, rows(batch))
    SampleBatch.data = property(lambda batch: _with_dones(dict(batch)))
    SampleBatch.seq_lens = property(lambda batch: dict.get(batch, SampleBatch.SEQ_LENS))
    SampleBatch.new_columns = property(lambda batch: list(batch.added_keys))
    SampleBatch.dont_check_lens = False


def _takes_dones(put: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    def set_column(batch: Any, name: Any, column: Any) -> None:
        put(batch, "terminateds" if isinstance(name, str) and name == "dones" else name, column)

    return set_column


def _with_dones(columns: dict[str, Any]) -> dict[str, Any]:
    if "terminateds" in columns:
        columns.setdefault("dones", columns["terminateds"])
    return columns


def keep_sizes_of_lstms_integers() -> None:
    """Lets networks of the old API stack give an LSTM the actions before.

    How many numbers those are is one of numpy's (Gymnasium's `Discrete.n`), and torch takes none.
    """
    from ray.rllib.models.torch.recurrent_net import LSTMWrapper

    def size(model: object) -> int:
        return int(vars(model)["action_dim"])

    def set_size(model: Any, size: Any) -> None:
        vars(model)["action_dim"] = int(size)

    LSTMWrapper.action_dim = property(size, set_size)


def register_remote_env(config: AlgorithmConfig) -> None:
    """Lets environments of a class be actors: of one without a name, Ray asks for gym 0.21."""
    from ray.tune.registry import register_env

    env = config.env
    if isinstance(env, type) and config.remote_worker_envs:
        name = f"{env.__module__}.{env.__qualname__}"
        register_env(name, env)
        config.environment(env=name)


def patch_multi_agent_batches() -> None:
    """Lets batches of several policies take what MARWIL and BC give them.

    Those ask every batch for its parts by policy, and name the one that it is of; a batch of
    several has no such argument (all releases), so that no config with several policies trained.
    """
    from ray.rllib.policy.sample_batch import MultiAgentBatch

    def as_multi_agent(batch: object, module_id: str | None = None) -> Any:
        del module_id  # it knows them
        return batch

    MultiAgentBatch.as_multi_agent = as_multi_agent


def not_ready() -> Any:
    """The item that says that there is none yet, and that others may continue."""
    from ray.util.iter import _NextValueNotReady

    return _NextValueNotReady()


def plan_metrics() -> Any:
    """Counters, timers and infos of the plan whose item is being made."""
    from ray.util.iter import LocalIterator

    return LocalIterator.get_metrics()


def with_steps(algorithm: type) -> type:
    """The algorithm's class, with steps that `algorithm.legacy_step()` takes."""

    def training_step(self: Any) -> Any:
        return self.legacy_step()

    members = {"training_step": training_step, "own_step": algorithm.training_step}  # type: ignore[attr-defined]
    return type(algorithm.__name__, (algorithm,), members)


def own_step(algorithm: Algorithm) -> Any:
    """Takes a step of the algorithm itself, whose class may have other steps now."""
    return getattr(algorithm, "own_step", algorithm.training_step)()


def counters_of(algorithm: Algorithm) -> Any:
    """What an algorithm of the old API stack counts, by name."""
    return algorithm._counters


def timers_of(algorithm: Algorithm) -> Any:
    """What an algorithm of the old API stack times, by name."""
    return algorithm._timers


def next_of_plan(algorithm: Algorithm, plan: Any) -> Any:
    """The next item of a plan, whose counters are the algorithm's, which checkpoints hold."""
    counters = algorithm._counters
    metrics = plan.shared_metrics.get() if hasattr(plan, "shared_metrics") else None
    if metrics is None:
        return next(plan)
    metrics.counters.update({ours: counters[theirs] for ours, theirs in _COUNTERS.items()})
    item = next(plan)
    metrics = plan.shared_metrics.get()
    counters.update({theirs: metrics.counters[ours] for ours, theirs in _COUNTERS.items()})
    return item


def train_one_step(algorithm: Algorithm, batch: object, policies: object = None) -> Any:
    """Learns from a batch in an algorithm of Ray's, on the old API stack."""
    from ray.rllib.execution.train_ops import train_one_step as train

    return train(algorithm, batch, policies)


def sample_synchronously(group: EnvRunnerGroup, **arguments: object) -> Any:
    """Samples in all env runners of a group, on the old API stack."""
    from ray.rllib.execution.rollout_ops import synchronous_parallel_sample

    return synchronous_parallel_sample(worker_set=group, **arguments)


def take_metrics_from(worker: Any, metrics: Callable[[], list[Any]]) -> None:
    """Lets a worker's metrics of episodes come from elsewhere: it has sampled none itself."""
    if worker.sampler is None:  # a worker without an environment
        worker.sampler = _Metrics()
    worker.sampler.get_metrics = metrics


class _Metrics:
    """A sampler that has nothing but metrics."""

    get_metrics: Callable[[], list[Any]]


def worker_with_env(worker: Any, env: Any) -> Any:
    """Another worker with the policies of one, which samples from an environment of its own."""
    given = worker.creation_args()
    config = given["config"].copy(copy_frozen=False)
    config.input_, config.output = "sampler", None
    config.num_envs_per_env_runner = 1
    made = type(worker)(**{**given, "env_creator": lambda _: env, "config": config})
    made.set_weights(worker.get_weights(), worker.get_global_vars())
    return made


def reads_h5(policy: Any) -> bool:
    """Whether a policy's model has a method that reads weights; Ray's own raises a ValueError."""
    from ray.rllib.models import ModelV2

    model = getattr(policy, "model", None)
    return not isinstance(model, ModelV2) or (
        type(model).import_from_h5 is not ModelV2.import_from_h5
    )


def observation_space_of(policy: Any) -> Any:
    """The space of what a policy's environment shows, before any preprocessor."""
    return getattr(policy.observation_space, "original_space", policy.observation_space)
