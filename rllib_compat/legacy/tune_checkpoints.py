"""How Tune of Ray 0.7 – 2.3 kept checkpoints in a trial's folder: `TrainableUtil`, `QueueItem`."""

from __future__ import annotations

import os
import pickle
import shutil
import uuid
from pathlib import Path
from typing import Any

from rllib_compat.formats import pickles

_MARKER, _METADATA = ".is_checkpoint", ".tune_metadata"
_NULL_MARKER, _TEMP_MARKER = ".null_marker", ".temp_marker"


class QueueItem:
    """A value in a queue that is ordered by priority."""

    def __init__(self, priority: Any, value: Any) -> None:
        self.priority, self.value = priority, value

    def __lt__(self, other: QueueItem) -> bool:
        return bool(self.priority < other.priority)

    def __repr__(self) -> str:
        return f"QueueItem({self.value!r})"


def _read(file: Path) -> dict[str, Any]:
    """A pickle as data: nothing in it is imported or called."""
    found: dict[str, Any] = pickles.load(file).value
    return found


class TrainableUtil:
    """Functions of the files of a checkpoint."""

    @staticmethod
    def find_checkpoint_dir(checkpoint_path: str) -> str:
        """The folder of a checkpoint that a path is in: the next above that has the marker.

        Raises:
            FileNotFoundError: There is no such path, or none of the folders has it.
        """
        path = Path(checkpoint_path)
        if not path.exists():
            raise FileNotFoundError("Path does not exist", checkpoint_path)
        above = [path, *path.parents] if path.is_dir() else path.parents
        found = next((str(folder) for folder in above if (folder / _MARKER).exists()), None)
        if found is None:
            raise FileNotFoundError(f"None of the folders above has {_MARKER}: {checkpoint_path}")
        return found

    @staticmethod
    def find_rel_checkpoint_dir(logdir: str, checkpoint_path: str) -> str:
        """The name of a checkpoint's folder in that of its trial, with a slash behind it."""
        assert checkpoint_path.startswith(logdir), "the checkpoint is not in the trial's folder"
        return os.path.join(Path(os.path.relpath(checkpoint_path, logdir)).parts[0], "")  # noqa: PTH118

    @staticmethod
    def make_checkpoint_dir(
        checkpoint_dir: str, index: int | str | None = None, override: bool = False
    ) -> str:
        """Makes a folder for a checkpoint, and marks it.

        Args:
            checkpoint_dir: The trial's folder.
            index: The end of the name `checkpoint_…`; a number has six digits.
            override: Whether a folder of that name is removed before.
        """
        number = f"{index:06d}" if isinstance(index, int) else index
        made = Path(checkpoint_dir, "checkpoint" if index is None else f"checkpoint_{number}")
        if override:
            shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True, exist_ok=True)
        (made / _MARKER).touch()
        return str(made)

    @staticmethod
    def process_checkpoint(
        checkpoint: dict[str, Any] | str, parent_dir: str, trainable_state: dict[str, Any]
    ) -> str:
        """Completes a checkpoint: writes its trainable's state, and a dict as a file.

        Args:
            checkpoint: The path that `save_checkpoint` has returned, or a dict.
            parent_dir: The checkpoint's folder.
            trainable_state: The counters of the trainable.

        Returns:
            The checkpoint's path; a folder's has a slash behind it.

        Raises:
            ValueError: It is neither, or lies in another folder.
        """
        if isinstance(checkpoint, dict):
            path = os.path.join(parent_dir, "checkpoint")  # noqa: PTH118 - a text, as it was
            Path(path).write_bytes(pickle.dumps(checkpoint))
        elif not isinstance(checkpoint, str):
            raise ValueError(f"A path or a dict is needed, not {type(checkpoint).__name__}.")
        elif not checkpoint.startswith(parent_dir):
            raise ValueError(f"{checkpoint} is not in {parent_dir}.")
        else:
            path = os.path.join(checkpoint, "") if Path(checkpoint).is_dir() else checkpoint  # noqa: PTH118
        trainable_state["saved_as_dict"] = isinstance(checkpoint, dict)
        Path(f"{path}{_METADATA}").write_bytes(pickle.dumps(trainable_state))
        return path

    @staticmethod
    def load_checkpoint_metadata(checkpoint_path: str) -> dict[str, Any] | None:
        """The state that `process_checkpoint` has written into a checkpoint's folder, or None."""
        file = Path(checkpoint_path, _METADATA)
        if not file.exists():
            folder = Path(TrainableUtil.find_checkpoint_dir(checkpoint_path))
            file = next(iter(sorted(folder.rglob(_METADATA))), file)
        return _read(file) if file.exists() else None

    @staticmethod
    def pickle_checkpoint(checkpoint_path: str) -> bytes:
        """All files of a checkpoint as one pickle."""
        folder = Path(TrainableUtil.find_checkpoint_dir(checkpoint_path))
        files = [file for file in folder.rglob("*") if file.is_file()]
        data = {str(file.relative_to(folder)): file.read_bytes() for file in files}
        name = os.path.relpath(checkpoint_path, folder)
        name += os.path.sep if Path(checkpoint_path).is_dir() else ""
        return pickle.dumps({"checkpoint_name": name, "data": data})

    checkpoint_to_object = pickle_checkpoint

    @staticmethod
    def create_from_pickle(obj: bytes, tmpdir: str) -> str:
        """Writes the files of such a pickle, which is read as data, and gives the path.

        Raises:
            ValueError: A file would lie outside of the folder.
        """
        packed, home = pickles.load(obj).value, Path(tmpdir).resolve()
        for name, content in packed["data"].items():
            file = (home / name).resolve()
            if not file.is_relative_to(home):
                raise ValueError(f"{name!r} is not in {tmpdir}.")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return os.path.join(tmpdir, packed["checkpoint_name"])  # noqa: PTH118 - with its slash

    @staticmethod
    def get_checkpoints_paths(logdir: str) -> Any:
        """The checkpoints of a trial as a data frame: iterations and paths.

        Raises:
            ValueError: A checkpoint has no state of its trainable, or several.
        """
        import pandas as pd  # type: ignore[import-untyped]

        rows = []
        for marker in Path(logdir).glob(f"checkpoint_*/{_MARKER}"):
            if marker.parent.name.startswith("checkpoint_tmp"):
                continue
            files = list(marker.parent.glob(f"*{_METADATA}"))
            if len(files) != 1:
                raise ValueError(f"{marker.parent} has {len(files)} files {_METADATA}, not one.")
            iteration = _read(files[0]).get("iteration", -1)
            rows.append([iteration, str(files[0]).removesuffix(_METADATA)])
        return pd.DataFrame(rows, columns=["training_iteration", "chkpt_path"])


class FuncCheckpointUtil:
    """Marks of the checkpoints of functions: empty ones, and those that only restore."""

    @staticmethod
    def _make(logdir: str, index: int | str, marker: str) -> str:
        made = TrainableUtil.make_checkpoint_dir(logdir, index, override=True)
        Path(made, marker).touch()
        return made

    @staticmethod
    def mk_null_checkpoint_dir(logdir: str) -> str:
        """Makes the folder of a checkpoint that holds nothing."""
        return FuncCheckpointUtil._make(logdir, -1, _NULL_MARKER)

    @staticmethod
    def mk_temp_checkpoint_dir(logdir: str) -> str:
        """Makes the folder of a checkpoint that is there until its trial ends."""
        return FuncCheckpointUtil._make(logdir, f"tmp{uuid.uuid4().hex[:6]}", _TEMP_MARKER)

    @staticmethod
    def is_null_checkpoint(checkpoint_dir: str) -> bool:
        """Whether a checkpoint holds nothing."""
        return Path(checkpoint_dir, _NULL_MARKER).exists()

    @staticmethod
    def is_temp_checkpoint_dir(checkpoint_dir: str) -> bool:
        """Whether a checkpoint is there until its trial ends."""
        return Path(checkpoint_dir, _TEMP_MARKER).exists()

    @staticmethod
    def create_perm_checkpoint(checkpoint_dir: str, logdir: str, step: int) -> str:
        """Copies a temporary checkpoint to a permanent folder, and returns that."""
        marker = Path(checkpoint_dir, _TEMP_MARKER)
        assert marker.exists(), "the checkpoint is already permanent"
        marker.unlink()
        made = TrainableUtil.make_checkpoint_dir(logdir, step, override=True)
        shutil.copytree(checkpoint_dir, made, dirs_exist_ok=True)
        return made
