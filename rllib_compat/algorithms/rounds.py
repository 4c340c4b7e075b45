"""Rounds of sampling and learning, as many in one training step as make an iteration.

An off-policy algorithm may learn after each step of its environment. Ray makes a training step of
each such round: it asks env runner and learner what they have measured, reduces that, and merges it
with what it has. With a small network that takes a quarter of all time (TD3, Ray 2.60). Where both
are in this process, nobody needs to know before the iteration ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from rllib_compat.algorithms.sampling import on_env_runners, sample_at_least, steps_sampled
from rllib_compat.ray_versions import env_runners, training_steps

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

#: A training step has at most so many: what was measured is kept until its end.
MOST = 100


def begin(algorithm: Any) -> Rounds:
    """The rounds of a training step that begins now; the algorithm has them as its `rounds`."""
    begun = Rounds(algorithm, getattr(algorithm, "rounds", None))
    algorithm.rounds = begun
    return begun


class Rounds:
    """The rounds of one training step, and what they have measured but not told.

    Args:
        algorithm: The algorithm.
        before: Those of its training step before; None in the first one.

    Attributes:
        together: Whether there may be several: what samples and what learns is in this process, and
            the training step is the algorithm's own, not one that somebody has built on it.
        iteration: The iteration that they belong to.
        began: The steps sampled before it, and when it began.
    """

    def __init__(self, algorithm: Algorithm, before: Rounds | None) -> None:
        self._algorithm, self._config = algorithm, algorithm.config
        own = type(algorithm).training_step.__module__.startswith(str(__package__))
        self.together = own and training_steps.trains_in_this_process(algorithm)
        self._count, self._sampled, self._told = 0, 0, steps_sampled(algorithm)
        self.iteration: int = algorithm.iteration
        self.began: tuple[int, float] = (self._told, time.time())
        if before is not None and before.iteration == self.iteration:
            self.began = before.began

    @property
    def steps(self) -> int:
        """How many steps of the environment were ever sampled."""
        return self._told + self._sampled

    def go_on(self) -> bool:
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
            self.together
            and self._count <= MOST
            and not config.min_train_timesteps_per_iteration
            and (
                self.steps - steps < (config.min_sample_timesteps_per_iteration or 0)
                or time.time() - began < (config.min_time_s_per_iteration or 0)
            )
        )

    def sample(self) -> list[Any]:
        """Samples a fragment on each env runner; none where every one of them has failed."""
        if not self.together:
            episodes = training_steps.sample_episodes(self._algorithm)
            self._told = steps_sampled(self._algorithm)
            return episodes
        episodes = training_steps.sample_here(self._algorithm)
        self._sampled += sum(episode.env_steps() for episode in episodes)
        return episodes

    def sample_whole(self, make: Callable[[Any, list[Any]], Any]) -> list[tuple[int, Any]]:
        """Samples at least a fragment on each env runner; whole episodes if the config says so.

        Args:
            make: Makes, of a config and its episodes, what is kept of them, where they are.

        Returns:
            How many steps each env runner has sampled, and what was made of them; none where every
            one of them has failed.
        """
        algorithm, least = self._algorithm, self._config.get_rollout_fragment_length()
        if not self.together:
            told = on_env_runners(algorithm, partial(_play_and_tell, make=make, least=least))
            self._told = steps_sampled(algorithm)
            return [(steps, made) for steps, made, _ in told]
        group, play = algorithm.env_runner_group, partial(_play, make=make, least=least)
        found = env_runners.foreach_env_runner(group, play)
        self._sampled += sum(steps for steps, _ in found)
        return found

    def wait(self) -> bool:
        """Whether fewer steps were sampled than the config asks for before it learns."""
        return self.steps < int(self._config.num_steps_sampled_before_learning_starts)

    def learn(
        self, batches: Mapping[str, Mapping[str, Any]], count: int, now: int | None = None
    ) -> dict[str, Any]:
        """Lets the learners learn once from arrays.

        Args:
            batches: The columns of each module's batch.
            count: How many steps of the environment they were.
            now: The step that schedules and targets are at; None: how many were sampled.

        Returns:
            The TD errors of each module whose learner logs them, one a transition.
        """
        return training_steps.update_learners_with_arrays(
            self._algorithm,
            batches,
            count,
            now=self.steps if now is None else now,
            told=not self.together,
        )

    def tell(self) -> None:
        """Tells the algorithm what was measured."""
        if self.together:
            training_steps.tell_what_was_measured(self._algorithm)


def _play(env_runner: Any, make: Callable[[Any, list[Any]], Any], least: int) -> tuple[int, Any]:
    episodes = sample_at_least(env_runner, least)
    return sum(e.env_steps() for e in episodes), make(env_runner.config, episodes)


def _play_and_tell(env_runner: Any, **how: Any) -> tuple[int, Any, Any]:
    return *_play(env_runner, **how), env_runner.get_metrics()
