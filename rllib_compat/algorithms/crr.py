"""CRR: critic-regularized regression, from recorded steps (`algorithms/crr` of Ray 2.0 – 2.10).

Wang et al., "Critic regularized regression" (2020): the policy imitates those of the recorded
actions that its critics think better than its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from ray.rllib.algorithms.marwil import MARWIL
from ray.rllib.core.columns import Columns
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

from rllib_compat.algorithms.base import (
    ActorCriticLearner,
    Batch,
    Loss,
    RemovedAlgorithm,
    RemovedAlgorithmConfig,
    register,
)
from rllib_compat.algorithms.objectives import huber, least, td_targets
from rllib_compat.networks.modules.critics import CriticRegularizedModule
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import algorithms, learners

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig


class CRR(RemovedAlgorithm, MARWIL):  # type: ignore[misc]  # Ray has no types
    """Learns from recorded steps; a training step is that of Ray's MARWIL."""

    def training_step(self) -> None:
        """Makes a step; a converted checkpoint acts without recordings, too.

        Raises:
            ConfigError: There are no recordings.
        """
        if self.config.input_ in (None, "", "sampler"):
            raise ConfigError(
                "CRR trains on recordings, and the config has none.",
                where="input",
                fix="Set `input` to the path of recordings.",
            )
        super().training_step()

    def restore_from_path(self, path: object, *more: object, **named: object) -> None:
        """Restores what was saved, also without env runners; `Algorithm.from_checkpoint` calls it.

        Ray 2.41 – 2.47 can't do that for Ray's own algorithms that learn from recordings.
        """
        with algorithms.restores_offline():
            super().restore_from_path(path, *more, **named)


class CRRConfig(RemovedAlgorithmConfig):
    """The config of CRR."""

    default_module_class = CriticRegularizedModule
    module_settings = {
        "actor_hiddens": "The sizes of the actor's hidden layers.",
        "actor_hidden_activation": "Their activation.",
        "critic_hiddens": "The sizes of each critic's hidden layers.",
        "critic_hidden_activation": "Their activation.",
        "twin_q": "Whether there is a second critic; the smaller value counts.",
        "categorical_distribution_temperature": "What logits of Discrete actions are divided by.",
    }
    settings = {
        "weight_type": "How an action's advantage becomes the weight of its imitation: `bin` (1 "
        "where it is above zero, else 0) or `exp` (its exponential).",
        "temperature": "What advantages are divided by before the exponential.",
        "max_weight": "The greatest exponential weight.",
        "advantage_type": "What an action's value is compared with: the `mean` or the `max` of "
        "`n_action_sample` of the policy's own, or (Discrete) their `expectation`.",
        "n_action_sample": "How many of its own actions are drawn.",
        "target_network_update_freq": "After how many learned steps targets follow. None: 100 "
        "train batches.",
        "actor_lr": "The actor's learning rate, or a schedule `[[step, rate], …]`.",
        "critic_lr": "That of both critics.",
        "tau": "How far targets go towards their networks each time.",
        "td_error_loss_fn": "`mse` or `huber`.",
    }
    choices = {
        "advantage_type": ("mean", "max", "expectation"),
        "td_error_loss_fn": ("mse", "huber"),
        "weight_type": ("bin", "exp"),
    }
    target_network_update_freq: int | None

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        # Ray's own two actors, with a task that reads, would wait for each other on two CPUs.
        self.offline_data(map_batches_kwargs={"concurrency": 1})

    def build_learner_connector(self, *args: object, **kwargs: object) -> Any:
        """The pipeline that makes batches; each step with the observation after it."""
        pipeline = super().build_learner_connector(*args, **kwargs)
        learners.add_next_observations(pipeline)
        return pipeline

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: Two of them contradict each other, or nothing can run them.
        """
        super().validate()
        if not self.num_learners and not self.dataset_num_iters_per_learner:
            raise ConfigError(
                "A local learner needs the number of passes over the data in an iteration.",
                where="dataset_num_iters_per_learner",
                fix="offline_data(dataset_num_iters_per_learner=1)",
            )
        if self.target_network_update_freq is None:
            self.target_network_update_freq = 100 * self.train_batch_size_per_learner


class CRRTorchLearner(ActorCriticLearner):
    """Computes the losses: what `CRRTorchPolicy` computed."""

    def build(self) -> None:
        """Makes modules and optimizers.

        Raises:
            ConfigError: The config asks for what the actions do not have.
        """
        super().build()
        if self.config.advantage_type != "expectation":
            return
        if not all(module.unwrapped().discrete for module in self.module.values()):
            raise ConfigError(
                "The advantage type 'expectation' is not possible with Box actions.",
                where="advantage_type",
                fix="Set it to 'mean' or 'max'.",
            )

    def module_loss(
        self,
        module_id: str,
        config: AlgorithmConfig,
        batch: Batch,
        out: Batch,  # noqa: ARG002
    ) -> Loss:
        """The sum of the actor's and the critics' losses; neither trains what the other does."""
        module = self.module[module_id].unwrapped()
        seen, actions = batch[Columns.OBS], batch[Columns.ACTIONS]
        policy = module.policy_of(batch)
        logp = policy.log_prob(actions)
        logp = logp if module.discrete else logp.flatten(1).sum(-1)
        values = module.values_of(seen, actions)
        own = _own_value(module, policy, seen, config)
        advantages = least(values).detach() - own
        weights = imitation_weights(
            advantages, config.weight_type, config.temperature, config.max_weight
        )
        actor_loss = -(weights * logp).mean()
        targets = self._targets(module, config, batch)
        critic_loss = crr_critic_loss(values, targets, config.td_error_loss_fn)
        return actor_loss + critic_loss, {
            "loss_actor": actor_loss,
            "loss_critic": critic_loss,
            "weights_avg": weights.mean(),
            "q_batch_avg": least(values).mean(),
            "v_batch_avg": own.mean(),
            "targets_avg": targets.mean(),
        }

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _targets(self, module: Any, config: AlgorithmConfig, batch: Batch) -> Any:
        """What the critics should have said."""
        following = batch[Columns.NEXT_OBS]
        actions = module.policy_of({Columns.OBS: following}, target=True).sample()
        if not module.discrete:
            space = module.action_space
            low, high = (actions.new_tensor(bound) for bound in (space.low, space.high))
            actions = torch.minimum(torch.maximum(actions, low), high)
        next_values = least(module.values_of(following, actions, target=True))
        rewards, ended = batch[Columns.REWARDS], batch[Columns.TERMINATEDS]
        return td_targets(rewards, ended, next_values, config.gamma)

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Lets targets follow, by the steps that were learned from: nothing is sampled."""
        module_id = next(iter(self.module.keys()))
        learned = self.updates_of_critics(module_id) * self.config.train_batch_size_per_learner
        timesteps = {**timesteps, NUM_ENV_STEPS_SAMPLED_LIFETIME: learned}
        super().after_gradient_based_update(timesteps=timesteps)


def _own_value(module: Any, policy: Any, seen: Any, config: AlgorithmConfig) -> Any:
    """The value of the policy's own actions, `[B]`. Critics get no gradient of it."""
    if config.advantage_type == "expectation":
        return (least(module.values_of(seen)).detach() * policy.probs).sum(-1)
    with torch.no_grad():
        drawn = policy.sample((config.n_action_sample,))
        values = torch.stack([least(module.values_of(seen, each)) for each in drawn])
        return values.mean(0) if config.advantage_type == "mean" else values.max(0).values


def imitation_weights(
    advantages: torch.Tensor, kind: str, temperature: float, most: float
) -> torch.Tensor:
    """How much each recorded action is imitated, `[B]`: settings `weight_type` and its like."""
    if kind == "bin":
        return (advantages > 0).float()
    return (advantages / temperature).exp().clamp(0.0, most)


def crr_critic_loss(values: list[torch.Tensor], targets: torch.Tensor, kind: str) -> torch.Tensor:
    """The mean loss of all critics: Huber's (`huber`), or half the squared errors (`mse`)."""
    errors = torch.cat([value - targets for value in values])
    return huber(errors).mean() if kind == "huber" else 0.5 * errors.pow(2.0).mean()


register(CRR, CRRConfig, CRRTorchLearner)
