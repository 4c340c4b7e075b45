"""Parts of old trainers beside `execution`: updates, policy classes, requests to workers."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import ray
from ray.rllib.utils.replay_buffers import MultiAgentReplayBuffer

from rllib_compat.execution.common import _get_global_vars, _get_shared_metrics
from rllib_compat.execution.replay_ops import MixInReplay
from rllib_compat.execution.rollout_ops import ConcatBatches, ParallelRollouts
from rllib_compat.trainer import stock_policies

logger = logging.getLogger(__name__)

#: A replay buffer in its own actor.
ReplayActor = ray.remote(num_cpus=0)(MultiAgentReplayBuffer)


def _policy_class(stem: str) -> Callable[[Mapping[str, Any]], type]:
    def get_policy_class(config: Mapping[str, Any]) -> type:
        """The algorithm's policy for the framework of a config."""
        torch = config.get("use_pytorch") or config.get("framework") == "torch"
        return stock_policies.policy_class(f"{stem}{'Torch' if torch else 'TF'}Policy")

    return get_policy_class


#: The stem of policies' names → `get_policy_class` of that module.
get_policy_class_of = SimpleNamespace(
    **{
        stem: _policy_class(stem)
        for stem in (
            *("A3C", "APPO", "ARS", "CQL", "DDPG", "DQN", "ES", "Impala", "MARWIL", "PG", "PPO"),
            *("R2D2", "SAC", "SimpleQ"),
        )
    }
)


def _tf_policy_class(stem: str) -> Callable[..., type]:
    def get_tf_policy(name: str, base: object) -> type:
        """The algorithm's policy, which can be named in a config that trains with torch."""
        return type(name, (stock_policies.policy_class(f"{stem}TFPolicy"),), {})

    return get_tf_policy


#: The stem of policies' names → `get_…_tf_policy` of that module (Ray 2.1 – 2.3).
get_tf_policy_of = SimpleNamespace(
    **{stem: _tf_policy_class(stem) for stem in ("A3C", "DDPG", "MAML", "PG", "SimpleQ")}
)


def _stats(fetches: Mapping[str, Any], policy_id: str) -> Mapping[str, Any]:
    found = fetches[policy_id]
    stats: Mapping[str, Any] = found.get("learner_stats", found)
    return stats


def _update_each(worker: Any, fetches: Mapping[str, Any]) -> None:
    for_each = getattr(worker, "foreach_policy_to_train", None) or worker.foreach_trainable_policy

    def update(policy: Any, policy_id: str) -> None:
        if policy_id in fetches:
            policy.update_kl(_stats(fetches, policy_id)["kl"])
        else:
            logger.warning(
                "The policy %r has no results: its KL coefficient does not change.",
                policy_id,
            )

    for_each(update)


class UpdateKL:
    """Updates the KL coefficient of each policy by the results of the last update."""

    def __init__(self, workers: Any) -> None:
        self.workers = workers

    def __call__(self, fetches: Mapping[str, Any]) -> None:
        """Takes the results of `TrainOneStep`."""
        _update_each(self.workers.local_worker(), fetches)


class UpdateTargetAndKL:
    """The same for APPO, which also updates the target network.

    Args:
        workers: The workers.
        config: The config, with `num_sgd_iter`, `minibatch_buffer_size` and `use_kl_loss`.
    """

    def __init__(self, workers: Any, config: Mapping[str, Any]) -> None:
        self.workers, self.config, self.update_kl = workers, config, UpdateKL(workers)
        self.target_update_freq = config["num_sgd_iter"] * config["minibatch_buffer_size"]

    def __call__(self, fetches: Mapping[str, Any]) -> None:
        """Takes the learner's results."""
        counters = _get_shared_metrics().counters
        now = counters["num_steps_sampled"]
        since = now - counters["last_target_update_ts"]
        if since <= self.target_update_freq:
            return
        self.workers.local_worker().foreach_policy_to_train(_update_target)
        counters["num_target_updates"] += 1
        if self.config["use_kl_loss"]:
            self.update_kl(fetches)
        counters["last_target_update_ts"] = now


def _update_target(policy: Any, _: object) -> None:
    policy.update_target()


class _SendWeights:
    """Sends the weights of a learner thread to the worker that sampled a batch."""

    def __init__(self, learner_thread: Any, workers: Any) -> None:
        self.learner_thread, self.workers = learner_thread, workers
        self.weights: Any = None

    def _take(self, counter: str | None = None) -> None:
        local = self.workers.local_worker()
        self.weights, self.learner_thread.weights_updated = ray.put(local.get_weights()), False
        if counter:
            _get_shared_metrics().counters[counter] += 1

    def _send(self, actor: Any) -> None:
        known = _get_global_vars()
        actor.set_weights.remote(self.weights, known)
        self.workers.local_worker().set_global_vars(known)


class UpdateWorkerWeights(_SendWeights):
    """Sends weights to a worker that has sampled enough steps since the last time (APEX)."""

    def __init__(self, learner_thread: Any, workers: Any, max_weight_sync_delay: int) -> None:
        super().__init__(learner_thread, workers)
        self.max_weight_sync_delay = max_weight_sync_delay
        self.steps_since_update: defaultdict[Any, int] = defaultdict(int)

    def __call__(self, item: tuple[Any, Any]) -> None:
        """Takes a worker and its batch."""
        actor, batch = item
        known = self.steps_since_update
        known[actor] += batch.count
        if known[actor] < self.max_weight_sync_delay:
            return
        if self.learner_thread.weights_updated or self.weights is None:
            self._take()
        self._send(actor)
        known[actor] = 0
        _get_shared_metrics().counters["num_weight_syncs"] += 1


class BroadcastUpdateLearnerWeights(_SendWeights):
    """Sends weights after each batch, and new ones after some batches (IMPALA)."""

    def __init__(self, learner_thread: Any, workers: Any, broadcast_interval: int) -> None:
        super().__init__(learner_thread, workers)
        self.broadcast_interval, self.steps_since_broadcast = broadcast_interval, 0
        self.weights = workers.local_worker().get_weights()

    def __call__(self, item: tuple[Any, Any]) -> None:
        """Takes a worker and its batch."""
        self.steps_since_broadcast += 1
        due = self.steps_since_broadcast >= self.broadcast_interval
        if due and self.learner_thread.weights_updated:
            self._take("num_weight_broadcasts")
            self.steps_since_broadcast = 0
        self._send(item[0])


def gather_experiences_directly(workers: Any, config: Mapping[str, Any]) -> Any:
    """IMPALA's train batches: sampled asynchronously, some replayed, concatenated.

    Args:
        workers: The workers.
        config: A config with `max_sample_requests_in_flight_per_worker`,
            `replay_buffer_num_slots`, `replay_proportion` and `train_batch_size`.
    """
    pending = config["max_sample_requests_in_flight_per_worker"]
    sampled = ParallelRollouts(workers, mode="async", num_async=pending)
    replayed = MixInReplay(config["replay_buffer_num_slots"], config["replay_proportion"])
    counted_by = (config.get("multiagent") or {}).get("count_steps_by", "env_steps")
    together = ConcatBatches(config["train_batch_size"], counted_by)
    return sampled.for_each(_decompressed).for_each(replayed).flatten().combine(together)


#: Until Ray 2.0, actors concatenated the batches of many workers.
gather_experiences_tree_aggregation = gather_experiences_directly


def _decompressed(batch: Any) -> Any:
    return batch.decompress_if_needed()


class LeagueBuilder:
    """Adds policies to a league after each iteration (AlphaStar); a subclass says which.

    Args:
        trainer: The trainer; since Ray 2.0, `algo`.
        trainer_config: Its config; since Ray 2.0, `algo_config`.
    """

    def __init__(self, trainer: Any, trainer_config: Any) -> None:
        self.trainer = self.algo = trainer
        self.config = trainer_config

    def build_league(self, result: Mapping[str, Any]) -> None:
        """Takes an iteration's result."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {}


class NoLeagueBuilder(LeagueBuilder):
    """Adds no policy."""

    def build_league(self, result: Mapping[str, Any]) -> None:
        """Does nothing."""


def update_kl(trainer: Any, fetches: Mapping[str, Any]) -> None:
    """Updates KL coefficients by the results of one policy or several (Ray 0.5 – 0.8)."""
    worker = trainer.workers.local_worker()
    if "kl" in fetches:
        worker.for_policy(lambda policy: policy.update_kl(fetches["kl"]))
    else:
        _update_each(worker, fetches)


def initialize_target(trainer: Any) -> None:
    """Updates APPO's target networks, and sets how often that is done (Ray 0.7 – 0.8)."""
    _update_targets(trainer)
    config = trainer.config
    trainer.target_update_frequency = config["num_sgd_iter"] * config["minibatch_buffer_size"]


def update_target_and_kl(trainer: Any, fetches: object) -> None:
    """Updates target networks after that many steps of the learner, and KL coefficients."""
    learner = trainer.optimizer.learner
    if learner.num_steps >= trainer.target_update_frequency:
        learner.num_steps = 0
        _update_targets(trainer)
        if trainer.config["use_kl_loss"]:
            update_kl(trainer, learner.stats)


def _update_targets(trainer: Any) -> None:
    worker = trainer.workers.local_worker()
    worker.foreach_trainable_policy(lambda policy, _: policy.update_target())


def warn_about_bad_reward_scales(config: Mapping[str, Any], result: Any) -> Any:
    """Warns if rewards are much larger than `vf_clip_param` of PPO, or the value loss is large.

    Args:
        config: The config; until Ray 1.x, the trainer.
        result: A result, which is returned.
    """
    if result["policy_reward_mean"]:
        return result
    config = getattr(config, "config", config)
    learners, shared = result["info"]["learner"], config.get("model", {}).get("vf_share_layers")
    if "default_policy" in learners:
        stats = _stats(learners, "default_policy")
        loss = config["vf_loss_coeff"] * stats["vf_loss"]
        if (shared or config.get("vf_share_layers")) and loss > 100:
            logger.warning(
                "The value loss is %s, the policy's %s: lower vf_loss_coeff, or share no layers.",
                loss,
                stats["policy_loss"],
            )
    most = config["vf_clip_param"]
    times = round(abs(result["episode_reward_mean"]) / most, 0) if most > 0 else float("inf")
    if times > 200:
        logger.warning(
            "Rewards are %s times as large as vf_clip_param, so that values need as many "
            "iterations to reach them: raise vf_clip_param.",
            times,
        )
    return result


class AsyncRequestsManager:
    """Calls functions on workers without waiting for their results (Ray 2.0 – 2.3)."""

    def __init__(
        self,
        workers: Iterable[Any],
        max_remote_requests_in_flight_per_worker: int = 2,
        ray_wait_timeout_s: float | None = 0.0,
        return_object_refs: bool = False,
    ) -> None:
        self._most = max_remote_requests_in_flight_per_worker
        self._timeout, self._as_refs = ray_wait_timeout_s, return_object_refs
        self._workers = list(workers)
        self._pending: dict[Any, Any] = {}
        self._next = 0

    def _is_free(self, worker: object) -> bool:
        return list(self._pending.values()).count(worker) < self._most

    def call(
        self,
        remote_fn: Callable[..., Any],
        *,
        actor: Any = None,
        fn_args: Sequence[Any] | None = None,
        fn_kwargs: Mapping[str, Any] | None = None,
    ) -> bool:
        """Calls a function on a worker, by default on the next that is free.

        Returns:
            Whether one was free.

        Raises:
            ValueError: The worker is not known.
        """
        if actor is not None and actor not in self._workers:
            raise ValueError(f"{actor} is not known: call add_workers() first.")
        turns = self._workers[self._next :] + self._workers[: self._next]
        asked = turns if actor is None else [actor]
        free = next((worker for worker in asked if self._is_free(worker)), None)
        if actor is None and free is not None:
            self._next = (self._workers.index(free) + 1) % len(self._workers)
        if free is None:
            return False
        reference = free.apply.remote(remote_fn, *(fn_args or ()), **(fn_kwargs or {}))
        self._pending[reference] = free
        return True

    def call_on_all_available(
        self,
        remote_fn: Callable[..., Any],
        *,
        fn_args: Sequence[Any] | None = None,
        fn_kwargs: Mapping[str, Any] | None = None,
    ) -> int:
        """Calls a function on each worker that is free, and says on how many."""
        workers = self._workers
        return sum(
            self.call(remote_fn, actor=worker, fn_args=fn_args, fn_kwargs=fn_kwargs)
            for worker in workers
        )

    def get_ready(self) -> dict[Any, list[Any]]:
        """The results of each worker that are ready."""
        pending = list(self._pending)
        if not pending:
            return {}
        ready, _ = ray.wait(pending, timeout=self._timeout, num_returns=len(pending))
        found = defaultdict(list)
        for reference, value in zip(ready, ready if self._as_refs else ray.get(ready), strict=True):
            found[self._pending.pop(reference)].append(value)
        return dict(found)

    def add_workers(self, new_workers: object) -> None:
        """Adds a worker or several."""
        given = new_workers if isinstance(new_workers, list) else [new_workers]
        self._workers += [worker for worker in given if worker not in self._workers]

    def remove_workers(self, workers: object, remove_in_flight_requests: bool = False) -> None:
        """Removes a worker or several."""
        gone = workers if isinstance(workers, list) else [workers]
        self._workers = [worker for worker in self._workers if worker not in gone]
        self._next = 0
        if remove_in_flight_requests:
            self._pending = {r: w for r, w in self._pending.items() if w not in gone}

    def get_manager_statistics(self) -> dict[str, Any]:
        """How many calls are pending."""
        return {"num_pending_inflight_requests": len(self._pending)}

    @property
    def workers(self) -> frozenset[Any]:
        """The workers."""
        return frozenset(self._workers)


def asynchronous_parallel_requests(
    remote_requests_in_flight: defaultdict[Any, set[Any]],
    actors: Sequence[Any],
    ray_wait_timeout_s: float | None = None,
    max_remote_requests_in_flight_per_actor: float = 2,
    remote_fn: Callable[..., Any] | None = lambda actor: actor.sample(),
    remote_args: Sequence[Any] | None = None,
    remote_kwargs: Sequence[Any] | None = None,
    return_result_obj_ref_ids: bool = False,
    num_requests_to_launch: int | None = 1,
) -> dict[Any, list[Any]]:
    """Calls a function on each actor that is free, and returns what is ready (Ray 1.9 – 1.13).

    Args:
        remote_requests_in_flight: The calls of each actor that are pending; it is changed.
        actors: The actors; each has `apply`.
        ray_wait_timeout_s: How many seconds to wait; None: until one result is ready.
        max_remote_requests_in_flight_per_actor: How many calls one may have at once.
        remote_fn: The function; None: nothing is called.
        remote_args: The arguments for each actor.
        remote_kwargs: The same, by name.
        return_result_obj_ref_ids: Whether to return references.
        num_requests_to_launch: How often to call each.

    Returns:
        Actor → the results of its calls.
    """
    for index, actor in enumerate(actors if remote_fn is not None else ()):
        args = remote_args[index] if remote_args else ()
        by_name = remote_kwargs[index] if remote_kwargs else {}
        pending = remote_requests_in_flight[actor]
        free = max_remote_requests_in_flight_per_actor - len(pending)
        for _ in range(int(max(0, min(free, num_requests_to_launch or 1)))):
            pending.add(actor.apply.remote(remote_fn, *args, **by_name))
    actor_of = {ref: actor for actor in actors for ref in remote_requests_in_flight[actor]}
    first = 0 if ray_wait_timeout_s is None else ray_wait_timeout_s
    ready, _ = ray.wait(list(actor_of), num_returns=len(actor_of), timeout=first)
    if not ready and ray_wait_timeout_s is None:
        ready, _ = ray.wait(list(actor_of), num_returns=1)
    found = defaultdict(list)
    values = ready if return_result_obj_ref_ids else ray.get(ready)
    for reference, value in zip(ready, values, strict=True):
        remote_requests_in_flight[actor_of[reference]].remove(reference)
        found[actor_of[reference]].append(value)
    return found if ready else {}


def wait_asynchronous_requests(
    remote_requests_in_flight: defaultdict[Any, set[Any]], ray_wait_timeout_s: float | None = None
) -> dict[Any, list[Any]]:
    """Returns the results of pending calls that are ready."""
    actors = list(remote_requests_in_flight)
    return asynchronous_parallel_requests(
        remote_requests_in_flight, actors, ray_wait_timeout_s, float("inf"), None
    )
