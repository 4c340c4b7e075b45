"""What off-policy algorithms share that are Ray's DQN or SAC, or built on them.

They replay columns, not episodes. Ray's episode buffers make an object of each step that is drawn,
and connectors make columns of these again. Here steps become columns when they are sampled, and
stay columns.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.legacy_training import PRIORITY_OFFSET
from rllib_compat.algorithms.replay import MultiAgentReplayBuffer, ToTrain
from rllib_compat.algorithms.rounds import Rounds, begin_rounds, legacy_replay, round_weights
from rllib_compat.ray_versions import (
    checkpoints,
    configs,
    connectors,
    learners,
    training_steps,
)

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

    from rllib_compat.ray_versions.types import AlgorithmConfig, Learner


logger = logging.getLogger(__name__)

#: The component of checkpoints that holds what is replayed.
REPLAY = "replay"


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
    #: How many steps it has learned from until now.
    _learned_from = 0

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
        samples, updates = round_weights(self.config)
        rounds = begin_rounds(self)
        self._learned_from = training_steps.steps_trained(self)
        while rounds.start_next():
            for _ in range(samples):
                self.replay.add(rounds.sample(), self._to_train)
            if not len(self.replay) or rounds.is_warming_up():
                continue
            for _ in range(updates()):
                self._learn()
            training_steps.send_new_weights(self)
        rounds.log_metrics()

    def _learn(self) -> None:
        """Draws transitions, learns from them, and gives them other priorities."""
        count = self.config.total_train_batch_size
        if batches := self.replay.sample(count, self._beta(), self._to_train):
            self.replay.prioritize(self.learn_from(batches))
            self._learned_from += count

    def _beta(self) -> float:
        """How far weights make up for priorities now."""
        schedule = (legacy_replay(self.config) or {}).get("beta")
        if schedule is None:
            beta: float = self.config.replay_buffer_config.get("beta") or 0.0
            return beta
        steps, betas = np.asarray(schedule, float).T
        return float(np.interp(self._learned_from, steps, betas))

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
    buffer, before = config.replay_buffer_config, legacy_replay(config)
    offset = getattr(config, "prioritized_replay_eps", -1)
    if offset < 0:  # of Ray's own configs it is -1: unset
        offset = (before or {}).get("offset", PRIORITY_OFFSET)
    return {
        "alpha": buffer.get("alpha", 1.0) if "Prioritized" in buffer["type"] else 0.0,
        "n_step": config.n_step,
        "gamma": config.gamma,
        "offset": offset,
        "first": (before or {}).get("first"),
        "waits": before is None,
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
