"""A Trainer's checkpoints: saved as today's, restored from those of any Ray."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray.tune import Trainable

from rllib_compat.ray_versions import algorithms, learners, tune
from rllib_compat.ray_versions import metrics as ray_metrics
from rllib_compat.trainer import coefficients

if TYPE_CHECKING:
    from rllib_compat.runtime.callbacks import CallbackAdapter


class Checkpoints:
    """The part of a Trainer that saves and restores. See `Trainer` for the attributes."""

    algorithm: Any

    @property
    def iteration(self) -> int:
        """How many times `train()` was called."""
        raise NotImplementedError

    @property
    def logdir(self) -> str:
        """Where files of this trainer go."""
        raise NotImplementedError

    def _adapters(self) -> list[CallbackAdapter]:
        raise NotImplementedError

    def _send_weights(self) -> None:
        raise NotImplementedError

    def save(self, checkpoint_dir: str | None = None) -> Any:
        """Saves a checkpoint.

        Returns:
            Its path, as it always was; Tune, which has a storage, gets what it wants.
        """
        if tune.has_storage(self):
            return Trainable.save(self, checkpoint_dir)
        path = Path(checkpoint_dir or self.logdir) / f"checkpoint_{self.iteration:06d}"
        path.mkdir(parents=True, exist_ok=True)
        self.save_checkpoint(str(path))
        return str(path)

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Writes today's checkpoint, which `Algorithm.from_checkpoint` loads too."""
        self.algorithm.save_checkpoint(checkpoint_dir)
        coefficients.save(self.algorithm, Path(checkpoint_dir))
        for callbacks in self._adapters():
            callbacks.saved(self, checkpoint_dir)

    def save_to_object(self) -> bytes:
        """A checkpoint as bytes."""
        with tempfile.TemporaryDirectory() as folder, io.BytesIO() as file:
            self.save_checkpoint(folder)
            with zipfile.ZipFile(file, "w") as archive:
                for path in sorted(Path(folder).rglob("*")):
                    archive.write(path, path.relative_to(folder))
            return file.getvalue()

    def restore(self, checkpoint_path: Any, *, trusted: bool = False) -> None:
        """Restores a checkpoint: of this class, of today's `Algorithm`, or of an old Ray.

        It is read without running anything that is in it, whoever wrote it, and Ray gets the data.

        Args:
            checkpoint_path: Its path, or what Tune has instead.
            trusted: Whether Ray may load the files themselves, which runs what is in them. For
                your own checkpoints that hold more than data.

        Raises:
            CheckpointError: It holds something that only Ray could load, or is damaged.
        """
        if isinstance(checkpoint_path, (str, Path)):
            self.load_checkpoint(str(Path(checkpoint_path).expanduser()), trusted=trusted)
            return
        metrics = getattr(checkpoint_path, "metrics", None) or {}
        with getattr(checkpoint_path, "checkpoint", checkpoint_path).as_directory() as folder:
            self.load_checkpoint(folder, trusted=trusted)
        tune.mark_restored_by_tune(self, time_total=metrics.get("time_total_s", 0.0))

    def restore_from_object(self, obj: bytes) -> None:
        """Restores what `save_to_object` returned."""
        from rllib_compat.trainer.legacy_checkpoints import unpack

        with tempfile.TemporaryDirectory() as folder:
            unpack(obj, folder)
            self.load_checkpoint(folder)

    def load_checkpoint(self, checkpoint_dir: str, *, trusted: bool = False) -> None:
        """Loads what `save_checkpoint` wrote, or a legacy checkpoint after its conversion.

        As ever, the config of this trainer counts and not that of the checkpoint.

        Args:
            checkpoint_dir: Its path.
            trusted: See `restore`.
        """
        from rllib_compat.trainer.legacy_checkpoints import as_todays, restore_old_stack

        trainer: Any = self
        given = Path(checkpoint_dir)
        on_old_stack = not self.algorithm.config.enable_rl_module_and_learner
        if on_old_stack and not trusted:
            restore_old_stack(given, trainer)
        else:
            with (
                algorithms.restores_offline(),
                as_todays(given, trainer, trusted=trusted) as path,
            ):
                self.algorithm.load_checkpoint(str(path))
        tune.mark_restored(self, iteration=self.algorithm.iteration)
        ray_metrics.mark_steps_as_counted(self.algorithm)
        if self.algorithm.learner_group is not None:
            self.algorithm.learner_group.foreach_learner(learners.take_learning_rates_of_config)
        self._send_weights()
        for callbacks in self._adapters():
            callbacks.loaded(self, checkpoint_dir)
