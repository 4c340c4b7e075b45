"""What APEX and APEX_DDPG share (`agents/dqn/apex.py` of Ray 0.5 – 1.13, `apex_dqn` until 2.10).

Horgan et al., "Distributed prioritized experience replay" (2018). Env runners sample without being
waited for, each explores in its own way, and the replay buffer lies in actors. One learner draws
from these as fast as `training_intensity` says.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from functools import partial
from typing import Any

from ray.rllib.algorithms.algorithm_config import NotProvided
from ray.rllib.core import DEFAULT_MODULE_ID

from rllib_compat.algorithms.config import DefaultsConfig
from rllib_compat.algorithms.local_learners import show_weights
from rllib_compat.algorithms.remote_sampling import Sampled, sample_into
from rllib_compat.algorithms.replaying import ReplaysColumns, replay_settings
from rllib_compat.algorithms.rounds import begin
from rllib_compat.algorithms.sampling import steps_sampled
from rllib_compat.algorithms.shards import Batch, Shards
from rllib_compat.neutral.errors import CompatError, ConfigError
from rllib_compat.ray_versions import checkpoints, configs, env_runners, training_steps

logger = logging.getLogger(__name__)

#: For how long nothing may happen before Ray looks after env runners that have died.
_PATIENCE = 1.0
#: How many batches are asked for ahead of a learner that is to learn as fast as it can, a shard.
_AHEAD = 2

#: The key of results and of states.
APEX = "apex"


class DistributedReplayConfig(DefaultsConfig):
    """The settings of distributed replay; the first base of an algorithm's config."""

    num_replay_buffer_shards: int
    per_worker_exploration: bool
    num_env_runners: int
    max_requests_in_flight_per_replay_worker: float | None
    training_intensity: float | None

    def training(
        self,
        *,
        num_replay_buffer_shards: Any = NotProvided,
        replay_buffer_shards_colocated_with_driver: Any = NotProvided,
        max_requests_in_flight_per_replay_worker: Any = NotProvided,
        max_weight_sync_delay: Any = NotProvided,
        worker_side_prioritization: Any = NotProvided,
        per_worker_exploration: Any = NotProvided,
        prioritized_replay_eps: Any = NotProvided,
        debug_replay: Any = NotProvided,
        **kwargs: Any,
    ) -> Any:
        """Sets how it learns.

        Args:
            num_replay_buffer_shards: Over how many actors the replay buffer is distributed. Each
                keeps its part of `replay_buffer_config["capacity"]` steps.
            replay_buffer_shards_colocated_with_driver: Whether these have to be on the node of the
                algorithm.
            max_requests_in_flight_per_replay_worker: For how many batches a shard is asked at
                once; None: without a limit.
            max_weight_sync_delay: After how many of its steps an env runner gets new weights.
            worker_side_prioritization: Whether env runners say how wrong the network is about what
                they have sampled, from which its first priority is made. Otherwise it is the
                greatest that any had.
            per_worker_exploration: Whether each env runner explores by a share of its own, from
                0.4 to 0.4 ** 8. Results then tell of the episodes of the last third alone.
            prioritized_replay_eps: What is added to each error.
            debug_replay: Whether results tell how many bytes the first shard holds.
            **kwargs: What the algorithm takes that is not distributed. `training_intensity`: how
                many steps are learned from for each one that is sampled; None: as many as can be.
                `target_network_update_freq` and schedules count steps that were learned from.

        Returns:
            The config itself.
        """
        super().training(**kwargs)
        self.set_given(locals())
        return self

    def explore_as_worker(self, module: Any, worker: int) -> None:
        """Lets the module of an env runner explore by the share of that one."""
        raise NotImplementedError

    def errors_of_worker(self, module: Any, rows: Any) -> Any:  # noqa: ARG002
        """What an env runner's module is wrong by about transitions; None: it can't tell."""
        return None

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: Two of them contradict each other, or nothing can run them.
        """
        super().validate()
        self.require_new_stack()
        intensity = self.training_intensity
        most = self.max_requests_in_flight_per_replay_worker
        checks = (
            ("num_replay_buffer_shards", self.num_replay_buffer_shards < 1, "1 or more"),
            ("training_intensity", intensity is not None and intensity <= 0, "above 0, or None"),
            (
                "max_requests_in_flight_per_replay_worker",
                most is not None and most < 1,
                "1 or more, or None",
            ),
        )
        for name, wrong, should in checks:
            if wrong:
                raise ConfigError(
                    f"{self.algo_class.__name__} can't run with {getattr(self, name)!r}.",
                    where=name,
                    fix=f"Make it {should}.",
                )


class ReplaysShards(ReplaysColumns):
    """The first base of an algorithm whose replay buffer is distributed over actors.

    Without env runners of its own (`num_env_runners=0`), with several policies, and where columns
    can't be replayed, it is the algorithm that is not distributed.
    """

    def setup(self, config: Any) -> None:
        """Builds env runners and learner; the shards start when they are needed."""
        #: How many steps it has learned from; None: not known yet.
        self._trained: int | None = None
        self._syncs = 0
        self._owed = 0.0
        #: Env runner → the steps that it has sampled since it got weights.
        self._since: Counter[int] = Counter()
        self._learned = False
        super().setup(config)
        if isinstance(self.replay, Shards):
            begin(self)  # none of its training steps has rounds: env runners go on between them
        elif self.replay is None or self.config.num_env_runners:
            logger.warning(
                "The replay buffer of %s is not distributed, and all env runners explore alike.",
                type(self).__name__,
            )

    def new_replay(self) -> Any:
        """The buffer, still empty."""
        config = self.config
        if not config.num_env_runners or configs.is_multi_agent(config):
            return super().new_replay()
        return Shards(
            config.num_replay_buffer_shards,
            config.replay_buffer_config["capacity"],
            least=config.num_steps_sampled_before_learning_starts,
            here=config.replay_buffer_shards_colocated_with_driver,
            **replay_settings(config),
        )

    def training_step(self) -> None:
        """Takes what env runners and shards have ready, and asks them for more."""
        if not isinstance(self.replay, Shards):
            super().training_step()
            return
        self._require_env_runners()
        env_runners.wait_for_any(self.env_runner_group, self.replay.asked, _PATIENCE)
        self._take_samples()
        for batch in self.replay.answers() if self.replay.asked else ():
            if batch is not None:
                self._learn_from(batch)
        self._ask()
        told = {"num_weight_syncs": self._syncs, "num_env_steps_trained": self._steps_trained()}
        self.metrics.log_dict(told, key=APEX, window=1)

    def step(self) -> Any:
        """One iteration; its result tells of the first shard."""
        result = super().step()  # type: ignore[misc]
        if isinstance(self.replay, Shards):
            # Evaluation and `compute_single_action` have what was learned last.
            show_weights(self)
            stats = self.replay.stats(self.config.debug_replay)
            result.setdefault(APEX, {})["replay_shard_0"] = stats
        return result

    def cleanup(self) -> None:
        """Ends the actors."""
        if isinstance(self.replay, Shards):
            self.replay.stop()
        super().cleanup()  # type: ignore[misc]

    def get_state(self, components: Any = None, *, not_components: Any = None, **more: Any) -> Any:
        """Its state, or that of some parts."""
        state = super().get_state(components, not_components=not_components, **more)
        if checkpoints.is_asked_for(self, APEX, components, not_components):
            state[APEX] = {"trained": self._steps_trained(), "syncs": self._syncs}
        return state

    def set_state(self, state: Any) -> None:
        """Goes on from a state."""
        if isinstance(self.replay, Shards):  # what is sampled by now belongs to another time
            env_runners.forget_requests(self.env_runner_group, self.config.sample_timeout_s)
        super().set_state(state)
        told = state.get(APEX, {})
        self._since.clear()
        self._owed = 0.0
        self._trained, self._syncs = told.get("trained"), told.get("syncs", 0)

    def _require_env_runners(self) -> None:
        """Makes sure that there is an env runner, or that Ray makes one anew."""
        healthy = env_runners.healthy_env_runners(self.env_runner_group)
        if not healthy and not self.config.restart_failed_env_runners:
            raise CompatError(
                f"All {self.config.num_env_runners} env runners have died.",
                where="env_runners",
                fix="restart_failed_env_runners=True lets Ray make them anew.",
            )

    def _take_samples(self) -> None:
        """Counts what env runners have sampled, and sends weights to those that have old ones."""
        group = self.env_runner_group
        answers: list[tuple[int, Sampled]] = env_runners.answers_of_env_runners(group, 0.0)
        if not answers:
            return
        training_steps.log_of_env_runners(self, [sampled.metrics for _, sampled in answers])
        for worker, sampled in answers:
            self._since[worker] += sampled.steps
            self._owe(sampled.steps)
        delay = self.config.max_weight_sync_delay
        due = [worker for worker in sorted(self._since) if self._since[worker] >= delay]
        if due and self._learned:
            training_steps.send_new_weights(self, to=due)
            self._syncs += len(due)
        for worker in due:
            self._since[worker] = 0

    def _owe(self, steps: int) -> None:
        """Counts the updates that sampled steps ask for."""
        config = self.config
        if config.training_intensity is not None:
            self._owed += steps * config.training_intensity / config.total_train_batch_size

    def _ask(self) -> None:
        """Asks shards for the batches that it owes, and env runners for steps if it owes none."""
        replay, config = self.replay, self.config
        most = math.inf
        if config.max_requests_in_flight_per_replay_worker is not None:
            most = config.max_requests_in_flight_per_replay_worker * replay.count
        if config.training_intensity is None:
            most = min(most, _AHEAD * replay.count)
            self._owed = max(0, most - len(replay.asked))
        size, beta = config.total_train_batch_size, config.replay_buffer_config.get("beta") or 0.0
        while self._owed >= 1 and len(replay.asked) < most:
            replay.ask(size, beta)
            self._owed -= 1
        if self._owed < 1 or config.training_intensity is None:
            play = partial(sample_into, shards=replay.actors)
            env_runners.ask_env_runners(
                self.env_runner_group, play, most=config.max_requests_in_flight_per_env_runner
            )

    def _learn_from(self, batch: Batch) -> None:
        """Learns from a batch, and gives its shard the errors."""
        errors = self.learn_from({DEFAULT_MODULE_ID: batch.columns})
        self._learned = True
        if errors:  # the policy is trained
            batch.actor.prioritize.remote(errors[DEFAULT_MODULE_ID], batch.drawn)

    def now(self, count: int) -> int:
        """The step that schedules and targets are at: how many it has learned from, as ever."""
        self._trained = self._steps_trained() + count
        return self._trained

    def _steps_trained(self) -> int:
        """How many steps it has learned from; where a checkpoint does not say, it has sampled."""
        if self._trained is None:
            self._trained = steps_sampled(self)
        return self._trained


def share_of_worker(exponent: float) -> float:
    """How much an env runner explores, by its place from 0 (most) to 1 (least)."""
    return float(0.4 ** (1.0 + 7.0 * exponent))
