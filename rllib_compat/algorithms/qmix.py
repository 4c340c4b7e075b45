"""QMIX, VDN and independent Q-learning (`agents/qmix` of Ray 0.6 – 1.13, `qmix` until 2.10).

A group of agents shares one recurrent Q-network; a mixer makes one value of theirs, from which all
of them learn. Whole episodes are replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.base import (
    Batch,
    Loss,
    RemovedAlgorithm,
    RemovedAlgorithmConfig,
    TargetNetworkLearner,
    register,
)
from rllib_compat.algorithms.objectives import td_targets
from rllib_compat.algorithms.replay import ListStorage, ReplayBuffer, parts_of
from rllib_compat.algorithms.rounds import begin_rounds
from rllib_compat.algorithms.transitions import pad_rows
from rllib_compat.networks.modules.grouped import MASK, grouped_space
from rllib_compat.networks.modules.qmix import FOLLOWING, TAKEN, TARGETS, QMIXModule
from rllib_compat.neutral.errors import ConfigError, LegacyEnvError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import configs, learners, training_steps
from rllib_compat.runtime.observation_connectors import GroupedObservations

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, SingleAgentEpisode

#: Where `MultiAgentEnv.with_agent_groups` leaves each agent's own reward.
GROUP_REWARDS = "_group_rewards"

#: An episode of a group, or a chunk of one: observations `[T + 1, …]`, `actions` and `rewards`
#: `[T, agents]`, `terminated` whether it ends with a terminal state.
Chunk = Mapping[str, Any]


@frozen
class Fragment:
    """What one env runner has sampled at a time.

    Attributes:
        steps: How many steps of the environment.
        chunks: The module → the chunks of its groups.
    """

    steps: int
    chunks: Mapping[str, list[Chunk]]


def fragment(episodes: Iterable[Any]) -> Fragment:
    """Makes arrays of episodes of grouped agents.

    Raises:
        LegacyEnvError: An episode does not say what each agent got.
    """
    sampled, chunks = list(episodes), dict[str, list[Chunk]]()
    for module_id, part in parts_of(sampled):
        chunks.setdefault(module_id, []).append(_chunk(part))
    return Fragment(sum(episode.env_steps() for episode in sampled), chunks)


def _chunk(episode: SingleAgentEpisode) -> Chunk:
    seen = episode.get_observations()
    if isinstance(seen, list):
        seen = {name: np.stack([one[name] for one in seen]) for name in seen[0]}
    actions = episode.get_actions()
    by_step = isinstance(actions, list)
    return {
        Columns.OBS: seen,
        Columns.ACTIONS: np.stack(actions) if by_step else np.stack(actions, axis=-1),
        Columns.REWARDS: np.array([_rewards(i) for i in episode.get_infos()[1:]], np.float32),
        "terminated": bool(episode.is_terminated),
    }


def _rewards(info: Mapping[str, Any]) -> Any:
    if GROUP_REWARDS not in info:
        raise LegacyEnvError(
            f"QMIX needs the reward of each agent, and the info of a step has no "
            f"{GROUP_REWARDS!r}.",
            where="$.env",
            fix="Group the agents with env.with_agent_groups(), which adds it.",
        )
    return info[GROUP_REWARDS]


def sequences(chunks: Iterable[Chunk], longest: int) -> dict[str, Any]:
    """One batch of chunks, padded with zeros.

    Chunks longer than the longest sequence are cut; what comes after begins with the initial state.

    Returns:
        `obs` and `new_obs`, by part, `actions` and `rewards` `[B, T, …]`; `terminateds` and
        `loss_mask`, which is True where a step is, `[B, T]`.
    """
    cut = [
        (chunk, begin, min(begin + longest, len(chunk[Columns.REWARDS])))
        for chunk in chunks
        for begin in range(0, len(chunk[Columns.REWARDS]), longest)
    ]
    length = max(end - begin for _, begin, end in cut)

    def seen(ahead: int) -> dict[str, Any]:
        return {
            name: pad_rows((c[Columns.OBS][name][b + ahead : e + ahead] for c, b, e in cut), length)
            for name in cut[0][0][Columns.OBS]
        }

    def last(chunk: Chunk, begin: int, end: int) -> Any:
        return chunk["terminated"] & (np.arange(begin, end) == len(chunk[Columns.REWARDS]) - 1)

    made: dict[str, Any] = {Columns.OBS: seen(0), Columns.NEXT_OBS: seen(1)}
    for name in (Columns.ACTIONS, Columns.REWARDS):
        made[name] = pad_rows((c[name][b:e] for c, b, e in cut), length)
    made[Columns.LOSS_MASK] = pad_rows((np.ones(e - b, bool) for _, b, e in cut), length)
    made[Columns.TERMINATEDS] = pad_rows((last(*part) for part in cut), length)
    return made


def draw_fragments(kept: ReplayBuffer, steps: int) -> Fragment:
    """Draws fragments, each as likely as any other, until there are so many steps; joins them."""
    total, chunks = 0, dict[str, list[Chunk]]()
    while total < steps:
        (drawn,), _, _ = kept.draw(1)
        total += drawn.steps
        for module_id, found in drawn.chunks.items():
            chunks.setdefault(module_id, []).extend(found)
    return Fragment(total, chunks)


class QMIX(RemovedAlgorithm, Algorithm):  # type: ignore[misc]  # Ray has no types
    """Samples a fragment on each env runner, keeps it, learns once from fragments drawn evenly."""

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds env runners, learner and replay buffer."""
        super().setup(config)
        self._kept = ReplayBuffer(ListStorage(self.config.buffer_size))

    def training_step(self) -> None:
        """Samples; learns once; sends the weights."""
        config = self.config
        rounds = begin_rounds(self)
        while rounds.start_next():
            fragments = rounds.sample_episodes(_fragment)
            for _, sampled in fragments:
                self._kept.keep([sampled])
            if not fragments or rounds.is_warming_up():
                continue
            drawn = draw_fragments(self._kept, config.total_train_batch_size)
            batches = {
                module_id: sequences(chunks, config.max_seq_len)
                for module_id, chunks in drawn.chunks.items()
            }
            rounds.learn(batches, drawn.steps)
            training_steps.send_new_weights(self)
        rounds.log_metrics()


def _fragment(_: object, episodes: list[Any]) -> Fragment:
    return fragment(episodes)


class QMIXConfig(RemovedAlgorithmConfig):
    """The config of QMIX.

    Its environment is a `MultiAgentEnv` with groups (`with_agent_groups`), and each group has a
    policy. Where agents observe a Dict, `obs` is what they act on, `action_mask` says which actions
    are valid, and `state` is what the mixer sees: without one, it sees all observations.
    `train_batch_size` counts steps of the environment; fragments are drawn until there are so many.
    """

    default_module_class = QMIXModule
    module_settings = {
        "mixer": "What makes one value of the agents': `qmix` (a network that grows with each of "
        "them), `vdn` (their sum), or None: each learns from its own reward.",
        "mixing_embed_dim": "The units of QMIX's mixer.",
        "lstm_cell_size": "The units of each agent's GRU, and of the layer before it.",
        "epsilon": "How probably an agent acts at random: a number, or a schedule `[[step, "
        "epsilon], …]`.",
    }
    settings = {
        "double_q": "Whether the network says which action comes next, and the target only what "
        "it is worth.",
        "max_seq_len": "After how many steps a sequence is cut.",
        "buffer_size": "How many fragments are kept for replay. An env runner samples a fragment "
        "at a time: `rollout_fragment_length` steps or, of whole episodes, a few more. "
        "Checkpoints do not hold them.",
        "num_steps_sampled_before_learning_starts": "After how many sampled steps it learns.",
        "target_network_update_freq": "After how many sampled steps targets follow.",
        "tau": "How far they go towards their networks then.",
        "optim_alpha": "The smoothing constant of RMSprop.",
        "optim_eps": "The epsilon of RMSprop.",
    }
    least = {"buffer_size": 1, "max_seq_len": 1}
    choices = {"mixer": ("qmix", "vdn", None)}
    schedules = {"epsilon": "epsilon"}
    #: Observations are no vectors, but what `GroupedObservations` makes of them.
    groups_observations = True

    def validate(self) -> None:
        """Checks all settings; a space that the config gives has to be one of a group, or of many.

        Raises:
            ConfigError: It can't run so.
        """
        super().validate()
        given = self.observation_space
        if given is not None and not isinstance(
            given, (gymnasium.spaces.Tuple, gymnasium.spaces.Dict)
        ):
            grouped_space(given)

    def build_env_to_module_connector(self, *args: object, **kwargs: object) -> Any:
        """The pipeline between environment and module; first of all, arrays are made."""
        pipeline = super().build_env_to_module_connector(*args, **kwargs)
        pipeline.prepend(GroupedObservations(multi_agent=configs.is_multi_agent(self)))
        return pipeline


class QMIXTorchLearner(learners.ArrayBatchLearner, TargetNetworkLearner):
    """Computes the loss: what `QMixLoss` of QMIX's torch policy computed."""

    def configure_optimizers_for_module(
        self, module_id: str, config: AlgorithmConfig | None = None
    ) -> None:
        """Makes one RMSprop for the network and the mixer."""
        config = self.config.get_config_for_module(module_id)
        parameters = list(self.module[module_id].unwrapped().net.parameters())
        made = torch.optim.RMSprop(parameters, alpha=config.optim_alpha, eps=config.optim_eps)
        self.register_optimizer(
            module_id=module_id, optimizer=made, params=parameters, lr_or_lr_schedule=config.lr
        )

    def module_loss(
        self, module_id: str, config: AlgorithmConfig, batch: Batch, out: Batch
    ) -> Loss:
        """The mean of squared TD errors, over all steps that are no padding, and all agents."""
        module = self.module[module_id].unwrapped()
        real = batch[Columns.LOSS_MASK].unsqueeze(-1)
        ended = batch[Columns.TERMINATEDS].unsqueeze(-1)
        with torch.no_grad():
            valid = _valid_actions(batch, irrelevant=~real | ended)
            following = next_values(out[TARGETS], out[FOLLOWING], valid, config.double_q)
            value = module.mixed(following, batch[Columns.NEXT_OBS], target=True)
            targets = td_targets(batch[Columns.REWARDS], ended, value, config.gamma)
        taken = out[TAKEN]
        weights = real.float().expand_as(targets)
        errors = (taken - targets) * weights
        steps = weights.sum()
        loss = errors.pow(2.0).sum() / steps
        return loss, {
            "loss": loss,
            "td_error_abs": errors.abs().sum() / steps,
            "q_taken_mean": (taken * weights).sum() / steps,
            "target_mean": (targets * weights).sum() / steps,
        }


def _valid_actions(batch: Mapping[str, Any], irrelevant: torch.Tensor) -> torch.Tensor | None:
    """Which actions an agent has after each step, `[B, T, agents, actions]`; None: all.

    After `irrelevant` steps, `[B, T, 1]`, no action has to be valid.

    Raises:
        ConfigError: An agent has none.
    """
    if MASK not in batch[Columns.NEXT_OBS]:
        return None
    valid: torch.Tensor = (batch[Columns.NEXT_OBS][MASK] != 0) | irrelevant.unsqueeze(-1)
    if not valid.any(-1).all():
        raise ConfigError(
            "An agent has no valid action in a step.",
            where="observation_space → action_mask",
            fix="Allow each agent at least one action in every step but the last.",
        )
    return valid


def next_values(
    targets: torch.Tensor, values: torch.Tensor, valid: torch.Tensor | None, double_q: bool
) -> torch.Tensor:
    """What the targets say of each agent's best valid action after each step, `[B, T, agents]`.

    With `double_q` the network's own values choose, and the target only judges.
    """
    if valid is not None:
        targets, values = (each.masked_fill(~valid, -torch.inf) for each in (targets, values))
    if not double_q:
        return targets.max(-1).values
    return targets.gather(-1, values.argmax(-1, keepdim=True)).squeeze(-1)


register(QMIX, QMIXConfig, QMIXTorchLearner)
