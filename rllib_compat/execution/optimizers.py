"""The policy optimizers of Ray 0.5 – 0.8: objects that sample with workers and train.

They use workers of the old API stack: those of a trainer, or of the user's own `WorkerSet`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from rllib_compat.execution.common import gradients_of
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.runtime.policy_mapping import ONLY_POLICY

if TYPE_CHECKING:
    from rllib_compat.trainer.workers import Workers

#: A timer → the names of its time and its throughput in `stats()`.
_TIMES = {
    "sample": ("sample_time_ms", "sample_peak_throughput"),
    "load": ("load_time_ms", None),
    "grad": ("grad_time_ms", "opt_peak_throughput"),
    "replay": ("replay_time_ms", None),
    "update": ("update_time_ms", None),
}


class PolicyOptimizer:
    """The base of all policy optimizers, which counts and reports; a subclass defines `step`.

    Attributes:
        workers: The workers.
        num_steps_sampled: The number of sampled environment steps.
        num_steps_trained: The number of trained environment steps.
        learner_stats: The policies' last statistics.
        episode_history: The last episodes, for results with too few new ones.
        names_policies: Whether the statistics of a single policy have its id.
    """

    names_policies = False

    def __init__(self, workers: Workers) -> None:
        from ray.util.timer import _Timer

        self.workers = workers
        self.num_steps_sampled = self.num_steps_trained = 0
        self.learner_stats: dict[str, Any] = {}
        self.episode_history: list[Any] = []
        self.to_be_collected: list[Any] = []
        self._timers = {name: _Timer() for name in _TIMES}

    def step(self) -> Any:
        """Samples and trains once."""
        raise NotImplementedError

    def stats(self) -> dict[str, Any]:
        """Returns counters, times and the policies' last statistics."""
        stats: dict[str, Any] = {
            "num_steps_sampled": self.num_steps_sampled,
            "num_steps_trained": self.num_steps_trained,
            "opt_samples": round(self._timers["grad"].mean_units_processed, 3),
            "learner": self.learner_stats,
        }
        for name, (time, throughput) in _TIMES.items():
            stats[time] = round(1000 * self._timers[name].mean, 3)
            if throughput:
                stats[throughput] = round(self._timers[name].mean_throughput, 3)
        return stats

    def collect_metrics(
        self, timeout_seconds: float, min_history: int = 100, selected_workers: Any = None
    ) -> dict[str, Any]:
        """Returns a result of the episodes since the last call, with the statistics as `info`.

        Earlier episodes fill the result up to `min_history`.
        """
        import ray
        from ray.rllib.evaluation.metrics import summarize_episodes

        remote = self.workers.remote_workers() if selected_workers is None else selected_workers
        asked = [worker.get_metrics.remote() for worker in remote]
        lists = ray.get(asked, timeout=timeout_seconds) if asked else []  # ray.get() starts Ray
        lists.append(self.workers.local_worker().get_metrics())
        new = [episode for of_worker in lists for episode in of_worker]
        kept = max(0, min_history - len(new))
        old = self.episode_history[max(0, len(self.episode_history) - kept) :]
        self.episode_history = [*self.episode_history, *new][-min_history:]
        summary = summarize_episodes(new + old, new)
        return {"off_policy_estimator": {}, **summary, "info": self.stats()}

    def reset(self, remote_workers: object) -> None:
        """Replaces the remote workers."""
        self.workers.reset(remote_workers)

    def foreach_worker(self, func: Any) -> list[Any]:
        """Calls `func(worker)` in all workers."""
        return self.workers.foreach_worker(func)

    foreach_evaluator = foreach_worker

    def foreach_worker_with_index(self, func: Any) -> list[Any]:
        """Calls `func(worker, index)` in all workers."""
        return self.workers.foreach_worker_with_index(func)

    foreach_evaluator_with_index = foreach_worker_with_index

    def save(self) -> list[int]:
        """Returns both counters."""
        return [self.num_steps_trained, self.num_steps_sampled]

    def restore(self, data: Collection[int]) -> None:
        """Restores the counters of `save`."""
        self.num_steps_trained, self.num_steps_sampled = data

    def stop(self) -> None:
        """Drops pending requests; the workers stay."""
        self.to_be_collected = []

    def _send_weights(self) -> None:
        import ray

        with self._timers["update"]:
            others = self.workers.remote_workers()
            if not others:
                return
            trained = self.workers.local_worker()
            held = ray.put(trained.get_weights())
            ray.get([other.set_weights.remote(held) for other in others])

    def _sample(self, least: int) -> Any:
        """Samples with all workers until there are enough steps, and returns one batch."""
        import ray
        from ray.rllib.policy.sample_batch import concat_samples

        timer = self._timers["sample"]
        parts: list[Any] = []
        count = 0
        with timer:
            while not parts or count < least:
                others = self.workers.remote_workers()
                asked = [other.sample.remote() for other in others]
                new = ray.get(asked) if asked else [self.workers.local_worker().sample()]
                count += sum(one.count for one in new)
                parts += new
        batch = concat_samples(parts)
        timer.push_units_processed(batch.count)
        self.num_steps_sampled += batch.count
        return batch

    def _record(self, by_policy: dict[str, Any], steps: int) -> dict[str, Any]:
        """Records an update; most optimizers leave out the id of a single policy."""
        self._timers["grad"].push_units_processed(steps)
        self.num_steps_trained += steps
        stats = {policy: one.get("learner_stats", one) for policy, one in by_policy.items()}
        unnamed = set(stats) == {ONLY_POLICY} and not self.names_policies
        self.learner_stats = stats[ONLY_POLICY] if unnamed else stats
        return self.learner_stats


class SyncSamplesOptimizer(PolicyOptimizer):
    """An optimizer that trains on a batch of samples from all workers.

    A `sgd_minibatch_size` of 0 is the whole batch. `standardize_fields` are scaled to a mean of 0
    and a deviation of 1.
    """

    def __init__(
        self,
        workers: Workers,
        num_sgd_iter: int = 1,
        train_batch_size: int = 1,
        sgd_minibatch_size: int = 0,
        standardize_fields: Collection[str] = frozenset(),
    ) -> None:
        super().__init__(workers)
        self.num_sgd_iter = num_sgd_iter
        self.train_batch_size = train_batch_size
        self.sgd_minibatch_size = sgd_minibatch_size
        self.standardize_fields = standardize_fields

    def step(self) -> dict[str, Any]:
        """Samples and trains once.

        Returns:
            The policies' statistics.
        """
        from ray.rllib.utils.sgd import do_minibatch_sgd

        self._send_weights()
        batch = self._loaded(self._sample(self.train_batch_size))
        local = self.workers.local_worker()
        known = {policy: local.get_policy(policy) for policy in local.get_policies_to_train()}
        passes, size = self.num_sgd_iter, self.sgd_minibatch_size
        fields = list(self.standardize_fields)
        with self._timers["grad"]:
            stats = dict(do_minibatch_sgd(batch, known, local, passes, size, fields))
        return self._record(stats, batch.count)

    def _loaded(self, batch: object) -> Any:
        """Returns the part of a batch to train on: all of it."""
        return batch


class LocalMultiGPUOptimizer(SyncSamplesOptimizer):
    """A `SyncSamplesOptimizer` whose minibatches all have one size, as on GPUs.

    In old Rays, it was for TensorFlow only.

    It ignores settings of workers and GPUs, which workers and config have, and shuffles minibatches
    before each pass.
    """

    names_policies = True

    def __init__(
        self,
        workers: Workers,
        sgd_batch_size: int = 128,
        num_sgd_iter: int = 10,
        rollout_fragment_length: int = 200,
        num_envs_per_worker: int = 1,
        train_batch_size: int = 1024,
        num_gpus: float = 0,
        standardize_fields: Collection[str] = frozenset(),
        shuffle_sequences: bool = True,
        _fake_gpus: bool = False,
    ) -> None:
        del rollout_fragment_length, num_envs_per_worker, num_gpus, shuffle_sequences, _fake_gpus
        super().__init__(
            workers, num_sgd_iter, train_batch_size, sgd_batch_size, standardize_fields
        )

    def _loaded(self, batch: Any) -> Any:
        """Shuffles the steps and cuts them to full minibatches; recurrent policies keep all."""
        from ray.rllib.policy.sample_batch import MultiAgentBatch

        with self._timers["load"]:
            parts = batch.as_multi_agent().policy_batches
            for policy, part in parts.items():
                if not {"state_in_0", "state_out_0"} & part.keys():
                    part.shuffle()
                    size = min(self.sgd_minibatch_size, part.count)
                    parts[policy] = part[: part.count - part.count % size]
            return MultiAgentBatch(parts, sum(part.count for part in parts.values()))


class SyncReplayOptimizer(PolicyOptimizer):
    """An optimizer with a replay buffer of steps.

    `before_learn_on_batch` returns a changed batch for (batch, policies, its size).
    """

    def __init__(
        self,
        workers: Workers,
        learning_starts: int = 1000,
        buffer_size: int = 10000,
        prioritized_replay: bool = True,
        prioritized_replay_alpha: float = 0.6,
        prioritized_replay_beta: float = 0.4,
        prioritized_replay_eps: float = 1e-6,
        train_batch_size: int = 32,
        before_learn_on_batch: Any = None,
        **_: object,
    ) -> None:
        from rllib_compat.execution.replay_buffer import LocalReplayBuffer

        super().__init__(workers)
        self.replay_starts = learning_starts
        self.train_batch_size = train_batch_size
        self.before_learn_on_batch = before_learn_on_batch
        self.prioritized_replay = prioritized_replay
        self.replay_buffer = LocalReplayBuffer(
            learning_starts=0,
            capacity=buffer_size,
            replay_batch_size=train_batch_size,
            prioritized_replay_alpha=prioritized_replay_alpha,
            prioritized_replay_beta=prioritized_replay_beta,
            prioritized_replay_eps=prioritized_replay_eps,
        )

    def step(self) -> None:
        """Samples once, and trains if there were enough steps before."""
        self._send_weights()
        starts = self.num_steps_sampled >= self.replay_starts
        self.replay_buffer.add_batch(self._sample(1))
        if not starts:
            return
        local = self.workers.local_worker()
        with self._timers["replay"]:
            batch = self.replay_buffer.replay()
        if self.before_learn_on_batch is not None:
            batch = self.before_learn_on_batch(batch, local.policy_map, self.train_batch_size)
        with self._timers["grad"]:
            stats = dict(local.learn_on_batch(batch))
        if self.prioritized_replay:  # otherwise all steps keep the initial priority
            self.replay_buffer.update_priorities(
                {
                    policy: (batch.policy_batches[policy]["batch_indexes"], one["td_error"])
                    for policy, one in stats.items()
                }
            )
        self._record(stats, batch.count)
        self.learner_stats = {name: one.get("learner_stats", one) for name, one in stats.items()}


class SyncBatchReplayOptimizer(PolicyOptimizer):
    """An optimizer with a replay buffer of complete samples."""

    def __init__(
        self,
        workers: Workers,
        learning_starts: int = 1000,
        buffer_size: int = 10000,
        train_batch_size: int = 32,
    ) -> None:
        super().__init__(workers)
        self.learning_starts = learning_starts
        self.max_buffer_size = buffer_size
        self.train_batch_size = train_batch_size
        self.replay_buffer: deque[Any] = deque()

    def step(self) -> dict[str, Any]:
        """Samples once, and trains on samples of the buffer."""
        from ray.rllib.policy.sample_batch import concat_samples

        self._send_weights()
        self.replay_buffer.append(self._sample(1))
        while sum(batch.count for batch in self.replay_buffer) > self.max_buffer_size:
            self.replay_buffer.popleft()
        if self.num_steps_sampled < self.learning_starts:
            return {}
        batches: list[Any] = []
        while sum(batch.count for batch in batches) < self.train_batch_size:
            batches.append(random.choice(self.replay_buffer))  # noqa: S311 - no secret
        batch = concat_samples(batches)
        with self._timers["grad"]:
            stats = dict(self.workers.local_worker().learn_on_batch(batch))
        return self._record(stats, batch.count)


class AsyncGradientsOptimizer(PolicyOptimizer):
    """An optimizer that applies workers' gradients as they arrive, and sends them new weights."""

    def __init__(self, workers: Workers, grads_per_step: int = 100) -> None:
        super().__init__(workers)
        self.grads_per_step = grads_per_step

    def step(self) -> None:
        """Applies `grads_per_step` gradients."""
        import ray

        local = self.workers.local_worker()
        self._send_weights()
        pending = {worker.apply.remote(_gradients): worker for worker in self._remote()}
        for left in range(self.grads_per_step, 0, -1):
            (ready,), _ = ray.wait(list(pending), num_returns=1)
            worker = pending.pop(ready)
            (gradients, stats), steps = ray.get(ready)
            with self._timers["grad"]:
                local.apply_gradients(gradients)
            self.num_steps_sampled += steps
            self._record(stats, steps)
            if left > len(pending) + 1:
                worker.set_weights.remote(local.get_weights())
                pending[worker.apply.remote(_gradients)] = worker

    def _remote(self) -> list[Any]:
        if remote := self.workers.remote_workers():
            return remote
        raise ConfigError(
            "AsyncGradientsOptimizer needs remote workers, and there are none.",
            where="AsyncGradientsOptimizer(workers)",
            fix="set num_workers to at least 1",
        )


# At module level, so that it is pickled by name.
def _gradients(worker: Any) -> Any:
    batch = worker.sample()
    return gradients_of(worker, batch), batch.count


def collect_samples(
    agents: Sequence[Any],
    rollout_fragment_length: int,
    num_envs_per_worker: int,
    train_batch_size: int,
) -> Any:
    """Samples with remote workers until there are enough steps, and returns one batch."""
    import ray
    from ray.rllib.policy.sample_batch import concat_samples

    pending = {agent.sample.remote(): agent for agent in agents}
    parts: list[Any] = []
    while pending:
        (ready,), _ = ray.wait(list(pending))
        agent = pending.pop(ready)
        parts.append(ray.get(ready))
        to_come = len(pending) * rollout_fragment_length * num_envs_per_worker
        if sum(part.count for part in parts) + to_come < train_batch_size:
            pending[agent.sample.remote()] = agent
    return concat_samples(parts)


def make_divisible_by(a: Any, n: int) -> Any:
    """Rounds a number down to a multiple of `n`, or cuts an array to such a length."""
    return a - a % n if isinstance(a, int) else a[: len(a) - len(a) % n]
