"""What off-policy algorithms share that are Ray's DQN or SAC, or built on them.

They replay columns, not episodes. Ray's episode buffers make an object of each step that is drawn,
and connectors make columns of these again. Here steps become columns when they are sampled, and
stay columns.

An off-policy algorithm may learn after each step of its environment. Ray makes a training step of
each such round: it asks env runner and learner what they have measured, reduces that, and merges it
with what it has. With a small network that takes a quarter of all time (TD3, Ray 2.60). Where both
are in this process, nothing is needed before the iteration ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ray.rllib.algorithms.dqn.dqn import calculate_rr_weights
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.replay import MultiAgentReplayBuffer, ToTrain
from rllib_compat.algorithms.sampling import (
    explore_as_worker,
    on_env_runners,
    sample_at_least,
    steps_sampled,
)
from rllib_compat.ray_versions import (
    checkpoints,
    configs,
    connectors,
    env_runners,
    learners,
    training_steps,
)

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

    from rllib_compat.ray_versions.types import AlgorithmConfig, Learner


#: A training step has at most so many: what was measured is kept until its end.
MAX_ROUNDS = 100


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
        algorithm, least = self._algorithm, self._config.get_rollout_fragment_length()
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
        return training_steps.update_learners_with_arrays(
            self._algorithm,
            batches,
            count,
            now=self.steps if now is None else now,
            reported=not self.in_process,
        )

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


logger = logging.getLogger(__name__)

#: The component of checkpoints that holds what is replayed.
REPLAY = "replay"

#: What the old Rays added to each error. A step whose error is nothing would make all others count
#: hundreds of times less, while the optimizer still expects the gradients of before.
OFFSET = 1e-6

#: The key of `learner_config_dict` of configs whose steps are replayed as the old Rays did it.
LEGACY_REPLAY = "legacy_replay"


class OffPolicyAlgorithm:
    """The first base of a subclass of Ray's DQN whose learner class is an `ArrayBatchLearner`.

    A training step is that of DQN: sample, store, replay, learn, send the weights. What columns
    can't do is left to Ray's buffers, and said: recurrent modules, learner connectors of your own,
    several learners.
    """

    config: Any
    env_runner_group: Any
    metrics: Any
    #: The buffer; None: Ray's is used.
    replay: Any = None
    #: Those of its training step.
    rounds: Rounds

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds env runners, learner and replay buffer."""
        super().setup(config)  # type: ignore[misc]  # of the real algorithm
        reason = reason_to_replay_episodes(self)
        if reason is None:
            self.replay = self.local_replay_buffer = self.make_replay_buffer()
            return
        logger.warning("%s replays episodes, not columns: %s.", type(self).__name__, reason)

    def make_replay_buffer(self) -> Any:
        """The buffer, still empty."""
        return make_replay_buffer(self.config)

    def training_step(self) -> None:
        """Samples and learns, each as often as the config says; sends the weights."""
        if self.replay is None:
            super().training_step()  # type: ignore[misc]
            return
        samples, updates = calculate_rr_weights(self.config)
        rounds = begin_rounds(self)
        while rounds.start_next():
            for _ in range(samples):
                self.replay.add(rounds.sample(), self._to_train)
            if not len(self.replay) or rounds.is_warming_up():
                continue
            for _ in range(updates):
                self._learn()
            training_steps.send_new_weights(self)
        rounds.log_metrics()

    def _learn(self) -> None:
        """Draws transitions, learns from them, and gives them other priorities."""
        config = self.config
        count, beta = config.total_train_batch_size, config.replay_buffer_config.get("beta") or 0.0
        if batches := self.replay.sample(count, beta, self._to_train):
            self.replay.prioritize(self.learn_from(batches))

    def learn_from(self, batches: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Learns from columns of each module; returns the TD errors of those that learn."""
        now = self.now(self.config.total_train_batch_size)
        count = sum(len(batch[Columns.REWARDS]) for batch in batches.values())
        training_steps.reset_noise(self)
        return self.rounds.learn(batches, count, now)

    @property
    def _to_train(self) -> ToTrain:
        """Which policies learn: the env runner knows, also if a worker was changed later."""
        runner = self.env_runner_group.local_env_runner
        to_train: ToTrain = (self.config if runner is None else runner.config).policies_to_train
        return to_train

    def now(self, count: int) -> int | None:  # noqa: ARG002
        """The step that schedules and targets are at while it learns from so many.

        None: how many were sampled.
        """
        return None

    def get_checkpointable_components(self) -> list[tuple[str, Any]]:
        """Its parts that checkpoints hold: with `store_buffer_in_checkpoints`, what is replayed."""
        found: list[tuple[str, Any]] = super().get_checkpointable_components()  # type: ignore[misc]
        stored = self.replay is not None and self.config.store_buffer_in_checkpoints
        return [*found, (REPLAY, self.replay)] if stored else found

    def get_state(
        self, components: object = None, *, not_components: object = None, **more: object
    ) -> Any:
        """Its state, or that of some parts."""
        state = super().get_state(components, not_components=not_components, **more)  # type: ignore[misc]
        asked = checkpoints.is_asked_for(self, REPLAY, components, not_components)
        if asked and self.replay is not None and self.config.store_buffer_in_checkpoints:
            state[REPLAY] = self.replay.get_state()
        return state

    def set_state(self, state: Any) -> None:
        """Goes on from a state."""
        super().set_state(state)  # type: ignore[misc]
        if REPLAY in state and self.replay is not None:
            self.replay.set_state(state[REPLAY])


def make_replay_buffer(config: AlgorithmConfig) -> MultiAgentReplayBuffer:
    """An empty buffer as a config's `replay_buffer_config` describes it."""
    if not configs.is_multi_agent(config):
        return MultiAgentReplayBuffer(_whole_settings(config))
    thawed = config.copy(copy_frozen=False)  # Ray can't make a policy's own of a frozen one
    of_policies = {
        policy_id: _whole_settings(thawed.get_config_for_module(policy_id))
        for policy_id in config.policies
    }
    return MultiAgentReplayBuffer(_whole_settings(config), of_policies)


def _whole_settings(config: AlgorithmConfig) -> dict[str, Any]:
    capacity = config.replay_buffer_config.get("capacity", 10_000)
    return {"capacity": capacity, **replay_settings(config)}


def replay_settings(config: AlgorithmConfig) -> dict[str, Any]:
    """What `TransitionReplayBuffer` takes beside its capacity, as a config has it."""
    buffer = config.replay_buffer_config
    offset = getattr(config, "prioritized_replay_eps", OFFSET)
    before = bool(config.learner_config_dict.get(LEGACY_REPLAY))
    return {
        "alpha": buffer.get("alpha", 1.0) if "Prioritized" in buffer["type"] else 0.0,
        "n_step": config.n_step,
        "gamma": config.gamma,
        "offset": offset if offset >= 0 else OFFSET,  # of Ray's own configs it is -1: unset
        "first": 1.0 if before else None,  # the weight that policies gave each step
        "waits": not before,
    }


def reason_to_replay_episodes(algorithm: Algorithm) -> str | None:
    """Why an algorithm has to replay episodes; None: it may replay columns."""
    config = algorithm.config
    found = reason_in_config(config)
    if found is None and not issubclass(config.learner_class, learners.ArrayBatchLearner):
        return f"its learner class {config.learner_class.__name__} takes no columns"
    if found is None and any(training_steps.foreach_learner(algorithm, _is_stateful)):
        return "its module is recurrent"
    return found


def reason_in_config(config: AlgorithmConfig) -> str | None:
    """The same, as far as the config of an algorithm shows it."""
    kind = config.replay_buffer_config.get("type")
    of_one = kind
    if configs.is_multi_agent(config) and isinstance(kind, str):
        of_one = kind.removeprefix("MultiAgent")
    checks = (
        (not config.enable_env_runner_and_connector_v2, "it runs on the old API stack"),
        (
            of_one not in ("EpisodeReplayBuffer", "PrioritizedEpisodeReplayBuffer"),
            f"its replay buffer is {kind!r}",
        ),
        (connectors.has_learner_connectors(config), "it has learner connectors of its own"),
        (config.num_learners > 1, "it has several learners"),
        (not isinstance(config.n_step, int), f"its n_step is {config.n_step!r}"),
        (config.model_config.get("use_lstm"), "its module is recurrent"),
    )
    return next((reason for holds, reason in checks if holds), None)


def _is_stateful(learner: Learner, *_: object) -> bool:
    return any(module.is_stateful() for module in learner.module.values())
