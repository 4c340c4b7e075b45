"""The metrics logger: lifetime counters, and objects that reach the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rllib_compat.ray_versions.runners import foreach_env_runner

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm


def set_lifetime_counters(
    algorithm: Algorithm, *, iteration: int, env_steps: int, episodes: int
) -> None:
    """Makes an algorithm go on counting where another one stopped.

    Lifetime counters were sums that are not cleared (2.40). Later releases have a reduction of
    their own for them, and a logger that refuses to mix what it counted with what it was sent;
    so the numbers are sent as an env runner would.
    """
    from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

    algorithm._iteration = iteration  # what `Algorithm.set_state` sets, too
    names = ("num_env_steps_sampled_lifetime", "num_episodes_lifetime")
    values = {name: v for name, v in zip(names, (env_steps, episodes), strict=True) if v}
    if not hasattr(algorithm.metrics, "aggregate"):
        for name, value in values.items():
            algorithm.metrics.log_value(
                ("env_runners", name), value, reduce="sum", clear_on_reduce=False
            )
        return
    runner = MetricsLogger()
    for name, value in values.items():
        runner.log_value(name, value, reduce="lifetime_sum")
    if values:
        algorithm.metrics.aggregate([runner.reduce(compile=False)], key="env_runners")


def set_steps_of_env_runner(algorithm: Algorithm, steps: int, env_runners: int) -> None:
    """Tells an env runner how many steps all of them have sampled; epsilon follows from that.

    A runner of Ray 2.40 counts its own steps, and multiplies them by the number of runners. What
    it has counted when it is restored is added to what the algorithm has counted, so there only
    one of the two may know; with remote runners, that Ray counts all steps twice after any restore.
    """
    runner = algorithm.env_runner
    if not hasattr(runner, "num_env_steps_sampled_lifetime"):
        if env_runners == 0:
            algorithm.metrics.set_value(("env_runners", "num_env_steps_sampled_lifetime"), 0)
        steps //= max(env_runners, 1)
    runner.set_state({"num_env_steps_sampled_lifetime": steps})


def mark_steps_as_counted(algorithm: Algorithm) -> None:
    """Keeps a restored algorithm from counting again what it has counted already.

    Env runners of Ray 2.40 send what their lifetime counter has grown by. A restore sets the
    counter, and not what they have sent before, so that all of it would be sent again. Where the
    algorithm knows of no steps (`set_steps_of_env_runner`), that is meant.
    """
    if hasattr(algorithm.metrics, "aggregate") or algorithm.learner_group is None:
        return
    if algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"), default=0):
        foreach_env_runner(algorithm.env_runner_group, _mark_steps)


def _mark_steps(env_runner: Any) -> None:
    stats = env_runner.metrics.stats.get("num_env_steps_sampled_lifetime")
    if stats is not None:
        stats._hist = (stats.peek(), 0)


def log_item(metrics_logger: Any, key: str, item: Any) -> None:
    """Logs an object that reaches the result in a list, unreduced and once.

    That was `reduce=None`; the releases with a class per reduction call it `item_series`.
    """
    from ray.rllib.utils.metrics import metrics_logger as module

    if hasattr(module, "DEFAULT_STATS_CLS_LOOKUP"):
        metrics_logger.log_value(key, item, reduce="item_series")
    else:
        metrics_logger.log_value(key, item, reduce=None, clear_on_reduce=True)
