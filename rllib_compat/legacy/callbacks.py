"""Callbacks of `ray.rllib.agents.callbacks`, which Ray has for its new API stack only, or not."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
from ray.rllib.utils.exploration import random_encoder

from rllib_compat.ray_versions.old_policies import moving_mean_std
from rllib_compat.runtime.callbacks import DefaultCallbacks


class MemoryTrackingCallbacks(DefaultCallbacks):
    """Adds Python's largest memory allocations and its total memory to the custom metrics."""

    def __init__(self) -> None:
        super().__init__()
        tracemalloc.start(10)

    def on_episode_end(self, *, episode: Any, **kwargs: Any) -> None:
        """Adds the metrics."""
        import psutil  # type: ignore[import-untyped]  # Ray does not bring it

        metrics = episode.custom_metrics
        for found in tracemalloc.take_snapshot().statistics("lineno")[:10]:
            metrics[f"tracemalloc/{found.traceback}/size"] = found.size
            metrics[f"tracemalloc/{found.traceback}/count"] = found.count
        process = psutil.Process()
        memory = process.memory_info()
        for kind in ("rss", "data", "vms"):
            metrics[f"tracemalloc/worker/{kind}"] = getattr(memory, kind)


class RE3UpdateCallbacks(DefaultCallbacks):
    """Adds an intrinsic reward for new states, by their embeddings (the exploration RE3).

    Args:
        *args: Nothing.
        embeds_dim: The size of embeddings.
        k_nn: How many nearest neighbours the estimate of a state's entropy uses.
        beta: The weight of the intrinsic reward.
        rho: How fast that weight decays.
        beta_schedule: `constant` or `linear_decay`.
        **kwargs: Nothing.
    """

    _step = 0

    def __init__(
        self,
        *args: Any,
        embeds_dim: int = 128,
        k_nn: int = 50,
        beta: float = 0.1,
        rho: float = 0.0001,
        beta_schedule: str = "constant",
        **kwargs: Any,
    ) -> None:
        self.embeds_dim, self.k_nn, self.beta, self.rho = embeds_dim, k_nn, beta, rho
        self.beta_schedule = beta_schedule
        self._rms = moving_mean_std()
        super().__init__(*args, **kwargs)

    def on_learn_on_batch(
        self, *, policy: Any, train_batch: Any, result: Any, **kwargs: Any
    ) -> None:
        """Changes the batch's rewards or advantages."""
        super().on_learn_on_batch(policy=policy, train_batch=train_batch, result=result, **kwargs)
        embedded = train_batch["obs_embeds"]
        weight = random_encoder.update_beta(self.beta_schedule, self.beta, self.rho, self._step)
        found = random_encoder.compute_states_entropy(embedded, self.embeds_dim, self.k_nn)
        bonus = weight * np.reshape(self._rms(found), embedded.shape[:-1])
        columns = ["rewards"]
        columns += ["advantages", "value_targets"] if "advantages" in train_batch else []
        for name in columns:
            train_batch[name] = train_batch[name] + bonus

    def on_train_result(self, *, trainer: Any = None, result: Any, **kwargs: Any) -> None:
        """Counts iterations."""
        RE3UpdateCallbacks._step = result["training_iteration"]
        super().on_train_result(trainer=trainer, result=result, **kwargs)
