"""`gym.wrappers`: gymnasium's, around old environments and with their old arguments."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium.wrappers
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import utils

from rllib_compat.gym.core import (
    ActionWrapper,
    ObservationWrapper,
    RewardWrapper,
    Wrapper,
    make_old_class,
)
from rllib_compat.gym.registration import TimeLimit

__all__ = [
    "AutoResetWrapper",
    "ClipAction",
    "FlattenObservation",
    "FrameStack",
    "LazyFrames",
    "Monitor",
    "NormalizeObservation",
    "NormalizeReward",
    "PixelObservationWrapper",
    "RecordEpisodeStatistics",
    "RunningMeanStd",
    "TimeAwareObservation",
    "TimeLimit",
    "TransformObservation",
    "TransformReward",
    "capped_cubic_video_schedule",
]

#: Mean and variance of all that was seen; it has no types.
RunningMeanStd: Any = utils.RunningMeanStd

#: Old names → gymnasium's.
_RENAMED = {"GrayScaleObservation": "GrayscaleObservation"}

#: What the arguments until gym 0.26 are in gymnasium; each has the old signature.
_ARGUMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "FilterObservation": lambda env, filter_keys=None: {
        "filter_keys": list(env.observation_space) if filter_keys is None else filter_keys
    },
    "RescaleAction": lambda _, a=None, b=None, min_action=None, max_action=None: {
        "min_action": a if min_action is None else min_action,  # until gym 0.19 they were a and b
        "max_action": b if max_action is None else max_action,
    },
    "ResizeObservation": lambda _, shape: {
        "shape": (shape, shape) if isinstance(shape, int) else tuple(shape)
    },
}


class _Normalizing(Wrapper):
    """Wraps one environment or a vector of them."""

    def __init__(self, env: Any, epsilon: float) -> None:
        super().__init__(env)
        self.num_envs = getattr(env, "num_envs", 1)
        self.is_vector_env = getattr(env, "is_vector_env", False)
        self.epsilon = epsilon


class NormalizeObservation(_Normalizing):
    """Subtracts the mean of all observations, and divides by their deviation."""

    def __init__(self, env: Any, epsilon: float = 1e-8) -> None:
        super().__init__(env, epsilon)
        one = self.single_observation_space if self.is_vector_env else self.observation_space
        self.obs_rms = RunningMeanStd(shape=one.shape)

    def reset(self, **kwargs: Any) -> Any:
        return self.normalize(super().reset(**kwargs))

    def step(self, action: object) -> Any:
        obs, *more = super().step(action)
        return (self.normalize(obs), *more)

    def normalize(self, obs: Any) -> Any:
        """The observation by what was seen, and this one."""
        self.obs_rms.update(obs if self.is_vector_env else np.array([obs]))
        return (obs - self.obs_rms.mean) / np.sqrt(self.obs_rms.var + self.epsilon)


class NormalizeReward(_Normalizing):
    """Divides rewards by the deviation of discounted returns."""

    def __init__(self, env: Any, gamma: float = 0.99, epsilon: float = 1e-8) -> None:
        super().__init__(env, epsilon)
        self.return_rms, self.gamma = RunningMeanStd(), gamma
        self.returns = np.zeros(self.num_envs)

    def step(self, action: object) -> Any:
        obs, rewards, ended, infos = super().step(action)
        self.returns = self.returns * self.gamma + rewards
        scaled = self.normalize(rewards)
        self.returns[np.atleast_1d(ended)] = 0.0
        return obs, scaled, ended, infos

    def normalize(self, rewards: Any) -> Any:
        """Rewards by the returns so far."""
        self.return_rms.update(self.returns)
        return rewards / np.sqrt(self.return_rms.var + self.epsilon)


class AutoResetWrapper(Wrapper):
    """Starts the next episode with the step that ends one (gym 0.24)."""

    def step(self, action: object) -> Any:
        """Takes one step; at the end, the observation is the first of the next episode."""
        obs, reward, ends, about = super().step(action)
        if ends:
            about = {**about, "final_observation": obs, "final_info": about}
            obs = self.env.reset()
        return obs, reward, ends, about


class ClipAction(ActionWrapper):
    """Clips actions to their space."""

    def action(self, action: Any) -> Any:
        return np.clip(action, self.action_space.low, self.action_space.high)


class FlattenObservation(ObservationWrapper):
    """Makes one vector of an observation."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = spaces.flatten_space(env.observation_space)

    def observation(self, observation: Any) -> Any:
        return spaces.flatten(self.env.observation_space, observation)


class TransformObservation(ObservationWrapper):
    """Changes observations by a function."""

    def __init__(self, env: Any, f: Callable[[Any], Any]) -> None:
        super().__init__(env)
        self.f = f

    def observation(self, observation: Any) -> Any:
        return self.f(observation)


class TransformReward(RewardWrapper):
    """Changes rewards by a function."""

    def __init__(self, env: Any, f: Callable[[Any], Any]) -> None:
        super().__init__(env)
        self.f = f

    def reward(self, reward: Any) -> Any:
        return self.f(reward)


class LazyFrames:
    """Several observations, which become one array when they are asked for."""

    def __init__(self, frames: Sequence[Any], lz4_compress: bool = False) -> None:
        self.frame_shape, self.dtype = frames[0].shape, frames[0].dtype
        self.shape = (len(frames), *self.frame_shape)
        self.lz4_compress = lz4_compress
        self._frames = list(frames)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._frames, dtype=dtype)

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: Any) -> Any:
        return self._frames[index] if isinstance(index, int) else np.stack(self._frames[index])

    def __eq__(self, other: object) -> Any:
        return np.asarray(self) == other

    __hash__ = None  # type: ignore[assignment]


class FrameStack(ObservationWrapper):
    """Observes the last observations; the first stands for those before it."""

    def __init__(self, env: Any, num_stack: int, lz4_compress: bool = False) -> None:
        super().__init__(env)
        self.num_stack, self.lz4_compress = num_stack, lz4_compress
        self.frames: deque[Any] = deque(maxlen=num_stack)
        one = self.observation_space
        low, high = (np.stack([bound] * num_stack) for bound in (one.low, one.high))
        self.observation_space = spaces.Box(low, high, dtype=one.dtype)

    def reset(self, **kwargs: Any) -> Any:
        self.frames.extend([self.env.reset(**kwargs)] * self.num_stack)
        return self._stacked()

    def observation(self, observation: Any) -> Any:
        self.frames.append(observation)
        return self._stacked()

    def _stacked(self) -> LazyFrames:
        return LazyFrames(list(self.frames), self.lz4_compress)


class PixelObservationWrapper(ObservationWrapper):
    """Observes what is drawn, alone or (`pixels_only=False`) beside what the environment gives."""

    def __init__(
        self,
        env: Any,
        pixels_only: bool = True,
        render_kwargs: Mapping[str, Mapping[str, Any]] | None = None,
        pixel_keys: Sequence[str] = ("pixels",),
    ) -> None:
        super().__init__(env)
        self._kwargs = {
            key: {**(render_kwargs or {}).get(key, {}), "mode": "rgb_array"} for key in pixel_keys
        }
        inside, self._beside = env.observation_space, not pixels_only
        parts = dict(inside) if isinstance(inside, spaces.Dict) else {"state": inside}
        if self._beside and set(parts) & set(pixel_keys):
            raise ValueError(f"The environment observes {sorted(set(parts) & set(pixel_keys))}.")
        drawn = {
            key: spaces.Box(0, 255, picture.shape, picture.dtype)
            for key, picture in self._drawn().items()
        }
        self.observation_space = spaces.Dict({**(parts if self._beside else {}), **drawn})

    def observation(self, observation: Any) -> Any:
        """The pictures, and what the environment gives."""
        parts = observation if isinstance(observation, dict) else {"state": observation}
        return {**(parts if self._beside else {}), **self._drawn()}

    def _drawn(self) -> dict[str, Any]:
        return {key: self.env.render(**kwargs) for key, kwargs in self._kwargs.items()}


class RecordEpisodeStatistics(Wrapper):
    """Puts the sum of an episode's rewards and its length into its last info."""

    def __init__(self, env: Any, deque_size: int = 100) -> None:
        super().__init__(env)
        self.num_envs = getattr(env, "num_envs", 1)
        self.is_vector_env = getattr(env, "is_vector_env", False)
        self.t0, self.episode_count = time.perf_counter(), 0
        self.return_queue: deque[Any] = deque(maxlen=deque_size)
        self.length_queue: deque[Any] = deque(maxlen=deque_size)

    def reset(self, **kwargs: Any) -> Any:
        self.episode_returns = np.zeros(self.num_envs, np.float32)
        self.episode_lengths = np.zeros(self.num_envs, np.int32)
        return super().reset(**kwargs)

    def step(self, action: object) -> Any:
        obs, rewards, dones, infos = super().step(action)
        self.episode_returns += rewards
        self.episode_lengths += 1
        rows = list(infos) if self.is_vector_env else [infos]
        for index in np.flatnonzero(dones):
            total, length = self.episode_returns[index], self.episode_lengths[index]
            seconds = round(time.perf_counter() - self.t0, 6)
            rows[index] = {**rows[index], "episode": {"r": total, "l": length, "t": seconds}}
            self.return_queue.append(total)
            self.length_queue.append(length)
            self.episode_count += 1
            self.episode_returns[index] = self.episode_lengths[index] = 0
        return obs, rewards, dones, rows if self.is_vector_env else rows[0]


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
        self._rewards.append(0.0)
        self._lengths.append(0)
        return super().reset(**kwargs)

    def step(self, action: object) -> Any:
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
        self.t = 0
        return super().reset(**kwargs)

    def step(self, action: object) -> Any:
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
