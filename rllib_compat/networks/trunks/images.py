"""Observations as networks saw them, after RLlib's preprocessors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.networks import refusals
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.components import original_space, parts_of
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box, Space

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
    size = int(model.get("dim", 84))
    return (size, size, 1 if model.get("grayscale") else frame[-1])


def require_image(policy: PolicyState, settings: ModelSettings) -> tuple[int, ...]:
    """The shape of the images that a policy's network takes.

    Raises:
        MissingInformationError: The observation space is not known, or has no images.
    """
    image = preprocessed_image(policy.observation_space, settings)
    if image is None:
        raise refusals.needed(
            f"The network has convolutions; the observation space {policy.observation_space} has "
            "no images.",
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
    told = []
    if ATARI_FRAME in shapes:
        told.append((f"frames of {ATARI_FRAME}", _frame_steps(settings.model)))
    if ATARI_RAM in shapes:
        told.append((f"vectors of {ATARI_RAM}, which it took for an Atari's memory", _CENTRED))
    return [
        Finding(
            "preprocessor",
            Severity.INFO,
            Verdict.NOTE,
            f"policies.{policy.policy_id}.observation_space",
            f"RLlib itself changed {what}: {steps}; the module takes what came out of that",
            "a connector does the same to what the environment gives; with Ray alone, do it in a "
            "wrapper of the environment",
        )
        for what, steps in told
    ]


def _frame_steps(model: Mapping[str, Any]) -> str:
    size = model.get("dim", 84)
    steps = [f"cut off 25 rows above and below, scaled to {size}x{size}"]
    steps += ["made gray"] if model.get("grayscale") else []
    return ", ".join([*steps, _CENTRED if model.get("zero_mean", True) else "x / 255"])
