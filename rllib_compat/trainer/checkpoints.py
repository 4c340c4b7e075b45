"""A trainer's checkpoints: written as today's, loaded from those of any Ray, and as bytes."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from rllib_compat.formats.atomic import atomic_directory
from rllib_compat.formats.files import disk_errors
from rllib_compat.formats.manifest import why_not_ours, write_manifest
from rllib_compat.formats.paths import local_path
from rllib_compat.formats.zip_errors import DAMAGED_ZIP
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.ray_versions import checkpoints, learners, metrics
from rllib_compat.trainer import coefficients
from rllib_compat.trainer.build import AlgorithmBuilder
from rllib_compat.trainer.restoring import Restorer, explain_errors
from rllib_compat.trainer.running import RunningAlgorithm


class Checkpoints:
    """Writes and loads checkpoints of a running algorithm.

    Args:
        running: The algorithm.
        builder: What made it.
    """

    def __init__(self, running: RunningAlgorithm, builder: AlgorithmBuilder) -> None:
        self._running = running
        self._restorer = Restorer(running, builder)

    def write(self, folder: str) -> None:
        """Writes today's checkpoint, which `Algorithm.from_checkpoint` loads too."""
        folder = str(local_path(folder).absolute())
        with checkpoints.path_for_ray(folder) as path:
            self._running.algorithm.save_checkpoint(path)
        coefficients.save(self._running.algorithm, Path(folder))
        for callbacks in self._running.adapters:
            callbacks.fire_checkpoint_saved(callbacks.owner, folder)
        write_manifest(Path(folder))

    def load(self, folder: str, *, trusted: bool) -> None:
        """Loads a checkpoint of any Ray; the config that the algorithm was built of counts.

        Args:
            folder: Its path.
            trusted: Whether Ray may load the files themselves, and run what is in them.

        Raises:
            CheckpointError: It can't be restored; the algorithm is as it was.
        """
        folder = str(local_path(folder))
        reading = self._restorer.read(Path(folder), trusted=trusted)
        with reading as restore, self._running.all_or_nothing(), explain_errors(Path(folder)):
            restore()
            algorithm = self._running.algorithm
            metrics.mark_steps_as_counted(algorithm)
            if algorithm.learner_group is not None:
                algorithm.learner_group.foreach_learner(learners.take_learning_rates_of_config)
            self._running.send_weights()
        for callbacks in self._running.adapters:
            callbacks.fire_checkpoint_restored(callbacks.owner, folder)


def save_whole(path: Path, write: Callable[[str], object]) -> None:
    """Lets `write` fill the folder of a checkpoint, which appears whole or not at all.

    One that is there is replaced if it holds nothing but what a trainer has saved. Otherwise it is
    written into, and what others have put there stays; its manifest comes last.
    """
    if path.is_dir() and why_not_ours(path):
        with disk_errors(path):
            write(str(path))
        return
    with atomic_directory(path, overwrite=True, why_not=why_not_ours) as folder:
        write(str(folder))


def pack(write: Callable[[str], object]) -> bytes:
    """What `write` puts into a folder, as bytes."""
    with tempfile.TemporaryDirectory() as folder, io.BytesIO() as file:
        write(folder)
        with zipfile.ZipFile(file, "w") as archive:
            for path in sorted(Path(folder).rglob("*")):
                archive.write(path, path.relative_to(folder))
        return file.getvalue()


def unpack(saved: bytes, folder: str) -> None:
    """Lays down what `pack` made bytes of: a zip that packs nothing.

    Raises:
        CorruptCheckpointError: It is something else, or more comes out of it than is in it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(saved)) as archive:
            if sum(info.file_size for info in archive.infolist()) > len(saved):
                raise zipfile.BadZipFile("more would come out of it than is in it")
            archive.extractall(folder)  # zipfile keeps members inside
    except (OSError, *DAMAGED_ZIP) as error:
        raise CorruptCheckpointError(
            f"These are not the bytes of a checkpoint: {error}.",
            where="restore_from_object",
            fix="Give what `save_to_object` returned.",
        ) from error
