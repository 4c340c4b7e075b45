"""Exploration by any action of the space, on the old API stack.

Ray's own does it on torch where an action is one array; on TensorFlow, which old configs meant by
default, a Tuple or Dict of them was as good.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import tree
from ray.rllib.utils.exploration.random import Random

from rllib_compat.neutral.public import public


@public("rllib_compat.adapters")
class RandomActions(Random):  # type: ignore[misc]  # Ray has no types
    """Draws actions from the action space, whatever it is made of."""

    def get_torch_exploration_action(self, action_dist: Any, explore: bool) -> Any:
        """Draws an action for each row of the batch; what is likeliest where nothing is explored.

        Args:
            action_dist: The distribution that the model gives.
            explore: Whether to explore.

        Returns:
            The actions, and zeros in the place of log-probabilities.
        """
        actions = action_dist.deterministic_sample()
        count = len(tree.flatten(actions)[0])
        if explore:
            drawn = [self.action_space.sample() for _ in range(count)]
            actions = tree.map_structure(self._on_device, *drawn)
        return actions, torch.zeros(count, device=self.device)

    def _on_device(self, *rows: Any) -> torch.Tensor:
        return torch.as_tensor(np.stack(rows), device=self.device)
