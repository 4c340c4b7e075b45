"""Switching the old imports on and off, here and in Ray's workers."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rllib_compat.legacy import (
    callers,
    finder,
    old_examples,
    redirect,
    removed_names,
    worker_processes,
)
from rllib_compat.runtime.handed_out import TODAYS_GYM, HandedOut

_original_import = builtins.__import__


def activate(packages: Iterable[str] = (), *, old_ray: str | Path | None = None) -> None:
    """Gives the user's own code the old `ray`, `gym` and numpy, in this process and in workers.

    Code that has imported them already keeps what it has. To call it again does no harm.

    Args:
        packages: Names of installed packages that are old code, too.
        old_ray: A Ray whose `ray.rllib.examples.env`, `.models` and `.policy` are taken in the
            place of today's: a wheel, a `site-packages`, or a folder `ray`.

    Raises:
        CompatError: `old_ray` has no such examples.
    """
    if old_ray is not None:
        old_examples.use(old_ray)
    callers.packages.update(packages)
    if not is_active():
        finder.install()
        removed_names.restore()  # functions that Ray has pickled find numpy without an import
        builtins.__import__ = _import
        HandedOut.as_old = _as_old
    worker_processes.activate_there(callers.packages, old_examples.named)


def deactivate() -> None:
    """Undoes `activate` for what is imported from now on."""
    if is_active():
        builtins.__import__ = _original_import
        finder.uninstall()
        removed_names.remove()
        HandedOut.as_old = None
        os.environ.pop(TODAYS_GYM, None)
    worker_processes.forget()
    callers.packages.clear()
    old_examples.use(None)


def is_active() -> bool:
    """Whether old imports are found."""
    return builtins.__import__ is _import


def _import(
    name: str,
    globals: Mapping[str, Any] | None = None,  # noqa: A002
    locals: Mapping[str, Any] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    root = name.partition(".")[0]
    if level == 0 and root in redirect.ROOTS and globals and callers.is_user_code(globals):
        there = redirect.ROOTS[root](name, fromlist or ())
        if there is not None:
            return there
    if root == "gymnasium" and globals and callers.is_user_code(globals):
        os.environ[TODAYS_GYM] = "1"
    return _original_import(name, globals, locals, fromlist or (), level)


def _as_old(env: Any) -> Any:
    """An environment of gymnasium with gym's API."""
    from rllib_compat.gym.core import OldApi

    return OldApi(env)


def activate_worker() -> None:
    """What Ray calls in each worker process of a driver that is active."""
    activate(worker_processes.packages_here(), old_ray=worker_processes.old_ray_here())
