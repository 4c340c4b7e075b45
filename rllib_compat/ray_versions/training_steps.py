"""The parts of a training step: sampling, updating the learners, sending weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from rllib_compat.ray_versions import renames
from rllib_compat.ray_versions.env_runners import (
    copy_weights,
    foreach_env_runner,
    has_only_a_local_one,
    healthy_indices,
    is_in_this_process,
)
from rllib_compat.ray_versions.learners import batch_of_arrays, batch_of_episodes, learns_directly
from rllib_compat.ray_versions.metrics import count_once
from rllib_compat.ray_versions.releases import at_least
from rllib_compat.ray_versions.types import Algorithm, Learner


def sample_episodes(algorithm: Algorithm, steps: int | None = None) -> list[Any]:
    """Samples so many steps (None: a fragment each) from all env runners, and logs their metrics.

    Returns:
        Episodes, or chunks of them; none where every env runner has failed.
    """
    from ray.rllib.execution.rollout_ops import synchronous_parallel_sample
    from ray.rllib.utils.metrics import ENV_RUNNER_SAMPLING_TIMER, TIMERS

    config = algorithm.config
    by_agent = config.count_steps_by == "agent_steps"
    with algorithm.metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
        episodes, results = synchronous_parallel_sample(
            worker_set=algorithm.env_runner_group,
            **({} if steps is None else {f"max_{'agent' if by_agent else 'env'}_steps": steps}),
            sample_timeout_s=config.sample_timeout_s,
            _uses_new_env_runners=True,
            _return_metrics=True,
        )
    if episodes:
        log_of_env_runners(algorithm, results)
    return list(episodes or ())


def sample_fragments(algorithm: Algorithm, steps: int) -> list[Any]:
    """Samples fragments until there are so many steps, of some env runners one more than of others.

    With whole episodes, or without remote env runners, it samples as `sample_episodes` does.

    Returns:
        Episodes, or chunks of them; none where every env runner has failed.
    """
    config, group = algorithm.config, algorithm.env_runner_group
    workers = healthy_indices(group)
    if (
        not workers
        or config.batch_mode != "truncate_episodes"
        or config.count_steps_by != "env_steps"
    ):
        return sample_episodes(algorithm, steps)
    fragment = config.get_rollout_fragment_length() * config.num_envs_per_env_runner
    rounds, more = divmod(max(-(-steps // fragment), len(workers)), len(workers))
    episodes = sample_episodes(algorithm, rounds * len(workers) * fragment)
    if not more:
        return episodes
    sampled = foreach_env_runner(
        group,
        lambda runner: (runner.sample(), runner.get_metrics()),
        local_env_runner=False,
        remote_worker_ids=workers[:more],
        timeout_seconds=config.sample_timeout_s,
    )
    log_of_env_runners(algorithm, [metrics for _, metrics in sampled])
    return [*episodes, *(episode for found, _ in sampled for episode in found)]


def trains_in_this_process(algorithm: Algorithm) -> bool:
    """Whether an algorithm's env runner and its learner are in this process, and count env steps.

    Then their metrics are not needed before an iteration ends.
    """
    return (
        is_in_this_process(algorithm.env_runner_group)
        and algorithm.learner_group.is_local
        and algorithm.config.count_steps_by == "env_steps"
    )


def sample_here(algorithm: Algorithm) -> list[Any]:
    """Samples a fragment on the env runner of this process, which logs nothing yet."""
    from ray.rllib.utils.metrics import ENV_RUNNER_SAMPLING_TIMER, TIMERS

    with algorithm.metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
        return list(algorithm.env_runner_group.local_env_runner.sample())


def log_measurements(algorithm: Algorithm) -> None:
    """Logs what the env runner and the learner of this process have measured."""
    log_of_env_runners(algorithm, [algorithm.env_runner_group.local_env_runner.get_metrics()])
    learner = algorithm.learner_group._learner
    if learns_directly(learner):
        _log_of_updates(algorithm, [learner.report()])
    elif _may_tell_later(learner):
        _log_of_updates(algorithm, [learner.metrics.reduce()])


def update_learners(
    algorithm: Algorithm, episodes: list[Any], now: int | None = None, *, reported: bool = True
) -> None:
    """Lets the learners learn once from episodes, and logs their metrics if they are `reported`.

    Schedules are at the step `now`; None: as many of the environment as were sampled.
    """
    learner = None if reported else algorithm.learner_group._learner
    if now is not None and learns_directly(learner):
        _learn(algorithm, partial(batch_of_episodes, learner, episodes), now)
    else:
        _update(algorithm, "episodes", episodes, now, reported=reported)


def agent_steps_sampled(algorithm: Algorithm) -> int:
    """How many steps of agents were ever sampled."""
    from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_AGENT_STEPS_SAMPLED_LIFETIME

    key = (ENV_RUNNER_RESULTS, NUM_AGENT_STEPS_SAMPLED_LIFETIME)
    return int(sum(algorithm.metrics.peek(key, default={}).values()))


def steps_trained(algorithm: Any) -> int:
    """How many steps were ever learned from, as results of past training steps say."""
    key = ("learners", "__all_modules__", "num_env_steps_trained_lifetime")
    return int(algorithm.metrics.peek(key, default=0))


def update_learner(
    learner: Learner, episodes: list[Any], timesteps: Mapping[str, int], **how: object
) -> Any:
    """Lets a learner learn from episodes, which `Learner.update` takes since 2.44; its metrics."""
    update = getattr(learner, "update" if at_least("2.44") else "update_from_episodes")
    return update(episodes=episodes, timesteps=dict(timesteps), **how)


def update_learners_with_arrays(
    algorithm: Algorithm,
    batches: Mapping[str, Mapping[str, Any]],
    steps: int,
    now: int | None = None,
    *,
    reported: bool = True,
) -> dict[str, Any]:
    """Lets the learners learn once from arrays, and logs their metrics.

    Args:
        algorithm: The algorithm; its learner class is an `ArrayBatchLearner`.
        batches: The columns of each module's batch.
        steps: How many steps of the environment they were.
        now: The step that schedules and targets are at; None: how many were sampled.
        reported: Whether they report their metrics; else it is for the caller to ask for it
            (`log_measurements`), which only a learner of this process can do.

    Returns:
        The TD errors of each module whose learner logs them, one a transition.
    """
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

    learner = None if reported else algorithm.learner_group._learner
    if now is not None and learns_directly(learner):
        _learn(algorithm, partial(batch_of_arrays, learner, batches, steps), now)
        return _td_errors_in(learner)
    columns = {module_id: SampleBatch(dict(batch)) for module_id, batch in batches.items()}
    return _update(algorithm, "batch", MultiAgentBatch(columns, steps), now, reported=reported)


def _learn(algorithm: Algorithm, make_batch: Callable[[], Any], now: int) -> None:
    """Lets the learner of this process learn once from a batch, and report later."""
    from ray.rllib.utils.metrics import (
        LEARNER_UPDATE_TIMER,
        NUM_ENV_STEPS_SAMPLED_LIFETIME,
        TIMERS,
    )

    with algorithm.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
        algorithm.learner_group._learner.learn_directly(
            make_batch, {NUM_ENV_STEPS_SAMPLED_LIFETIME: now}
        )


def _update(
    algorithm: Algorithm, kind: str, data: object, now: int | None = None, *, reported: bool = True
) -> dict[str, Any]:
    """Gives the learners episodes or a batch; `LearnerGroup.update` takes both since 2.44."""
    from ray.rllib.utils.metrics import (
        ENV_RUNNER_RESULTS,
        LEARNER_UPDATE_TIMER,
        NUM_ENV_STEPS_SAMPLED_LIFETIME,
        TIMERS,
    )

    group = algorithm.learner_group
    takes_it = kind in _arguments(type(group).update)
    update = group.update if takes_it else getattr(group, f"update_from_{kind}")
    if now is None:
        now = algorithm.metrics.peek((ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME))
    later = not reported and _may_tell_later(group._learner)
    how = {"_no_metrics_reduce": True} if later else {}
    with algorithm.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
        results = update(**{kind: data}, timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: now}, **how)
    if later:
        return _td_errors_in(group._learner)
    return _log_of_updates(algorithm, results)


def _may_tell_later(learner: Learner) -> bool:
    """Whether a learner may keep what it has measured; Ray 2.40 – 2.43 know no way."""
    update = getattr(type(learner), "update", None)
    return update is not None and "_no_metrics_reduce" in _arguments(update)


def _log_of_updates(algorithm: Algorithm, results: list[Any]) -> dict[str, Any]:
    """Logs the metrics of learners after updates, but for TD errors, which it returns."""
    from ray.rllib.utils.metrics import LEARNER_RESULTS

    errors = _taken_td_errors(results)
    _log(algorithm, results, LEARNER_RESULTS)
    return errors


def _td_errors_in(learner: Any) -> dict[str, Any]:
    """Takes the TD errors of an update out of what a learner has measured but not reported."""
    from ray.rllib.utils.metrics import TD_ERROR_KEY

    kept = getattr(learner, "td_errors", {})
    found = {module_id: _array(errors) for module_id, errors in kept.items()}
    kept.clear()
    for module_id in learner.module.keys() - found.keys():
        key = (module_id, TD_ERROR_KEY)
        logged = learner.metrics.peek(key, default=())
        if len(logged):
            learner.metrics.delete(key)
            found[module_id] = np.concatenate([*map(_array, logged)])
    return found


@cache
def _arguments(method: Callable[..., Any]) -> tuple[str, ...]:
    """What a method takes; asking takes as long as a step of a small network."""
    return tuple(inspect.signature(method).parameters)


def _taken_td_errors(results: Iterable[Any]) -> dict[str, Any]:
    """Takes TD errors out of the metrics of learners, as DQN does: they are no metrics."""
    from ray.rllib.utils.metrics import TD_ERROR_KEY

    found: dict[str, list[Any]] = {}
    for result in results:
        for module_id, reported in result.items():
            if TD_ERROR_KEY in reported:
                item = reported.pop(TD_ERROR_KEY).peek()
                found.setdefault(module_id, []).extend(map(_array, item))
    return {module_id: np.concatenate(parts) for module_id, parts in found.items()}


def _array(item: object) -> Any:
    return item.detach().cpu().numpy() if hasattr(item, "detach") else np.asarray(item)


def reset_noise(algorithm: Any) -> None:
    """Lets noisy layers draw new noise before an update; Ray 2.40 leaves it to the algorithm."""
    if not at_least("2.41"):
        algorithm.learner_group.foreach_learner(func=_reset_noise, timeout_seconds=0.0)


def _reset_noise(learner: Any, *_: object, **__: object) -> None:
    learner._reset_noise()


def foreach_learner(algorithm: Algorithm, function: Callable[[Any], Any]) -> list[Any]:
    """Calls a function in all learners; a learner's error is raised."""
    return [answer.get() for answer in algorithm.learner_group.foreach_learner(function)]


def log_of_env_runners(algorithm: Any, results: list[Any]) -> None:
    """Logs the metrics of env runners after they have sampled."""
    from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS

    # Ray's own runners sample here, too: after `from_checkpoint`.
    _log(algorithm, [count_once(result) for result in results], ENV_RUNNER_RESULTS)


def log_of_learners(algorithm: Algorithm, results: list[Any]) -> None:
    """Logs the metrics of learners whose update another caller started."""
    from ray.rllib.utils.metrics import LEARNER_RESULTS

    _log(algorithm, [count_once(result) for result in results], LEARNER_RESULTS)


def send_new_weights(algorithm: Any, to: list[int] | None = None) -> None:
    """Sends what the learners have learned to env runners: these and the local one; None: all."""
    from ray.rllib.utils.metrics import SYNCH_WORKER_WEIGHTS_TIMER, TIMERS

    group, learners = algorithm.env_runner_group, algorithm.learner_group
    with algorithm.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
        if has_only_a_local_one(group):
            copy_weights(learners, group)
            return
        group.sync_weights(
            from_worker_or_learner_group=learners, inference_only=True, to_worker_indices=to
        )


def _log(algorithm: Algorithm, results: object, key: str) -> None:
    """Adds up the metrics of several env runners or learners."""
    renames.method(algorithm.metrics, "aggregate")(results, key=key)
