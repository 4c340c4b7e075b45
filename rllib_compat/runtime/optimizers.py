"""The optimizers that configs of old Rays can name."""

from __future__ import annotations

from typing import Any

import torch


class TensorFlowRMSprop(torch.optim.Optimizer):  # type: ignore[misc]  # no stubs are installed
    """RMSprop of TensorFlow's graphs (`tf.compat.v1.train`), and with a momentum that of Keras.

    Torch adds epsilon to the root, not below it, and multiplies the whole sum by the rate.

    Args:
        params: What it optimizes.
        lr: The learning rate.
        alpha: How slowly the mean moves.
        momentum: How much of the step before is added to a step.
        eps: The epsilon.
        first: What the mean of the squared gradients begins with: 1 in graphs, 0 in Keras.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        alpha: float = 0.9,
        momentum: float = 0.0,
        eps: float = 1e-10,
        first: float = 1.0,
    ) -> None:
        given = {"lr": lr, "alpha": alpha, "momentum": momentum, "eps": eps, "first": first}
        super().__init__(params, given)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Any = None) -> Any:
        """Makes a step."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                slots = self.state[weight]
                if not slots:
                    slots["square_avg"] = torch.full_like(weight, group["first"])
                    slots["momentum_buffer"] = torch.zeros_like(weight)
                mean, moved = slots["square_avg"], slots["momentum_buffer"]
                mean.lerp_(weight.grad.square(), 1 - group["alpha"])
                moved.mul_(group["momentum"])
                moved.addcdiv_(weight.grad, (mean + group["eps"]).sqrt(), value=group["lr"])
                weight.sub_(moved)
        return loss


#: The name in a config → the class.
KINDS = {
    "Adam": torch.optim.Adam,
    "RMSprop": torch.optim.RMSprop,
    "TensorFlowRMSprop": TensorFlowRMSprop,
}
