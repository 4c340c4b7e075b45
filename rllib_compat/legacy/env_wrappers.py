"""Wrappers of `ray.rllib.env.wrappers` that the installed Ray lacks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.wrappers import atari_wrappers
from ray.rllib.utils.error import UnsupportedSpaceException
from ray.rllib.utils.spaces.space_utils import convert_element_to_space_type

from rllib_compat import gym
from rllib_compat.runtime.atari_wrappers import wrap
from rllib_compat.runtime.user_envs import TODAYS_GYM

__all__ = [
    "MultiDiscreteToDiscreteActionWrapper",
    "RecSimObservationBanditWrapper",
    "RecSimObservationSpaceWrapper",
    "RecSimResetWrapper",
    "ScaledFloatFrame",
    "add_RewardUncertaintyEnvClassWrapper",
    "make_recsim_env",
    "recsim_gym_wrapper",
    "wrap_deepmind",
]


class ScaledFloatFrame(gym.ObservationWrapper):
    """Images as numbers from 0 to 1."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        shape = env.observation_space.shape
        self.observation_space = spaces.Box(low=0, high=1, shape=shape, dtype=np.float32)

    def observation(self, observation: object) -> Any:
        """The numbers."""
        return np.asarray(observation, np.float32) / 255.0


def wrap_deepmind(env: Any, dim: int = 84, framestack: bool = True, **todays: Any) -> Any:
    """A game with RLlib's wrappers for Atari; Ray's own for code that imports gymnasium itself."""
    if os.environ.get(TODAYS_GYM):
        return atari_wrappers.wrap_deepmind(env, dim, framestack, **todays)
    skips = "NoFrameskip" in getattr(env.spec, "id", "")
    return gym.OldApi(wrap(env, skips=skips, dim=dim, framestack=4 if framestack else None))


def add_RewardUncertaintyEnvClassWrapper(  # noqa: N802 - its name
    EnvClass: Any,  # noqa: N803
    reward_uncertainty_std: float,
    reward_uncertainty_mean: float = 0.0,
) -> type:
    """A class of environments of several agents whose rewards have normal noise."""

    class RewardUncertaintyEnvClassWrapper(EnvClass):  # type: ignore[misc]
        """The environment, with noise."""

        def step(self, action: Any) -> Any:
            found = list(super().step(action))
            found[1] = self.reward_wrapper(found[1])
            return tuple(found)

        def reward_wrapper(self, reward_dict: dict[Any, float]) -> dict[Any, float]:
            for agent in reward_dict:
                noise = float(np.random.normal(reward_uncertainty_mean, reward_uncertainty_std))
                reward_dict[agent] += noise
            return reward_dict

    return RewardUncertaintyEnvClassWrapper


class RecSimResetWrapper(gym.Wrapper):
    """Adds the `response` that RecSim's observation space has to the first observation."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._like = self.env.observation_space.sample()

    def reset(self, **kwargs: Any) -> Any:
        """The first observation, with any response."""
        seen = self.env.reset(**kwargs)
        space: Any = self.env.observation_space
        seen["response"] = space["response"].sample()
        return convert_element_to_space_type(seen, self._like)

    def close(self) -> None:
        """Does nothing."""


class RecSimObservationSpaceWrapper(gym.ObservationWrapper):
    """Names documents by their position, since their own names change with each step."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        space: Any = self.env.observation_space
        documents = {str(place): part for place, part in enumerate(space["doc"].spaces.values())}
        parts = {"user": space["user"], "doc": spaces.Dict(documents)}
        self.observation_space = spaces.Dict({**parts, "response": space["response"]})
        self._like = self.observation_space.sample()

    def observation(self, observation: Any) -> Any:
        """The same, with positions for names."""
        documents = {str(place): doc for place, doc in enumerate(observation["doc"].values())}
        return convert_element_to_space_type({**observation, "doc": documents}, self._like)


class RecSimObservationBanditWrapper(gym.ObservationWrapper):
    """Documents as the table `item`, which bandits choose from."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        space: Any = self.env.observation_space
        documents = list(space["doc"].spaces.values())
        shape = len(documents), documents[0].shape[-1]
        self.observation_space = spaces.Dict({"item": spaces.Box(-1.0, 1.0, shape)})
        self._like = self.observation_space.sample()

    def observation(self, observation: Any) -> Any:
        """The table alone."""
        table = np.vstack(list(observation["doc"].values()))
        return convert_element_to_space_type({"item": table}, self._like)


class MultiDiscreteToDiscreteActionWrapper(gym.ActionWrapper):
    """Numbers several choices as one.

    Raises:
        UnsupportedSpaceException: The action space is no MultiDiscrete.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        if not isinstance(env.action_space, spaces.MultiDiscrete):
            needed = f"{type(self).__name__} needs a MultiDiscrete action space"
            raise UnsupportedSpaceException(f"{needed}, not {env.action_space}.")
        self.action_space_dimensions = env.action_space.nvec
        self.action_space = spaces.Discrete(int(np.prod(self.action_space_dimensions)))

    def action(self, action: object) -> list[int]:
        """The choices: the first changes fastest."""
        chosen = []
        for count in self.action_space_dimensions:
            action, choice = divmod(action, count)
            chosen.append(choice)
        return chosen


def recsim_gym_wrapper(
    recsim_gym_env: object,
    convert_to_discrete_action_space: bool = False,
    wrap_for_bandits: bool = False,
) -> Any:
    """An environment of RecSim for RLlib."""
    env: Any = RecSimObservationSpaceWrapper(RecSimResetWrapper(recsim_gym_env))
    if convert_to_discrete_action_space:
        env = MultiDiscreteToDiscreteActionWrapper(env)
    return RecSimObservationBanditWrapper(env) if wrap_for_bandits else env


#: Defaults of an environment's config.
_RECSIM: Mapping[str, Any] = {
    "num_candidates": 10,
    "slate_size": 2,
    "resample_documents": True,
    "seed": 0,
    "convert_to_discrete_action_space": False,
    "wrap_for_bandits": False,
}


def make_recsim_env(
    recsim_user_model_creator: Callable[[Any], Any],
    recsim_document_sampler_creator: Callable[[Any], Any],
    reward_aggregator: Callable[[Any], float],
) -> type:
    """A class of environments of the package `recsim`, which has to be installed."""

    class RecSimEnv(gym.Wrapper):
        """An environment of RecSim."""

        def __init__(self, config: Any = None) -> None:
            from recsim.simulator import environment, recsim_gym  # type: ignore[import-not-found]

            context = config if isinstance(config, EnvContext) else EnvContext(config or {}, 0)
            context.set_defaults(dict(_RECSIM))
            raw = environment.SingleUserEnvironment(
                recsim_user_model_creator(context),
                recsim_document_sampler_creator(context),
                context["num_candidates"],
                context["slate_size"],
                resample_documents=context["resample_documents"],
            )
            discrete, bandits = "convert_to_discrete_action_space", "wrap_for_bandits"
            env = recsim_gym.RecSimGymEnv(raw, reward_aggregator)
            super().__init__(recsim_gym_wrapper(env, context[discrete], context[bandits]))

    return RecSimEnv
