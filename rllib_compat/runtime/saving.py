"""Who wants to know of an algorithm's checkpoints: no Ray tells its callbacks where they are."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rllib_compat.runtime.legacy_callbacks import DefaultCallbacks

logger = logging.getLogger(__name__)

#: The methods that save and restore, on the new API stack and on the old one.
_METHODS = {
    True: ("save_to_path", "restore_from_path"),
    False: ("save_checkpoint", "load_checkpoint"),
}


def hears_of_checkpoints(callbacks: Any) -> bool:
    """Whether an object of callbacks does something when a checkpoint was saved or restored."""
    return isinstance(callbacks, DefaultCallbacks) and any(
        getattr(type(callbacks), event) is not getattr(DefaultCallbacks, event)
        for event in ("on_checkpoint_saved", "on_checkpoint_restored")
    )


def tell_of_checkpoints(
    algorithm: Any, saved: Callable[[Any, str], None], restored: Callable[[Any, str], None]
) -> None:
    """Calls functions after each checkpoint that an algorithm saves, and that it restores.

    Args:
        algorithm: The algorithm, of either API stack. No trainer owns it, which would tell.
        saved: It gets the algorithm and the checkpoint's folder.
        restored: Likewise.
    """
    names = _METHODS[bool(algorithm.config.enable_rl_module_and_learner)]
    for name, tell in zip(names, (saved, restored), strict=True):
        setattr(algorithm, name, _telling(algorithm, getattr(algorithm, name), tell))


def _telling(algorithm: Any, method: Any, tell: Callable[[Any, str], None]) -> Any:
    @functools.wraps(method)
    def call_and_tell(*args: Any, **kwargs: Any) -> Any:
        found = method(*args, **kwargs)
        folder = Path(found if isinstance(found, (str, Path)) else [*args, *kwargs.values()][0])
        if folder.is_dir():
            tell(algorithm, str(folder))
        else:
            logger.warning("Callbacks do not hear of %s: it is not on this machine.", folder)
        return found

    return call_and_tell
