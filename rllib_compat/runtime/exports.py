"""Exports an RLModule: as TorchScript, as ONNX, or as a module checkpoint."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import checkpoints, modules, timers
from rllib_compat.runtime.policy_inputs import flatten_state, initial_state, nest_state

if TYPE_CHECKING:
    import torch
    from ray.rllib.core.rl_module import RLModule

logger = logging.getLogger(__name__)


def write_model(module: RLModule, folder: str, onnx: int | None) -> Path:
    """Writes a module's network as TorchScript or ONNX.

    Args:
        module: The `RLModule`.
        folder: The folder to write into.
        onnx: The opset of `model.onnx`; None writes TorchScript to `model.pt`, as Ray 1.13 did.

    Returns:
        The path of the file.

    Raises:
        CompatError: A package that ONNX needs is not installed, or observations are not arrays.
    """
    if getattr(module.observation_space, "shape", None) is None:
        raise CompatError(
            "TorchScript and ONNX take one array, and this module's observations are not one.",
            where="export_policy_model()",
            fix="call export_policy_checkpoint(), which writes any module",
        )
    if onnx is None:
        path = make_folder(folder) / "model.pt"
        _write_torchscript(module, path)
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
    with checkpoints.path_for_ray(path) as there:
        module.save_to_path(there)
    return path


def make_folder(folder: str) -> Path:
    """Creates a folder if it does not exist, and returns its path."""
    path = local_path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _network(module: RLModule) -> tuple[Any, tuple[Any, ...]]:
    """Wraps a module as a function of tensors, with example arguments for a batch of two.

    The function takes observations and each part of a recurrent state. It returns the inputs of the
    action distribution (or the Q-values of the actions) and each part of the next state.
    """
    import torch

    forward = modules.network_forward(module)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, obs: torch.Tensor, *state: torch.Tensor) -> Any:
            batch: dict[str, Any] = {"obs": obs}
            if state:
                batch = {"obs": obs[:, None], "state_in": nest_state(module, list(state))}
            out = forward(batch)
            found = out["action_dist_inputs" if "action_dist_inputs" in out else "qf_preds"]
            return (found[:, 0] if state else found, *flatten_state(out.get("state_out", [])))

    arrays = [module.observation_space.sample(), *initial_state(module)]
    return Network().eval(), tuple(torch.stack([torch.as_tensor(array)] * 2) for array in arrays)


def _write_torchscript(module: RLModule, path: Path) -> None:
    """Writes TorchScript with the arguments of a `ModelV2`: (input_dict, state, seq_lens).

    `input_dict["obs"]` is a batch of observations as connectors pass them to the module. A
    recurrent network takes one step of each sequence; any other returns the state that it was
    given, which must not be empty. `seq_lens` is ignored.
    """
    import torch

    network, (obs, *state) = _network(timers.without_timers(module))

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(
            self,
            input_dict: dict[str, torch.Tensor],
            given: list[torch.Tensor],
            seq_lens: torch.Tensor,  # noqa: ARG002 - an argument of every ModelV2
        ) -> Any:
            out, *after = self.network(input_dict["obs"], *(given if state else ()))
            return out, after or given

    arguments = ({"obs": obs}, state or [torch.ones(2)], torch.ones(2, dtype=torch.int32))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer's; none is about the graph
        torch.jit.trace(Model(), arguments, strict=False).save(str(path))


def _write_onnx(module: RLModule, path: Path, *, opset: int) -> None:
    """Writes ONNX with inputs `obs`, `state_in_0`, … and outputs `output`, `state_out_0`, ….

    torch writes opset 18, and converts it to the one that is asked for, where it can.
    """
    import onnx
    import torch

    network, arguments = _network(module)
    batch = torch.export.Dim("batch")
    count = len(arguments) - 1
    inputs = ["obs", *(f"state_in_{i}" for i in range(count))]
    outputs = ["output", *(f"state_out_{i}" for i in range(count))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's; none is about the graph
        torch.onnx.export(
            network,
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
    written = onnx.load(path, load_external_data=False).opset_import
    found = next(one.version for one in written if not one.domain)
    if found != opset:
        logger.warning(
            "%s has opset %d: torch's exporter cannot convert this network to opset %d. "
            "onnxruntime 1.14 and later read opset 18.",
            path,
            found,
            opset,
        )
