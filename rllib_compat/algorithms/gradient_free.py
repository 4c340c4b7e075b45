"""A learner of what learns without gradients, or nothing at all."""

from __future__ import annotations

from typing import Any

from ray.rllib.core.learner.torch.torch_learner import TorchLearner


class GradientFreeLearner(TorchLearner):  # type: ignore[misc]  # Ray has no types
    """Holds the modules; it has no optimizers."""

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Makes none."""

    def compute_loss_for_module(self, **_: Any) -> Any:
        """There is no loss.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("It does not learn by gradients.")
