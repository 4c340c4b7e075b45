"""Evaluation beside training."""

from __future__ import annotations

from rllib_compat.config.context import Context
from rllib_compat.config.steps.step import COMPUTED, Change, Given, Step
from rllib_compat.config.today import todays_default
from rllib_compat.neutral.report import Severity

PARALLEL = "evaluation.evaluation_parallel_to_training"
RUNNERS = "evaluation.evaluation_num_env_runners"
DURATION = "evaluation.evaluation_duration"


def _fixed_duration(given: Given, context: Context) -> Change | None:
    if given.get(DURATION) != "auto" or given.get(PARALLEL) is True:
        return None
    duration = todays_default(context.algorithm, DURATION)[1]
    message = f"'auto' needs parallel evaluation; {duration}, Ray's default, is taken"
    return Change({DURATION: duration}, message)


STEPS = (
    Step(
        "evaluation",
        "Evaluation in parallel to training needs env runners of its own.",
        reads=(PARALLEL, RUNNERS),
        sets={PARALLEL: False},
        key="evaluation_parallel_to_training",
        when=lambda given: given.get(PARALLEL) is True and not given.get(RUNNERS),
        says="there are no evaluation env runners that could work in parallel",
        severity=Severity.WARNING,
    ),
    Step(
        "evaluation_duration",
        'A duration of "auto" lasts as long as training does, so it needs parallel evaluation.',
        reads=(DURATION, PARALLEL),
        sets={DURATION: COMPUTED},
        key="evaluation_duration",
        change=_fixed_duration,
        severity=Severity.WARNING,
    ),
)
