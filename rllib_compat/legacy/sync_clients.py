"""`ray.tune.sync_client` of Ray 0.7 – 1.13: what copies folders by a command or a function.

Tune needs none: it keeps experiments in a `storage_path`. Code that has made one uses it itself.
"""

from __future__ import annotations

import inspect
import logging
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from ray.tune.error import TuneError

__all__ = [
    "ALLOWED_REMOTE_PREFIXES",
    "GS_PREFIX",
    "LOCAL_DELETE_TEMPLATE",
    "LOCAL_SYNC_TEMPLATE",
    "NOOP",
    "S3_PREFIX",
    "CommandBasedClient",
    "FunctionBasedClient",
    "SyncClient",
    "get_cloud_sync_client",
    "get_rsync_template_if_available",
    "get_sync_client",
    "log_sync_template",
    "mock_storage_client",
    "noop",
    "noop_template",
    "wait_for_sync",
]

logger = logging.getLogger(__name__)

S3_PREFIX, GS_PREFIX, HDFS_PREFIX = "s3://", "gs://", "hdfs://"
ALLOWED_REMOTE_PREFIXES = (S3_PREFIX, GS_PREFIX, HDFS_PREFIX)
LOCAL_SYNC_TEMPLATE = "mkdir -p {target} && rsync -avz {source}/ {target}/"
LOCAL_DELETE_TEMPLATE = "rm -rf {target}"
noop_template = ": {target}"


def noop(*args: object) -> None:
    """Does nothing."""


class SyncClient:
    """Copies folders to another place and back; a subclass says how."""

    def sync_up(self, source: str, target: str, exclude: Sequence[str] | None = None) -> bool:
        """Starts to copy a folder to the target; False if that is not possible now."""
        raise NotImplementedError

    def sync_down(self, source: str, target: str, exclude: Sequence[str] | None = None) -> bool:
        """Starts to copy a folder back; False if that is not possible now."""
        raise NotImplementedError

    def delete(self, target: str) -> bool:
        """Starts to remove the target; False if that is not possible now."""
        raise NotImplementedError

    def wait(self) -> None:
        """Waits until the copying is done."""

    def wait_or_retry(self, max_retries: int = 3, backoff_s: int = 5) -> None:
        """The same; what fails is tried again."""

    def reset(self) -> None:
        """Forgets the copying that runs."""

    def close(self) -> None:
        """Closes what is open."""


class FunctionBasedClient(SyncClient):
    """Copies by functions of a source, a target and, since Ray 1.12, patterns to leave out.

    Args:
        sync_up_func: Copies there.
        sync_down_func: Copies back.
        delete_func: Removes a target; nothing by default.
    """

    def __init__(
        self,
        sync_up_func: Callable[..., Any],
        sync_down_func: Callable[..., Any],
        delete_func: Callable[..., Any] | None = None,
    ) -> None:
        self.sync_up_func, self.sync_down_func = sync_up_func, sync_down_func
        self.delete_func = delete_func or noop

    def sync_up(self, source: str, target: str, exclude: Sequence[str] | None = None) -> bool:
        """Copies a folder there."""
        return _call(self.sync_up_func, source, target, exclude)

    def sync_down(self, source: str, target: str, exclude: Sequence[str] | None = None) -> bool:
        """Copies a folder back."""
        return _call(self.sync_down_func, source, target, exclude)

    def delete(self, target: str) -> bool:
        """Removes a folder there."""
        self.delete_func(target)
        return True


def _call(function: Callable[..., Any], *arguments: object) -> bool:
    """Calls a function with the two or three arguments that it takes."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        arguments = arguments[:2]
    function(*arguments)
    return True


NOOP = FunctionBasedClient(noop, noop)


class CommandBasedClient(SyncClient):
    """Copies by a command of the shell, one at a time.

    Args:
        sync_up_template: Copies `{source}` to `{target}`, with `{options}`.
        sync_down_template: The same, back.
        delete_template: Removes `{target}`.
        exclude_template: An option that leaves out a `{pattern}`, or all of a `{regex_pattern}`.

    Raises:
        ValueError: A template lacks a field that it needs.
    """

    def __init__(
        self,
        sync_up_template: str,
        sync_down_template: str,
        delete_template: str | None = noop_template,
        exclude_template: str | None = None,
    ) -> None:
        for template in (sync_up_template, sync_down_template):
            _require(template, "{source}", "{target}")
        if exclude_template and "pattern}" not in exclude_template:
            raise ValueError(f"{exclude_template!r} leaves out nothing: it has no {{pattern}}.")
        self.sync_up_template, self.sync_down_template = sync_up_template, sync_down_template
        self.delete_template = delete_template or noop_template
        self.exclude_template = exclude_template
        self.cmd_process: subprocess.Popen[bytes] | None = None
        self.logfile: IO[bytes] | None = None
        self._last = ""

    @property
    def is_running(self) -> bool:
        """Whether a command runs."""
        return self.cmd_process is not None and self.cmd_process.poll() is None

    def set_logdir(self, logdir: str) -> None:
        """Keeps what commands print in a file of a folder."""
        self.logfile = tempfile.NamedTemporaryFile(  # noqa: SIM115 - `close` does
            dir=logdir, prefix="log_sync_out", suffix=".log", delete=False
        )

    def sync_up(self, source: str, target: str, exclude: Sequence[str] | None = None) -> bool:
        """Starts to copy a folder to the target; False while another command runs."""
        return self._run(self.sync_up_template, source, target, exclude)

    def sync_down(self, source: str, target: str, exclude: Sequence[str] | None = None) -> bool:
        """Starts to copy a folder back, into a new one; False while a command runs."""
        Path(target).mkdir(parents=True, exist_ok=True)
        return self._run(self.sync_down_template, source, target, exclude)

    def delete(self, target: str) -> bool:
        """Starts to remove the target; False while another command runs."""
        return self._run(self.delete_template, "", target)

    def wait(self) -> None:
        """Waits for the command.

        Raises:
            TuneError: It has failed.
        """
        if self.cmd_process is None:
            return
        process, self.cmd_process = self.cmd_process, None
        _, output = process.communicate()
        if process.returncode:
            errors = output.decode(errors="replace")
            raise TuneError(f"`{process.args!r}` has failed ({process.returncode}): {errors}")

    def wait_or_retry(self, max_retries: int = 3, backoff_s: int = 5) -> None:
        """Waits for the command, and runs it again after a failure.

        Args:
            max_retries: How often it may run.
            backoff_s: How many seconds are between.

        Raises:
            TuneError: It has failed each time.
        """
        for attempt in range(1, max_retries):
            try:
                return self.wait()
            except TuneError:
                logger.exception("Attempt %d of %d:", attempt, max_retries)
                time.sleep(backoff_s)
                self._start(self._last)
        self.cmd_process = None
        raise TuneError(f"`{self._last}` has failed {max_retries} times.")

    def reset(self) -> None:
        """Forgets the command; one that runs is not stopped."""
        self.cmd_process = None

    def close(self) -> None:
        """Closes the file of `set_logdir`."""
        if self.logfile is not None:
            self.logfile.close()
            self.logfile = None

    def _run(
        self, template: str, source: str, target: str, exclude: Sequence[str] | None = None
    ) -> bool:
        if self.is_running:
            logger.warning("`%s` still runs; %s is left as it is.", self._last, target)
            return False
        fields = {"source": shlex.quote(source), "target": shlex.quote(target)}
        self._start(template.format(**fields, options=self._options(exclude or ())))
        return True

    def _options(self, exclude: Sequence[str]) -> str:
        template = self.exclude_template
        if not template or not exclude:
            return ""
        if "{pattern}" in template:
            return " ".join(template.format(pattern=pattern) for pattern in exclude)
        either = "|".join(f"({pattern.replace('*', '.*')})" for pattern in exclude)
        return template.format(regex_pattern=either)

    def _start(self, command: str) -> None:
        self._last, out = command, self.logfile
        # The templates are those of the user's own code.
        kept: dict[str, Any] = {"stdout": out, "stderr": subprocess.PIPE}
        self.cmd_process = subprocess.Popen(command, shell=True, **kept)  # noqa: S602


def _require(template: object, *fields: str) -> None:
    if lacking := [field for field in fields if field not in str(template)]:
        raise ValueError(f"{template!r} copies nothing: it has no {lacking[0]}.")


def get_sync_client(sync_function: Any, delete_function: Any = None) -> SyncClient | None:
    """A client of a function or of a template; None for None.

    Raises:
        ValueError: It is neither, or the two are not of one kind.
    """
    if sync_function is None:
        return None
    if delete_function and type(delete_function) is not type(sync_function):
        raise ValueError("What copies and what deletes are both functions, or both templates.")
    if inspect.isfunction(sync_function):
        return FunctionBasedClient(sync_function, sync_function, delete_function)
    if isinstance(sync_function, str):
        deletes = delete_function or noop_template
        return CommandBasedClient(sync_function, sync_function, deletes)
    raise ValueError(f"{sync_function!r} is neither a function nor a template.")


class _Cloud(NamedTuple):
    """How a program copies to a cloud; `down` is by default the same as `up`."""

    program: str
    up: str
    delete: str
    exclude: str | None = None
    down: str | None = None


_CLOUDS = {
    S3_PREFIX: _Cloud(
        "aws",
        "aws s3 sync {source} {target} {options} --only-show-errors --exact-timestamps",
        "aws s3 rm {target} --recursive --only-show-errors {options}",
        "--exclude '{pattern}'",
    ),
    GS_PREFIX: _Cloud(
        "gsutil",
        "gsutil rsync -r {options} {source} {target}",
        "gsutil rm -r {options} {target}",
        "-x '{regex_pattern}'",
    ),
    HDFS_PREFIX: _Cloud(
        "hdfs",
        "hdfs dfs -put -f {source} {target}",
        "hdfs dfs -rm -r {target}",
        down="hdfs dfs -get -f {source} {target}",
    ),
}


def get_cloud_sync_client(remote_path: str) -> CommandBasedClient:
    """A client of the program for a path's cloud.

    Raises:
        ValueError: There is none, or it is not installed.
    """
    cloud = next((c for prefix, c in _CLOUDS.items() if remote_path.startswith(prefix)), None)
    if cloud is None:
        raise ValueError(f"{remote_path!r} begins with none of {', '.join(_CLOUDS)}.")
    if shutil.which(cloud.program) is None:
        raise ValueError(f"{remote_path!r} needs the program {cloud.program!r}: install it.")
    return CommandBasedClient(cloud.up, cloud.down or cloud.up, cloud.delete, cloud.exclude)


def mock_storage_client() -> SyncClient | None:
    """A client that uses a folder of this machine as the cloud."""
    return get_sync_client(LOCAL_SYNC_TEMPLATE, LOCAL_DELETE_TEMPLATE)


#: The key of a cluster that `ray up` has started.
_KEY = Path("~/ray_bootstrap_key.pem")


def get_rsync_template_if_available(options: str = "") -> str | None:
    """The template of rsync between the nodes of a cluster; None without one, or without rsync."""
    leave_out = " --exclude='checkpoint_tmp*'"
    return log_sync_template(options + leave_out)


def log_sync_template(options: str = "") -> str | None:
    """The same of Ray 0.7 – 1.x, which also copied checkpoints that were being written."""
    key = _KEY.expanduser()
    if shutil.which("rsync") is None or not key.exists():
        return None
    options_of_ssh = ("ConnectTimeout=120s", "StrictHostKeyChecking=no")
    remote = f"ssh -i {shlex.quote(str(key))} " + " ".join(f"-o {o}" for o in options_of_ssh)
    return f"rsync {options} -savz -e {shlex.quote(remote)} {{source}} {{target}}"


def wait_for_sync() -> None:
    """Does nothing: experiments are in their `storage_path` at once."""


_NEVER = float("-inf")
_PERIOD = {"seconds": 300}


class CloudSyncer:
    """Copies a folder to another place and back.

    Args:
        local_dir: The folder.
        remote_dir: The other place; nothing: nothing is copied.
        sync_client: Copies.

    Attributes:
        last_sync_up_time: When it was copied there last.
        last_sync_down_time: When it was copied back last.
    """

    def __init__(
        self, local_dir: str, remote_dir: str | None, sync_client: SyncClient = NOOP
    ) -> None:
        self._local = f"{local_dir.rstrip('/')}/" if local_dir else ""
        self._remote, self.sync_client = remote_dir, sync_client
        self.last_sync_up_time = self.last_sync_down_time = _NEVER

    def sync_up_if_needed(self, exclude: Sequence[str] | None = None) -> None:
        """Copies it there, if the last time is longer ago than the period."""
        if time.time() - self.last_sync_up_time > _PERIOD["seconds"]:
            self.sync_up(exclude)

    def sync_down_if_needed(self, exclude: Sequence[str] | None = None) -> None:
        """Copies it back, if the last time is longer ago than the period."""
        if time.time() - self.last_sync_down_time > _PERIOD["seconds"]:
            self.sync_down(exclude)

    def sync_up(self, exclude: Sequence[str] | None = None) -> bool:
        """Starts to copy it there, without files of some patterns; whether that was possible."""
        done = self._copy(self.sync_client.sync_up, self._local, self._remote, exclude)
        self.last_sync_up_time = self.last_sync_up_time if done is None else time.time()
        return bool(done)

    def sync_down(self, exclude: Sequence[str] | None = None) -> bool:
        """Starts to copy it back, without files of some patterns; whether that was possible."""
        done = self._copy(self.sync_client.sync_down, self._remote, self._local, exclude)
        self.last_sync_down_time = self.last_sync_down_time if done is None else time.time()
        return bool(done)

    def _copy(
        self,
        copy: Callable[..., bool],
        source: object,
        target: object,
        exclude: Sequence[str] | None,
    ) -> bool | None:
        """Whether it has started; None if there is nothing to copy, or the client fails."""
        if not self.validate_hosts(source, target):
            return None
        try:
            return copy(source, target, exclude=exclude)
        except Exception:  # whatever a client of the user's raises
            logger.exception("%s is not copied to %s:", source, target)
            return None

    def validate_hosts(self, source: object, target: object) -> bool:
        """Whether both places are given."""
        return bool(source and target)

    def wait(self) -> None:
        """Waits until the copying is done."""
        self.sync_client.wait()

    def reset(self) -> None:
        """Forgets the copying that runs, and its times."""
        self.last_sync_up_time = self.last_sync_down_time = _NEVER
        self.sync_client.reset()

    def close(self) -> None:
        """Closes what is open."""
        self.sync_client.close()


_made: dict[tuple[str, str | None], CloudSyncer] = {}


def get_cloud_syncer(
    local_dir: str, remote_dir: str | None = None, sync_function: object = None
) -> CloudSyncer:
    """The one that copies a folder to a place.

    Args:
        local_dir: The folder.
        remote_dir: The place; none: nothing is copied.
        sync_function: A function or a template that copies; by default, the program of the cloud.

    Raises:
        ValueError: Nothing copies there.
    """
    if (local_dir, remote_dir) not in _made:
        given = None if sync_function == "auto" else sync_function
        client = get_sync_client(given) if remote_dir else NOOP
        client = client or get_cloud_sync_client(remote_dir or "")
        _made[local_dir, remote_dir] = CloudSyncer(local_dir, remote_dir, client)
    return _made[local_dir, remote_dir]


def set_sync_periods(sync_config: Any) -> None:
    """Sets after how many seconds folders are copied again."""
    _PERIOD["seconds"] = int(sync_config.sync_period)
