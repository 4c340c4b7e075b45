"""After a restore, environments get the files of their folders back, on whichever machine."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_compat.artifacts.manifest import FOLDER, MANIFEST
from rllib_compat.artifacts.runners import PIECE, RunnerError, envs_of, runners_of
from rllib_compat.artifacts.storage import extract
from rllib_compat.neutral.errors import CheckpointError

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner

logger = logging.getLogger(__name__)


def restore_folders(
    algorithm: object,
    checkpoint: str,
    take: str | Callable[[Any, Path], Any],
    *,
    timeout: float,
    store: str | None = None,
) -> None:
    """Hands each environment a new folder with the files that a checkpoint has of it.

    An environment is who has the same index on the runner of the same number. What can't be handed
    over is logged as a warning: a restore does not fail of it.

    `take` is the environment's method that gets the folder, or a function of both. A manifest may
    name files below `store`; no other address is asked.
    """
    if not (Path(checkpoint) / FOLDER / MANIFEST).is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        try:
            manifest = extract(checkpoint, files, remote=store or False)
        except CheckpointError as error:
            logger.warning("No environment's folder was restored: %s", error)
            return
        runners = {str(runner): runner for runner in runners_of(algorithm)}
        for stored in manifest.folders:
            runner = runners.get(stored.place.split("/")[0])
            try:
                if runner is None:
                    raise RunnerError("there is no such runner now")
                _send(partial(_asked, runner, timeout), stored.env, files / stored.place, take)
            except RunnerError as error:
                logger.warning("the folder of %s was not restored: %s", stored.place, error)


def _asked(runner: Any, timeout: float, function: Callable[..., Any], **arguments: Any) -> Any:
    found = runner.ask(partial(function, **arguments))(timeout)
    if isinstance(found, _Refusal):
        raise RunnerError(found)
    return found


class _Refusal(str):
    """Why a runner could not do what it was asked for."""

    __slots__ = ()


def _send(ask: Callable[..., Any], env: int, files: Path, take: object) -> None:
    """Sends a folder's files piece by piece, then lets the environment take them."""
    target = ask(_begin)
    for path in sorted(p for p in files.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            name, piece = path.relative_to(files).as_posix(), file.read(PIECE)
            ask(_add, target=target, name=name, piece=piece)
            while piece := file.read(PIECE):
                ask(_add, target=target, name=name, piece=piece)
    ask(_hand_over, env=env, target=target, take=take)


# These are called on the runner.


def _begin(env_runner: EnvRunner) -> str:
    del env_runner
    return tempfile.mkdtemp(prefix="simulator-")


def _add(env_runner: EnvRunner, *, target: str, name: str, piece: bytes) -> Any:
    del env_runner
    path = Path(target) / name  # `extract` has made such a path from the manifest before
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(piece)
    except OSError as error:
        return _Refusal(f"{name} can't be written: {error.strerror or error}")
    return None


def _hand_over(env_runner: EnvRunner, *, env: int, target: str, take: Any) -> Any:
    envs = envs_of(env_runner)
    if env >= len(envs):
        return _Refusal("its runner has fewer environments now")
    try:
        if callable(take):
            take(envs[env], Path(target))
        else:
            getattr(envs[env], take)(Path(target))
    except Exception as error:  # the environment's own code: it does not fail a restore
        return _Refusal(f"taking it failed: {error!r}")
    return None
