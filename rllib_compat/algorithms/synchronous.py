"""What synchronous policy gradients share: sample a batch, learn from it once, send the weights."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.connectors.learner import AddOneTsToEpisodesAndTruncate
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_compat.algorithms.advantages import Advantages
from rllib_compat.algorithms.config import DefaultsConfig
from rllib_compat.algorithms.initial_weights import ActorCriticCatalog
from rllib_compat.ray_versions import configs, learners, training_steps
from rllib_compat.ray_versions import old_policies as ray_old_policies


class SynchronousConfig(DefaultsConfig):
    """The config of an algorithm that learns once from each batch."""

    def get_default_rl_module_spec(self) -> Any:
        """Describes the module: today's default actor-critic, which is the old one's network."""
        spec = configs.todays_config("PPO").get_default_rl_module_spec()
        return RLModuleSpec(module_class=spec.module_class, catalog_class=ActorCriticCatalog)


class Synchronous(Algorithm):  # type: ignore[misc]  # Ray has no types
    """Samples, learns once, and sends the new weights to the env runners."""

    @classmethod
    def get_default_policy_class(cls, config: Any) -> type:  # noqa: ARG003
        """The policy for the old API stack, as `old_policies` has it."""
        from rllib_compat.algorithms import old_policies

        known = vars(old_policies)
        names = (f"{part.__name__}TorchPolicy" for part in cls.__mro__)
        found: type = next(known[name] for name in names if name in known)
        return found

    def training_step(self) -> Any:
        """Learns from one train batch, in as many parts as the config says."""
        if not self.config.enable_rl_module_and_learner:
            return ray_old_policies.learn_once_on_the_old_stack(self)
        total = self.config.total_train_batch_size
        part = getattr(self.config, "microbatch_size", None) or total
        for _ in range(-(-total // part)):
            episodes = training_steps.sample_episodes(self, part)
            if not episodes:  # every env runner has failed
                return None
            training_steps.update_learners(self, episodes)
        training_steps.send_new_weights(self)
        return None


class PolicyGradientLearner(learners.ClipsGradients, TorchLearner):  # type: ignore[misc]  # Ray has no types
    """Adds advantages to what a learner is given."""

    def build(self) -> None:
        """Builds modules, optimizers and the pipeline that makes batches of episodes."""
        super().build()
        pipeline = self._learner_connector
        if pipeline is not None and self.config.add_default_connectors_to_learner_pipeline:
            pipeline.prepend(AddOneTsToEpisodesAndTruncate())
            pipeline.append(Advantages(self.config))

    def action_distribution(self, module_id: str, fwd_out: Any) -> Any:
        """The distributions that a module's forward pass has given, one a step."""
        made = self.module[module_id].unwrapped().get_train_action_dist_cls()
        return made.from_logits(fwd_out[Columns.ACTION_DIST_INPUTS])

    def values(self, module_id: str, batch: Any, fwd_out: Any) -> Any:
        """What a module expects before each step of a batch."""
        embeddings = fwd_out.get(Columns.EMBEDDINGS)
        return self.module[module_id].unwrapped().compute_values(batch, embeddings)
