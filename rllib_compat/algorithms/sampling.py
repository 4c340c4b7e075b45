"""How these algorithms let Ray's env runners sample."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME
from ray.rllib.utils.schedules.scheduler import Scheduler

from rllib_compat.ray_versions import env_runners, training_steps

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

    from rllib_compat.ray_versions.types import EnvRunner, RLModule

_COUNTED = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)


def on_env_runners(
    algorithm: Algorithm,
    play: Callable[[Any], Any],
    metrics_of: Callable[[Any], Any] = itemgetter(-1),
) -> list[Any]:
    """Lets the remote env runners play, or the local one where there are none.

    `metrics_of` finds a runner's metrics, which the algorithm counts, in what `play` has returned.

    Returns:
        What `play` has returned; empty where every env runner has failed.
    """
    group = algorithm.env_runner_group
    local = group.num_remote_workers() == 0
    results = env_runners.foreach_env_runner(group, play, local_env_runner=local)
    if results:
        training_steps.log_of_env_runners(algorithm, [metrics_of(one) for one in results])
    return results


def sample_at_least(env_runner: EnvRunner, least: int) -> list[Any]:
    """Samples at least so many steps, of whole episodes if the config says so."""
    if env_runner.config.batch_mode == "truncate_episodes":
        return list(env_runner.sample(num_timesteps=least))
    episodes: list[Any] = []
    while sum(episode.env_steps() for episode in episodes) < least:
        episodes += env_runner.sample()
    return episodes


def exploration_share(place: float) -> float:
    """How much an env runner explores, by its place from 0 (most) to 1 (least)."""
    return float(0.4 ** (1 + 7 * place))


def epsilon_of_worker(worker: int, workers: int) -> float:
    """How probably an env runner (1, 2, …) acts at random: the first 0.4, the last 0.4 ** 8."""
    return exploration_share((worker - 1) / max(1, workers - 1))


def set_epsilon_of_worker(module: Any, worker: int, workers: int) -> None:
    """Lets a module act at random as often as its env runner should; one without epsilon can't.

    The algorithm's own env runner (0) explores by the schedule that all have. A schedule that
    somebody sets later stays.
    """
    has_epsilon = getattr(module, "epsilon_schedule", None) is not None
    if worker and has_epsilon and not getattr(module, "explores_as_worker", False):
        epsilon = epsilon_of_worker(worker, workers)
        module.epsilon_schedule = Scheduler(fixed_value_or_schedule=epsilon)
        module.explores_as_worker = True


def modules_of(env_runner: EnvRunner) -> list[RLModule]:
    """The modules of an env runner, one a policy."""
    module = env_runner.module
    return list(module.values()) if isinstance(module, MultiRLModule) else [module]


def explore_as_worker(env_runner: EnvRunner) -> None:
    """Lets an env runner explore by its share; each time, as one that has died was replaced."""
    config = env_runner.config
    if getattr(config, "per_worker_exploration", False):
        for module in modules_of(env_runner):
            config.explore_as_worker(module, env_runner.worker_index)


def steps_sampled(algorithm: Algorithm) -> int:
    """How many steps of the environment all env runners have ever sampled."""
    return int(algorithm.metrics.peek(_COUNTED, default=0))
