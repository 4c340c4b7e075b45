"""A2C (`rllib/agents/a3c/a2c.py` of Ray 0.5 – 1.13, `algorithms/a2c` until 2.10).

Its terms are sums over the steps of a batch, not means: the size of the batch is part of how fast
it learns, and `grad_clip` (40 by default) is in its scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.utils.lambda_defaultdict import LambdaDefaultDict
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
from ray.rllib.utils.schedules.scheduler import Scheduler

from rllib_compat.algorithms.base import Batch, Loss, register
from rllib_compat.algorithms.objectives import (
    explained_variance,
    norm_of,
    summed_actor_critic_terms,
)
from rllib_compat.algorithms.pg import (
    PolicyGradientLearner,
    SynchronousAlgorithm,
    SynchronousConfig,
)
from rllib_compat.neutral.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from rllib_compat.ray_versions.types import AlgorithmConfig


class A2C(SynchronousAlgorithm):
    """Learns from advantages over a critic, once from each batch."""

    old_stack_policy = "A2CTorchPolicy"


class A2CConfig(SynchronousConfig):
    """The config of A2C."""

    least = {"microbatch_size": 1}
    schedules = {"entropy_coeff": "weight of the entropy"}
    settings = {
        "use_gae": "Whether advantages are estimated with `lambda_`, and a fragment's last value "
        "estimates the rest of the return.",
        "use_critic": "Whether a critic is learned and subtracted from the returns.",
        "lambda_": "The weight of later steps in the estimates.",
        "vf_loss_coeff": "The weight of the critic's loss.",
        "entropy_coeff": "The weight of the entropy, or a schedule `[[step, weight], …]`.",
        "microbatch_size": "Samples and computes gradients of so many steps at a time, until the "
        "train batch is whole; then applies their sum. None: all at once.",
    }

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: Two of them contradict each other.
        """
        super().validate()
        if self.use_gae and not self.use_critic:
            raise ConfigError("use_gae needs a critic.", where="use_critic", fix="use_gae=False")


class A2CTorchLearner(PolicyGradientLearner):
    """Computes A2C's loss: what `actor_critic_loss` of A3C's torch policy computed."""

    #: What the parts of the loss are made of: those of each step → policy, critic, entropy.
    terms = staticmethod(summed_actor_critic_terms)

    def build(self) -> None:
        """Builds the learner, with a schedule of the entropy's weight for each module."""
        super().build()
        self.entropy_coeff_schedulers_per_module = LambdaDefaultDict(self._entropy_schedule)
        self._gradients: dict[Any, Any] = {}
        self._parts = 0

    def _entropy_schedule(self, module_id: str) -> Scheduler:
        coefficient = self.config.get_config_for_module(module_id).entropy_coeff
        return Scheduler(
            fixed_value_or_schedule=coefficient, framework=self.framework, device=self._device
        )

    def module_loss(
        self, module_id: str, config: AlgorithmConfig, batch: Batch, out: Batch
    ) -> Loss:
        """The policy's and the critic's losses, less the entropy."""
        valid = batch.get(Columns.LOSS_MASK, ...)
        distribution = self.action_distribution(module_id, out)
        logp = distribution.logp(batch[Columns.ACTIONS])
        values, targets = self.values(module_id, batch, out), batch[Postprocessing.VALUE_TARGETS]
        errors = values - targets
        policy_loss, vf_loss, entropy = self.terms(
            logp[valid],
            batch[Postprocessing.ADVANTAGES][valid],
            errors[valid],
            distribution.entropy()[valid],
        )
        # Without a critic it gets gradients of zero: see `pg`.
        weight = config.vf_loss_coeff if config.use_critic else 0.0
        entropy_coeff = self.entropy_coeff_schedulers_per_module[module_id].get_current_value()
        loss = policy_loss + weight * vf_loss - entropy_coeff * entropy
        return loss, lambda: {
            "policy_loss": policy_loss,
            "vf_loss": vf_loss,
            "policy_entropy": entropy,
            "vf_explained_var": explained_variance(targets[valid], values[valid].detach()),
            "var_gnorm": norm_of(self.module[module_id].unwrapped()),
        }

    def apply_gradients(self, gradients_dict: Mapping[Any, torch.Tensor]) -> None:
        """Applies gradients; those of microbatches once they are a train batch, summed."""
        total, part = self.config.total_train_batch_size, self.config.microbatch_size
        for reference, gradient in gradients_dict.items():
            before = self._gradients.get(reference)
            self._gradients[reference] = gradient if before is None else before + gradient
        self._parts += 1
        if self._parts < -(-total // (part or total)):
            return
        whole, self._gradients, self._parts = self._gradients, {}, 0
        super().apply_gradients(whole)

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Moves on in the schedules."""
        super().after_gradient_based_update(timesteps=timesteps)
        steps = timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0)
        for module_id in self.module.keys():  # noqa: SIM118 - it is no dict
            value = self.entropy_coeff_schedulers_per_module[module_id].update(timestep=steps)
            self.metrics.log_value((module_id, "curr_entropy_coeff"), value, window=1)

    def remove_module(self, module_id: str, **kwargs: object) -> Any:
        """Removes a module, and its schedule."""
        self.entropy_coeff_schedulers_per_module.pop(module_id, None)
        return super().remove_module(module_id, **kwargs)


class AveragingLearner:
    """The first base of an A2C's or A3C's learner, as torch's policies learned before Ray 1.1."""

    @staticmethod
    def terms(
        logp: torch.Tensor, gains: torch.Tensor, errors: torch.Tensor, entropies: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The sum of the policy's terms, the mean of the squared errors and of the entropy."""
        policy_loss, _, _ = summed_actor_critic_terms(logp, gains, errors, entropies)
        return policy_loss, errors.pow(2.0).mean(), entropies.mean()


class ExpectingLearner:
    """The first base of an A2C's or A3C's learner, as policies learned before Ray 1.2.

    Without `use_gae`, too, the critic said what was expected after the end of a fragment.
    """

    def build(self: Any) -> None:
        """Builds the learner."""
        super().build()  # type: ignore[misc]  # of the real learner
        if hasattr(self._learner_connector, "advantages"):
            self._learner_connector.advantages.expects_without_gae = True


register(A2C, A2CConfig, A2CTorchLearner)
