"""QMIX, VDN and independent Q-learning (`agents/qmix` of Ray 0.6 – 1.13, `qmix` until 2.10).

A group of agents shares one recurrent Q-network; a mixer makes one value of theirs, from which all
of them learn. Whole episodes are replayed.
"""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import NotProvided
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.schedules.scheduler import Scheduler

from rllib_compat.algorithms.config import DefaultsConfig
from rllib_compat.algorithms.fragments import (
    Fragment,
    FragmentBuffer,
    fragment,
    sequences,
)
from rllib_compat.algorithms.names import register
from rllib_compat.algorithms.rounds import begin
from rllib_compat.networks.modules.grouped import MASK
from rllib_compat.networks.modules.qmix import FOLLOWING, TAKEN, TARGETS, QMIXModule
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import configs, learners, training_steps
from rllib_compat.runtime.observation_connectors import GroupedObservations

MIXERS = ("qmix", "vdn", None)


class QMIX(Algorithm):  # type: ignore[misc]  # Ray has no types
    """Samples a fragment on each env runner, keeps it, learns once from fragments drawn evenly."""

    @classmethod
    def get_default_config(cls) -> QMIXConfig:
        """The config that it starts from."""
        return QMIXConfig()

    @classmethod
    def get_default_policy_class(cls, config: Any) -> None:
        """None: the old API stack can't run it."""

    def setup(self, config: Any) -> None:
        """Builds env runners, learner and replay buffer."""
        super().setup(config)
        self._kept = FragmentBuffer(self.config.buffer_size)

    def training_step(self) -> None:
        """Samples; learns once; sends the weights."""
        config = self.config
        rounds = begin(self)
        while rounds.go_on():
            told = rounds.sample_whole(_fragment)
            for _, sampled in told:
                self._kept.add(sampled)
            if not told or rounds.wait():
                continue
            drawn = self._kept.sample(config.total_train_batch_size)
            batches = {
                module_id: sequences(chunks, config.max_seq_len)
                for module_id, chunks in drawn.chunks.items()
            }
            rounds.learn(batches, drawn.steps)
            training_steps.send_new_weights(self)
        rounds.tell()


def _fragment(_: Any, episodes: list[Any]) -> Fragment:
    return fragment(episodes)


class QMIXConfig(DefaultsConfig):
    """The config of QMIX.

    Its environment is a `MultiAgentEnv` with groups (`with_agent_groups`), and each group has a
    policy. Where agents observe a Dict, `obs` is what they act on, `action_mask` says which actions
    are valid, and `state` is what the mixer sees: without one, it sees all observations.

    Args:
        algo_class: The algorithm, if it is a subclass of `QMIX`.
    """

    of_the_module = ("mixer", "mixing_embed_dim", "lstm_cell_size", "epsilon")
    #: Observations are no vectors, but what `GroupedObservations` makes of them.
    groups_observations = True

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or QMIX)
        self.buffer_size = 1000
        self.epsilon: Any = [[0, 1.0], [40000, 0.01]]
        self.lstm_cell_size = 64
        self.max_seq_len = 999_999

    def training(
        self,
        *,
        mixer: Any = NotProvided,
        mixing_embed_dim: Any = NotProvided,
        double_q: Any = NotProvided,
        lstm_cell_size: Any = NotProvided,
        max_seq_len: Any = NotProvided,
        epsilon: Any = NotProvided,
        buffer_size: Any = NotProvided,
        num_steps_sampled_before_learning_starts: Any = NotProvided,
        target_network_update_freq: Any = NotProvided,
        tau: Any = NotProvided,
        optim_alpha: Any = NotProvided,
        optim_eps: Any = NotProvided,
        **kwargs: Any,
    ) -> QMIXConfig:
        """Sets how it learns.

        Args:
            mixer: What makes one value of the agents': `qmix` (a network that grows with each of
                them), `vdn` (their sum), or None: each learns from its own reward.
            mixing_embed_dim: The units of QMIX's mixer.
            double_q: Whether the network says which action comes next, and the target only what it
                is worth.
            lstm_cell_size: The units of each agent's GRU, and of the layer before it.
            max_seq_len: After how many steps a sequence is cut.
            epsilon: How probably an agent acts at random: a number, or a schedule
                `[[step, epsilon], …]`.
            buffer_size: How many fragments are kept for replay. An env runner samples a fragment at
                a time: `rollout_fragment_length` steps or, of whole episodes, a few more.
                Checkpoints do not hold them.
            num_steps_sampled_before_learning_starts: After how many sampled steps it learns.
            target_network_update_freq: After how many sampled steps targets follow.
            tau: How far they go towards their networks then.
            optim_alpha: The smoothing constant of RMSprop.
            optim_eps: The epsilon of RMSprop.
            **kwargs: What every algorithm has. `train_batch_size` counts steps of the environment;
                fragments are drawn until there are so many.

        Returns:
            The config itself.
        """
        super().training(**kwargs)
        self.set_given(locals())
        return self

    def get_default_learner_class(self) -> type:
        """The learner that computes the loss."""
        return QMIXTorchLearner

    def get_default_rl_module_spec(self) -> Any:
        """Describes the module."""
        return RLModuleSpec(module_class=QMIXModule)

    def build_env_to_module_connector(self, *args: Any, **kwargs: Any) -> Any:
        """The pipeline between environment and module; first of all, arrays are made."""
        pipeline = super().build_env_to_module_connector(*args, **kwargs)
        pipeline.prepend(GroupedObservations(multi_agent=configs.is_multi_agent(self)))
        return pipeline

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: Two of them contradict each other, or nothing can run them.
        """
        super().validate()
        self.require_new_stack()
        if self.mixer not in MIXERS:
            raise ConfigError(
                f"mixer is one of {', '.join(map(repr, MIXERS))}, not {self.mixer!r}.",
                where="mixer",
                fix=f"mixer={MIXERS[0]!r}",
            )
        for name in ("buffer_size", "max_seq_len"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name} is at least 1, not {getattr(self, name)}.",
                    where=name,
                    fix=f"{name}={getattr(QMIXConfig(), name)}",
                )
        Scheduler.validate(
            fixed_value_or_schedule=self.epsilon, setting_name="epsilon", description="epsilon"
        )


_WithTargets: Any = learners.learner_with_targets()


class QMIXTorchLearner(learners.TakesArrays, _WithTargets, TorchLearner):  # type: ignore[misc]
    """Computes the loss: what `QMixLoss` of QMIX's torch policy computed."""

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Makes one RMSprop for the network and the mixer."""
        config = self.config.get_config_for_module(module_id)
        parameters = list(self.module[module_id].unwrapped().net.parameters())
        made = torch.optim.RMSprop(parameters, alpha=config.optim_alpha, eps=config.optim_eps)
        self.register_optimizer(
            module_id=module_id, optimizer=made, params=parameters, lr_or_lr_schedule=config.lr
        )

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Any
    ) -> Any:
        """The mean of squared TD errors, over all steps that are no padding, and all agents."""
        module = self.module[module_id].unwrapped()
        rewards = batch[Columns.REWARDS]
        real = batch[Columns.LOSS_MASK].unsqueeze(-1)
        ended = batch[Columns.TERMINATEDS].unsqueeze(-1)
        with torch.no_grad():
            following = _best(fwd_out, batch, config, ~real | ended)
            value = module.mixed(following, batch[Columns.NEXT_OBS], target=True)
            targets = rewards + config.gamma * (~ended).float() * value
        taken = fwd_out[TAKEN]
        weights = real.float().expand_as(targets)
        errors = (taken - targets) * weights
        steps = weights.sum()
        loss = errors.pow(2.0).sum() / steps
        told = {
            "loss": loss,
            "td_error_abs": errors.abs().sum() / steps,
            "q_taken_mean": (taken * weights).sum() / steps,
            "target_mean": (targets * weights).sum() / steps,
        }
        self.metrics.log_dict(told, key=module_id, window=1)
        return loss


def _best(fwd_out: Any, batch: Any, config: Any, irrelevant: Any) -> Any:
    """What the targets say of each agent's best valid action after each step, `[B, T, agents]`.

    Args:
        fwd_out: What the module gave.
        batch: The batch.
        config: The module's config.
        irrelevant: `[B, T, 1]`: after these steps, no action has to be valid.
    """
    targets, values = fwd_out[TARGETS], fwd_out[FOLLOWING]
    if MASK in batch[Columns.NEXT_OBS]:
        valid = (batch[Columns.NEXT_OBS][MASK] != 0) | irrelevant.unsqueeze(-1)
        targets, values = (each.masked_fill(~valid, -torch.inf) for each in (targets, values))
        if not valid.any(-1).all():
            raise ConfigError(
                "An agent has a step without any valid action.",
                where="observation_space → action_mask",
                fix="Leave at least one action to each agent in every step but the last.",
            )
    if not config.double_q:
        return targets.max(-1).values
    return targets.gather(-1, values.argmax(-1, keepdim=True)).squeeze(-1)


register(QMIX)
