"""PG: the plain policy gradient (`rllib/agents/pg` of Ray 0.5 – 1.13, `algorithms/pg` until 2.10).

Its advantages are discounted returns, and nothing is expected after the end of a fragment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.connectors.learner import AddOneTsToEpisodesAndTruncate
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.evaluation.postprocessing import Postprocessing

from rllib_compat.algorithms.advantages import TrainBatches
from rllib_compat.algorithms.base import (
    Batch,
    Loss,
    LossLearner,
    RemovedAlgorithm,
    RemovedAlgorithmConfig,
    register,
)
from rllib_compat.algorithms.catalogs import ActorCriticCatalog
from rllib_compat.algorithms.objectives import Choices
from rllib_compat.algorithms.rounds import begin_rounds
from rllib_compat.ray_versions import configs, learners, modules, old_policies, training_steps

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig

_CATEGORICAL = modules.torch_distributions().TorchCategorical


class SynchronousConfig(RemovedAlgorithmConfig):
    """The config of an algorithm that learns once from each batch."""

    new_stack_only = False

    def get_default_rl_module_spec(self) -> Any:
        """Describes the module: today's default actor-critic, which is the old one's network."""
        spec = configs.todays_config("PPO").get_default_rl_module_spec()
        return RLModuleSpec(module_class=spec.module_class, catalog_class=ActorCriticCatalog)


class SynchronousAlgorithm(RemovedAlgorithm, Algorithm):  # type: ignore[misc]  # Ray has no types
    """Samples, learns once, and sends the new weights to the env runners."""

    #: Its policy for the old API stack, in `old_stack_policies`.
    old_stack_policy: ClassVar[str]

    @classmethod
    def get_default_policy_class(cls, config: AlgorithmConfig) -> type:  # noqa: ARG003
        """The policy for the old API stack."""
        from rllib_compat.algorithms import old_stack_policies

        policy: type = getattr(old_stack_policies, cls.old_stack_policy)
        return policy

    def training_step(self) -> Any:
        """Learns from one train batch, in as many parts as the config says."""
        if not self.config.enable_rl_module_and_learner:
            return old_policies.learn_once_on_the_old_stack(self)
        total = self.config.total_train_batch_size
        part = getattr(self.config, "microbatch_size", None) or total
        rounds = begin_rounds(self)
        while rounds.start_next():
            for _ in range(-(-total // part)):
                episodes = rounds.sample(part)
                if not episodes:  # every env runner has failed
                    return None
                rounds.learn_from_episodes(episodes)
            training_steps.send_new_weights(self)
        rounds.log_metrics()
        return None


class PolicyGradientLearner(LossLearner, learners.OptimizerStepLearner, TorchLearner):  # type: ignore[misc]  # Ray has no types
    """Adds advantages to what a learner is given."""

    _learner_connector: Any

    def build(self) -> None:
        """Builds modules, optimizers and the pipeline that makes batches of episodes."""
        super().build()
        pipeline = self._learner_connector
        if pipeline is not None and self.config.add_default_connectors_to_learner_pipeline:
            pipeline.prepend(AddOneTsToEpisodesAndTruncate())
            self._learner_connector = TrainBatches(pipeline, self.config)

    def action_distribution(self, module_id: str, out: Batch) -> Any:
        """The distributions that a module's forward pass has given, one a step."""
        made = self.module[module_id].unwrapped().get_train_action_dist_cls()
        inputs = out[Columns.ACTION_DIST_INPUTS]
        return Choices(inputs) if made is _CATEGORICAL else made.from_logits(inputs)

    def values(self, module_id: str, batch: Batch, out: Batch) -> Any:
        """What a module expects before each step of a batch."""
        embeddings = out.get(Columns.EMBEDDINGS)
        return self.module[module_id].unwrapped().compute_values(batch, embeddings)


class PG(SynchronousAlgorithm):
    """Learns from discounted returns alone."""

    old_stack_policy = "PGTorchPolicy"


class PGConfig(SynchronousConfig):
    """The config of PG; it has no settings of its own.

    Attributes:
        use_critic: False: its advantages are discounted returns.
    """

    use_critic: ClassVar[bool] = False


class PGTorchLearner(PolicyGradientLearner):
    """Computes PG's loss: what `pg_torch_loss` computed."""

    def module_loss(
        self,
        module_id: str,
        config: AlgorithmConfig,  # noqa: ARG002
        batch: Batch,
        out: Batch,
    ) -> Loss:
        """Minus the mean of each action's log-probability times its discounted return.

        What pads sequences to the longest one counts, as a step with a return of 0.
        """
        gains = batch[Postprocessing.ADVANTAGES]
        valid = batch.get(Columns.LOSS_MASK, torch.ones_like(gains, dtype=torch.bool))
        logp = self.action_distribution(module_id, out).logp(batch[Columns.ACTIONS])
        lengths = valid.reshape(len(valid), -1).sum(dim=1)
        count = lengths.count_nonzero() * lengths.max()
        loss = -(logp * gains)[valid].sum() / count
        logged = {"policy_loss": loss}
        if not isinstance(self.module[module_id].unwrapped(), ValueFunctionAPI):
            return loss, logged  # a network of an old Ray, where PG had no critic
        # No critic learns. Ray's learners and torch's data parallelism want a gradient for each
        # of its parameters nevertheless: zero, from which Adam learns nothing.
        return loss + 0.0 * self.values(module_id, batch, out).mean(), logged


register(PG, PGConfig, PGTorchLearner)
