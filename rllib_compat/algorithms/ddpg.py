"""DDPG (`rllib/agents/ddpg` of Ray 0.5 – 1.13, `algorithms/ddpg` until 2.10); TD3 is built on it.

One optimizer trains the actor, one the critic and its twin. What comes before both of them
(`use_state_preprocessor`) is trained by neither: so it was in every Ray that had it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from ray.rllib.algorithms.algorithm_config import NotProvided
from ray.rllib.algorithms.sac import SAC
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.base import (
    ActorCriticLearner,
    Batch,
    Loss,
    RemovedAlgorithm,
    RemovedAlgorithmConfig,
    register,
)
from rllib_compat.algorithms.objectives import huber, least, td_targets
from rllib_compat.algorithms.off_policy import OffPolicyAlgorithm
from rllib_compat.networks.modules.critics import Q_OF_POLICY, DeterministicModule
from rllib_compat.networks.modules.exploration import check
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import learners, replay
from rllib_compat.runtime.exploration import ParameterNoise

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig


class DDPG(RemovedAlgorithm, OffPolicyAlgorithm, SAC):  # type: ignore[misc]  # Ray has no types
    """Learns a deterministic policy from replayed steps.

    A training step is that of Ray's SAC: sample, store, replay, learn, send the weights. Steps are
    replayed as columns.
    """


class DDPGConfig(RemovedAlgorithmConfig):
    """The config of DDPG."""

    default_module_class = DeterministicModule
    module_settings = {
        "actor_hiddens": "The sizes of the actor's hidden layers.",
        "actor_hidden_activation": "Their activation.",
        "critic_hiddens": "The sizes of each critic's hidden layers.",
        "critic_hidden_activation": "Their activation.",
        "twin_q": "Whether a second critic is learned; targets take the smaller value of both.",
        "use_state_preprocessor": "Whether a network that nothing trains comes before actor and "
        "critics: the layers of the model config, the last with 256 units.",
        "exploration_noise": "What is added to actions while exploring, by the keys of the old "
        "`exploration_config`: its `type` (GaussianNoise, OrnsteinUhlenbeckNoise) and what that "
        "takes. It is merged with the default if that is of the same type.",
        "parameter_noise": "Explores with noise on the actor's weights, too, for an episode at a "
        'time: `{"initial_stddev": 1.0}`, how large it is at first. The actor has layer norms '
        'then, and episodes have to be whole (`batch_mode="complete_episodes"`).',
    }
    settings = {
        "policy_delay": "The actor is updated at each so many-th update of the critics.",
        "smooth_target_policy": "Whether noise is added to the actions of the target policy.",
        "target_noise": "The standard deviation of that noise.",
        "target_noise_clip": "How far that noise goes at most, to either side.",
        "actor_lr": "The actor's learning rate, or a schedule `[[step, rate], …]`.",
        "critic_lr": "That of both critics.",
        "l2_reg": "The weight of half the squared sum of all weights that are no biases.",
        "use_huber": "Whether errors are counted linearly beyond `huber_threshold`.",
        "huber_threshold": "From which error on.",
        "n_step": "How many steps a target looks ahead.",
        "tau": "How far targets go towards their networks each time.",
        "target_network_update_freq": "After how many sampled steps they do; 0: at each update.",
        "num_steps_sampled_before_learning_starts": "After how many sampled steps it learns.",
        "replay_buffer_config": "What is drawn evenly (`EpisodeReplayBuffer`) or by its errors "
        "(`PrioritizedEpisodeReplayBuffer`), with `capacity` in steps, `alpha` and `beta`. It is "
        "merged with the default if that is of the same type.",
        "store_buffer_in_checkpoints": "Whether checkpoints hold what it replays; not where Ray's "
        "own buffers are used, which a warning names.",
        "training_intensity": "How many steps are learned from for each one that is sampled. "
        "None: one update for each fragment that is sampled.",
    }
    least = {"policy_delay": 1}
    schedules = {"actor_lr": "learning rate", "critic_lr": "learning rate"}
    exploration_noise: Mapping[str, Any]
    parameter_noise: Mapping[str, Any] | None
    replay_buffer_config: Mapping[str, Any]

    merged_settings = ("exploration_noise", "replay_buffer_config")

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        replay.use_weighted_buffer(self)

    def update_from_dict(self, config_dict: dict[str, Any]) -> Any:
        """Takes settings by their names, as `evaluation_config` and Tune's search spaces give them.

        Returns:
            The config itself.
        """
        given = dict(config_dict)
        noise = given.pop("exploration_noise", NotProvided)
        super().update_from_dict(given)
        return self.training(exploration_noise=noise)

    def build_env_to_module_connector(self, *args: object, **kwargs: object) -> Any:
        """The pipeline between environment and module."""
        pipeline = super().build_env_to_module_connector(*args, **kwargs)
        if self.parameter_noise:
            pipeline.prepend(ParameterNoise())
        return pipeline

    def get_rollout_fragment_length(self, worker_index: int = 0) -> int:  # noqa: ARG002
        """How many steps an env runner samples at a time; "auto": as many as a target needs."""
        length = self.rollout_fragment_length
        return int(self.n_step if length == "auto" else length)

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: Two of them contradict each other, or nothing can run them.
        """
        super().validate()
        name = self.algo_class.__name__
        kind = self.replay_buffer_config.get("type")
        kind = kind if isinstance(kind, str) else getattr(kind, "__name__", repr(kind))
        if "EpisodeReplayBuffer" not in kind:
            raise ConfigError(
                f"{name} needs a replay buffer of episodes, and {kind} is not one.",
                where="replay_buffer_config.type",
                fix="Set it to EpisodeReplayBuffer or PrioritizedEpisodeReplayBuffer.",
            )
        if self.get_rollout_fragment_length() < self.n_step and not self.in_evaluation:
            raise ConfigError(
                f"A fragment of {self.rollout_fragment_length} steps is too short for targets of "
                f"{self.n_step} steps.",
                where="rollout_fragment_length",
                fix="rollout_fragment_length='auto'",
            )
        check(self.exploration_noise)
        if self.parameter_noise and self.batch_mode != "complete_episodes":
            raise ConfigError(
                "Parameter noise needs complete episodes, since it changes after each of them.",
                where="batch_mode",
                fix="env_runners(batch_mode='complete_episodes')",
            )


class DDPGTorchLearner(learners.ArrayBatchLearner, ActorCriticLearner):
    """Computes the losses: what `ddpg_actor_critic_loss` of DDPG's torch policy computed."""

    epsilon = 1e-7

    def build(self) -> None:
        """Builds the learner."""
        super().build()
        #: Module → the actor's loss when it was computed last.
        self._actor_losses: dict[str, torch.Tensor] = {}

    def _update(self, batch: Mapping[str, Any], **kwargs: object) -> Any:
        """One update; where the actor does not learn, its loss is that of the update before.

        It would take a quarter of the update's time. Gradients that are clipped or logged have it.
        """
        for module_id in batch:
            config = self.config.get_config_for_module(module_id)
            self.module[module_id].unwrapped().trains_actor = (
                self._actor_learns(module_id)
                or module_id not in self._actor_losses
                or config.grad_clip is not None
                or config.log_gradients
            )
        return super()._update(batch, **kwargs)

    def module_loss(
        self, module_id: str, config: AlgorithmConfig, batch: Batch, out: Batch
    ) -> Loss:
        """The sum of the actor's and the critics' losses.

        Neither has a gradient where the other one learns, so that their sum trains each alone.
        """
        module = self.module[module_id].unwrapped()
        values = [out[name] for name in ("q_values", "twin_q_values") if name in out]
        targets = self._targets(module, config, batch)
        weights = batch.get("weights", torch.ones_like(targets))
        critic_loss = critics_loss(
            values, targets, weights, config.huber_threshold if config.use_huber else None
        )
        if config.l2_reg:
            critic_loss = critic_loss + config.l2_reg * half_squares(module.regularized("critic"))
        loss = critic_loss
        if Q_OF_POLICY in out:
            actor_loss = -out[Q_OF_POLICY].mean()
            if config.l2_reg:
                actor_loss = actor_loss + config.l2_reg * half_squares(module.regularized("actor"))
            loss = critic_loss + actor_loss
            self._actor_losses[module_id] = actor_loss.detach()
        error = (values[0] - targets).detach()
        learners.log_td_errors(self, module_id, error.abs())
        return loss, lambda: {
            "actor_loss": self._actor_losses[module_id],
            "critic_loss": critic_loss,
            "mean_q": values[0].mean(),
            "max_q": values[0].max(),
            "min_q": values[0].min(),
            "mean_td_error": error.mean(),
        }

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _targets(self, module: Any, config: AlgorithmConfig, batch: Batch) -> Any:
        """What the critics should have said."""
        following = {Columns.OBS: batch[Columns.NEXT_OBS]}
        actions = module.forward_target(following)[Columns.ACTIONS]
        if config.smooth_target_policy:
            space = module.action_space
            low, high = (actions.new_tensor(bound) for bound in (space.low, space.high))
            actions = add_target_noise(
                actions, low, high, config.target_noise, config.target_noise_clip
            )
        next_values = module.forward_target({**following, Columns.ACTIONS: actions})
        return td_targets(
            batch[Columns.REWARDS],
            batch[Columns.TERMINATEDS],
            least(next_values.values()),
            config.gamma ** batch.get("n_step", config.n_step),
        )

    def _actor_learns(self, module_id: str) -> bool:
        """Whether it is time for the actor's next update."""
        delay: int = self.config.get_config_for_module(module_id).policy_delay
        return delay == 1 or self.updates_of_critics(module_id) % delay == 0

    def apply_gradients(self, gradients_dict: Mapping[Any, torch.Tensor]) -> None:
        """Applies gradients; those of an actor at every `policy_delay`-th update alone."""
        left = dict(gradients_dict)
        for module_id in self.module.keys():  # noqa: SIM118 - it is no dict
            if not self._actor_learns(module_id):
                actor = self.get_optimizer(module_id, "actor")
                for reference in self.filter_param_dict_for_optimizer(gradients_dict, actor):
                    del left[reference]
                actor.zero_grad(set_to_none=True)  # what has no gradient makes no step
        super().apply_gradients(left)


def critics_loss(
    values: list[torch.Tensor],
    targets: torch.Tensor,
    weights: torch.Tensor,
    huber_threshold: float | None,
) -> torch.Tensor:
    """The loss of the critics.

    Args:
        values: What each critic says of the actions that were taken, `[B]`.
        targets: What they should have said, `[B]`.
        weights: The importance of each transition, `[B]`.
        huber_threshold: From which error on errors count linearly; None: from none.
    """
    errors = [value - targets for value in values]
    losses = sum(
        0.5 * error.pow(2.0) if huber_threshold is None else huber(error, huber_threshold)
        for error in errors
    )
    return (weights * losses).mean()


def half_squares(weights: Iterable[torch.Tensor]) -> torch.Tensor | float:
    """Half the squared sum of weights.

    It has a gradient, as with TensorFlow; the old torch policies had it in the loss's value alone.
    """
    return 0.5 * sum(weight.pow(2.0).sum() for weight in weights)


def add_target_noise(
    actions: torch.Tensor, low: torch.Tensor, high: torch.Tensor, deviation: float, clip: float
) -> torch.Tensor:
    """Actions with clipped normal noise, within the bounds of the action space."""
    noise = torch.normal(torch.zeros_like(actions), deviation).clamp(-clip, clip)
    return torch.minimum(torch.maximum(actions + noise, low), high)


register(DDPG, DDPGConfig, DDPGTorchLearner)
