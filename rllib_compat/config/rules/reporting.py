"""Reporting, logging and checkpointing."""

from __future__ import annotations

import math
from typing import Any

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, kept, lost, renamed
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import Name, Table
from rllib_compat.config.values.kinds import Whole, Words
from rllib_compat.neutral.report import Verdict

FAMILY = "reporting"

LOG_LEVEL = Words(("DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL"))
#: The name of a statistic → the class that computes it.
STATS = Table(Name("a statistic"), v.CODE)


def _at_least(name: str) -> Any:
    def convert(value: Any, _: Context) -> Outcome:
        if value == -1:
            return Outcome(verdict=Verdict.DROPPED, message="it was left to the default")
        if "time_s" in name:
            return Outcome({f"reporting.{name}": value or None})
        whole = math.ceil(value) if isinstance(value, float) and math.isfinite(value) else value
        return Outcome({f"reporting.{name}": whole or 0})  # as YAML reads 1e4 as a float

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
            value=v.MINIMUM,
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
    *(
        Rule(
            FAMILY,
            key,
            Verdict.KEPT,
            target=f"reporting.{key}",
            convert=_at_least(key),
            value=v.MINIMUM,
        )
        for key in ("min_sample_timesteps_per_iteration", "min_train_timesteps_per_iteration")
    ),
    Rule(
        FAMILY,
        "timesteps_per_iteration",
        Verdict.RENAMED,
        "sampled steps, or trained ones where nothing is sampled",
        target="reporting.min_sample_timesteps_per_iteration",
        convert=_timesteps,
        value=v.MINIMUM,
    ),
    *renamed(
        FAMILY,
        "reporting",
        {
            v.LENGTH: {
                "metrics_smoothing_episodes": "metrics_num_episodes_for_smoothing",
                "report_length": "metrics_num_episodes_for_smoothing",
            },
            v.SECONDS: {"collect_metrics_timeout": "metrics_episode_collection_timeout_s"},
            STATS: {"stats_cls_lookup": "custom_stats_cls_lookup"},
        },
    ),
    *kept(
        FAMILY,
        "reporting",
        {
            v.FLAG: "keep_per_episode_custom_metrics log_gradients",
            v.SECONDS: "metrics_episode_collection_timeout_s min_time_s_per_iteration",
            v.LENGTH: "metrics_num_episodes_for_smoothing",
        },
    ),
    *kept(FAMILY, "debugging", {LOG_LEVEL: "log_level", v.FLAG: "log_sys_usage", Whole(): "seed"}),
    *kept(
        FAMILY,
        "checkpointing",
        {v.FLAG: "export_native_model_files checkpoint_trainable_policies_only"},
    ),
    Rule(
        FAMILY,
        "fake_sampler",
        Verdict.DROPPED,
        "a switch for RLlib's own debugging",
        old_target="debugging.fake_sampler",
        value=v.FLAG,
    ),
    *lost(
        FAMILY,
        "logger_config logger_creator",
        "RLlib has no loggers of its own since Ray 2.53",
        hint="give Tune's RunConfig callbacks, and storage_path for the place",
    ),
)
