"""Policies as files that are no checkpoints of a whole training: torch modules, ONNX, modules."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import modules, timers
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.runtime.workers import LegacyPolicies
from rllib_compat.trainer.running import RunningAlgorithm

if TYPE_CHECKING:
    import torch
    from ray.rllib.core.rl_module import RLModule


class Exports:
    """Exports policies of a running algorithm.

    Args:
        running: The algorithm.
    """

    def __init__(self, running: RunningAlgorithm) -> None:
        self._running = running

    def export_policy_model(
        self, export_dir: str, policy_id: str = ONLY_POLICY, onnx: int | None = None
    ) -> None:
        """Exports a policy's network.

        Args:
            export_dir: The folder to write into.
            policy_id: The policy.
            onnx: The opset of `model.onnx`; without, the torch module is saved as `model.pt`, which
                `torch.load(path, weights_only=False)` loads where Ray is installed.

        Raises:
            CompatError: There is no such policy, or what ONNX needs is not installed.
        """
        algorithm = self._running.algorithm
        if algorithm.learner_group is None:
            algorithm.export_policy_model(export_dir, policy_id, onnx)
            return
        import torch

        module = self._module(policy_id)
        folder = _make_folder(export_dir)
        if onnx is None:
            torch.save(timers.without_timers(module), folder / "model.pt")
            return
        for package in ("onnx", "onnxscript"):
            if importlib.util.find_spec(package) is None:
                raise CompatError(
                    f"The package {package} is not installed.",
                    where=f"export_policy_model(onnx={onnx})",
                    fix=f"pip install {package}",
                )
        _write_onnx(module, folder / "model.onnx", opset=onnx)

    def export_policy_checkpoint(
        self,
        export_dir: str,
        filename_prefix: str = "model",  # noqa: ARG002  # part of TensorFlow's file names
        policy_id: str = ONLY_POLICY,
    ) -> None:
        """Exports a policy as a checkpoint that `RLModule.from_checkpoint` loads.

        Args:
            export_dir: The folder to write into.
            filename_prefix: Means nothing any more: the files have names of their own.
            policy_id: The policy.
        """
        algorithm = self._running.algorithm
        if algorithm.learner_group is None:
            algorithm.export_policy_checkpoint(export_dir, policy_id)
            return
        self._module(policy_id).save_to_path(str(_make_folder(export_dir).absolute()))

    def _module(self, policy_id: str) -> RLModule:
        policies = LegacyPolicies(self._running.local_runner())
        if policy_id not in policies:
            raise CompatError(
                f"There is no policy {policy_id!r}.",
                where="policy_id",
                fix=f"the policies are {', '.join(map(repr, policies))}",
            )
        return policies[policy_id].model


def export_model(
    export_formats: str | Sequence[str],
    folder: Path,
    exporters: Mapping[str, Callable[[str], object]],
) -> dict[str, str]:
    """Exports the only policy in several formats.

    Args:
        export_formats: One of `exporters`, or several.
        folder: The folder to write into.
        exporters: What writes each format into a folder.

    Returns:
        The folder of each format.

    Raises:
        CompatError: A format is none of these.
    """
    formats = [export_formats] if isinstance(export_formats, str) else list(export_formats)
    unknown = [name for name in formats if name not in exporters]
    if unknown:
        raise CompatError(
            f"Nothing is exported as {', '.join(map(repr, unknown))} any more.",
            where="export_formats",
            fix=f"the formats are {', '.join(map(repr, exporters))}",
        )
    folders = {name: str(folder / name) for name in formats}
    for name, place in folders.items():
        exporters[name](place)
    return folders


def _make_folder(folder: str) -> Path:
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
