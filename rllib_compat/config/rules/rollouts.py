"""Rollouts: how many env runners sample, and what a fragment is."""

from __future__ import annotations

from typing import Any

from rllib_compat import ray_versions, registry
from rllib_compat.config.context import Context
from rllib_compat.config.deferred import MeanStdConnector
from rllib_compat.config.rule import Outcome, Rule, dropped, kept, lost, renamed, rllib_class
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Whole, Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "rollouts"
FRAGMENT = Whole(1, ample=1_000_000) | v.AUTO
FILTER = Words(("NoFilter", "MeanStdFilter", "ConcurrentMeanStdFilter"))
# Ray 2.41 – 2.51 have the member's name, all others its value.
VECTORIZE = Words(
    ("sync", "async", "vector_entry_point"),
    also={"SYNC": "sync", "ASYNC": "async", "VECTOR_ENTRY_POINT": "vector_entry_point"},
)


def _observation_filter(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"env_runners.observation_filter": value}, Verdict.KEPT)
    if registry.of(context.algorithm).reader == "evolution" and value in FILTER.words:
        return _filter_of_evolution(value, context)
    if value in (None, "NoFilter"):
        return Outcome(verdict=Verdict.DROPPED, message="no filter was asked for")
    if value in ("MeanStdFilter", "ConcurrentMeanStdFilter"):
        connector = MeanStdConnector(multi_agent=context.has_policies)
        return Outcome({"env_runners.env_to_module_connector": connector})
    return Outcome(
        verdict=Verdict.REFUSED,
        message=f"no connector does what the filter {value!r} did",
        severity=Severity.ERROR,
        hint="write it as a ConnectorV2 and pass it as env_to_module_connector",
    )


def _filter_of_evolution(value: Any, context: Context) -> Outcome:
    """ES and ARS normalise unless they are told not to."""
    if context.path.startswith("$.evaluation_config"):
        return Outcome(verdict=Verdict.DROPPED, message="evaluation sees what training sees")
    if value == "NoFilter":
        return Outcome({"env_runners.env_to_module_connector": None}, message="no filter")
    return Outcome(verdict=Verdict.KEPT, message="observations are normalised by default")


def _remote_worker_envs(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"env_runners.remote_worker_envs": bool(value)}, Verdict.KEPT)
    if not value:
        return Outcome(verdict=Verdict.DROPPED, message="it was switched off, as it is by default")
    return _vectorize_mode("async", context)


def _vectorize_mode(value: Any, _: Context) -> Outcome:
    """By the installed Ray's spelling; a legacy default comes by that of its own."""
    mode = ray_versions.vectorize_mode(value) if isinstance(value, str) else value
    return Outcome({"env_runners.gym_env_vectorize_mode": mode})


def _sync_filters(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"env_runners.update_worker_filter_stats": bool(value)})
    if value:
        return Outcome(verdict=Verdict.DROPPED, message="the new connectors are always merged")
    return Outcome(
        verdict=Verdict.DROPPED,
        message="filters of the env runners are merged all the same",
        severity=Severity.WARNING,
    )


RULES = (
    *renamed(
        FAMILY,
        "env_runners",
        {
            v.STARTED: {
                "num_workers": "num_env_runners",
                "num_rollout_workers": "num_env_runners",
                "num_envs_per_worker": "num_envs_per_env_runner",
            },
            FRAGMENT: {"sample_batch_size": "rollout_fragment_length"},
            v.FLAG: {
                "create_env_on_driver": "create_env_on_local_worker",
                "validate_workers_after_construction": "validate_env_runners_after_construction",
            },
            v.LENGTH: {
                "max_sample_requests_in_flight_per_worker": "max_requests_in_flight_per_env_runner",
                "max_requests_in_flight_per_sampler_worker": (
                    "max_requests_in_flight_per_env_runner"
                ),
            },
            v.CODE: {
                "_env_to_module_connector": "env_to_module_connector",
                "_module_to_env_connector": "module_to_env_connector",
            },
        },
    ),
    *kept(
        FAMILY,
        "env_runners",
        {
            v.STARTED: "num_env_runners num_envs_per_env_runner "
            "env_runner_state_server_max_concurrency",
            v.FLAG: "create_local_env_runner create_env_on_local_worker "
            "validate_env_runners_after_construction "
            "add_default_connectors_to_env_to_module_pipeline "
            "add_default_connectors_to_module_to_env_pipeline broadcast_env_runner_states "
            "use_env_runner_state_server episodes_to_numpy",
            v.SECONDS: "sample_timeout_s",
            v.LENGTH: "max_requests_in_flight_per_env_runner episode_lookback_horizon",
            v.FLAG | Words(("training_only",)): "merge_env_runner_states",
            FRAGMENT: "rollout_fragment_length",
            Words(("truncate_episodes", "complete_episodes")): "batch_mode",
        },
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.RENAMED if key == "worker_cls" else Verdict.KEPT,
            target="env_runners.env_runner_cls",
            convert=rllib_class("env_runners.env_runner_cls"),
            value=v.CODE,
        )
        for key in ("env_runner_cls", "worker_cls")
    ),
    *kept(FAMILY, "env_runners", {VECTORIZE: "gym_env_vectorize_mode"}, convert=_vectorize_mode),
    Rule(
        FAMILY,
        "observation_filter",
        Verdict.WRAPPED,
        "a connector between environment and module",
        target="env_runners.env_to_module_connector",
        old_target="env_runners.observation_filter",
        convert=_observation_filter,
        needs_old=callable,
        value=FILTER | v.CODE,
    ),
    Rule(
        FAMILY,
        "remote_worker_envs",
        Verdict.CONVERTED,
        "sub-environments in processes of their own",
        target="env_runners.gym_env_vectorize_mode",
        old_target="env_runners.remote_worker_envs",
        convert=_remote_worker_envs,
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "synchronize_filters",
        Verdict.RENAMED,
        "the new API stack merges connector states by itself",
        old_target="env_runners.update_worker_filter_stats",
        convert=_sync_filters,
        value=v.FLAG,
    ),
    *dropped(
        FAMILY,
        "use_worker_filter_stats update_worker_filter_stats",
        "the new API stack merges connector states by itself",
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.DROPPED,
            why,
            old_target=f"env_runners.{key}",
            value=value,
        )
        for key, value, why in (
            (
                "compress_observations",
                v.FLAG,
                "episodes are not compressed; give output columns instead",
            ),
            (
                "remote_env_batch_wait_ms",
                v.AMOUNT,
                "Gymnasium's vector environments wait for all",
            ),
            ("enable_tf1_exec_eagerly", v.FLAG, "there is no TensorFlow 1 any more"),
            (
                "sampler_perf_stats_ema_coef",
                v.SHARE,
                "timers of env runners are not smoothed this way",
            ),
            ("sample_collector", v.CODE, "episodes collect samples now"),
        )
    ),
    *lost(
        FAMILY,
        "sample_async",
        "the asynchronous sampler was removed in Ray 2.10",
        hint="env runners of IMPALA and APPO sample asynchronously",
    ),
    *dropped(
        FAMILY,
        "sync_filters_on_rollout_workers_timeout_s enable_connectors use_exec_api "
        "_use_trajectory_view_api",
        "an inner switch of one generation of RLlib",
    ),
)
