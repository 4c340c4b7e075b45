"""Reporting, logging and checkpointing."""

from __future__ import annotations

from typing import Any

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, kept, lost, renamed
from rllib_compat.neutral.report import Verdict

FAMILY = "reporting"


def _at_least(name: str) -> Any:
    def convert(value: Any, _: Context) -> Outcome:
        if value == -1:
            return Outcome(verdict=Verdict.DROPPED, message="it was left to the default")
        return Outcome({f"reporting.{name}": value or None if "time_s" in name else value or 0})

    return convert


def _timesteps(value: Any, context: Context) -> Outcome:
    kind = "train" if registry.of(context.algorithm).offline else "sample"
    return _at_least(f"min_{kind}_timesteps_per_iteration")(value, context)  # type: ignore[no-any-return]


RULES = (
    *(
        Rule(
            FAMILY,
            old,
            Verdict.RENAMED,
            why,
            target=f"reporting.{new}",
            convert=_at_least(new),
        )
        for old, new, why in (
            ("min_iter_time_s", "min_time_s_per_iteration", "seconds, as before"),
            ("min_time_s_per_reporting", "min_time_s_per_iteration", "renamed in Ray 2.0"),
            (
                "min_sample_timesteps_per_reporting",
                "min_sample_timesteps_per_iteration",
                "renamed in Ray 2.0",
            ),
            (
                "min_train_timesteps_per_reporting",
                "min_train_timesteps_per_iteration",
                "renamed in Ray 2.0",
            ),
        )
    ),
    Rule(
        FAMILY,
        "timesteps_per_iteration",
        Verdict.RENAMED,
        "sampled steps, or trained ones where nothing is sampled",
        target="reporting.min_sample_timesteps_per_iteration",
        convert=_timesteps,
    ),
    *renamed(
        FAMILY,
        "reporting",
        {
            "metrics_smoothing_episodes": "metrics_num_episodes_for_smoothing",
            "collect_metrics_timeout": "metrics_episode_collection_timeout_s",
            "report_length": "metrics_num_episodes_for_smoothing",
            "stats_cls_lookup": "custom_stats_cls_lookup",
        },
    ),
    *kept(
        FAMILY,
        "reporting",
        "keep_per_episode_custom_metrics metrics_episode_collection_timeout_s "
        "metrics_num_episodes_for_smoothing min_time_s_per_iteration "
        "min_train_timesteps_per_iteration min_sample_timesteps_per_iteration log_gradients",
    ),
    *kept(FAMILY, "debugging", "log_level log_sys_usage seed"),
    *kept(FAMILY, "checkpointing", "export_native_model_files checkpoint_trainable_policies_only"),
    Rule(
        FAMILY,
        "fake_sampler",
        Verdict.DROPPED,
        "a switch for RLlib's own debugging",
        old_target="debugging.fake_sampler",
    ),
    *lost(
        FAMILY,
        "logger_config logger_creator",
        "RLlib has no loggers of its own since Ray 2.53",
        hint="give Tune's RunConfig callbacks, and storage_path for the place",
    ),
)
