"""Checks of the whole config: settings that the installed Ray's `validate()` checks together.

Each step reads the settings that the rules made, changes those that conflict, and reports it.
Values that a grid search varies are left alone: each trial settles them for itself.
"""

from __future__ import annotations

from rllib_compat.config.rule import Context, Settings
from rllib_compat.config.steps import learning, offline, sampling

#: The steps in their order: a later one sees what an earlier one has set.
STEPS = (
    *sampling.ENVIRONMENT,
    *sampling.BATCHES,
    *learning.REPLAY,
    *learning.EXPLORATION,
    *learning.GRADIENTS,
    *sampling.EVALUATION,
    *offline.STEPS,
    *sampling.SEQUENCES,
)

#: Steps that come before the defaults of the legacy Ray are looked at: they give a successor what
#: makes it the algorithm that it replaces.
FIRST = learning.SUCCESSORS


def apply_first(settings: Settings, context: Context) -> None:
    """Applies `FIRST` in place."""
    for step in FIRST:
        step.apply(settings, context)


def apply_steps(settings: Settings, context: Context) -> None:
    """Applies `STEPS` in place."""
    for step in STEPS:
        step.apply(settings, context)
