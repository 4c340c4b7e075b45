"""The parts of a training step: sampling, updating the learners, sending weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rllib_compat.ray_versions.metrics import count_once

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm


def sample_episodes(algorithm: Algorithm, steps: int) -> list[Any]:
    """Samples at least so many steps from all env runners, and logs what they tell.

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
            **{"max_agent_steps" if by_agent else "max_env_steps": steps},
            sample_timeout_s=config.sample_timeout_s,
            _uses_new_env_runners=True,
            _return_metrics=True,
        )
    if episodes:
        log_of_env_runners(algorithm, results)
    return list(episodes or ())


def update_learners(algorithm: Algorithm, episodes: list[Any]) -> None:
    """Lets the learners learn once from episodes, and logs what they tell."""
    _update(algorithm, "episodes", episodes)


def update_learners_with_arrays(
    algorithm: Algorithm, batches: Mapping[str, Mapping[str, Any]], steps: int
) -> None:
    """Lets the learners learn once from arrays, and logs what they tell.

    Args:
        algorithm: The algorithm; its learner class is a `TakesArrays`.
        batches: The columns of each module's batch.
        steps: How many steps of the environment they were.
    """
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

    columns = {module_id: SampleBatch(dict(batch)) for module_id, batch in batches.items()}
    _update(algorithm, "batch", MultiAgentBatch(columns, steps))


def _update(algorithm: Algorithm, kind: str, data: Any) -> None:
    """Gives the learners episodes or a batch; `LearnerGroup.update` takes both since 2.44."""
    from ray.rllib.utils.metrics import (
        ENV_RUNNER_RESULTS,
        LEARNER_RESULTS,
        LEARNER_UPDATE_TIMER,
        NUM_ENV_STEPS_SAMPLED_LIFETIME,
        TIMERS,
    )

    group = algorithm.learner_group
    takes_it = kind in inspect.signature(group.update).parameters
    update = group.update if takes_it else getattr(group, f"update_from_{kind}")
    sampled = algorithm.metrics.peek((ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME))
    with algorithm.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
        results = update(**{kind: data}, timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: sampled})
    _log(algorithm, results, LEARNER_RESULTS)


def foreach_learner(algorithm: Algorithm, function: Callable[[Any], Any]) -> list[Any]:
    """Calls a function in all learners; a learner's error is raised."""
    return [answer.get() for answer in algorithm.learner_group.foreach_learner(function)]


def log_of_env_runners(algorithm: Algorithm, results: list[Any]) -> None:
    """Logs what env runners tell after they have sampled."""
    from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS

    # Ray's own runners sample here, too: after `from_checkpoint`.
    _log(algorithm, [count_once(result) for result in results], ENV_RUNNER_RESULTS)


def send_new_weights(algorithm: Algorithm) -> None:
    """Sends what the learners have learned to all env runners."""
    from ray.rllib.utils.metrics import SYNCH_WORKER_WEIGHTS_TIMER, TIMERS

    with algorithm.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
        algorithm.env_runner_group.sync_weights(
            from_worker_or_learner_group=algorithm.learner_group, inference_only=True
        )


def _log(algorithm: Algorithm, results: Any, key: str) -> None:
    """Adds up what several env runners or learners tell; the method was renamed after 2.40."""
    logger = algorithm.metrics
    (getattr(logger, "aggregate", None) or logger.merge_and_log_n_dicts)(results, key=key)
