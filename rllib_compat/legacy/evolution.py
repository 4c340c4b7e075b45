"""`es`, `es.utils`, `es.optimizers` and `ars`: noise, ranks and steps, in numpy."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import ray
import torch
from ray.rllib.env.env_context import EnvContext
from ray.rllib.policy.policy_template import build_policy_class

from rllib_compat.algorithms import noise
from rllib_compat.legacy.policies import es
from rllib_compat.runtime.policy_mapping import ONLY_POLICY

__all__ = [
    "SGD",
    "ARSWorker",
    "Adam",
    "ESWorker",
    "Optimizer",
    "Result",
    "SharedNoiseTable",
    "batched_weighted_sum",
    "compute_centered_ranks",
    "compute_ranks",
    "create_shared_noise",
    "itergroups",
]

Array = np.ndarray[Any, np.dtype[Any]]

create_shared_noise = ray.remote(noise.noise_table)
compute_centered_ranks = noise.centered_ranks


class Result(NamedTuple):
    """The returns of the perturbations that a worker has tried."""

    noise_indices: Any
    noisy_returns: Any
    sign_noisy_returns: Any
    noisy_lengths: Any
    eval_returns: Any
    eval_lengths: Any


class SharedNoiseTable:
    """Perturbations are slices of one table."""

    def __init__(self, noise: Array) -> None:
        self.noise = noise

    def get(self, i: int, dim: int) -> Array:
        """The `dim` numbers that begin at `i`."""
        return self.noise[i : i + dim]

    def sample_index(self, dim: int) -> int:
        """A random index of `dim` numbers, drawn by numpy's global generator."""
        last = self.noise.size - dim
        return int(np.random.randint(last + 1))


def compute_ranks(x: Array) -> Array:
    """The rank of each number, from 0 for the least."""
    return x.argsort().argsort()


def itergroups(items: Iterable[Any], group_size: int) -> Iterator[tuple[Any, ...]]:
    """Tuples of as many items, in order; the last one has what is left."""
    left = iter(items)
    while group := tuple(islice(left, group_size)):
        yield group


def batched_weighted_sum(
    weights: Iterable[float], vecs: Iterable[Array], batch_size: int
) -> tuple[Any, int]:
    """Sums weighted vectors, in batches.

    Returns:
        The sum, and how many there were.
    """
    total: Any = np.float32(0)
    count = 0
    for group in itergroups(zip(weights, vecs, strict=True), batch_size):
        factors, vectors = (np.asarray(part, np.float32) for part in zip(*group, strict=True))
        total, count = total + factors @ vectors, count + len(group)
    return total, count


class Optimizer:
    """Updates a policy's flat weights."""

    def __init__(self, policy: Any) -> None:
        self.t = 0
        self.policy = policy
        self.dim = int(policy.num_params)

    def update(self, globalg: Array) -> tuple[Array, float]:
        """Makes a step.

        Returns:
            The new weights, and the ratio of the step's norm to that of the old ones.
        """
        self.t += 1
        weights, step = self.policy.get_flat_weights(), self._compute_step(globalg)
        lengths = [float(np.linalg.norm(vector)) for vector in (step, weights)]
        return weights + step, lengths[0] / lengths[1]

    def _compute_step(self, globalg: Array) -> Array:
        raise NotImplementedError


class SGD(Optimizer):
    """Follows a moving average of gradients."""

    def __init__(self, policy: Any, stepsize: float, momentum: float = 0.0) -> None:
        super().__init__(policy)
        self.stepsize, self.momentum = stepsize, momentum
        self.v: Array = np.zeros(self.dim, np.float32)

    def _compute_step(self, globalg: Array) -> Array:
        self.v = self.momentum * self.v + (1 - self.momentum) * globalg
        return -self.stepsize * self.v


class Adam(Optimizer):
    """Adam, whose epsilon is added before the second moment's bias is corrected."""

    def __init__(
        self,
        policy: Any,
        stepsize: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(policy)
        self.stepsize, self.epsilon, self.betas = stepsize, epsilon, np.array([beta1, beta2])
        self.moments: Array = np.zeros((2, self.dim), np.float32)

    def _compute_step(self, globalg: Array) -> Array:
        seen = np.stack([globalg, globalg**2])
        self.moments = (seen + self.betas[:, None] * (self.moments - seen)).astype(np.float32)
        first, second = 1 - self.betas**self.t
        rate = self.stepsize * np.sqrt(second) / first
        step: Array = -rate * self.moments[0] / (np.sqrt(self.moments[1]) + self.epsilon)
        return step


class _Worker:
    """Plays episodes with the weights plus noise, and with the weights minus that noise.

    A task takes at least `min_task_runtime` seconds; with 0, it is one pair of episodes.
    """

    def __init__(
        self,
        config: dict[str, Any],
        env_creator: Callable[[Any], Any],
        noise: Array,
        worker_index: int,
        min_task_runtime: float,
    ) -> None:
        if (seed := config.get("seed")) is not None:
            for set_seed in (random.seed, np.random.seed, torch.manual_seed):
                set_seed(seed)
        self.config, self.noise = config, SharedNoiseTable(noise)
        self.config["single_threaded"] = True
        self.min_task_runtime = min_task_runtime
        context = EnvContext(config.get("env_config") or {}, worker_index=worker_index)
        self.env = env_creator(context)
        if hasattr(self.env, "seed"):
            self.env.seed(seed)
        parts = {name: getattr(es, name) for name in ("before_init", "after_init")}
        parts["make_model_and_action_dist"] = es.make_model_and_action_dist
        kind: Any = build_policy_class("ESTorchPolicy", "torch", loss_fn=None, **parts)
        spaces = [getattr(self.env, f"{what}_space") for what in ("observation", "action")]
        self.policy = kind(*spaces, config)
        self.preprocessor = self.policy.preprocessor

    @property
    def filters(self) -> dict[str, Any]:
        """The filter of observations."""
        return {ONLY_POLICY: self.policy.observation_filter}

    def sync_filters(self, new_filters: dict[str, Any]) -> None:
        """Takes filters of another worker."""
        for name, known in self.filters.items():
            known.sync(new_filters[name])

    def get_filters(self, flush_after: bool = False) -> dict[str, Any]:
        """The filters, for other workers; a flush clears what was counted since the last one."""
        found = {name: known.as_serializable() for name, known in self.filters.items()}
        for known in self.filters.values() if flush_after else ():
            known.reset_buffer()
        return found

    def rollout(self, timestep_limit: int | None, add_noise: bool = True) -> tuple[Array, int]:
        """The rewards of an episode, and how many steps it had."""
        offset = self.config.get("offset", 0.0)
        return es.rollout(self.policy, self.env, timestep_limit, add_noise, offset)

    def _rollout_of(
        self, weights: Array, timestep_limit: int | None, **noise: bool
    ) -> tuple[Array, int]:
        """Plays an episode with these weights."""
        self.policy.set_flat_weights(weights)
        return self.rollout(timestep_limit, **noise)

    def do_rollouts(self, params: Array, timestep_limit: int | None = None) -> Result:
        """Plays pairs of episodes, and some without noise between them."""
        found, ends = Result([], [], [], [], [], []), time.monotonic() + self.min_task_runtime
        while not found.noise_indices or time.monotonic() < ends:
            chance = self.config["eval_prob"]
            if chance > np.random.uniform():
                paid, steps = self._rollout_of(params, timestep_limit, add_noise=False)
                found.eval_returns.append(paid.sum())
                found.eval_lengths.append(steps)
                continue
            size = self.policy.num_params
            index = self.noise.sample_index(size)
            moved, pair = self.config["noise_stdev"] * self.noise.get(index, size), []
            for weights in (params + moved, params - moved):
                pair.append(self._rollout_of(weights, timestep_limit))
            found.noise_indices.append(index)
            found.noisy_returns.append([rewards.sum() for rewards, _ in pair])
            found.sign_noisy_returns.append([np.sign(rewards).sum() for rewards, _ in pair])
            found.noisy_lengths.append([length for _, length in pair])
        return found


class _ESWorker(_Worker):
    """The worker of ES; `policy_params` update its config."""

    def __init__(
        self,
        config: dict[str, Any],
        policy_params: dict[str, Any],
        env_creator: Callable[[Any], Any],
        noise: Array,
        worker_index: int,
        min_task_runtime: float = 0.2,
    ) -> None:
        config.update(policy_params)
        super().__init__(config, env_creator, noise, worker_index, min_task_runtime)


class _ARSWorker(_Worker):
    """The worker of ARS: a task is one pair of episodes, and actions have no noise."""

    def __init__(
        self,
        config: dict[str, Any],
        env_creator: Callable[[Any], Any],
        noise: Array,
        worker_index: int,
        min_task_runtime: float = 0.2,
    ) -> None:
        super().__init__(config, env_creator, noise, worker_index, 0.0)

    def rollout(self, timestep_limit: int | None, add_noise: bool = False) -> tuple[Array, int]:
        """The rewards of an episode, and how many steps it had."""
        return super().rollout(timestep_limit, add_noise)


ESWorker, ARSWorker = ray.remote(_ESWorker), ray.remote(_ARSWorker)
