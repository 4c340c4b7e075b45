"""Policy optimizers of Ray 0.5 – 0.8: a loop over workers that samples and learns, as an object.

They work with workers of the old API stack: those of a trainer, or a `WorkerSet` of one's own.
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

#: What is timed → the name of the time, and that of the throughput, in `stats()`.
_TIMES = {
    "sample": ("sample_time_ms", "sample_peak_throughput"),
    "load": ("load_time_ms", None),
    "grad": ("grad_time_ms", "opt_peak_throughput"),
    "replay": ("replay_time_ms", None),
    "update": ("update_time_ms", None),
}


class PolicyOptimizer:
    """What all of them count and tell; a subclass says what a step is.

    Attributes:
        workers: The same.
        num_steps_sampled: The env steps that were sampled so far.
        num_steps_trained: Those that were learned from.
        learner_stats: What the policies told last.
        episode_history: The last episodes, which fill up what is told of new ones.
        names_policies: Whether the stats of the only policy have its name, too.
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
        """Samples and learns once."""
        raise NotImplementedError

    def stats(self) -> dict[str, Any]:
        """Counters, times and what the policies told last."""
        told: dict[str, Any] = {
            "num_steps_sampled": self.num_steps_sampled,
            "num_steps_trained": self.num_steps_trained,
            "opt_samples": round(self._timers["grad"].mean_units_processed, 3),
            "learner": self.learner_stats,
        }
        for name, (time, throughput) in _TIMES.items():
            told[time] = round(1000 * self._timers[name].mean, 3)
            if throughput:
                told[throughput] = round(self._timers[name].mean_throughput, 3)
        return told

    def collect_metrics(
        self, timeout_seconds: float, min_history: int = 100, selected_workers: Any = None
    ) -> dict[str, Any]:
        """A result: of the episodes since the last call, and the stats below `info`.

        Args:
            timeout_seconds: How long to wait for workers.
            min_history: How many episodes are told of at least, if there were so many.
            selected_workers: The remote workers that are asked; None for all.
        """
        import ray
        from ray.rllib.evaluation.metrics import summarize_episodes

        remote = self.workers.remote_workers() if selected_workers is None else selected_workers
        asked = [worker.get_metrics.remote() for worker in remote]
        told = ray.get(asked, timeout=timeout_seconds) if asked else []  # any call starts a Ray
        told.append(self.workers.local_worker().get_metrics())
        new = [episode for of_worker in told for episode in of_worker]
        kept = max(0, min_history - len(new))
        old = self.episode_history[max(0, len(self.episode_history) - kept) :]
        self.episode_history = [*self.episode_history, *new][-min_history:]
        told = summarize_episodes(new + old, new)
        return {"off_policy_estimator": {}, **told, "info": self.stats()}

    def reset(self, remote_workers: Any) -> None:
        """Goes on with other remote workers."""
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
        """Both counters."""
        return [self.num_steps_trained, self.num_steps_sampled]

    def restore(self, data: Collection[int]) -> None:
        """Goes on counting from what `save` returned."""
        self.num_steps_trained, self.num_steps_sampled = data

    def stop(self) -> None:
        """Lets go of what is waited for; the workers stay."""
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
        """Batches of all workers, until there are so many steps, in one."""
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

    def _note(self, told: dict[str, Any], steps: int) -> dict[str, Any]:
        """Notes what was learned; most tell the only policy's stats without its name."""
        self._timers["grad"].push_units_processed(steps)
        self.num_steps_trained += steps
        told = {policy: stats.get("learner_stats", stats) for policy, stats in told.items()}
        unnamed = set(told) == {ONLY_POLICY} and not self.names_policies
        self.learner_stats = told[ONLY_POLICY] if unnamed else told
        return self.learner_stats


class SyncSamplesOptimizer(PolicyOptimizer):
    """Waits for all workers, and learns from what they sampled together.

    Args:
        workers: The workers.
        num_sgd_iter: How often a batch is gone through.
        train_batch_size: How many steps it has at least.
        sgd_minibatch_size: The minibatches' size; 0: the whole batch at once.
        standardize_fields: The columns that get a mean of 0 and a deviation of 1.
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
        """Samples and learns once.

        Returns:
            What the policies told.
        """
        from ray.rllib.utils.sgd import do_minibatch_sgd

        self._send_weights()
        batch = self._loaded(self._sample(self.train_batch_size))
        local = self.workers.local_worker()
        known = {policy: local.get_policy(policy) for policy in local.get_policies_to_train()}
        passes, size = self.num_sgd_iter, self.sgd_minibatch_size
        fields = list(self.standardize_fields)
        with self._timers["grad"]:
            told = dict(do_minibatch_sgd(batch, known, local, passes, size, fields))
        return self._note(told, batch.count)

    def _loaded(self, batch: Any) -> Any:
        """What is learned from of a batch: all of it."""
        return batch


class LocalMultiGPUOptimizer(SyncSamplesOptimizer):
    """The same for a batch that was kept on GPUs, in minibatches that are all of one size.

    It took policies of TensorFlow alone; this one takes those that the workers have.

    Args:
        workers: The workers.
        sgd_batch_size: The minibatches' size.
        num_sgd_iter: How often a batch is gone through.
        rollout_fragment_length: Means nothing: workers know it.
        num_envs_per_worker: The same.
        train_batch_size: How many steps a batch has at least.
        num_gpus: Means nothing: the config says it.
        standardize_fields: The columns that get a mean of 0 and a deviation of 1.
        shuffle_sequences: Means nothing: minibatches are shuffled, before each time.
        _fake_gpus: Means nothing.
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
        """The steps that fill minibatches, drawn from all; recurrent policies learn from all."""
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
    """Replays steps of workers, one batch a step of this optimizer.

    Args:
        workers: The workers.
        learning_starts: How many steps are sampled before anything is learned.
        buffer_size: How many steps are kept.
        prioritized_replay: Whether steps are drawn by their errors.
        prioritized_replay_alpha: How much priorities count.
        prioritized_replay_beta: How much weights make up for that.
        prioritized_replay_eps: What is added to priorities.
        train_batch_size: How many steps are learned from at once.
        before_learn_on_batch: Changes a batch, from (batch, policies, its size).
        **_: How beta moved on, and whether policies replayed the same steps.
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
        """Samples once, and learns if there were enough steps before."""
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
            told = dict(local.learn_on_batch(batch))
        if self.prioritized_replay:  # else all steps keep the priority of new ones
            self.replay_buffer.update_priorities(
                {
                    policy: (batch.policy_batches[policy]["batch_indexes"], stats["td_error"])
                    for policy, stats in told.items()
                }
            )
        self._note(told, batch.count)
        self.learner_stats = {name: one.get("learner_stats", one) for name, one in told.items()}


class SyncBatchReplayOptimizer(PolicyOptimizer):
    """Replays whole batches of workers, as they were sampled.

    Args:
        workers: The workers.
        learning_starts: How many steps are sampled before anything is learned.
        buffer_size: How many steps are kept.
        train_batch_size: How many steps are learned from at once, at least.
    """

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
        """Samples once, and learns from batches of the buffer."""
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
            told = dict(self.workers.local_worker().learn_on_batch(batch))
        return self._note(told, batch.count)


class AsyncGradientsOptimizer(PolicyOptimizer):
    """Applies gradients of workers as they come; each goes on with the weights that came of them.

    Args:
        workers: The workers, some of them remote.
        grads_per_step: How many gradients a step applies.
    """

    def __init__(self, workers: Workers, grads_per_step: int = 100) -> None:
        super().__init__(workers)
        self.grads_per_step = grads_per_step

    def step(self) -> None:
        """Applies gradients so many times."""
        import ray

        local = self.workers.local_worker()
        self._send_weights()
        pending = {worker.apply.remote(_gradients): worker for worker in self._remote()}
        for left in range(self.grads_per_step, 0, -1):
            (ready,), _ = ray.wait(list(pending), num_returns=1)
            worker = pending.pop(ready)
            (gradients, told), steps = ray.get(ready)
            with self._timers["grad"]:
                local.apply_gradients(gradients)
            self.num_steps_sampled += steps
            self._note(told, steps)
            if left > len(pending) + 1:
                worker.set_weights.remote(local.get_weights())
                pending[worker.apply.remote(_gradients)] = worker

    def _remote(self) -> list[Any]:
        if remote := self.workers.remote_workers():
            return remote
        raise ConfigError(
            "Gradients come from remote workers, and there are none.",
            where="AsyncGradientsOptimizer(workers)",
            fix="set num_workers",
        )


# A function of the module, so that it is pickled by name.
def _gradients(worker: Any) -> Any:
    batch = worker.sample()
    return gradients_of(worker, batch), batch.count


def collect_samples(
    agents: Sequence[Any],
    rollout_fragment_length: int,
    num_envs_per_worker: int,
    train_batch_size: int,
) -> Any:
    """A batch of remote workers, of at least so many steps; each samples on until there are enough.

    Args:
        agents: The workers.
        rollout_fragment_length: How many steps a worker gives, of each environment.
        num_envs_per_worker: How many environments it has.
        train_batch_size: How many steps are wanted.
    """
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
    """A number, or the first rows of an array, without what is left over."""
    return a - a % n if isinstance(a, int) else a[: len(a) - len(a) % n]
