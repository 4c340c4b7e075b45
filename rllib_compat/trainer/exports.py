"""`trainer.export_policy_model`, similar methods, and `import_model`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.errors import CompatError
from rllib_compat.runtime.policies import LegacyPolicies, LegacyPolicy
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.trainer.running import RunningAlgorithm


class Exports:
    """Exports policies of a running algorithm."""

    def __init__(self, running: RunningAlgorithm) -> None:
        self._running = running

    def export_policy_model(
        self, export_dir: str, policy_id: str = ONLY_POLICY, onnx: int | None = None
    ) -> str:
        """Exports a policy's network.

        Args:
            export_dir: The folder to write into.
            policy_id: The policy.
            onnx: The opset of `model.onnx`; without, `model.pt` is TorchScript, which
                `torch.jit.load` loads and calls as a `ModelV2`.

        Returns:
            The file, or on the old API stack the folder.

        Raises:
            CompatError: There is no such policy, or a package that ONNX needs is not installed.
        """
        algorithm = self._running.algorithm
        if algorithm.learner_group is None:
            folder = str(local_path(export_dir).absolute())
            algorithm.export_policy_model(folder, policy_id, onnx)
            return folder
        return self._policy(policy_id).export_model(export_dir, onnx)

    def import_policy_model_from_h5(self, import_file: str, policy_id: str = ONLY_POLICY) -> None:
        """Makes a policy's custom model, which has `import_from_h5`, read weights.

        Raises:
            FileNotFoundError: There is no such file.
            GoneError: The model is one of RLlib, which could not read such a file in any Ray.
        """
        file = local_path(import_file)
        if not file.exists():
            raise FileNotFoundError(f"There is no file {file} to import a model from.")
        runner = self._running.local_runner()
        on_old_stack = self._running.algorithm.learner_group is None
        policy: Any = runner.get_policy(policy_id) if on_old_stack else self._policy(policy_id)
        policy.import_model_from_h5(str(file))
        self._running.mark_weights_stale()

    def export_policy_checkpoint(
        self,
        export_dir: str,
        filename_prefix: str = "model",  # noqa: ARG002  # part of TensorFlow's file names
        policy_id: str = ONLY_POLICY,
    ) -> str:
        """Exports a policy as a checkpoint that `RLModule.from_checkpoint` loads.

        Args:
            export_dir: The folder to write into.
            filename_prefix: Ignored: Ray names the files.
            policy_id: The policy.

        Returns:
            The folder.
        """
        algorithm = self._running.algorithm
        if algorithm.learner_group is None:
            folder = str(local_path(export_dir).absolute())
            algorithm.export_policy_checkpoint(folder, policy_id)
            return folder
        return self._policy(policy_id).export_checkpoint(export_dir)

    def _policy(self, policy_id: str) -> LegacyPolicy:
        policies = LegacyPolicies(self._running.local_runner())
        if policy_id not in policies:
            raise CompatError(
                f"There is no policy {policy_id!r}.",
                where="policy_id",
                fix=f"the policies are {', '.join(map(repr, policies))}",
            )
        return policies[policy_id]


def export_model(
    export_formats: str | Sequence[str],
    folder: Path,
    exporters: Mapping[str, Callable[..., object]],
) -> dict[str, str]:
    """Exports the only policy in several formats.

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
