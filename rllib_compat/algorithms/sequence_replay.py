"""What R2D2 and RNNSAC share: they replay sequences of whole episodes, with states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import tree
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from rllib_compat.algorithms.base import (
    RemovedAlgorithm,
    RemovedAlgorithmConfig,
    TargetNetworkLearner,
)
from rllib_compat.algorithms.replay import (
    WEIGHTS,
    ListStorage,
    PolicyReplayBuffers,
    ReplayBuffer,
    parts_of,
)
from rllib_compat.algorithms.rounds import Rounds, begin_rounds, round_weights
from rllib_compat.algorithms.sampling import set_epsilon_of_worker
from rllib_compat.algorithms.transitions import Array, n_step_returns, pad_rows, stack_steps
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import learners, training_steps

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, RLModule, SingleAgentEpisode

#: Column → a row for each step, and in most of them one for what was observed after the last;
#: `state_in` is the state that the first step begins with.
Sequence = Mapping[str, Any]


@frozen
class SequenceChopper:
    """How episodes are cut into sequences.

    Attributes:
        length: How many steps a sequence is learned from, at most.
        burn_in: How many steps before these the network is run over; at the beginning of an episode
            there are none.
        zero_states: Whether a sequence begins with zeros wherever in the episode it is, or with the
            state that the network had there when it acted.
        n_step: How many steps the reward of a step is summed over.
        gamma: The discount of these.
        following: Whether a sequence has, for each step, what was observed `n_step` steps after it
            (`new_obs`), in the place of what was observed after its last.
    """

    length: int
    burn_in: int = 0
    zero_states: bool = True
    n_step: int = 1
    gamma: float = 0.99
    following: bool = False

    @property
    def steps(self) -> int:
        """How many steps a sequence has at most."""
        return self.burn_in + self.length

    @property
    def rows(self) -> int:
        """How many rows a batch has for each sequence."""
        return self.steps + (not self.following)

    def chop_all(self, episodes: Iterable[Any]) -> Iterator[tuple[str, Sequence]]:
        """The sequences of whole episodes of one agent or of several, each with its module."""
        for module_id, part in parts_of(episodes):
            yield from ((module_id, sequence) for sequence in self.chop(part))

    def chop(self, episode: SingleAgentEpisode) -> Iterator[Sequence]:
        """The sequences of one agent's whole episode.

        Raises:
            ConfigError: The network that acted has no states.
        """
        if Columns.STATE_OUT not in episode.extra_model_outputs:
            raise ConfigError(
                "The replay of sequences needs a recurrent network, and this one has no states.",
                where="rl_module_spec",
                fix="Return states from its `get_initial_state` and its forward methods.",
            )
        steps = len(episode)
        seen = stack_steps(episode.get_observations())
        states = stack_steps(episode.get_extra_model_outputs(Columns.STATE_OUT))
        ended = np.zeros(steps, bool)
        ended[-1] = episode.is_terminated
        rewards = np.asarray(episode.get_rewards(), np.float32)
        rewards, last = n_step_returns(rewards, ended, self.n_step, self.gamma)
        columns: dict[str, Any] = {
            Columns.ACTIONS: np.asarray(episode.get_actions()),
            Columns.REWARDS: rewards,
            Columns.TERMINATEDS: ended[last],
        }
        if self.following:
            columns[Columns.NEXT_OBS] = _map(lambda part: part[last + 1], seen)
        for start in range(0, steps, self.length):
            begin, end = max(0, start - self.burn_in), min(start + self.length, steps)
            fresh, seen_until = self.zero_states or begin == 0, end + (not self.following)
            yield {
                Columns.OBS: _map(lambda part: part[begin:seen_until], seen),  # noqa: B023
                **_map(lambda column: column[begin:end], columns),  # noqa: B023
                Columns.LOSS_MASK: np.arange(begin, end) >= start,
                Columns.STATE_IN: _map(
                    lambda part: np.zeros_like(part[0]) if fresh else part[begin - 1],  # noqa: B023
                    states,
                ),
            }

    def batch(self, drawn: list[Sequence], weights: Array) -> dict[str, Any]:
        """Sequences as one batch `[B, rows, …]`, padded with zeros."""
        made = {
            name: _map(lambda *parts: pad_rows(parts, self.rows), *(one[name] for one in drawn))
            for name in drawn[0]
            if name != Columns.STATE_IN
        }
        states = _map(lambda *parts: np.stack(parts), *(one[Columns.STATE_IN] for one in drawn))
        spread = np.repeat(weights.astype(np.float32)[:, None], self.rows, axis=1)
        return {**made, Columns.STATE_IN: states, WEIGHTS: spread}


def _map(function: object, *structures: object) -> Any:
    return tree.map_structure(function, *structures)


class SequenceReplayAlgorithm(RemovedAlgorithm, Algorithm):  # type: ignore[misc]  # Ray has no types
    """Samples whole episodes on each env runner, keeps their sequences, learns from some."""

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds env runners, learner and replay buffers."""
        super().setup(config)
        self._kept = PolicyReplayBuffers(self.config.new_buffer)

    def training_step(self) -> None:
        """Samples and learns, each as often as the config says; sends the weights."""
        samples, updates = round_weights(self.config)
        rounds = begin_rounds(self)
        while rounds.start_next():
            for _ in range(samples):
                self._sample(rounds)
            if not len(self._kept) or rounds.is_warming_up():
                continue
            for _ in range(updates()):
                self._learn(rounds)
            training_steps.send_new_weights(self)
        rounds.log_metrics()

    def _sample(self, rounds: Rounds) -> None:
        """Keeps the sequences of at least a fragment of each env runner."""
        for _, sampled in rounds.sample_episodes(_sequences):
            for module_id, sequence in sampled:
                self._kept.of(module_id).keep([sequence])

    def _learn(self, rounds: Rounds) -> None:
        """Draws sequences of each module, learns from them, and gives them other priorities."""
        config, cut = self.config, self.config.cut
        count = max(1, config.total_train_batch_size // cut.steps)
        drawn = self._kept.draw(count, config.prioritized_replay_beta).items()
        batches = {
            module_id: cut.batch(sequences, weights) for module_id, (sequences, weights) in drawn
        }
        rounds.learn(batches, count * cut.steps)
        results = training_steps.foreach_learner(self, _errors)
        found = {
            module_id: np.concatenate(parts)
            for module_id in batches
            if (parts := [errors[module_id] for errors in results if module_id in errors])
        }
        self.td_errors = found
        if config.prioritized_replay:
            # A policy that is not trained has none.
            whole = {name: errors for name, errors in found.items() if len(errors) == count}
            self._kept.prioritize(whole)


def _sequences(config: AlgorithmConfig, episodes: list[Any]) -> list[tuple[str, Sequence]]:
    """The sequences of episodes, each with its module's id."""
    return list(config.cut.chop_all(episodes))


def _errors(learner: Any, *_: object) -> Any:
    """The TD errors of a learner's last batch."""
    return learner.sequence_errors


class SequenceLearner(learners.ArrayBatchLearner, TargetNetworkLearner):
    """A learner of sequences.

    Attributes:
        sequence_errors: One a sequence of the last batch, by module, for priorities.
    """

    def build(self) -> None:
        """Builds the learner."""
        super().build()
        self.sequence_errors: dict[str, Any] = {}


class SequenceReplayConfig(RemovedAlgorithmConfig):
    """The settings that these algorithms share.

    `train_batch_size` counts steps, those of the burn-in included.
    """

    burn_in: int
    buffer_size: int
    n_step: int
    least = {"buffer_size": 1, "n_step": 1, "burn_in": 0}
    #: Whether the network is also run over what follows each step (`SequenceChopper.following`).
    following = False

    settings = {
        "burn_in": "Over how many steps before those that it learns from the network is run.",
        "zero_init_states": "Whether a sequence begins with zeros, wherever in its episode it is, "
        "or with the state that the network had there when it acted.",
        "n_step": "How many steps rewards are summed over.",
        "target_network_update_freq": "After how many sampled steps the target follows.",
        "tau": "How far it goes towards the network then.",
        "buffer_size": "How many steps are kept for replay, counted as those of "
        "`train_batch_size`. Checkpoints do not hold them.",
        "prioritized_replay": "Whether sequences are drawn by their TD errors.",
        "prioritized_replay_alpha": "How much these count.",
        "prioritized_replay_beta": "How far importance weights make up for that.",
        "prioritized_replay_eps": "What is added to each error.",
        "num_steps_sampled_before_learning_starts": "After how many sampled steps it learns.",
        "per_worker_exploration": "Whether each env runner has an epsilon of its own, from 0.4 to "
        "0.4 ** 8; one of them: 0.4.",
        "training_intensity": "How many steps are learned from for each one that is sampled, if "
        "env runners sampled `rollout_fragment_length` steps at a time, as Ray's DQN counts: "
        "whole episodes are more. None: one update for each round of all env runners.",
    }

    def explore_as_worker(self, module: RLModule, worker: int) -> None:
        """Lets a module act at random as often as its env runner should."""
        set_epsilon_of_worker(module, worker, self.num_env_runners)

    @property
    def cut(self) -> SequenceChopper:
        """How episodes are cut into sequences."""
        length = self.model_config.get("max_seq_len", DefaultModelConfig.max_seq_len)
        fresh = self.zero_init_states
        return SequenceChopper(length, self.burn_in, fresh, self.n_step, self.gamma, self.following)

    def new_buffer(self, _: str = "") -> ReplayBuffer:
        """An empty replay buffer of sequences; each module has one."""
        return ReplayBuffer(
            ListStorage(max(1, self.buffer_size // self.cut.steps)),
            alpha=self.prioritized_replay_alpha if self.prioritized_replay else 0.0,
            offset=self.prioritized_replay_eps,
        )

    def get_rollout_fragment_length(self, worker_index: int = 0) -> int:
        """How many steps an env runner samples at least; by default as many as rewards sum."""
        if self.rollout_fragment_length == "auto":
            return int(self.n_step)
        return int(super().get_rollout_fragment_length(worker_index))

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: Two of them contradict each other, or nothing can run them.
        """
        super().validate()
        if self.batch_mode != "complete_episodes" and not self.in_evaluation:
            raise ConfigError(
                f"{self.legacy_name} needs complete episodes; batch_mode is {self.batch_mode!r}.",
                where="batch_mode",
                fix="Set batch_mode='complete_episodes'.",
            )
