"""The resources of the old machine, and those of the one at hand.

A checkpoint of a machine with four GPUs and thirty workers would not load on a laptop: Ray waits
for what is not there. So more than there is becomes what there is, with a row that tells both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from rllib_compat import ray_versions
from rllib_compat.conversion.given import Given
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: Methods of `AlgorithmConfig` and their arguments.
Calls: TypeAlias = "dict[str, dict[str, Any]]"

_RUNNERS = ("env_runners", "num_env_runners")
_EVALUATORS = ("evaluation", "evaluation_num_env_runners")
_LEARNERS = ("learners", "num_learners")
_LEARNER_GPUS = ("learners", "num_gpus_per_learner")
_RUNNER_GPUS = ("env_runners", "num_gpus_per_env_runner")


def fit(
    calls: Mapping[str, Mapping[str, Any]], given: Given, defaults: Any = None
) -> tuple[Calls, list[Finding]]:
    """Makes the resources of a config fit this machine.

    Args:
        calls: The translated config, by method.
        given: What the caller asks for.
        defaults: An `AlgorithmConfig` that has what no call names: Ray's default for IMPALA is a
            remote learner and two env runners, which may be more than there is.

    Returns:
        The calls, and a finding for each number that is another one now.
    """
    made = {method: dict(arguments) for method, arguments in calls.items()}
    findings: list[Finding] = []

    def told(setting: tuple[str, str]) -> float:
        method, argument = setting
        value = made.get(method, {}).get(argument, getattr(defaults, argument, 0))
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0

    def put(setting: tuple[str, str], value: int, why: str, hint: str) -> None:
        method, argument = setting
        before = made.get(method, {}).get(argument)
        if before == value:
            return
        if before is None and (default := getattr(defaults, argument, None)) is not None:
            before, hint = f"not set (Ray's default is {default})", ""
        made.setdefault(method, {})[argument] = value
        message = f"{argument} was {before if before is not None else 'not set'}, and is {value}: "
        severity = Severity.WARNING if hint else Severity.INFO
        findings.append(
            Finding("resources", severity, Verdict.RESET, f"$.{argument}", message + why, hint)
        )

    if given.num_env_runners is not None:
        put(_RUNNERS, given.num_env_runners, "you asked for it", "")
    if given.num_gpus is not None:
        learners = 0 if given.num_gpus <= 1 else given.num_gpus
        put(_LEARNERS, learners, "you asked for it", "")
        put(_LEARNER_GPUS, min(given.num_gpus, 1), "you asked for it", "")
    if given.keep_resources:
        return made, findings

    gpus, cpus = _gpus(), os.cpu_count() or 1
    keep = "--num-gpus N, or --keep-resources"
    if given.num_gpus is None and told(_LEARNER_GPUS) * max(told(_LEARNERS), 1) > gpus:
        why = f"this machine has {gpus} GPUs"
        if told(_LEARNERS) > max(gpus, 1):
            put(_LEARNERS, gpus, why, keep)
        put(_LEARNER_GPUS, min(gpus, 1), why, keep)
    if told(_RUNNER_GPUS) * told(_RUNNERS) > gpus:
        put(_RUNNER_GPUS, 0, f"this machine has {gpus} GPUs", "--keep-resources")
    why = f"this machine has {cpus} CPUs"
    by_cpu = 0 if told(_LEARNER_GPUS) else int(told(_LEARNERS))  # remote learners take one each
    if given.num_gpus is None and by_cpu >= cpus:
        by_cpu = min(cpus - 1, 1)
        put(_LEARNERS, by_cpu, why, keep)
    most = max(cpus - max(by_cpu, 1), 1)
    if given.num_env_runners is None and told(_RUNNERS) > most:
        put(_RUNNERS, most, why, "--num-env-runners N, or --keep-resources")
    if told(_EVALUATORS) > most:
        put(_EVALUATORS, most, why, "--keep-resources")
    here = not told(_LEARNER_GPUS) and not told(_LEARNERS)
    if here and cpus > 1 and ray_versions.learns_elsewhere(defaults):
        put(_LEARNERS, 1, "without a GPU, this Ray has the learner in a process of its own", "")
    return made, findings


def _gpus() -> int:
    import torch

    return int(torch.cuda.device_count())
