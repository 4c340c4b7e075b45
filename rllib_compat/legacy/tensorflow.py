"""TensorFlow for old code: the installed one, or an object that reports that it is missing."""

from __future__ import annotations

from typing import Any

from ray.rllib.utils.framework import try_import_tf as _todays

from rllib_compat.neutral.errors import CompatError

__all__ = ["try_import_tf"]


class _Missing:
    """Replaces TensorFlow where it is not installed; false, as `None` was."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise CompatError(
            f"TensorFlow is not installed, and this code uses its `{name}`.",
            where=f"tf.{name}",
            fix="pip install 'rllib-compat[tensorflow]', or use torch (TorchModelV2)",
        )


class _TensorFlow(tuple[Any, ...]):
    """TensorFlow 1's API, TensorFlow, and its version; before Ray 0.8.6, TensorFlow itself."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self[0] or self[1], name)


def try_import_tf(error: bool = False) -> Any:
    """TensorFlow by its two APIs, and the number of its version.

    Returns:
        Three values, which together have the attributes of TensorFlow 1's API: until Ray 0.8.5 it
        was the only value.

    Raises:
        ImportError: `error` is true, and TensorFlow is not installed.
    """
    found = _todays(error)
    missing = _Missing()
    return _TensorFlow(found if found[2] else (missing, missing, None))
