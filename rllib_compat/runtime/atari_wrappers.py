"""The wrappers of DeepMind's experiments as RLlib had them until Ray 2.40, to the byte.

What the old Rays did was recorded (`tests/legacy/atari/`). From the game outwards: 1 to 30 frames
are waited for when an episode begins; of four frames, the brighter of the last two is seen; an
episode ends with a life, and the game is only reset when it is over; FIRE is pressed where there is
such an action; frames become gray and small; and four of them lie one behind the other.
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

#: How many frames are skipped where the game itself skips none.
SKIP = 4
#: At most so many frames are waited for.
WAITED = 30


def wrap(
    env: Any,
    *,
    skips: bool,
    dim: int,
    framestack: int | None,
    zeros_first: bool = False,
    **_: object,
) -> gymnasium.Env[Any, Any]:
    """A game in the wrappers; observations are bytes from 0 to 255, `[dim, dim, frames]`.

    Args:
        env: The game, of any gym.
        skips: Whether frames are skipped.
        dim: Rows and columns of what is seen.
        framestack: How many frames are seen at once; None: one.
        zeros_first: Whether zeros lie before an episode's first frame, not that frame itself.
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
    """A frame gray and small, `[dim, dim, 1]`."""
    return resize(gray(frame), (dim, dim))[:, :, None]


def _behind_each_other(frames: Array) -> Array:
    return np.concatenate(list(frames), axis=-1)


def _pixels(dim: int, frames: int) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(0, 255, (dim, dim, frames), np.uint8)


class GameWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """What asks the game itself, whatever lies between."""

    def __init__(self, env: gymnasium.Env[Any, Any], game: Any) -> None:
        super().__init__(env)
        self._game = game


class NoopReset(GameWrapper):
    """Begins an episode with a number of frames, drawn by the game, in which nothing is done."""

    def reset(self, **told: Any) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        observation, info = self.env.reset(**told)
        generator = self._game.np_random
        draw = generator.integers if hasattr(generator, "integers") else generator.randint
        for _ in range(draw(1, WAITED + 1)):
            observation, _, *ends, info = self.env.step(0)
            if any(ends):
                observation, info = self.env.reset(**told)
        return observation, info


class EpisodicLife(GameWrapper):
    """Ends an episode with each life, and resets the game only when it is over."""

    _lives = 0
    _is_over = True

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes one step."""
        observation, reward, over, cut, info = self.env.step(action)
        self._is_over = over or cut
        before, self._lives = self._lives, self._game.ale.lives()
        # Some games go on for some frames without a life.
        lost = 0 < self._lives < before
        return observation, reward, over or lost, cut, info

    def reset(self, **told: Any) -> tuple[Any, dict[str, Any]]:
        """Goes on with the next life, or starts a game."""
        if self._is_over:
            observation, info = self.env.reset(**told)
        else:
            observation, *_, info = self.env.step(0)
        self._lives = self._game.ale.lives()
        return observation, info


class FireReset(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Starts games that wait for FIRE: an episode begins with it, and with the action behind it."""

    def reset(self, **told: Any) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        observation, info = self.env.reset(**told)
        for action in (1, 2):
            observation, _, *ends, info = self.env.step(action)
            if any(ends):
                self.env.reset(**told)  # what it shows is not seen
        return observation, info
