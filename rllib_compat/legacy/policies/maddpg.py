"""`contrib/maddpg` of Ray 0.7 – 2.3: postprocessing, and its trainer's counters."""

from __future__ import annotations

from typing import Any

import numpy as np
from ray.rllib.evaluation.postprocessing import adjust_nstep
from ray.rllib.policy.sample_batch import SampleBatch

__all__ = ["MADDPGPostprocessing", "add_trainer_metrics", "set_global_timestep"]


class MADDPGPostprocessing:
    """Takes the end of each agent's episode from its infos, and sums rewards over `n_step`."""

    config: dict[str, Any]

    def postprocess_trajectory(
        self, sample_batch: Any, other_agent_batches: object = None, episode: object = None
    ) -> Any:
        """Changes a batch of an agent's steps; those of others, and the episode, are ignored."""
        ends = [bool((info or {}).get("done", False)) for info in sample_batch[SampleBatch.INFOS]]
        sample_batch[SampleBatch.TERMINATEDS] = np.array(ends)  # what `dones` are made of
        steps, discount = (self.config[name] for name in ("n_step", "gamma"))
        if steps > 1:
            adjust_nstep(steps, discount, sample_batch)
        return sample_batch


def set_global_timestep(trainer: Any) -> None:
    """Notes how many steps were sampled before an iteration."""
    trainer.train_start_timestep = trainer.optimizer.num_steps_sampled


def add_trainer_metrics(trainer: Any, result: dict[str, Any]) -> None:
    """Adds to a result how many steps were sampled since, and the optimizer's statistics."""
    now = trainer.optimizer.num_steps_sampled
    result["timesteps_this_iter"] = now - trainer.train_start_timestep
    updates = trainer.state["num_target_updates"]
    result["info"] = {"num_target_updates": updates, **trainer.optimizer.stats()}
