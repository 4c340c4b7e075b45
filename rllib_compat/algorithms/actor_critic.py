"""What the learners share whose actor and critics have an optimizer each."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from ray.rllib.core.learner.torch.torch_learner import TorchLearner

from rllib_compat.ray_versions import learners


class ActorCriticLearner(learners.learner_with_targets(), TorchLearner):  # type: ignore[misc]
    """Trains the actor with one Adam and all critics with another.

    The module says with `parameters_of` whose parameters are whose.
    """

    #: The epsilon that both had.
    epsilon: ClassVar[float] = 1e-8
    #: What they were.
    optimizer: ClassVar[type] = torch.optim.Adam

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Makes both optimizers."""
        config = self.config.get_config_for_module(module_id)
        module = self.module[module_id].unwrapped()
        for part, rate in (("actor", config.actor_lr), ("critic", config.critic_lr)):
            parameters = module.parameters_of(part)
            self.register_optimizer(
                module_id=module_id,
                optimizer_name=part,
                optimizer=self.optimizer(parameters, eps=self.epsilon),
                params=parameters,
                lr_or_lr_schedule=rate,
            )

    def updates_of_critics(self, module_id: str) -> int:
        """How many updates the critics have made; the optimizer's checkpoint says so, too."""
        slots = self.get_optimizer(module_id, "critic").state.values()
        return next((int(slot["step"]) for slot in slots), 0)
