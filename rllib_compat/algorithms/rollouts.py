"""Whole episodes with perturbed weights, inside an env runner.

An env runner's own `sample` keeps every step in an episode, and looks at it in a dozen connectors.
Evolution needs an episode's return and length alone; this module bypasses that, and is some
ten times as fast. It uses the runner's environment, module and observation filter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import ray
import torch
import tree
from ray.rllib.core.columns import Columns
from ray.rllib.utils.numpy import convert_to_numpy
from ray.rllib.utils.spaces.space_utils import get_base_struct_from_space, unbatch

from rllib_compat.algorithms.noise import Array
from rllib_compat.neutral.checkpoint import cut_to_integers
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import connectors, env_runners, environments, sampling
from rllib_compat.runtime.observation_connectors import LegacyObservations

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner, RLModule

#: Where neither the environment nor its time limit ends an episode.
_MOST_STEPS = 999_999


@frozen
class Search:
    """How an env runner tries perturbations.

    Attributes:
        noise: The noise table, in the object store.
        stdev: The standard deviation of perturbations.
        eval_prob: The share of episodes that are played without a perturbation, and only logged.
        action_noise: The standard deviation of what is added to the actions of perturbed episodes.
        offset: What is taken from the reward of each step.
        least_seconds: How long an env runner plays for one call.
        seed: What the first environment is reset with; None: nothing.
    """

    noise: Any
    stdev: float
    eval_prob: float
    action_noise: float = 0.0
    offset: float = 0.0
    least_seconds: float = 0.0
    seed: int | None = None


@dataclass
class Rollouts:
    """What came of perturbations, a row for each.

    Attributes:
        places: Where the perturbation begins in the noise table.
        returns: The returns of weights plus and minus it.
        lengths: The episodes' lengths, likewise.
        eval_returns: The returns of episodes without a perturbation.
        eval_lengths: Their lengths.
        metrics: The metrics of the env runner.
    """

    places: list[int] = field(default_factory=list)
    returns: list[tuple[Any, Any]] = field(default_factory=list)
    lengths: list[tuple[int, int]] = field(default_factory=list)
    eval_returns: list[Any] = field(default_factory=list)
    eval_lengths: list[int] = field(default_factory=list)
    metrics: Any = None

    @property
    def steps(self) -> int:
        """How many steps perturbed episodes took."""
        return sum(map(sum, self.lengths))


def try_perturbations(
    env_runner: EnvRunner, center: object, shapes: Mapping[str, tuple[int, ...]], search: Search
) -> Rollouts:
    """Plays pairs of episodes with mirrored perturbations of the weights; at least one pair.

    `center` is one vector in the object store, of arrays with these shapes.
    """
    # A copy: of arrays in the object store, which can't be written, torch warns.
    weights, noise, random = np.array(ray.get(center)), ray.get(search.noise), np.random
    play = _Player(env_runner, search).play
    found, begin = Rollouts(), time.monotonic()
    while not found.places or time.monotonic() - begin < search.least_seconds:
        if random.uniform() < search.eval_prob:
            set_flat(env_runner.module, weights, shapes)
            gain, length = play(noisy=False)
            found.eval_returns.append(gain)
            found.eval_lengths.append(length)
            continue
        place = random.randint(0, len(noise) - len(weights) + 1)
        perturbation = search.stdev * noise[place : place + len(weights)]
        pair = []
        for mirrored in (weights + perturbation, weights - perturbation):
            set_flat(env_runner.module, mirrored, shapes)
            pair.append(play(noisy=True))
        (gain, length), (mirrored_gain, mirrored_length) = pair
        found.places.append(place)
        found.returns.append((gain, mirrored_gain))
        found.lengths.append((length, mirrored_length))
    set_flat(env_runner.module, weights, shapes)
    episodes = 2 * len(found.places)
    found.metrics = env_runners.count_sampled(env_runner, found.steps, episodes)
    return found


def set_flat(module: RLModule, vector: Array, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Sets a module's parameters from one vector; those that it does not have are passed over."""
    parameters, begin = dict(module.named_parameters()), 0
    for name, shape in shapes.items():
        end = begin + int(np.prod(shape))
        if name in parameters:
            value = torch.from_numpy(vector[begin:end].reshape(shape))
            parameters[name].data.copy_(value)
        begin = end


class _Player:
    """Plays episodes in the first environment of an env runner."""

    def __init__(self, env_runner: EnvRunner, search: Search) -> None:
        (self._env, *_) = environments.sub_environments(env_runner.env.unwrapped)
        env_runners.reset_at_the_next_sample(env_runner)
        self._module, self._search = env_runner.module, search
        self._distribution = self._module.get_exploration_action_dist_cls()
        self._forward = sampling.forward_of(self._module, explore=True)
        self._seen = _preprocessor(env_runner, self._env.observation_space)
        self._filter = connectors.observation_filter(env_runner)
        self._integers = getattr(connectors.filter_connector(env_runner), "integers", None)
        self._actions = get_base_struct_from_space(self._env.action_space)
        limit = getattr(getattr(self._env, "spec", None), "max_episode_steps", None)
        self._most_steps = limit or _MOST_STEPS
        if search.seed is not None:
            self._env.reset(seed=search.seed + (env_runner.worker_index or 0))

    def play(self, *, noisy: bool) -> tuple[Any, int]:
        """Plays an episode; its return, less the offset of each step, and its length."""
        rewards = []
        observation, _ = self._env.reset()
        for _ in range(self._most_steps):
            action = self._act(observation, noisy=noisy)
            observation, reward, terminated, truncated, _ = self._env.step(action)
            rewards.append(reward - abs(self._search.offset))
            if terminated or truncated:
                break
        return np.array(rewards, np.float32).sum(), len(rewards)

    @torch.no_grad()
    def _act(self, observation: object, *, noisy: bool) -> Any:
        seen = self._seen(observation)
        if self._filter is not None:
            # Ray's makes integers of integers, which old Rays did from 1.10 on only.
            seen = self._filter(np.asarray(seen, np.float32), update=True)
            seen = cut_to_integers(seen, self._integers)
        batch = {Columns.OBS: torch.as_tensor(np.asarray(seen, np.float32)[None])}
        inputs = self._forward(batch)[Columns.ACTION_DIST_INPUTS]
        known = sampling.draw(self._distribution, inputs.numpy())
        if known is not None:
            drawn, _ = known
        else:
            drawn = convert_to_numpy(self._distribution.from_logits(inputs).sample())
        if noisy and self._search.action_noise:
            drawn = tree.map_structure(self._with_noise, drawn, self._actions)
        return drawn[0] if isinstance(drawn, np.ndarray) else unbatch(drawn)[0]

    def _with_noise(self, action: Any, space: object) -> Any:
        if not (isinstance(space, gymnasium.spaces.Box) and np.dtype(space.dtype).kind == "f"):
            return action
        added = np.random.randn(*action.shape) * self._search.action_noise
        return (action + added).astype(space.dtype)


def _preprocessor(env_runner: EnvRunner, space: Any) -> Callable[[Any], Any]:
    """What the old preprocessors did: one vector of everything but a Box, which stays as it is."""
    pieces = connectors.env_to_module(env_runner).connectors
    made, preprocess = space, _as_it_is
    for piece in pieces:
        if isinstance(piece, LegacyObservations):
            made = piece.recompute_output_observation_space(space, None)
            preprocess = partial(piece.preprocess, space)
    seen = env_runner.module.observation_space
    if isinstance(made, gymnasium.spaces.Box) and made.shape == seen.shape:
        return preprocess
    return lambda observation: gymnasium.spaces.flatten(made, preprocess(observation))


def _as_it_is(observation: object) -> Any:
    return observation
