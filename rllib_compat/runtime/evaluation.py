"""Remote rollout workers, and evaluation functions with what collects and summarizes episodes.

Ray 0.8 – 2.x had them in `rllib/evaluation/metrics.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions.types import EnvRunner
from rllib_compat.runtime.results import EpisodeRecord, summarize, take_records
from rllib_compat.runtime.user_envs import RemoteMethod
from rllib_compat.runtime.workers import LegacyWorker, as_legacy, worker_of


class RemoteWorker:
    """A rollout worker in an actor: `worker.foreach_env.remote(f)` returns an object reference.

    Args:
        actor: The actor of the env runner.
        learned: Returns a list with a reference to the learners' weights; empty without learners.
    """

    def __init__(self, actor: Any, learned: Callable[[], list[Any]] = list) -> None:
        self.actor = actor
        self._learned = learned

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteWorker, (self.actor,)  # without `learned`, which refers to the trainer

    def __getattr__(self, name: str) -> RemoteMethod:
        if name.startswith("_"):
            raise AttributeError(name)
        return RemoteMethod(partial(self._call, name))

    def _call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls a method in the worker's process; Ray resolves references among the arguments."""
        return self.actor.apply.remote(partial(_call, name, self._learned()), *args, **kwargs)


def worker_with_learned_critics(learned: list[Any], env_runner: EnvRunner) -> Any:
    """Returns the worker around an env runner, with critics from the learners' weights."""
    worker = as_legacy(env_runner)
    if learned and isinstance(worker, LegacyWorker):
        worker.critics.set_learned(learned)
    return worker


# At module level, so that it is pickled by name.
def _call(name: str, learned: list[Any], env_runner: EnvRunner, *args: Any, **kwargs: Any) -> Any:
    worker = worker_with_learned_critics(learned, env_runner)
    if name == "apply":  # `RolloutWorker.apply` passed the worker to its function
        function, *rest = args
        return function(worker, *rest, **kwargs)
    return getattr(worker, name)(*args, **kwargs)


@public("rllib_compat.adapters")
class EvaluationFunction:
    """A legacy evaluation function that the installed Ray can call.

    Args:
        function: Takes the trainer and its evaluation workers, and returns a dict of metrics.

    Attributes:
        trainer: The legacy trainer, which the function is called with; None: with Ray's arguments.
        metrics: The function's last metrics, which the installed Ray leaves out of the result.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.trainer: Any = None
        self.metrics: dict[str, Any] = {}

    def __call__(self, algorithm: object = None, group: object = None) -> Any:
        """Calls the function.

        Returns:
            The metrics; on the new API stack also the environment and agent steps, computed from
            the episodes in the metrics.
        """
        if self.trainer is None:
            return self.function(algorithm, group)
        metrics = self.function(self.trainer, self.trainer.evaluation_workers)
        if algorithm is None or isinstance(metrics, tuple):
            return metrics  # the old API stack, or a function for the new one
        self.metrics = dict(metrics)
        length, episodes = metrics.get("episode_len_mean"), metrics.get("episodes_this_iter")
        steps = int(length * episodes) if length and episodes else 0
        return metrics, max(1, steps), max(1, steps)  # Ray 2.40 takes no zero

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the trainer: configs are sent to workers and saved in checkpoints."""
        return {**self.__dict__, "trainer": None, "metrics": {}}


def collect_episodes(
    local_worker: Any = None,
    remote_workers: Iterable[Any] | None = None,
    to_be_collected: Sequence[Any] = (),
    timeout_seconds: float = 180,
    *,
    workers: Any = None,
    remote_worker_ids: Collection[int] | None = None,
) -> Any:
    """Collects the episodes that have ended in workers since the last call.

    Args:
        local_worker: `workers.local_worker()`, or None; or all workers, as since Ray 2.2.
        remote_workers: `workers.remote_workers()`, or some of them.
        to_be_collected: References that an earlier call returned as not ready.
        timeout_seconds: How long to wait for remote workers, in s.
        workers: All workers, as since Ray 2.2.
        remote_worker_ids: Which of their remote ones are asked; None: each.

    Returns:
        The episodes, and the references that were not ready in time; of all workers, the episodes.
    """
    import ray

    if workers is None and hasattr(local_worker, "remote_workers"):
        workers = local_worker
    if workers is not None:
        remote = [
            worker
            for number, worker in enumerate(workers.remote_workers(), 1)
            if remote_worker_ids is None or number in remote_worker_ids
        ]
        local = workers.local_worker()
        return collect_episodes(local, remote, timeout_seconds=timeout_seconds)[0]
    asked = [worker.actor.apply.remote(_records_of) for worker in _actors(remote_workers)]
    left = [*to_be_collected, *asked]
    episodes: list[EpisodeRecord] = []
    if left:
        ready, left = ray.wait(left, num_returns=len(left), timeout=timeout_seconds)
        episodes = [episode for taken in ray.get(ready) for episode in taken]
    if local_worker is not None:
        episodes += _records_of(getattr(local_worker, "env_runner", local_worker))
    return episodes, left


def collect_metrics(
    local_worker: object = None,
    remote_workers: Iterable[Any] | None = None,
    to_be_collected: Sequence[Any] = (),
    timeout_seconds: float = 180,
    keep_custom_metrics: bool = False,
) -> dict[str, Any]:
    """Collects episodes with `collect_episodes`, and summarizes them."""
    arguments = (local_worker, remote_workers, to_be_collected, timeout_seconds)
    episodes, _ = collect_episodes(*arguments)
    return summarize_episodes(episodes, keep_custom_metrics=keep_custom_metrics)


def summarize_episodes(
    episodes: Sequence[EpisodeRecord],
    new_episodes: Sequence[EpisodeRecord] | None = None,
    keep_custom_metrics: bool = False,
) -> dict[str, Any]:
    """Summarizes episodes as the legacy keys of a result."""
    new = episodes if new_episodes is None else new_episodes
    times = [episode.perf_stats for episode in new if episode.perf_stats]
    means = {name: float(np.mean([one[name] for one in times])) for name in (times or [{}])[0]}
    return {
        "off_policy_estimator": {},  # until Ray 1.13
        "sampler_perf": means,
        **summarize(list(episodes), len(new), keep_metrics=keep_custom_metrics),
    }


def _records_of(env_runner: EnvRunner) -> list[EpisodeRecord]:
    """Takes an env runner's episodes; on the new API stack with its sampling times."""
    if hasattr(env_runner, "module"):
        return worker_of(env_runner).get_metrics()
    return take_records(env_runner)


def _actors(workers: Iterable[Any] | None) -> list[RemoteWorker]:
    return [w if isinstance(w, RemoteWorker) else RemoteWorker(w) for w in workers or ()]
