"""The metrics logger: lifetime counters, and objects that reach the result."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rllib_compat.ray_versions import renames
from rllib_compat.ray_versions.env_runners import foreach_env_runner
from rllib_compat.ray_versions.types import Algorithm, EnvRunner, MetricsLogger


def set_lifetime_counters(
    algorithm: Algorithm, *, iteration: int, env_steps: int, episodes: int
) -> None:
    """Makes an algorithm continue to count where another one stopped.

    Lifetime counters were sums that are not cleared, until Ray 2.53 brought a reduction of their
    own for them, and a logger that refuses to mix what it counted with what it was sent; there
    the numbers are sent as an env runner would.
    """
    from ray.rllib.utils.metrics import metrics_logger

    algorithm._iteration = iteration  # what `Algorithm.set_state` sets, too
    if _reads_recordings(algorithm):
        _log_steps_read(algorithm, env_steps)
        return
    names = ("num_env_steps_sampled_lifetime", "num_episodes_lifetime")
    values = {name: v for name, v in zip(names, (env_steps, episodes), strict=True) if v}
    if not _has_class_per_reduction():
        for name, value in values.items():
            key = ("env_runners", name)
            algorithm.metrics.log_value(key, value, reduce="sum", clear_on_reduce=False)
            _keep_when_merged(algorithm.metrics.stats["env_runners"][name])
        return
    runner = metrics_logger.MetricsLogger()
    for name, value in values.items():
        runner.log_value(name, value, reduce="lifetime_sum")
    if values:
        sent = runner.reduce(compile=False)
        renames.method(algorithm.metrics, "aggregate")([sent], key="env_runners")


def count_steps_read(algorithm: Algorithm, result: dict[str, Any]) -> None:
    """Lets a result of an algorithm that learns from recordings say how many steps it has read.

    Old Rays counted them as sampled. Today's MARWIL does so, too, and BC and CRR with it, but not
    yet in Ray 2.40; CQL counts none in any release. Where nothing does, the steps of this iteration
    are counted here: each that was read has been learned from.
    """
    if not _reads_recordings(algorithm) or not algorithm.config.enable_rl_module_and_learner:
        return
    if not _counts_steps_read(algorithm):
        learned = result.get("learners", {}).get("__all_modules__", {})
        _log_steps_read(algorithm, learned.get("num_module_steps_trained", 0))
    result[_STEPS] = algorithm.metrics.peek(_STEPS, default=0)


_STEPS = "num_env_steps_sampled_lifetime"


def _reads_recordings(algorithm: Algorithm) -> bool:
    from ray.rllib.algorithms.cql import CQL
    from ray.rllib.algorithms.marwil import MARWIL

    return isinstance(algorithm, (CQL, MARWIL))


def _counts_steps_read(algorithm: Algorithm) -> bool:
    """Whether Ray counts them: a training step that does so names the counter."""
    from ray.rllib.algorithms.marwil import MARWIL

    names = MARWIL.training_step.__code__.co_names
    return isinstance(algorithm, MARWIL) and _STEPS.upper() in names


def _log_steps_read(algorithm: Algorithm, steps: int) -> None:
    """Adds steps to what Ray's MARWIL counts: not below `env_runners`, which have no part in it."""
    if steps:
        add_up(algorithm.metrics, _STEPS, steps)


#: What is counted → where, on the new API stack and on the old one.
_SO_FAR = {
    "sampled": (("env_runners", "num_env_steps_sampled_lifetime"), "num_env_steps_sampled"),
    "trained": (
        ("learners", "__all_modules__", "num_env_steps_trained_lifetime"),
        "num_env_steps_trained",
    ),
}


def count_so_far(algorithm: Algorithm, what: str) -> int:
    """How many env steps an algorithm has "sampled" or "trained" so far."""
    todays, old = _SO_FAR[what]
    if algorithm.learner_group is None:
        return int(algorithm._counters[old])
    return int(algorithm.metrics.peek(todays, default=0))


def add_up(logger: MetricsLogger, key: str | tuple[str, ...], count: int) -> None:
    """Adds to a sum: one of an iteration, or of all where its name ends in `_lifetime`."""
    lifetime = (key if isinstance(key, str) else key[-1]).endswith("_lifetime")
    if _has_class_per_reduction():
        logger.log_value(key, count, reduce="lifetime_sum" if lifetime else "sum")
    else:
        logger.log_value(key, count, reduce="sum", clear_on_reduce=not lifetime)


def _has_class_per_reduction() -> bool:
    """Whether each reduction has a class of its own, with other names; since Ray 2.53."""
    from ray.rllib.utils.metrics import metrics_logger

    return hasattr(metrics_logger, "DEFAULT_STATS_CLS_LOOKUP")


def _keep_when_merged(stats: Any) -> None:
    """Keeps a lifetime sum from being lost when the first env runner sends its own.

    Ray 2.47 – 2.49 subtract from the last of its values what the runner has sent before, which is
    NaN the first time; so the last value is a zero.
    """
    if hasattr(stats, "_reduce_history"):
        stats.values.append(0)


def set_steps_of_env_runner(algorithm: Algorithm, steps: int, env_runners: int) -> None:
    """Tells an env runner how many steps all of them have sampled; epsilon follows from that.

    A runner counted its own steps until Ray 2.52, and multiplied them by the number of runners.
    What it has counted when it is restored is added to what the algorithm has counted, so there
    only one of the two may know; with remote runners, such a Ray counts all steps twice after any
    restore.
    """
    runner = algorithm.env_runner
    if not hasattr(runner, "num_env_steps_sampled_lifetime"):
        counted = ("env_runners", "num_env_steps_sampled_lifetime")
        # Nothing is set that is not there: it would become a mean.
        if env_runners == 0 and algorithm.metrics.peek(counted, default=0):
            algorithm.metrics.set_value(counted, 0)
        steps //= max(env_runners, 1)
    runner.set_state({"num_env_steps_sampled_lifetime": steps})


def mark_steps_as_counted(algorithm: Algorithm) -> None:
    """Keeps a restored algorithm from counting again what it has counted already.

    Env runners until Ray 2.52 send what their lifetime counter has grown by. A restore sets the
    counter, and not what they have sent before, so that all of it would be sent again. Where the
    algorithm knows of no steps (`set_steps_of_env_runner`), that is meant.
    """
    if _has_class_per_reduction() or algorithm.learner_group is None:
        return
    name = "num_env_steps_sampled_lifetime"
    if not algorithm.metrics.peek(("env_runners", name), default=0):
        return
    counter = algorithm.metrics.stats["env_runners"][name]
    sent = foreach_env_runner(algorithm.env_runner_group, _mark_steps)
    if hasattr(counter, "_prev_merge_values"):  # Ray 2.50 – 2.52 know it by the sender
        counter._prev_merge_values.update(filter(None, sent))


def _mark_steps(env_runner: EnvRunner) -> tuple[Any, Any] | None:
    """Lets a runner's counter of steps take what it holds as sent; its id and what it holds."""
    stats = env_runner.metrics.stats.get("num_env_steps_sampled_lifetime")
    if stats is None:
        return None
    counted = stats.peek()
    if hasattr(stats, "_reduce_history"):  # Ray 2.47 – 2.49
        stats._reduce_history.append([counted])
    elif isinstance(getattr(stats, "_hist", None), tuple):  # Ray 2.40
        stats._hist = (counted, 0)
    elif hasattr(stats, "_hist"):  # Ray 2.41 – 2.46
        stats._hist.append(counted)
    return getattr(stats, "id_", None), counted


def start_counting(algorithm: Algorithm) -> None:
    """Lets a new algorithm count the fragments of its first iteration once.

    Ray 2.50 – 2.52 subtract what they have had of a runner's counter from what it sends, but not
    the first time that they see the counter; so they see a zero first.
    """
    from ray.rllib.utils.metrics import stats

    kind = getattr(stats, "Stats", None)
    if algorithm.learner_group is None or kind is None:
        return
    if not hasattr(kind(reduce="sum"), "_prev_merge_values"):
        return
    for name in ("num_env_steps_sampled_lifetime", "num_episodes_lifetime"):
        key = ("env_runners", name)
        algorithm.metrics.log_value(key, 0, reduce="sum", with_throughput=True)


def count_once(metrics: object) -> Any:
    """What an env runner has measured, so that it is counted right however often it samples.

    Until Ray 2.49, a runner sends a lifetime sum whole, and the algorithm subtracts what it has
    had of it before. Where several samples of one runner come in one iteration, each release does
    that wrong in its own way: eight fragments of 50 steps make 1,800, or a negative number, and
    an iteration that waits for so many steps never ends. What the sum has grown by is right, and
    counting that once more changes nothing.
    """
    if not isinstance(metrics, Mapping):
        return _growth(metrics)
    return {name: count_once(inner) for name, inner in metrics.items()}


def _growth(stats: Any) -> Any:
    """A lifetime sum, as the sum since it was last sent; anything else as it is."""
    name = next((n for n in ("_reduce_history", "_hist") if hasattr(stats, n)), None)
    if name is None or not _is_lifetime_sum(stats) or hasattr(stats, "_is_growth"):
        return stats
    history = getattr(stats, name)
    newest_first = isinstance(history, tuple)  # Ray 2.40
    (before, now) = history[::-1] if newest_first else list(history)[-2:]
    zero: Any = 0
    if isinstance(now, list):  # Ray 2.47 – 2.49
        (before,), (now,), zero = before, now, [0]
    grown = copy.copy(stats)
    grown._is_growth = True
    grown.values = [now - (0 if np.isnan(before) else before)]
    setattr(grown, name, (zero, zero) if newest_first else deque([zero] * 3, maxlen=3))
    return grown


def _is_lifetime_sum(stats: Any) -> bool:
    endless = getattr(stats, "_inf_window", stats._window is None)
    return stats._reduce_method == "sum" and endless and not stats._clear_on_reduce


def log_directly(logger: Any) -> None:
    """Lets a logger add values to what it has at once.

    Ray flattens and looks up each key three times, which takes longer than a layer of a small
    network. What is new, and what is a dict or another logger's, goes Ray's way; so does everything
    until Ray 2.52.
    """
    if not _has_class_per_reduction() or "log_value" in vars(logger):
        return
    from ray.rllib.utils.metrics.stats.base import StatsBase
    from ray.rllib.utils.metrics.stats.sum import SumStats

    rays_value, rays_dict = logger.log_value, logger.log_dict

    def log_value(key: Any, value: Any, **how: Any) -> None:
        found = logger.stats
        for name in (key,) if isinstance(key, str) else key:
            found = found.get(name) if isinstance(found, dict) else None
        if type(found) is SumStats and type(value) is int and type(found.values) is list:
            found.values[:] = [sum(found.values, value)]  # Ray makes an array of both
        elif isinstance(found, StatsBase):
            found.push(value)
        else:
            rays_value(key, value, **how)

    def log_dict(values: Any, *, key: Any = None, **how: Any) -> None:
        if any(isinstance(part, (Mapping, list, tuple)) for part in values.values()):
            rays_dict(values, key=key, **how)
            return
        above = () if key is None else (key,) if isinstance(key, str) else tuple(key)
        for name, value in values.items():
            below = name if isinstance(name, tuple) else (name,)
            log_value((*above, *below), value, **{"reduce": "mean", **how})

    logger.log_value, logger.log_dict = log_value, log_dict


def name_agents(buffer: object) -> None:
    """Lets a replay buffer name agents by strings, whatever their ids are.

    Buffers measure what each agent has added, by its id, since Ray 2.44. The state of a metrics
    logger joins all keys, so that an algorithm can't be saved where ids are numbers.
    """
    if hasattr(buffer, "get_metrics"):
        measured = buffer.get_metrics
        buffer.get_metrics = lambda: _by_strings(measured())


def _by_strings(metrics: object) -> Any:
    """Nested metrics whose keys are strings."""
    if not isinstance(metrics, dict):
        return metrics
    return {str(key): _by_strings(inner) for key, inner in metrics.items()}


def log_item(metrics_logger: MetricsLogger, key: str | tuple[str, ...], item: object) -> None:
    """Logs an object that reaches the result in a list, unreduced and once.

    That was `reduce=None`; the releases with a class per reduction call it `item_series`.
    """
    if _has_class_per_reduction():
        metrics_logger.log_value(key, item, reduce="item_series")
    else:
        metrics_logger.log_value(key, item, reduce=None, clear_on_reduce=True)


def log_sample_end(metrics_logger: MetricsLogger, key: str) -> None:
    """Lets Ray merge what env runners log by `log_item`, where some of them logged nothing.

    Ray 2.47 – 2.52 cannot compare unreduced lists, which they do where just one is not empty; and
    they ask of a value that is alone in its list whether it is NaN, which fails for an object. So
    each sample logs two values, which `items` leaves out.
    """
    from ray.rllib.utils.metrics import stats

    if hasattr(stats, "merge_stats") and not _has_class_per_reduction():
        log_item(metrics_logger, key, False)
        log_item(metrics_logger, key, False)


def items(found: object, kind: type) -> list[Any]:
    """What was logged by `log_item`, from what a result has for it.

    A list that nothing was logged to is NaN in some releases.
    """
    found = found if isinstance(found, Iterable) else [found]
    return [item for item in found if isinstance(item, kind)]


def take_evaluation_items(metrics_logger: MetricsLogger, result: dict[str, Any], key: str) -> None:
    """Puts all items into the result of an evaluation, where a Ray has put the first one.

    `MetricsLogger.peek`, which makes that result, does so in Ray 2.47 – 2.52.
    """
    runners = result.get("env_runners", {})
    if key not in runners or _has_class_per_reduction() or isinstance(runners[key], list):
        return
    stats = metrics_logger.stats.get("evaluation", {}).get("env_runners", {}).get(key)
    if stats is not None:
        runners[key] = list(stats.values)
        # They stay until the next training result otherwise, and an empty list breaks `peek`.
        metrics_logger.delete("evaluation", "env_runners", key)
