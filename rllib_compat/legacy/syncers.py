"""`ray.tune.syncer` of Ray 0.7 – 1.13: what copies a folder to the cloud and back, by a client."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from rllib_compat.legacy import sync_clients
from rllib_compat.legacy.sync_clients import NOOP, SyncClient

logger = logging.getLogger(__name__)

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
        client = sync_clients.get_sync_client(given) if remote_dir else NOOP
        client = client or sync_clients.get_cloud_sync_client(remote_dir or "")
        _made[local_dir, remote_dir] = CloudSyncer(local_dir, remote_dir, client)
    return _made[local_dir, remote_dir]


def set_sync_periods(sync_config: Any) -> None:
    """Sets after how many seconds folders are copied again."""
    _PERIOD["seconds"] = int(sync_config.sync_period)
