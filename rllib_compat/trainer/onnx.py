"""A module's network as an ONNX graph."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from rllib_compat.ray_versions import modules


def export(module: Any, path: Path, *, opset: int) -> None:
    """Writes the network from a batch of observations to what actions are chosen by.

    The graph takes `obs`, as connectors hand it to the module (preprocessed and filtered), and
    `state_in_0`, … where the module has a state. It gives `output` (the inputs of the action
    distribution, or the Q-values of the actions) and `state_out_0`, ….

    Args:
        module: The `RLModule`.
        path: The file to write.
        opset: The ONNX opset; torch may write a later one.
    """
    import torch
    import tree

    forward = modules.network_forward(module)
    template = module.get_initial_state() if module.is_stateful() else {}

    class Network(torch.nn.Module):  # type: ignore[misc]  # torch may be checked without types
        """The module as a function of tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, obs: Any, *state: Any) -> Any:
            batch: dict[str, Any] = {"obs": obs}
            if state:
                batch = {"obs": obs[:, None], "state_in": tree.unflatten_as(template, list(state))}
            out = forward(batch)
            found = out["action_dist_inputs" if "action_dist_inputs" in out else "qf_preds"]
            return (found[:, 0] if state else found, *tree.flatten(out.get("state_out", [])))

    batch = torch.export.Dim("batch")
    arrays = [module.observation_space.sample(), *tree.flatten(template)]
    arguments = tuple(torch.stack([torch.as_tensor(array)] * 2) for array in arrays)
    count = len(arguments) - 1
    inputs = ["obs", *(f"state_in_{i}" for i in range(count))]
    outputs = ["output", *(f"state_out_{i}" for i in range(count))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own; nothing of it is about the graph
        torch.onnx.export(
            Network().eval(),
            arguments,
            str(path),
            opset_version=opset,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes={
                "obs": {0: batch},
                **({"state": ({0: batch},) * count} if count else {}),
            },
            dynamo=True,
        )
