"""Observations as networks saw them, after RLlib's preprocessors; the parts of a Dict or Tuple.

RLlib flattened observations of several parts part by part in the order of the space
(`DictFlatteningPreprocessor`, `TupleFlatteningPreprocessor`). Networks for complex observations cut
the vector again, and numbered its parts in the order of `tree.flatten`: of a Dict by the sorted
names (`ray/rllib/utils/spaces/space_utils.py`, `flatten_space`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rllib_compat.networks import refusals
from rllib_compat.networks.settings import ModelSettings, model_setting
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Box, DictSpace, Space, TupleSpace


@frozen
class Component:
    """One part of an observation.

    Attributes:
        space: What it is.
        start: Where it begins in the flat vector.
    """

    space: Space
    start: int

    @property
    def size(self) -> int:
        """How many numbers of the flat vector it is."""
        return self.space.flat_size()

    @property
    def image(self) -> tuple[int, ...] | None:
        """Its shape if it is an image."""
        if isinstance(self.space, Box) and len(self.space.shape) == 3:
            return self.space.shape
        return None


def original_space(space: Space | None) -> Space | None:
    """A space as the environment had it, before a preprocessor flattened it."""
    return space if space is None or space.original_space is None else space.original_space


def require_components(policy: PolicyState) -> list[Component]:
    """The parts of a policy's observations as its network numbers them.

    Raises:
        MissingInformationError: The observation space has to be given.
    """
    space = original_space(policy.observation_space)
    if space is None:
        raise refusals.needed(
            "The network takes observations of several parts; the observation space is needed to "
            "separate them.",
            "parts",
            f"policies.{policy.policy_id}.observation_space",
        )
    return parts_of(space)


def parts_of(space: Space | None) -> list[Component]:
    """The parts of a space as networks number them; one for a space without parts."""
    if space is None:
        return []
    return [part for _, part in sorted(_parts(space, 0), key=lambda found: found[0])]


def _parts(space: Space, start: int) -> Iterator[tuple[tuple[int | str, ...], Component]]:
    """Every part with its path; paths sort as `tree.flatten` does."""
    if isinstance(space, DictSpace):
        ranks = {key: i for i, key in enumerate(sorted(space.spaces))}
        inner = [((ranks[key],), part) for key, part in space.spaces.items()]
    elif isinstance(space, TupleSpace):
        inner = [((i,), part) for i, part in enumerate(space.spaces)]
    else:
        yield (), Component(space, start)
        return
    for rank, part in inner:
        for path, component in _parts(part, start):
            yield (*rank, *path), component
        start += part.flat_size()


#: Frames of this shape were cropped, scaled and shifted (`GenericPixelPreprocessor`, Ray 0.6 – 2.x;
#: `AtariPixelPreprocessor` in 0.5).
ATARI_FRAME = (210, 160, 3)
#: Vectors of this shape were shifted, wherever they came from (`AtariRamPreprocessor`, all Rays).
ATARI_RAM = (128,)

_CENTRED = "(x - 128) / 128"


def preprocessed_image(space: Space | None, settings: ModelSettings) -> tuple[int, ...] | None:
    """The shape of what the preprocessor makes of images; None where a space has no images."""
    if not isinstance(space, Box) or len(space.shape) != 3:
        return None
    return pixels_of(space.shape, settings.model) if is_scaled(space, settings) else space.shape


def is_scaled(space: Space | None, settings: ModelSettings) -> bool:
    """Whether RLlib itself changed the pixels of this space."""
    switched_off = settings.config.get("_disable_preprocessor_api", False)
    return isinstance(space, Box) and space.shape == ATARI_FRAME and not switched_off


def pixels_of(frame: tuple[int, ...], model: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape that `dim` and `grayscale` make of an Atari frame."""
    size = int(model_setting(model, "dim"))
    return (size, size, 1 if model.get("grayscale") else frame[-1])


def require_image(policy: PolicyState, settings: ModelSettings) -> tuple[int, ...]:
    """The shape of the images that a policy's network takes.

    Raises:
        MissingInformationError: The observation space is not known, or has no images.
    """
    image = preprocessed_image(policy.observation_space, settings)
    if image is None:
        raise refusals.needed(
            "The network has convolutions, and the observation space is unknown."
            if policy.observation_space is None
            else f"The network has convolutions; the observation space {policy.observation_space} "
            "has no images.",
            "images",
            f"policies.{policy.policy_id}.observation_space",
        )
    return image


def scaling_findings(policy: PolicyState, settings: ModelSettings) -> list[Finding]:
    """Says what RLlib's preprocessors did to numbers, which today's Ray leaves to the user."""
    if settings.config.get("_disable_preprocessor_api", False):
        return []
    space = original_space(policy.observation_space)
    shapes = {part.space.shape for part in parts_of(space) if isinstance(part.space, Box)}
    changes = []
    if ATARI_FRAME in shapes:
        changes.append((f"frames of {ATARI_FRAME}", _frame_steps(settings.model)))
    if ATARI_RAM in shapes:
        changes.append((f"vectors of {ATARI_RAM}, which it took for an Atari's memory", _CENTRED))
    return [
        Finding.info(
            "preprocessor",
            Verdict.NOTE,
            f"policies.{policy.policy_id}.observation_space",
            f"RLlib itself changed {what}: {steps}; the module takes what came out of that",
            "a connector does the same to what the environment gives; with Ray alone, do it in a "
            "wrapper of the environment",
        )
        for what, steps in changes
    ]


def _frame_steps(model: Mapping[str, Any]) -> str:
    size = model_setting(model, "dim")
    steps = [f"cut off 25 rows above and below, scaled to {size}x{size}"]
    steps += ["made gray"] if model.get("grayscale") else []
    return ", ".join([*steps, _CENTRED if model_setting(model, "zero_mean") else "x / 255"])
