"""What only the whole config can tell: settings that today's `validate()` checks together.

Each step looks at the settings that the rules made, mends what can't stand together, and says so.
Values that a grid search varies are left alone: each trial settles them for itself.
"""

from __future__ import annotations

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Settings
from rllib_compat.config.steps import (
    batches,
    environment,
    evaluation,
    exploration,
    gradients,
    offline,
    replay,
    sequences,
    successors,
)

#: The steps in their order: a later one sees what an earlier one has set.
STEPS = (
    *environment.STEPS,
    *batches.STEPS,
    *replay.STEPS,
    *exploration.STEPS,
    *gradients.STEPS,
    *evaluation.STEPS,
    *offline.STEPS,
    *sequences.STEPS,
)

#: Steps that come before the defaults of the legacy Ray are looked at.
FIRST = successors.STEPS


def begin(settings: Settings, context: Context) -> None:
    """Gives a successor what makes it the algorithm that it stands in for."""
    for step in FIRST:
        step.apply(settings, context)


def settle(settings: Settings, context: Context) -> None:
    """Mends `settings` in place, step by step."""
    for step in STEPS:
        step.apply(settings, context)
