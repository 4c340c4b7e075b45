"""Adam as TensorFlow has it."""

from __future__ import annotations

from typing import Any

import torch


class TensorFlowAdam(torch.optim.Adam):  # type: ignore[misc]  # torch's stubs are not installed
    """Adds epsilon to the root of the second moment before that is corrected; torch does it after.

    At the first step torch's epsilon of 1e-8 is one of 3e-7 here; it falls to 1e-8 as they go on.
    Its state is that of torch's.
    """

    def step(self, closure: Any = None) -> Any:
        """Makes a step."""
        given = [group["eps"] for group in self.param_groups]
        for group in self.param_groups:
            known = (self.state[weight] for weight in group["params"] if self.state.get(weight))
            made = max((int(slots["step"]) for slots in known), default=0)
            group["eps"] /= (1.0 - group["betas"][1] ** (made + 1)) ** 0.5
        try:
            return super().step(closure)
        finally:
            for group, eps in zip(self.param_groups, given, strict=True):
                group["eps"] = eps
