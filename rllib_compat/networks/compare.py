"""Holds a network against the config and the spaces.

Named weights say themselves what network they are; the config adds what no array shows (the
activation, strides). A contradiction is an error: then the config belongs to another checkpoint,
and what it adds would be a guess. A few keys were ignored by some Rays: there the weights are
followed, and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rllib_compat.networks import refusals
from rllib_compat.networks.named import Named
from rllib_compat.networks.settings import distribution_inputs
from rllib_compat.networks.trunks.images import preprocessed_image
from rllib_compat.neutral.report import Finding


def require_outputs(named: Named, have: int) -> None:
    """Makes sure that a policy gives what its action distribution takes.

    Raises:
        CheckpointError: It gives more or fewer numbers.
    """
    space = named.policy.action_space
    wanted = None if space is None else distribution_inputs(space)
    if space is not None and wanted is not None and wanted != have:
        raise refusals.other_space("action", space, have, wanted, named.where)


def require_inputs(named: Named, have: Sequence[int]) -> None:
    """Makes sure that a network takes what the preprocessor makes of an observation.

    Args:
        named: The arrays.
        have: The shape of what it takes.

    Raises:
        CheckpointError: It takes more or fewer numbers.
    """
    space = named.policy.observation_space
    if space is None:
        return
    image = preprocessed_image(space, named.settings)
    wanted = space.flat_size() if image is None else math.prod(image)
    if wanted != math.prod(have):
        raise refusals.other_space("observation", space, math.prod(have), wanted, named.where)


def require_hiddens(
    named: Named, have: Sequence[int], said: Sequence[int] | None, of: str = ""
) -> None:
    """Makes sure that hidden layers have the sizes that the config says.

    Args:
        named: The arrays.
        have: The sizes that the arrays have.
        said: What the config says; None: nothing.
        of: The part of the network, where it has several.

    Raises:
        CheckpointError: They have others.
    """
    if said is not None and list(said) != list(have):
        raise refusals.other_hiddens(have, said, named.where, of)


def require_told(named: Named, found: dict[str, Any]) -> None:
    """Makes sure that keys of `model` say what the arrays show.

    Args:
        named: The arrays.
        found: What they show, by the key that would say it.

    Raises:
        CheckpointError: The config says something else.
    """
    for key, have in found.items():
        said = named.settings.model.get(key)
        if said is not None and said != have:
            raise refusals.other_config(key, have, said, named.where)


def ignored(named: Named, **found: bool) -> list[Finding]:
    """What the report says of keys that some Rays ignored.

    Args:
        named: The arrays.
        found: What they show, by key: `vf_share_layers` or `free_log_std`.
    """
    settings = named.settings
    said = {"vf_share_layers": settings.shares_layers, "free_log_std": settings.free_log_std}
    return [
        named.note(
            f"the config says {key}={said[key]}, the weights were made with {have} (some Rays "
            "ignored the key); the weights are followed"
        )
        for key, have in found.items()
        if said[key] != have
    ]
