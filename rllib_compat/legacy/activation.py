"""Switching the old imports on and off, here and in Ray's workers.

Ray's workers unpickle and import the user's code, too.
"""

from __future__ import annotations

import builtins
import collections
import collections.abc
import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from rllib_compat.config import era
from rllib_compat.config.era import AUTO
from rllib_compat.config.evidence import of_import
from rllib_compat.legacy import import_hooks, old_ray_examples
from rllib_compat.ray_versions import startup, tensorflow
from rllib_compat.registry import old_names
from rllib_compat.runtime.user_envs import TODAYS_GYM, OldGymApi

_original_import = builtins.__import__
_original_import_module = importlib.import_module

_PACKAGES = "RLLIB_COMPAT_LEGACY_PACKAGES"
_OLD_RAY = "RLLIB_COMPAT_OLD_RAY"
_IN_WORKERS = f"{__name__}:activate_worker"

#: Names that were added to modules of numpy and Python.
_restored: list[tuple[ModuleType, str]] = []


def activate(
    packages: Iterable[str] = (), *, old_ray: str | Path | None = None, legacy_ray: str = AUTO
) -> None:
    """Gives the user's own code the old `ray`, `gym` and numpy, in this process and in workers.

    Code that has already imported them keeps its modules. A second call does no harm.

    Args:
        packages: Names of installed packages that are old code, too.
        old_ray: A Ray whose `ray.rllib.examples.env`, `.models` and `.policy` replace those of
            the installed Ray: a wheel, a `site-packages`, or a folder `ray`.
        legacy_ray: The Ray whose defaults trainers keep: a version, or "today" for none. "auto":
            the one that the imports, the keys of a config and requirement files beside the script
            indicate.

    Raises:
        CompatError: `old_ray` has no such examples, or `legacy_ray` is no Ray.
    """
    if legacy_ray != AUTO:
        era.choose(legacy_ray)
    if old_ray is not None:
        old_ray_examples.use(old_ray)
    import_hooks.user_packages.update(packages)
    if not is_active():
        import_hooks.install_finders()
        tensorflow.prefer_legacy_keras()
        _restore_removed_names()  # functions that Ray has pickled find numpy without an import
        builtins.__import__ = _import
        importlib.import_module = _import_module
        OldGymApi.wrapper = _with_old_api
    configure_workers(import_hooks.user_packages, old_ray_examples.named)


def deactivate() -> None:
    """Undoes `activate` for what is imported from now on."""
    if is_active():
        builtins.__import__ = _original_import
        importlib.import_module = _original_import_module
        import_hooks.uninstall_finders()
        while _restored:
            delattr(*_restored.pop())
        OldGymApi.wrapper = None
        era.forget()
        os.environ.pop(TODAYS_GYM, None)
    reset_workers()
    import_hooks.user_packages.clear()
    old_ray_examples.use(None)


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
    importer = sys._getframe(1)  # noqa: SLF001 - the code that imports
    if level == 0 and root in old_names.PACKAGES and not _is_importlib(importer):
        if import_hooks.is_called_by_user_code(importer):
            if fromlist == []:  # only C code, such as pickle, asks so, and looks in `sys.modules`
                return _import_by_its_name(name)
            era.note(of_import(name, fromlist or ()))
            module = import_hooks.replacement(name, fromlist or ())
            if module is not None:
                return module
    elif root == "gymnasium" and globals and import_hooks.is_user_code(globals):
        os.environ[TODAYS_GYM] = "1"
    return _original_import(name, globals, locals, fromlist or (), level)


def _import_by_its_name(name: str) -> ModuleType:
    """Today's module of a name, or the old one where there is none, in `sys.modules`."""
    try:
        return _original_import_module(name)
    except ModuleNotFoundError:
        module = import_hooks.replacement(name, ("*",))
        if module is None:
            raise
        return sys.modules.setdefault(name, module)


def _is_importlib(frame: FrameType) -> bool:
    """Whether Python itself imports the package of a module that it looks for."""
    return str(frame.f_globals.get("__name__")).startswith("importlib")


def _import_module(name: str, package: str | None = None) -> ModuleType:
    importer = sys._getframe(1)  # noqa: SLF001 - the code that imports
    is_old = name.partition(".")[0] in old_names.PACKAGES
    if is_old and import_hooks.is_called_by_user_code(importer):
        era.note(of_import(name))
        module = import_hooks.replacement(name, ("*",))
        if module is not None:
            return module
    return _original_import_module(name, package)


def _with_old_api(env: object) -> Any:
    """An environment of gymnasium with gym's API."""
    from rllib_compat.gym.core import OldApi

    return OldApi(env)


def _restore_removed_names() -> None:
    """Puts names that numpy 1.24 – 2.0 and Python 3.10 removed back where they were.

    A wrapper around numpy would be slow, and numba would reject it; only old code uses these names.
    Existing names stay as they are.
    """
    for name, was in old_names.NUMPY.items():
        _restore(np, name, getattr(np, was, None) if isinstance(was, str) else was)
    for name in collections.abc.__all__:
        _restore(collections, name, getattr(collections.abc, name))


def _restore(module: ModuleType, name: str, value: object) -> None:
    if name not in vars(module) and value is not None:
        setattr(module, name, value)
        _restored.append((module, name))


def configure_workers(packages: Iterable[str] = (), old_ray: str | None = None) -> None:
    """Makes the workers of a Ray that is started later activate the old imports.

    If the user has set a hook for workers, they do so when they unpickle the first old module.
    """
    variables = {_PACKAGES: ",".join(sorted(packages)), _OLD_RAY: old_ray}
    startup.call_in_workers(_IN_WORKERS, {k: v for k, v in variables.items() if v})


def reset_workers() -> None:
    """Undoes `configure_workers`."""
    startup.cancel_call_in_workers(_IN_WORKERS, (_PACKAGES, _OLD_RAY))


def activate_worker() -> None:
    """Activates the old imports in a worker process, as its driver configured them."""
    packages = filter(None, os.environ.get(_PACKAGES, "").split(","))
    activate(packages, old_ray=os.environ.get(_OLD_RAY))
