"""Networks as files that are no checkpoints of a whole training: torch modules, ONNX, modules."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import modules, timers

if TYPE_CHECKING:
    import torch
    from ray.rllib.core.rl_module import RLModule


def write_model(module: RLModule, folder: str, onnx: int | None) -> Path:
    """Writes a network.

    Args:
        module: The `RLModule`.
        folder: The folder to write into.
        onnx: The opset of `model.onnx`; without, the torch module is saved as `model.pt`, which
            `torch.load(path, weights_only=False)` loads where Ray is installed.

    Returns:
        The file.

    Raises:
        CompatError: What ONNX needs is not installed.
    """
    import torch

    if onnx is None:
        path = make_folder(folder) / "model.pt"
        torch.save(timers.without_timers(module), path)
        return path
    for package in ("onnx", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise CompatError(
                f"The package {package} is not installed.",
                where=f"export_policy_model(onnx={onnx})",
                fix=f"pip install {package}",
            )
    path = make_folder(folder) / "model.onnx"
    _write_onnx(module, path, opset=onnx)
    return path


def write_checkpoint(module: RLModule, folder: str) -> Path:
    """Writes a module as a checkpoint that `RLModule.from_checkpoint` loads; returns the folder."""
    path = make_folder(folder)
    module.save_to_path(str(path.absolute()))
    return path


def make_folder(folder: str) -> Path:
    """A folder, made where it is not there."""
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return path


def _write_onnx(module: RLModule, path: Path, *, opset: int) -> None:
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

    class Network(torch.nn.Module):
        """The module as a function of tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, obs: torch.Tensor, *state: torch.Tensor) -> Any:
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
