"""`gym.wrappers`: gymnasium's, around old environments and with their old arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium.wrappers
import numpy as np

from rllib_compat.gym.core import ObservationWrapper, Wrapper, make_old_class
from rllib_compat.gym.registration import TimeLimit

__all__ = ["Monitor", "TimeAwareObservation", "TimeLimit", "capped_cubic_video_schedule"]

#: Old names → gymnasium's.
_RENAMED = {
    "AutoResetWrapper": "Autoreset",
    "FrameStack": "FrameStackObservation",
    "GrayScaleObservation": "GrayscaleObservation",
    "PixelObservationWrapper": "AddRenderObservation",
}

#: What the arguments until gym 0.26 are in gymnasium; each has the old signature.
_ARGUMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "FilterObservation": lambda env, filter_keys=None: {
        "filter_keys": list(env.observation_space) if filter_keys is None else filter_keys
    },
    "FrameStack": lambda _, num_stack, lz4_compress=False: {"stack_size": num_stack},  # noqa: ARG005
    "RecordEpisodeStatistics": lambda _, deque_size=100: {"buffer_length": deque_size},
    "RescaleAction": lambda _, a=None, b=None, min_action=None, max_action=None: {
        "min_action": a if min_action is None else min_action,  # until gym 0.19 they were a and b
        "max_action": b if max_action is None else max_action,
    },
    "ResizeObservation": lambda _, shape: {
        "shape": (shape, shape) if isinstance(shape, int) else tuple(shape)
    },
    "TransformObservation": lambda _, f: {"func": f, "observation_space": None},
    "TransformReward": lambda _, f: {"func": f},
}


class Monitor(Wrapper):
    """Counts episodes, as `gym.wrappers.Monitor` did; it records no videos, and says so."""

    def __init__(self, env: object, directory: object = None, **_: object) -> None:
        super().__init__(env)
        self._rewards: list[float] = []
        self._lengths: list[int] = []
        warnings.warn(
            f"gym.wrappers.Monitor does not record to {directory}. Use "
            "gymnasium.wrappers.RecordVideo, with an environment of render_mode='rgb_array'.",
            stacklevel=2,
        )

    def reset(self, **kwargs: object) -> Any:
        """Starts an episode."""
        self._rewards.append(0.0)
        self._lengths.append(0)
        return super().reset(**kwargs)

    def step(self, action: object) -> Any:
        """Takes one step."""
        result = super().step(action)
        self._rewards[-1] += float(result[1])
        self._lengths[-1] += 1
        return result

    def get_episode_rewards(self) -> list[float]:
        """The sum of each episode, and of the one that runs."""
        return self._rewards

    def get_episode_lengths(self) -> list[int]:
        """The steps of each episode, and of the one that runs."""
        return self._lengths

    def get_total_steps(self) -> int:
        """All steps."""
        return sum(self._lengths)


class TimeAwareObservation(ObservationWrapper):
    """Appends the number of steps to a Box; gymnasium's wants to know the limit."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        box = env.observation_space
        self.observation_space = gymnasium.spaces.Box(
            np.append(box.low, 0.0), np.append(box.high, np.inf), dtype=np.float32
        )
        self.t = 0

    def reset(self, **kwargs: object) -> Any:
        """Starts an episode."""
        self.t = 0
        return super().reset(**kwargs)

    def step(self, action: object) -> Any:
        """Takes one step."""
        self.t += 1
        return super().step(action)

    def observation(self, observation: Any) -> Any:
        """The observation, and the number of steps."""
        return np.append(observation, self.t)


def capped_cubic_video_schedule(episode_id: int) -> bool:
    """Whether an episode is recorded: cubes below 1,000, and each thousandth from there on."""
    cube = round(episode_id ** (1 / 3)) ** 3 == episode_id
    return cube if episode_id < 1000 else episode_id % 1000 == 0


def __getattr__(name: str) -> Any:
    today = getattr(gymnasium.wrappers, _RENAMED.get(name, name), None)
    if not isinstance(today, type):
        raise AttributeError(f"module 'gym.wrappers' has no attribute {name!r}")
    made = make_old_class(name, today, __name__)
    if name in _ARGUMENTS:

        def make(env: object, *args: object, **kwargs: object) -> Any:
            return today(env, **_ARGUMENTS[name](env, *args, **kwargs))

        made.todays = staticmethod(make)  # type: ignore[attr-defined]
    return made
