"""Fault tolerance: what happens when an env runner dies."""

from __future__ import annotations

from rllib_compat.config.rule import kept, renamed
from rllib_compat.config.values import common as v

FAMILY = "fault_tolerance"

RULES = (
    *renamed(
        FAMILY,
        "fault_tolerance",
        {
            v.FLAG: {
                "ignore_worker_failures": "ignore_env_runner_failures",
                "recreate_failed_workers": "restart_failed_env_runners",
                "recreate_failed_env_runners": "restart_failed_env_runners",
            },
            v.LIMIT: {
                "max_num_worker_restarts": "max_num_env_runner_restarts",
                "num_consecutive_worker_failures_tolerance": (
                    "num_consecutive_env_runner_failures_tolerance"
                ),
            },
            v.SECONDS: {
                "delay_between_worker_restarts_s": "delay_between_env_runner_restarts_s",
                "worker_health_probe_timeout_s": "env_runner_health_probe_timeout_s",
                "worker_restore_timeout_s": "env_runner_restore_timeout_s",
            },
        },
        why="workers are called env runners",
    ),
    *kept(
        FAMILY,
        "fault_tolerance",
        {
            v.FLAG: "restart_failed_env_runners ignore_env_runner_failures "
            "restart_failed_sub_environments",
            v.LIMIT: "max_num_env_runner_restarts num_consecutive_env_runner_failures_tolerance",
            v.SECONDS: "delay_between_env_runner_restarts_s env_runner_health_probe_timeout_s "
            "env_runner_restore_timeout_s",
        },
    ),
)
