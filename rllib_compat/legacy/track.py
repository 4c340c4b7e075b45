"""`ray.tune.track` of Ray 0.7 – 0.8: logs results of trials and other scripts."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

from rllib_compat.legacy.ray_api import DEFAULT_RESULTS_DIR
from rllib_compat.ray_versions import tune as versions
from rllib_compat.trainer.result_files import UnifiedLogger
from rllib_compat.tune import functions

__all__ = [
    "TrackSession",
    "get_session",
    "init",
    "log",
    "shutdown",
    "trial_dir",
    "trial_id",
    "trial_name",
]


class TrackSession:
    """Logs a script's results; in a trial, Tune does (`ray.tune.track` of Ray 0.7 – 0.8).

    Args:
        trial_name: Its name; by default, its id.
        experiment_dir: The folder of all of them.
        upload_dir: Not implemented, as in old Rays.
        trial_config: Is logged once.

    Raises:
        NotImplementedError: `upload_dir` is given.
    """

    def __init__(
        self,
        trial_name: str | None = None,
        experiment_dir: str | None = None,
        upload_dir: object = None,
        trial_config: dict[str, Any] | None = None,
        _tune_reporter: object = None,
    ) -> None:
        if upload_dir:
            raise NotImplementedError(
                "upload_dir was never implemented: copy the folder afterwards."
            )
        self.is_tune_session = bool(_tune_reporter)
        self.trial_config, self._steps = dict(trial_config or {}), -1
        if self.is_tune_session:
            self.trial_id, self.trial_name = functions.get_trial_id(), functions.get_trial_name()
            self.logdir = functions.get_trial_dir()
            return
        self.trial_id = uuid.uuid4().hex[:8]
        self.trial_name = trial_name or self.trial_id
        folder = experiment_dir or os.path.join(DEFAULT_RESULTS_DIR, "default")  # noqa: PTH118
        self.trial_config |= {"trial_id": self.trial_id}
        Path(folder).expanduser().mkdir(parents=True, exist_ok=True)
        begun = f"{self.trial_name}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
        self.logdir = tempfile.mkdtemp(prefix=begun, dir=Path(folder).expanduser())
        self._logger = UnifiedLogger(self.trial_config, self.logdir)

    def log(self, **metrics: object) -> None:
        """Logs a result; if it has no `training_iteration`, its steps are counted."""
        self._steps += 1
        result = {"training_iteration": self._steps, **metrics, "trial_id": self.trial_id}
        if self.is_tune_session:
            functions.report(**result)
        else:
            self._logger.on_result(result)

    def close(self) -> None:
        """Writes that it has ended; in a trial, Tune does."""
        ended = {"trial_completed": True, "end_time": datetime.now().isoformat()}
        self.trial_config |= ended
        if not self.is_tune_session:
            self._logger.close()
            params = json.dumps(self.trial_config, default=str, indent=2, sort_keys=True)
            Path(self.logdir, "params.json").write_text(params, encoding="utf-8")


_sessions: list[TrackSession] = []


def get_session() -> TrackSession:
    """The session; a trial always has one.

    Raises:
        ValueError: There is none.
    """
    if not _sessions and versions.is_in_trial():
        _sessions.append(TrackSession(_tune_reporter=functions.report))
    if not _sessions:
        raise ValueError("There is no session: call ray.tune.track.init() first.")
    return _sessions[-1]


def init(ignore_reinit_error: bool = True, **session_kwargs: Any) -> None:
    """Starts a session, unless there is one.

    Raises:
        ValueError: There is one, and `ignore_reinit_error` is false.
    """
    if _sessions and not ignore_reinit_error:
        raise ValueError("There is a session already: call ray.tune.track.shutdown() first.")
    if not _sessions:
        _sessions.append(TrackSession(**session_kwargs))


def shutdown() -> None:
    """Ends the session."""
    while _sessions:
        _sessions.pop().close()


def log(**kwargs: object) -> None:
    """Logs a result of the session."""
    get_session().log(**kwargs)


def trial_dir() -> str:
    """The session's folder."""
    return get_session().logdir


def trial_id() -> str:
    """The session's id."""
    return get_session().trial_id


def trial_name() -> str:
    """The session's name."""
    return get_session().trial_name
