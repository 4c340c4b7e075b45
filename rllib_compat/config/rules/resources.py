"""Resources: CPUs, GPUs and memory of the main process, the env runners and the learners."""

from __future__ import annotations

from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, dropped, kept, lost, renamed
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Words, Yours
from rllib_compat.neutral.report import Verdict

FAMILY = "resources"
PLACEMENT = Words(("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"))
ENVIRONS = Yours("environment variables", (dict,))


def learners(context: Context) -> int:
    """How many learners the config asks for, by any of the names that this ever had."""
    for key in ("num_learners", "num_learner_workers", "num_trainer_workers"):
        given = context.get(key)
        if isinstance(given, int) and given > 0:
            return given
    gpus = context.get("num_gpus")
    return int(gpus) if isinstance(gpus, (int, float)) and gpus > 1 else 1


def _num_gpus(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"resources.num_gpus": value})
    if not isinstance(value, (int, float)):
        return Outcome({"learners.num_gpus_per_learner": value})
    if "num_gpus_per_learner" in context.config:
        return Outcome(verdict=Verdict.DROPPED, message="`num_gpus_per_learner` says it")
    fake = bool(context.get("_fake_gpus"))
    if value <= 1:
        return Outcome({"learners.num_gpus_per_learner": 0 if fake else value})
    return Outcome(
        {"learners.num_learners": int(value), "learners.num_gpus_per_learner": 0 if fake else 1},
        message=f"{int(value)} learners with one GPU each",
    )


def _gpu(value: Any, context: Context) -> Outcome:
    share = (context.get("gpu_fraction") or 1) if value else 0
    target = "resources.num_gpus" if context.stack == "old" else "learners.num_gpus_per_learner"
    return Outcome({target: share})


def _gpu_fraction(_: Any, context: Context) -> Outcome:
    return _gpu(context.get("gpu"), context)


def _gpu_for_workers(value: Any, _: Context) -> Outcome:
    return Outcome({"env_runners.num_gpus_per_env_runner": int(bool(value))})


RULES = (
    Rule(
        FAMILY,
        "num_gpus",
        Verdict.CONVERTED,
        "GPUs belong to learners: up to one GPU for the local learner, else a learner for each",
        target="learners.num_gpus_per_learner",
        old_target="resources.num_gpus",
        convert=_num_gpus,
        value=v.CPUS | v.AUTO,
    ),
    Rule(
        FAMILY,
        "gpu",
        Verdict.CONVERTED,
        "a switch before Ray 0.6; now the learner's share of GPUs",
        target="learners.num_gpus_per_learner",
        convert=_gpu,
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "gpu_fraction",
        Verdict.CONVERTED,
        "the learner's share of a GPU, if `gpu` was on",
        target="learners.num_gpus_per_learner",
        convert=_gpu_fraction,
        value=v.CPUS,
    ),
    Rule(
        FAMILY,
        "use_gpu_for_workers",
        Verdict.CONVERTED,
        "one GPU per env runner, or none",
        target="env_runners.num_gpus_per_env_runner",
        convert=_gpu_for_workers,
        value=v.FLAG,
    ),
    *renamed(
        FAMILY,
        "env_runners",
        {
            v.CPUS: {
                "num_cpus_per_worker": "num_cpus_per_env_runner",
                "num_gpus_per_worker": "num_gpus_per_env_runner",
            },
            v.RESOURCES: {"custom_resources_per_worker": "custom_resources_per_env_runner"},
        },
    ),
    *renamed(
        FAMILY,
        "resources",
        {
            v.CPUS: {
                "num_cpus_for_driver": "num_cpus_for_main_process",
                "num_cpus_for_local_worker": "num_cpus_for_main_process",
            },
        },
    ),
    *renamed(
        FAMILY,
        "learners",
        {
            v.STARTED: {
                "num_learner_workers": "num_learners",
                "num_trainer_workers": "num_learners",
            },
            v.CPUS | v.AUTO: {
                "num_gpus_per_learner_worker": "num_gpus_per_learner",
                "num_gpus_per_trainer_worker": "num_gpus_per_learner",
                "num_cpus_per_learner_worker": "num_cpus_per_learner",
                "num_cpus_per_trainer_worker": "num_cpus_per_learner",
            },
        },
        why="workers that compute gradients are called learners",
        old_target="",
    ),
    *kept(
        FAMILY,
        "resources",
        {
            v.CPUS: "num_cpus_for_main_process",
            v.RESOURCES: "custom_resources_for_main_process",
            PLACEMENT: "placement_strategy",
        },
    ),
    *kept(
        FAMILY,
        "env_runners",
        {
            v.CPUS: "num_cpus_per_env_runner num_gpus_per_env_runner",
            v.RESOURCES: "custom_resources_per_env_runner",
        },
    ),
    *kept(
        FAMILY,
        "learners",
        {
            v.STARTED: "num_learners num_aggregator_actors_per_learner local_gpu_idx",
            v.CPUS | v.AUTO: "num_gpus_per_learner num_cpus_per_learner",
            v.RESOURCES: "custom_resources_per_learner",
            v.LENGTH: "max_requests_in_flight_per_aggregator_actor "
            "max_requests_in_flight_per_learner",
        },
        old_target="",
    ),
    Rule(
        FAMILY,
        "_fake_gpus",
        Verdict.DROPPED,
        "a learner without GPUs needs no fake ones; `num_gpus` then counts learners",
        old_target="resources._fake_gpus",
        value=v.FLAG,
    ),
    *lost(
        FAMILY,
        "memory object_store_memory memory_per_worker object_store_memory_per_worker",
        "memory quotas of RLlib's actors are gone",
        hint="give the trial's memory in Tune's placement group",
    ),
    *kept(
        FAMILY,
        "python_environment",
        # Variables of the processes that train: they can make Python load anything.
        {ENVIRONS: "extra_python_environs_for_driver extra_python_environs_for_worker"},
    ),
    *dropped(FAMILY, "simple_optimizer", "the installed Ray chooses between its update paths"),
)
