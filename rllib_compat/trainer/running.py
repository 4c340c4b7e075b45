"""The algorithm behind a trainer; a restore may replace it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rllib_compat.league.memory import has_policies, share_frozen
from rllib_compat.neutral.errors import RayNotSupportedError
from rllib_compat.ray_versions import (
    algorithms,
    checkpoints,
    env_runners,
    episodes,
    get_actions,
    metrics,
)
from rllib_compat.runtime.callbacks import CallbackAdapter
from rllib_compat.runtime.env_runners import has_own_env_runners
from rllib_compat.runtime.workers import as_legacy
from rllib_compat.trainer import coefficients

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.env.env_runner import EnvRunner
    from ray.rllib.env.env_runner_group import EnvRunnerGroup


class RunningAlgorithm:
    """The present algorithm, and whether its local env runner has the newest weights.

    Args:
        algorithm: The algorithm.
        started: Is called after each start of an algorithm.
        frozen: How many frozen policies an env runner holds at a time; None for all.

    Attributes:
        algorithm: The algorithm that runs now.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        *,
        started: Callable[[], None] = lambda: None,
        frozen: int | None = None,
    ) -> None:
        self.algorithm = algorithm
        self._started = started
        self._frozen = frozen
        self._is_stale = False
        self._learned: list[Any] = []

    def start(self) -> None:
        """Prepares an algorithm that was just built."""
        checkpoints.keep_optimizers_through_restores(self.algorithm)
        metrics.start_counting(self.algorithm)
        env_runners.wait_for_samples(self.algorithm)
        if has_own_env_runners(self.algorithm.config) or self.algorithm.config.output:
            get_actions.replace_in_workers(self.algorithm)
        if has_policies(self.algorithm):
            share_frozen(self.algorithm, capacity=self._frozen)
        self._learned = []
        self._started()

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Undoes the changes of the block to the algorithm if it fails.

        Only the replay buffer is lost, if the block has replaced the algorithm.
        """
        import torch

        before = self.algorithm
        state, held = algorithms.copy_state(before), coefficients.get(before)
        computes_gradients = torch.is_grad_enabled()
        try:
            yield
        except BaseException:
            # An interrupt may have come while torch was about to end a `no_grad` block.
            torch.set_grad_enabled(computes_gradients)
            if self.algorithm is not before:
                self.replace(before.config)
            algorithms.restore_state(self.algorithm, state)
            coefficients.restore(self.algorithm, held)
            self.send_weights()
            raise

    def replace(self, config: AlgorithmConfig) -> None:
        """Replaces the algorithm by one of another config, without what was learned."""
        algorithms.stop_algorithm(self.algorithm)  # it may hold the CPUs that the next one needs
        self.algorithm = algorithms.build_algorithm(config)
        self.start()

    @property
    def adapters(self) -> list[CallbackAdapter]:
        """The adapters of the user's callbacks in this process."""
        found = episodes.callbacks_of(self.algorithm)
        return [one for one in found if isinstance(one, CallbackAdapter)]

    @property
    def group(self) -> EnvRunnerGroup:
        """All env runners; those that evaluate, if an algorithm only learns from recordings.

        Raises:
            RayNotSupportedError: There are none: Ray 2.41 – 2.47 make none for such an algorithm.
        """
        if (group := self._group) is None:
            raise RayNotSupportedError(
                "On this Ray, an algorithm that only learns from recordings has no worker.",
                where="trainer.workers",
                fix="set `evaluation_interval` in the config, which makes one",
            )
        return group

    @property
    def _group(self) -> EnvRunnerGroup | None:
        return self.algorithm.env_runner_group or self.algorithm.eval_env_runner_group

    def local_runner(self) -> EnvRunner:
        """The env runner in this process, with the newest weights."""
        self.sync_local_runner()
        return self.group.local_env_runner

    def sync_local_runner(self) -> None:
        """Sends the newest weights to the local env runner.

        Ray sends them only to those that sample.
        """
        if self._is_stale:
            self.send_weights()

    def send_weights(self) -> None:
        """Sends the learners' weights to all env runners."""
        if (group := self._group) is not None:
            env_runners.send_weights(self.algorithm, group)
        self._is_stale, self._learned = False, []

    def mark_weights_stale(self) -> None:
        """Marks the weights of the local env runner as old."""
        self._is_stale = True
        self.forget_learned_weights()

    def forget_learned_weights(self) -> None:
        """Makes workers get the critics again, whatever was set in them since."""
        self._learned = []

    def learned_weights(self) -> list[Any]:
        """A reference to the weights of the policies that learn, with their critics, in a list.

        Env runners only get what they need to act. The weights are stored once until they change;
        the list is empty if the env runners are the learners (the old API stack).
        """
        if not self._learned and self.algorithm.learner_group is not None:
            import ray

            learning = as_legacy(self.group.local_env_runner).get_policies_to_train()
            self._learned = [ray.put(dict(self.algorithm.get_weights(learning)))]
        return self._learned
