"""Rounds of sampling and learning, of which one training step may have many.

An algorithm may learn after each step of its environment. Ray makes a training step of each such
round: it asks env runner and learner what they have measured, reduces that, and merges it with what
it has. With a small network that takes a quarter of all time (TD3, Ray 2.60). Where both are in
this process, nothing is needed before the iteration ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from ray.rllib.algorithms.dqn.dqn import calculate_rr_weights

from rllib_compat.algorithms.sampling import (
    explore_as_worker,
    on_env_runners,
    sample_at_least,
    steps_sampled,
)
from rllib_compat.ray_versions import env_runners, training_steps

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

    from rllib_compat.ray_versions.types import AlgorithmConfig

#: A training step has at most so many: what was measured is kept until its end.
MAX_ROUNDS = 100
#: The key of `learner_config_dict` under which a config says how its Ray replayed steps.
LEGACY_REPLAY = "legacy_replay"


def legacy_replay(config: AlgorithmConfig) -> Mapping[str, Any] | None:
    """How the config's Ray replayed steps (`replay_of`); None: as the installed Ray does."""
    found = config.learner_config_dict.get(LEGACY_REPLAY)
    return {"first": 1.0} if found is True else found  # True in older checkpoints


def round_weights(config: AlgorithmConfig) -> tuple[int, Callable[[], int]]:
    """How often a round samples, and what says how often it then learns."""
    unit = (legacy_replay(config) or {}).get("intensity_of")
    if unit is None or not config.training_intensity:
        samples, updates = calculate_rr_weights(config)
        return samples, lambda: updates
    workers = config.num_envs_per_env_runner * max(config.num_env_runners, 1)
    steps = config.get_rollout_fragment_length() * (workers if unit == "all" else 1)
    mean = config.training_intensity * steps / config.total_train_batch_size
    return 1, lambda: int(mean) + int(np.random.random() < mean % 1)


def begin_rounds(algorithm: Algorithm) -> Rounds:
    """The rounds of a training step that begins now; the algorithm has them as its `rounds`."""
    begun = Rounds(algorithm, getattr(algorithm, "rounds", None))
    algorithm.rounds = begun
    return begun


class Rounds:
    """The rounds of one training step, and the metrics that are not yet logged.

    Attributes:
        in_process: Whether there may be several: what samples and what learns is in this process,
            and the training step is the algorithm's own, not that of a user's subclass.
        iteration: The iteration that they belong to.
        began: The steps sampled before it, and when it began.
    """

    def __init__(self, algorithm: Algorithm, before: Rounds | None) -> None:
        self._algorithm, self._config = algorithm, algorithm.config
        own = type(algorithm).training_step.__module__.startswith(str(__package__))
        self.in_process = own and training_steps.trains_in_this_process(algorithm)
        self._count, self._sampled, self._told = 0, 0, steps_sampled(algorithm)
        self.iteration: int = algorithm.iteration
        self.began: tuple[int, float] = (self._told, time.time())
        if before is not None and before.iteration == self.iteration:
            self.began = before.began

    @property
    def steps(self) -> int:
        """How many steps of the environment were ever sampled."""
        return self._told + self._sampled

    def start_next(self) -> bool:
        """Whether there is one more round in this training step: at least one.

        There is none where Ray would end the iteration.
        """
        if self._count == 0:
            self._count = 1
            return True
        steps, began = self.began
        config = self._config
        self._count += 1
        return (
            self.in_process
            and self._count <= MAX_ROUNDS
            and not config.min_train_timesteps_per_iteration
            and (
                self.steps - steps < (config.min_sample_timesteps_per_iteration or 0)
                or time.time() - began < (config.min_time_s_per_iteration or 0)
            )
        )

    def sample(self, least: int | None = None) -> list[Any]:
        """Samples a fragment on each env runner, and at least so many steps in all.

        Returns:
            Episodes, or chunks of them; none where every env runner has failed.
        """
        if not self.in_process:
            episodes = training_steps.sample_episodes(self._algorithm, least)
            self._told = steps_sampled(self._algorithm)
            return episodes
        episodes, sampled = [], 0
        while not sampled or sampled < (least or 0):
            found = training_steps.sample_here(self._algorithm)
            sampled += sum(episode.env_steps() for episode in found)
            episodes += found
        self._sampled += sampled
        return episodes

    def sample_episodes(self, make: Callable[[Any, list[Any]], Any]) -> list[tuple[int, Any]]:
        """Samples at least a fragment on each env runner; whole episodes if the config says so.

        `make` makes of a config and its episodes what is kept of them, where they are.

        Returns:
            How many steps each env runner has sampled, and what was made of them; none where every
            one of them has failed.
        """
        algorithm, config = self._algorithm, self._config
        least = config.get_rollout_fragment_length() * config.num_envs_per_env_runner
        if not self.in_process:
            reported = on_env_runners(
                algorithm, partial(_sample_with_metrics, make=make, least=least)
            )
            self._told = steps_sampled(algorithm)
            return [(steps, made) for steps, made, _ in reported]
        group, play = algorithm.env_runner_group, partial(_sample, make=make, least=least)
        found = env_runners.foreach_env_runner(group, play)
        self._sampled += sum(steps for steps, _ in found)
        return found

    def is_warming_up(self) -> bool:
        """Whether fewer steps were sampled than the config asks for before it learns."""
        return self.steps < int(self._config.num_steps_sampled_before_learning_starts)

    def learn(
        self, batches: Mapping[str, Mapping[str, Any]], count: int, now: int | None = None
    ) -> dict[str, Any]:
        """Lets the learners learn once from arrays: the columns of each module's batch.

        Schedules and targets are at the step `now`; None: as many as were sampled.

        Returns:
            The TD errors of each module whose learner logs them, one a transition.
        """
        errors = training_steps.update_learners_with_arrays(
            self._algorithm,
            batches,
            count,
            now=self.steps if now is None else now,
            reported=not self.in_process,
        )
        self._algorithm.td_errors = errors  # results have those of the last batch
        return errors

    def learn_from_episodes(self, episodes: list[Any]) -> None:
        """Lets the learners learn once from episodes, and change them."""
        if self.in_process:
            group = self._algorithm.env_runner_group
            env_runners.log_done_episodes(group.local_env_runner)
        training_steps.update_learners(
            self._algorithm, episodes, self.steps, reported=not self.in_process
        )

    def log_metrics(self) -> None:
        """Tells the algorithm what was measured."""
        if self.in_process:
            training_steps.log_measurements(self._algorithm)


def _sample(env_runner: Any, make: Callable[[Any, list[Any]], Any], least: int) -> tuple[int, Any]:
    explore_as_worker(env_runner)
    episodes = sample_at_least(env_runner, least)
    return sum(e.env_steps() for e in episodes), make(env_runner.config, episodes)


def _sample_with_metrics(env_runner: Any, **how: Any) -> tuple[int, Any, Any]:
    return *_sample(env_runner, **how), env_runner.get_metrics()
