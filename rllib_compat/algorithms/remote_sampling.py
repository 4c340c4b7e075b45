"""What an env runner does for a distributed replay buffer: sample, and store what came of it.

Transitions go from env runners to shards; only counts and metrics come to the algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from rllib_compat.algorithms.off_policy import LEGACY_REPLAY
from rllib_compat.algorithms.transitions import NStepTransitions
from rllib_compat.neutral.frozen import frozen
from rllib_compat.runtime.results import RECORDS

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner

#: What begins the names of what env runners tell of the episodes that have ended.
_OF_EPISODES = ("episode_", "agent_episode", "module_episode", RECORDS)


@frozen
class SampleResult:
    """What an env runner tells the algorithm.

    Attributes:
        steps: How many steps it has sampled.
        metrics: What it has measured.
    """

    steps: int
    metrics: Any


def sample_into(env_runner: EnvRunner, shards: Sequence[Any]) -> SampleResult:
    """Samples a fragment, and gives the transitions that it completes to one of the shards.

    Args:
        env_runner: The env runner; its config has the settings of `DistributedReplayConfig`.
        shards: The actors.
    """
    config, worker = env_runner.config, env_runner.worker_index
    if config.per_worker_exploration:
        # Each time: an env runner that has died was made anew.
        config.explore_as_worker(env_runner.module, worker)
    episodes = env_runner.sample()
    chunks = _chunks_of(env_runner)
    made = [rows for episode in episodes if len(episode) and (rows := chunks.transitions(episode))]
    if made:
        rows = tree.map_structure(lambda *parts: np.concatenate(parts), *made)
        errors = None
        if config.worker_side_prioritization:
            errors = config.errors_of_worker(env_runner.module, rows)
        shards[np.random.randint(len(shards))].add.remote(rows, errors)
    metrics = env_runner.get_metrics()
    if config.per_worker_exploration and not tells_of_episodes(worker, config.num_env_runners):
        metrics = {
            name: told for name, told in metrics.items() if not name.startswith(_OF_EPISODES)
        }
    return SampleResult(sum(len(episode) for episode in episodes), metrics)


def tells_of_episodes(worker: int, workers: int) -> bool:
    """Whether an env runner's episodes are told: the last third explores least, as ever."""
    return worker > workers - -(-workers // 3)


def _chunks_of(env_runner: Any) -> NStepTransitions:
    """The steps of an env runner whose targets wait for the next fragment."""
    if not hasattr(env_runner, "waiting_transitions"):
        config = env_runner.config
        env_runner.waiting_transitions = NStepTransitions(
            config.n_step,
            config.gamma,
            patience=config.replay_buffer_config["capacity"],
            waits=not config.learner_config_dict.get(LEGACY_REPLAY),
        )
    found: NStepTransitions = env_runner.waiting_transitions
    return found
