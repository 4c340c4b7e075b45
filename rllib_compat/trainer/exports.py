"""Policies as files that are no checkpoints of a whole training."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import timers
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.runtime.workers import LegacyPolicies


class Exports:
    """The part of a Trainer that exports. See `Trainer` for the attributes."""

    algorithm: Any

    @property
    def logdir(self) -> str:
        """Where files of this trainer go."""
        raise NotImplementedError

    def local_runner(self) -> Any:
        """The env runner in this process, with the weights that were trained last."""
        raise NotImplementedError

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
        if self.algorithm.learner_group is None:
            self.algorithm.export_policy_model(export_dir, policy_id, onnx)
            return
        import torch

        module = self._module(policy_id)
        folder = _made(export_dir)
        if onnx is None:
            torch.save(timers.untimed(module), folder / "model.pt")
            return
        for package in ("onnx", "onnxscript"):
            if importlib.util.find_spec(package) is None:
                raise CompatError(
                    f"The package {package} is not installed.",
                    where=f"export_policy_model(onnx={onnx})",
                    fix=f"pip install {package}",
                )
        from rllib_compat.trainer.onnx import export

        export(module, folder / "model.onnx", opset=onnx)

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
        if self.algorithm.learner_group is None:
            self.algorithm.export_policy_checkpoint(export_dir, policy_id)
            return
        self._module(policy_id).save_to_path(str(_made(export_dir).absolute()))

    def export_model(
        self, export_formats: str | Sequence[str], export_dir: str | None = None
    ) -> dict[str, str]:
        """Exports the only policy; Tune's `export_formats` calls it.

        Args:
            export_formats: "model", "checkpoint" or both.
            export_dir: The folder to write into, by default the trial's.

        Returns:
            The folder of each format.

        Raises:
            CompatError: A format is none of these.
        """
        formats = [export_formats] if isinstance(export_formats, str) else list(export_formats)
        exporters: dict[str, Any] = {
            "model": self.export_policy_model,
            "checkpoint": self.export_policy_checkpoint,
        }
        unknown = [name for name in formats if name not in exporters]
        if unknown:
            raise CompatError(
                f"Nothing is exported as {', '.join(map(repr, unknown))} any more.",
                where="export_formats",
                fix=f"the formats are {', '.join(map(repr, exporters))}",
            )
        folders = {name: str(Path(export_dir or self.logdir) / name) for name in formats}
        for name, folder in folders.items():
            exporters[name](folder)
        return folders

    def _module(self, policy_id: str) -> Any:
        policies = LegacyPolicies(self.local_runner())
        if policy_id not in policies:
            raise CompatError(
                f"There is no policy {policy_id!r}.",
                where="policy_id",
                fix=f"the policies are {', '.join(map(repr, policies))}",
            )
        return policies[policy_id].model


def _made(folder: str) -> Path:
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return path
