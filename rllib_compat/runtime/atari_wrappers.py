"""RLlib's DeepMind wrappers for Atari, with the same bytes as until Ray 2.40.

The tests compare them with recordings of old Rays (`tests/legacy/atari/`). From the inside out: an
episode starts with 1 to 30 no-ops; of four frames, the observation is the maximum of the last two;
an episode ends with a life, and the game is reset only when it is over; FIRE is pressed if the game
has that action; frames are converted to grayscale, resized and stacked.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import FrameStackObservation, MaxAndSkipObservation, TransformObservation

from rllib_compat.runtime.env_settings import EnvSettings
from rllib_compat.runtime.gym_api import adapt_single_agent
from rllib_compat.runtime.preprocessors import Array, gray, resize

#: The number of frames to skip, if the game itself skips none.
SKIP = 4
#: The largest number of no-ops at the start of an episode.
NOOP_MAX = 30


def wrap(
    env: Any,
    *,
    skips: bool,
    dim: int,
    framestack: int | None,
    zeros_first: bool = False,
    **_: object,
) -> gymnasium.Env[Any, Any]:
    """Wraps a game; observations are uint8 arrays `[dim, dim, frames]`.

    Args:
        env: The game, of any gym.
        skips: Whether to skip frames.
        dim: The rows and columns of observations, in pixels.
        framestack: The number of frames in an observation; None: one.
        zeros_first: Whether an episode starts with a stack of zeros instead of its first frame.
    """
    game = env.unwrapped
    inner: gymnasium.Env[Any, Any] = NoopReset(adapt_single_agent(env, EnvSettings(None)), game)
    if skips:
        inner = MaxAndSkipObservation(inner, skip=SKIP)
    inner = EpisodicLife(inner, game)
    if "FIRE" in game.get_action_meanings():
        inner = FireReset(inner)
    inner = TransformObservation(inner, partial(warp, dim=dim), _pixels(dim, 1))
    if framestack is None:
        return inner
    inner = FrameStackObservation(
        inner, framestack, padding_type="zero" if zeros_first else "reset"
    )
    return TransformObservation(inner, _behind_each_other, _pixels(dim, framestack))


def warp(frame: Array, dim: int) -> Array:
    """Converts a frame to grayscale, and resizes it to `[dim, dim, 1]`."""
    return resize(gray(frame), (dim, dim))[:, :, None]


def _behind_each_other(frames: Array) -> Array:
    return np.concatenate(list(frames), axis=-1)


def _pixels(dim: int, frames: int) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(0, 255, (dim, dim, frames), np.uint8)


class GameWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that calls the innermost environment, past the wrappers between."""

    def __init__(self, env: gymnasium.Env[Any, Any], game: Any) -> None:
        super().__init__(env)
        self._game = game


class NoopReset(GameWrapper):
    """Starts an episode with a random number of no-ops, drawn from the game's generator."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        observation, info = self.env.reset(**options)
        generator = self._game.np_random
        draw = generator.integers if hasattr(generator, "integers") else generator.randint
        for _ in range(draw(1, NOOP_MAX + 1)):
            observation, _, *ends, info = self.env.step(0)
            if any(ends):
                observation, info = self.env.reset(**options)
        return observation, info


class EpisodicLife(GameWrapper):
    """Ends an episode when a life is lost, and resets the game only when it is over."""

    _lives = 0
    _is_over = True

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes one step."""
        observation, reward, over, cut, info = self.env.step(action)
        self._is_over = over or cut
        before, self._lives = self._lives, self._game.ale.lives()
        # Some games continue for some frames after the last life.
        lost = 0 < self._lives < before
        return observation, reward, over or lost, cut, info

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Continues with the next life, or resets the game if it is over."""
        if self._is_over:
            observation, info = self.env.reset(**options)
        else:
            observation, *_, info = self.env.step(0)
        self._lives = self._game.ale.lives()
        return observation, info


class FireReset(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Starts games that wait for FIRE: takes actions 1 and 2 at the start of an episode."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        observation, info = self.env.reset(**options)
        for action in (1, 2):
            observation, _, *ends, info = self.env.step(action)
            if any(ends):
                self.env.reset(**options)  # old Rays did not return its observation either
        return observation, info
