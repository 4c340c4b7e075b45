"""Adds the legacy keys of Ray 0.5 – 2.x to the installed Ray's results.

Ray's own keys stay. Legacy keys come from values with another name now (`RENAMED`,
`learner_info.py`), from sums of values, and from the records that `CallbackAdapter` sends for each
episode, summarized over the smoothing window as in RLlib.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from itertools import chain, product
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from packaging.version import Version

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import episodes, metrics
from rllib_compat.ray_versions.types import AlgorithmConfig, EnvRunner
from rllib_compat.runtime.learner_info import HELD, LearnerInfo, arrange, learner_stats
from rllib_compat.runtime.policy_mapping import ONLY_POLICY


@public("rllib_compat.adapters")
@frozen
class EpisodeRecord:
    """The record of a finished episode, which an env runner sends to the driver.

    Attributes:
        length: The number of environment steps.
        reward: The sum of all rewards of all agents.
        agent_rewards: The sums of rewards by (agent, policy).
        custom_metrics: The callbacks' metrics.
        hist_data: The callbacks' lists of values for histograms.
        media: The callbacks' objects that the result has unchanged.
        perf_stats: The mean duration of each part of a step, in ms.
    """

    length: int
    reward: float
    agent_rewards: dict[tuple[Any, str], float]
    custom_metrics: dict[str, Any] = field(default_factory=dict)
    hist_data: dict[str, list[Any]] = field(default_factory=dict)
    media: dict[str, Any] = field(default_factory=dict)
    perf_stats: dict[str, float] = field(default_factory=dict)

    #: Fields of later Rays' tuples.
    episode_faulty: ClassVar[bool] = False
    connector_metrics: ClassVar[dict[str, Any]] = {}
    #: The fields of `RolloutMetrics`, the tuple that workers sent to the driver until Ray 2.x.
    _fields: ClassVar[tuple[str, ...]] = (
        "episode_length",
        "episode_reward",
        "agent_rewards",
        "custom_metrics",
        "perf_stats",
        "hist_data",
        "media",
    )

    @property
    def episode_length(self) -> int:
        """`length`, by its name in `RolloutMetrics`."""
        return self.length

    @property
    def episode_reward(self) -> float:
        """`reward`, by its name in `RolloutMetrics`."""
        return self.reward

    def _asdict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}


def take_records(env_runner: EnvRunner) -> list[EpisodeRecord]:
    """Removes the records of ended episodes from a local env runner, and returns them."""
    taken: list[EpisodeRecord] = []
    for adapter in episodes.callbacks_of(env_runner):
        taken += getattr(adapter, "ended", [])
        getattr(adapter, "ended", []).clear()
    return taken


# The key below `env_runners` with the records of finished episodes.
RECORDS = "legacy_episodes"


class RenamedKey(NamedTuple):
    """A legacy key, the paths of its value in the installed Ray, and the conversion.

    Several paths are those of several Rays; the first that exists counts.
    """

    legacy: str
    today: tuple[str, ...]
    convert: Callable[[Any], Any] = int


def _ms(seconds: float) -> float:
    return float(seconds) * 1000.0


def _total(by_agent: Mapping[Any, Any]) -> int:
    counts = by_agent.values()
    return int(sum(map(_measured, counts)))


_TRAINED = "learners/__all_modules__/num_env_steps_trained"
# The learner connectors, which convert episodes to tensors on the learner's device.
_LOADED = "learners/__all_modules__/learner_connector/connector_pipeline_timer"
# The time that IMPALA and APPO wait for samples.
_SAMPLED = "timers/sample"
_AGENTS_TRAINED = "learners/__all_modules__/num_module_steps_trained"
RENAMED = (
    RenamedKey("timesteps_total", ("num_env_steps_sampled_lifetime",)),
    RenamedKey("timesteps_this_iter", ("env_runners/num_env_steps_sampled",)),
    RenamedKey("episodes_total", ("env_runners/num_episodes_lifetime",)),
    RenamedKey(
        "num_healthy_workers", ("fault_tolerance/num_healthy_workers", "num_healthy_workers")
    ),
    RenamedKey(
        "num_remote_worker_restarts",
        ("fault_tolerance/num_remote_worker_restarts", "num_remote_worker_restarts"),
    ),
    RenamedKey(
        "num_in_flight_async_reqs",
        ("env_runner_group/actor_manager_num_outstanding_async_reqs", "num_in_flight_async_reqs"),
    ),
    RenamedKey("agent_timesteps_total", ("env_runners/num_agent_steps_sampled_lifetime",), _total),
    RenamedKey("info/num_steps_sampled", ("num_env_steps_sampled_lifetime",)),
    RenamedKey("info/num_steps_trained", (f"{_TRAINED}_lifetime", "info/num_env_steps_trained")),
    RenamedKey("info/num_steps_trained_this_iter", (_TRAINED,)),
    *(
        RenamedKey(f"{place}/num_weight_syncs", ("apex/num_weight_syncs",))
        for place in ("info", "counters")
    ),
    RenamedKey("counters/num_steps_trained", (f"{_TRAINED}_lifetime",)),
    RenamedKey("counters/num_steps_trained_this_iter", (_TRAINED,)),
    RenamedKey("info/replay_shard_0", ("apex/replay_shard_0",), dict),
    *(
        RenamedKey(f"{place}{name}", (path,), convert)
        for place in ("info/", "", "counters/")  # Ray 2.0 – 2.9 had them at all three
        for name, path, convert in (
            ("num_env_steps_sampled", "num_env_steps_sampled_lifetime", int),
            ("num_env_steps_trained", f"{_TRAINED}_lifetime", int),
            ("num_agent_steps_sampled", "env_runners/num_agent_steps_sampled_lifetime", _total),
            ("num_agent_steps_trained", f"{_AGENTS_TRAINED}_lifetime", int),
        )
    ),
    RenamedKey("num_env_steps_sampled_this_iter", ("env_runners/num_env_steps_sampled",)),
    RenamedKey("num_env_steps_trained_this_iter", (_TRAINED,)),
    RenamedKey("timers/sample_time_ms", ("timers/env_runner_sampling_timer", _SAMPLED), _ms),
    RenamedKey("timers/learn_time_ms", ("timers/learner_update_timer",), _ms),
    RenamedKey("timers/load_time_ms", (_LOADED,), _ms),
    RenamedKey("timers/update_time_ms", ("timers/synch_weights",), _ms),
    RenamedKey("timers/synch_weights_time_ms", ("timers/synch_weights",), _ms),
    RenamedKey("timers/training_iteration_time_ms", ("timers/training_iteration",), _ms),
    # Those of A3C.
    RenamedKey("timers/grad_wait_time_ms", ("timers/grad_wait",), _ms),
    RenamedKey("timers/apply_grad_time_ms", ("timers/apply_grad",), _ms),
    # As the optimizers of Ray 0.5 – 0.8 had them.
    RenamedKey("info/sample_time_ms", ("timers/env_runner_sampling_timer", _SAMPLED), _ms),
    RenamedKey("info/grad_time_ms", ("timers/learner_update_timer",), _ms),
    RenamedKey("info/update_time_ms", ("timers/synch_weights",), _ms),
    RenamedKey("info/load_time_ms", (_LOADED,), _ms),
    RenamedKey("info/opt_samples", (_TRAINED,), float),
    RenamedKey("optimizer_steps_this_iter", ("num_training_step_calls_per_iteration",)),
)
SAMPLER_PERF = tuple(
    RenamedKey(f"sampler_perf/mean_{name}_ms", (f"env_runners/{timer}",), _ms)
    for name, timer in (
        ("inference", "rlmodule_inference_timer"),
        ("env_wait", "env_step_timer"),
        ("env_render", "env_render_timer"),
        ("raw_obs_processing", "env_to_module_connector/connector_pipeline_timer"),
        ("processing", "env_to_module_connector/connector_pipeline_timer"),  # until Ray 0.8
        ("action_processing", "module_to_env_connector/connector_pipeline_timer"),
    )
)

# What the thread does in which IMPALA and APPO learn → its timer.
THREAD_TIMES = {
    "grad": "learner_thread_update_timer",
    "load": "gpu_loader_load_to_gpu_timer",
    "load_wait": "gpu_loader_queue_wait_timer",
    "dequeue": "learner_thread_in_queue_wait_timer",
}

# Counters of trained steps, which are 0 before the first update.
COUNTED = (
    "info/num_steps_trained",
    "info/num_steps_trained_this_iter",
    *(f"{place}num_{whose}_steps_trained" for place in ("info/", "") for whose in ("env", "agent")),
)

# The results of ES and ARS, which have no records of episodes: only the mean of those without a
# perturbation.
EVOLUTION = (
    RenamedKey("episode_reward_mean", ("env_runners/episode_return_mean",), float),
    RenamedKey("episode_len_mean", ("env_runners/episode_len_mean",), float),
    RenamedKey("episodes_this_iter", ("env_runners/num_episodes",)),
    RenamedKey("info/episodes_this_iter", ("env_runners/num_episodes",)),
    RenamedKey("info/episodes_so_far", ("env_runners/num_episodes_lifetime",)),
    *(
        RenamedKey(f"info/{name}", (f"learners/default_policy/{name}",), float)
        for name in ("weights_norm", "weights_std", "grad_norm", "update_ratio")
    ),
)

# The counters of algorithms with target networks, over all policies.
TARGET_COUNTERS = ("num_target_updates", "last_target_update_ts")

# A time below `timers` → the name of its throughput, and the path of its steps per iteration.
THROUGHPUTS = {
    "sample_time_ms": ("sample_throughput", "env_runners/num_env_steps_sampled"),
    "learn_time_ms": ("learn_throughput", _TRAINED),
    "load_time_ms": ("load_throughput", _TRAINED),
    "apply_grad_time_ms": ("apply_grad_throughput", _TRAINED),
}

# A throughput → its name below `info` in Ray 0.5 – 0.8.
PEAKS = {"sample_throughput": "sample_peak_throughput", "learn_throughput": "opt_peak_throughput"}


class LegacyResults:
    """The results of one algorithm, with the episodes of the smoothing window.

    Args:
        ray: The Ray whose structure `info/learner` has; None: the last legacy one.
        names_only_policy: See `learner_info.names_only_policy`.
    """

    def __init__(self, ray: Version | None = None, *, names_only_policy: bool = True) -> None:
        self._form = ray, names_only_policy
        self._history: list[EpisodeRecord] = []
        self._counted = {"timesteps_total": 0, "episodes_total": 0}
        self._thread = LearnerThreadStatistics()
        # The last statistics of each policy, for algorithms that learn asynchronously.
        self._learned: dict[str, Any] = {}

    def complete(
        self,
        result: dict[str, Any],
        config: AlgorithmConfig,
        td_errors: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Adds the legacy keys to `result`.

        Args:
            result: The result of `Algorithm.train()`.
            config: The algorithm's config, with the size of the smoothing window and whether custom
                metrics are reduced.
            td_errors: The TD errors of each policy's last batch.
        """
        window = config.metrics_num_episodes_for_smoothing
        new = _take_records(result)
        # All new episodes, and older ones up to the size of the window.
        episodes = _newest(self._history + new, max(window, len(new)))
        self._history = _newest(episodes, window)
        keep = config.keep_per_episode_custom_metrics
        summary = summarize(episodes, len(new), keep_metrics=keep)
        result.update(_summary_of_old_stack(result) or summary)
        if isinstance(evaluation := result.get("evaluation"), dict):
            complete_evaluation(evaluation, config)
        evolves = _get(result, "learners/default_policy/update_ratio") is not None
        _rename(result, (*RENAMED, *SAMPLER_PERF, *(EVOLUTION if evolves else ())))
        for legacy in COUNTED:
            if _get(result, legacy) is None:  # there was no update yet
                _set(result, legacy, 0)
        if getattr(config, "count_steps_by", None) == "agent_steps":
            result["timesteps_total"] = result.get("agent_timesteps_total", 0)
            of_agents = _get(result, "env_runners/num_agent_steps_sampled") or {}
            result["timesteps_this_iter"] = _total(of_agents)
        if config.input_ == "sampler":  # if all workers fail, an iteration has no sample
            result.setdefault("timesteps_this_iter", 0)
            episodes_before = self._counted["episodes_total"]
            for name, before in self._counted.items():
                self._counted[name] = result.setdefault(name, before)
            # Tune added up the counts of iterations; Ray does not count those of an execution plan.
            so_far = episodes_before + result["episodes_this_iter"]
            result["episodes_total"] = max(result["episodes_total"] or 0, so_far)
            self._counted["episodes_total"] = result["episodes_total"]
        else:
            _count_agents_of_recordings(result)
        info = result.setdefault("info", {})
        # The old API stack has its own statistics there, by all legacy names.
        info["learner"] = LearnerInfo(
            (policy, LearnerInfo(stats) if isinstance(stats, Mapping) else stats)
            for policy, stats in info.get("learner", {}).items()
        )
        has_targets = getattr(config, "target_network_update_freq", None) is not None
        for name in TARGET_COUNTERS if has_targets else ():
            info.setdefault(name, 0)
        for policy, stats in result.get("learners", {}).items():
            # Old results had no entry for policies that did not learn.
            if policy != "__all_modules__" and isinstance(stats, Mapping) and set(stats) - HELD:
                made = LearnerInfo(learner_stats=learner_stats(stats))
                if policy in td_errors:
                    errors = np.asarray(td_errors[policy])
                    made.update(td_error=errors, mean_td_error=float(errors.mean()))
                info["learner"][policy] = made
                for name in TARGET_COUNTERS:
                    count = stats.get(name)
                    if count is not None and count == count:  # NaN: none in this iteration
                        info[name] = max(info.get(name, 0), int(count))
        for name in TARGET_COUNTERS:
            if name in info:
                _set(result, f"counters/{name}", info[name])
        if hasattr(config, "broadcast_interval"):  # IMPALA and APPO repeated the last statistics
            self._learned.update(info["learner"])
            info["learner"].update(self._learned)
            self._thread.complete(result)
        for key in ("sampler_perf", "timers", "off_policy_estimator"):
            result.setdefault(key, {})
        ray, named = self._form
        info["learner"] = arrange(info["learner"], ray, named=named)
        for name, (throughput, steps) in THROUGHPUTS.items():
            if (time := result["timers"].get(name)) and (count := _get(result, steps)):
                result["timers"][throughput] = float(count) / time * 1000.0
                if throughput in PEAKS:
                    info[PEAKS[throughput]] = info[throughput] = result["timers"][throughput]
        _repeat(result)

    @property
    def episodes(self) -> list[EpisodeRecord]:
        """The episodes in the smoothing window."""
        return list(self._history)

    def summary(self, config: AlgorithmConfig) -> dict[str, Any]:
        """Summarizes the episodes in the smoothing window."""
        return summarize(self._history, 0, keep_metrics=config.keep_per_episode_custom_metrics)


def _count_agents_of_recordings(result: dict[str, Any]) -> None:
    """Counts the steps of a recording as those of the one agent that it is of."""
    steps, learned = result.get("num_env_steps_sampled"), _get(result, _TRAINED)
    if steps is None:
        return
    result.setdefault("num_env_steps_sampled_this_iter", int(_measured(learned)))
    result.setdefault("agent_timesteps_total", steps)
    for place in ("info/", "", "counters/"):
        if _get(result, path := f"{place}num_agent_steps_sampled") is None:
            _set(result, path, steps)


class LearnerThreadStatistics:
    """The statistics of the thread in which IMPALA and APPO learn, as old Rays had them."""

    def __init__(self) -> None:
        # As many lengths of the queue as the statistics are of.
        self._lengths: deque[float] = deque(maxlen=50)
        self._count = self._broadcasts = 0

    def complete(self, result: dict[str, Any]) -> None:
        """Adds them to a result; those of the old API stack are there."""
        info, found = result["info"], _get(result, "learners/__all_modules__")
        if not isinstance(found, Mapping):
            return
        self._lengths.append(_measured(found.get("queue_size_learner_thread_queue")))
        self._count += 1
        self._broadcasts += int(_measured(result.get("num_weight_broadcasts")))
        info["num_weight_broadcasts"] = info["num_weight_syncs"] = self._broadcasts
        info["learner_queue"] = {
            "size_count": self._count,
            "size_mean": float(np.mean(self._lengths)),
            "size_std": float(np.std(self._lengths)),
            "size_quantiles": np.percentile(self._lengths, [0, 10, 50, 90, 100]).tolist(),
        }
        info["timing_breakdown"] = {
            f"learner_{name}_time_ms": _ms(found.get(timer, 0.0))
            for name, timer in THREAD_TIMES.items()
        } | {"optimizer_step_time_ms": _ms(_get(result, "timers/training_step") or 0.0)}


def _measured(value: Any) -> float:
    """A number of a result; 0 where nothing was measured: Ray leaves it out, or has NaN."""
    return 0.0 if value is None or value != value else float(value)


def complete_evaluation(result: dict[str, Any], config: AlgorithmConfig) -> dict[str, Any]:
    """Adds the legacy keys to the result of an evaluation, and returns it."""
    episodes = _take_records(result)
    if episodes or "episode_reward_mean" not in result:  # a custom function may return its own
        keep = config.keep_per_episode_custom_metrics
        summary = summarize(episodes, len(episodes), keep_metrics=keep)
        result.update(_summary_of_old_stack(result) or summary)
    steps = _get(result, "env_runners/num_env_steps_sampled")
    result.setdefault("timesteps_this_iter", int(_measured(steps)))
    for name in ("off_policy_estimator", "sampler_perf", "timers"):
        result.setdefault(name, {})
    _rename(result, SAMPLER_PERF)
    _repeat(result)
    return result


def _repeat(result: dict[str, Any]) -> None:
    """Copies the keys of episodes to the places where newer Rays had them, too.

    In Ray 2.0 – 2.10 that was `sampler_results`, in 2.11 – 2.39 `env_runners`, where the installed
    Ray's own values stay.
    """
    summary = {key: result[key] for key in summarize([], 0) if key in result}
    more = {key: result[key] for key in ("sampler_perf", "off_policy_estimator") if key in result}
    result["sampler_results"] = {**summary, **more}
    result["env_runners"] = {**summary, **result.get("env_runners", {})}


def summarize(
    episodes: list[EpisodeRecord], num_new: int, *, keep_metrics: bool = False
) -> dict[str, Any]:
    """Reduces records of episodes to the keys of legacy results."""
    rewards = [episode.reward for episode in episodes]
    lengths = [episode.length for episode in episodes]
    by_policy = _group(
        (policy, reward)
        for episode in episodes
        for (_, policy), reward in episode.agent_rewards.items()
        if policy != ONLY_POLICY  # a single agent's rewards are the episode's
    )
    custom = _group(pair for episode in episodes for pair in episode.custom_metrics.items())
    custom_lists = {name: [v for v in custom[name] if not np.any(np.isnan(v))] for name in custom}
    lists = _group(pair for episode in episodes for pair in episode.hist_data.items())
    summary: dict[str, Any] = {
        "episode_len_mean": _statistic("mean", lengths),
        "episodes_this_iter": num_new,
        "custom_metrics": custom_lists,
        "hist_stats": {
            **{name: list(chain.from_iterable(lists[name])) for name in lists},
            "episode_reward": rewards,
            "episode_lengths": lengths,
            **{f"policy_{policy}_reward": by_policy[policy] for policy in by_policy},
        },
        "episode_media": _group(pair for e in episodes for pair in e.media.items()),
    }
    if not keep_metrics:
        names = product(custom_lists, _STATISTICS)
        summary["custom_metrics"] = {
            f"{n}_{kind}": _statistic(kind, custom_lists[n]) for n, kind in names
        }
    for kind in _STATISTICS:
        summary[f"episode_reward_{kind}"] = _statistic(kind, rewards)
        summary[f"policy_reward_{kind}"] = {p: _statistic(kind, by_policy[p]) for p in by_policy}
    return summary


_STATISTICS: dict[str, Callable[[Any], Any]] = {"mean": np.mean, "min": np.min, "max": np.max}


def _newest(episodes: list[EpisodeRecord], count: int) -> list[EpisodeRecord]:
    return episodes[max(0, len(episodes) - count) :]


def _statistic(kind: str, values: list[Any]) -> float:
    """The mean, minimum or maximum; of nothing it is NaN."""
    return float(_STATISTICS[kind](values)) if values else math.nan


def _group(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Groups values by name, in their order."""
    groups: dict[str, list[Any]] = {}
    for name, value in pairs:
        groups.setdefault(name, []).append(value)
    return groups


def _summary_of_old_stack(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the old API stack's own summary below `env_runners`, if there is one."""
    runners = result.get("env_runners", {})
    if "episode_reward_mean" not in runners:
        return {}
    names = (*summarize([], 0), "sampler_perf", "off_policy_estimator")
    return {key: runners[key] for key in names if key in runners}


def _rename(result: dict[str, Any], rows: Iterable[RenamedKey]) -> None:
    """Copies values to their legacy keys."""
    for legacy, paths, convert in rows:
        value = next((v for path in paths if (v := _get(result, path)) is not None), None)
        if value is not None and value == value:  # NaN: nothing was counted
            _set(result, legacy, convert(value))
    if result.get("sampler_perf"):  # nothing was rendered
        result["sampler_perf"].setdefault("mean_env_render_ms", 0.0)
    if "learn_time_ms" in result.get("timers", {}):  # Ray 2.40 does not measure the loading
        for place in (result["timers"], result.setdefault("info", {})):
            place.setdefault("load_time_ms", 0.0)
        result["timers"].setdefault("load_throughput", 0.0)


def _take_records(result: dict[str, Any]) -> list[EpisodeRecord]:
    """Removes the records from a result, and returns them: loggers cannot use them."""
    return metrics.items(result.get("env_runners", {}).pop(RECORDS, ()), EpisodeRecord)


def _get(result: object, path: str) -> Any:
    for name in path.split("/"):
        result = result.get(name) if isinstance(result, Mapping) else None
    return result


def _set(result: dict[str, Any], path: str, value: object) -> None:
    *parents, name = path.split("/")
    for parent in parents:
        result = result.setdefault(parent, {})
    result[name] = value
