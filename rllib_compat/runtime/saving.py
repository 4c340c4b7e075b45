"""Who wants to know that an algorithm has saved a checkpoint: no Ray tells its callbacks."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rllib_compat.runtime.legacy_callbacks import DefaultCallbacks

logger = logging.getLogger(__name__)


def hears_of_saves(callbacks: Any) -> bool:
    """Whether an object of callbacks does something when a checkpoint was saved."""
    ours = isinstance(callbacks, DefaultCallbacks)
    return ours and type(callbacks).on_checkpoint_saved is not DefaultCallbacks.on_checkpoint_saved


def tell_of_saves(algorithm: Any, saved: Callable[[Any, str], None]) -> None:
    """Calls a function after each checkpoint that an algorithm saves.

    Args:
        algorithm: The algorithm, of either API stack. No trainer owns it, which would tell.
        saved: It gets the algorithm and the checkpoint's folder.
    """
    on_new_stack = algorithm.config.enable_rl_module_and_learner
    name = "save_to_path" if on_new_stack else "save_checkpoint"
    save = getattr(algorithm, name)

    @functools.wraps(save)
    def save_and_tell(*args: Any, **kwargs: Any) -> Any:
        found = save(*args, **kwargs)
        folder = Path(found if found is not None else [*args, *kwargs.values()][0])
        if folder.is_dir():
            saved(algorithm, str(folder))
        else:
            logger.warning("Nothing was added to %s: it is not on this machine.", folder)
        return found

    setattr(algorithm, name, save_and_tell)
