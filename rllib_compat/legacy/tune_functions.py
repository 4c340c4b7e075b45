"""Small functions of `ray.tune.utils` and `ray.tune.trial` that today's Tune has not."""

from __future__ import annotations

import inspect
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.tune.utils import flatten_dict

__all__ = [
    "LEGACY_RNG",
    "PINNED_OBJECT_PREFIX",
    "create_logdir",
    "detect_checkpoint_function",
    "detect_reporter",
    "generate_plotly_dim_dict",
    "get_pinned_object",
    "load_results_to_df",
    "np_random_generator",
    "pin_in_object_store",
]

PINNED_OBJECT_PREFIX = "ray.tune.PinnedObject:"
LEGACY_RNG = False
np_random_generator = np.random.Generator
_pinned: list[Any] = []


def _takes(function: Callable[..., Any], partial: bool = False, **by_name: object) -> bool:
    signature = inspect.signature(function)
    try:
        (signature.bind_partial if partial else signature.bind)({}, **by_name)
    except TypeError:
        return False
    return True


def detect_checkpoint_function(
    train_func: Callable[..., Any], abort: bool = False, partial: bool = False
) -> bool:
    """Whether a function takes (config, checkpoint_dir).

    Args:
        train_func: The function.
        abort: Whether to raise where it doesn't.
        partial: Whether it may want more.

    Raises:
        ValueError: It doesn't.
    """
    found = _takes(train_func, partial, checkpoint_dir="")
    if abort and not found:
        told = inspect.signature(train_func)
        raise ValueError(f"A function of (config, checkpoint_dir=None) is needed, not of {told}.")
    return found


def detect_reporter(func: Callable[..., Any]) -> bool:
    """Whether a function takes (config, reporter)."""
    return _takes(func, reporter=None)


def create_logdir(dirname: str, local_dir: str) -> str:
    """Makes a folder; if there is one of that name, with four random digits behind it."""
    path = Path(local_dir).expanduser() / dirname
    if path.exists():
        path = path.with_name(f"{path.name}_{uuid.uuid4().hex[:4]}")
    path.mkdir(parents=True, exist_ok=True)
    return str(path)


def pin_in_object_store(obj: object) -> Any:
    """Puts an object into Ray's store, where it stays."""
    _pinned.append(ray.put(obj))
    return _pinned[-1]


def get_pinned_object(pinned_id: Any) -> Any:
    """An object of `pin_in_object_store`."""
    return ray.get(pinned_id)


def load_results_to_df(directory: str, result_name: str = "result.json") -> Any:
    """The last results of all trials below a folder with their configs, a row each.

    Args:
        directory: The folder.
        result_name: The file that has a result in each line.
    """
    import pandas as pd  # type: ignore[import-untyped]

    rows = []
    for file in sorted(Path(directory).rglob(result_name)):
        config = json.loads(file.with_name("params.json").read_text("utf-8"))
        results = filter(str.strip, reversed(file.read_text("utf-8").split("\n")))
        last: dict[str, Any] = json.loads(next(results, "{}"))
        rows.append({**flatten_dict(config), **flatten_dict(last)})
    return pd.DataFrame(rows)


def generate_plotly_dim_dict(df: Any, field: str) -> dict[str, Any]:
    """A column as a dimension of plotly's parallel coordinates: numbers, or texts by number.

    Raises:
        ValueError: They are neither.
    """
    from pandas.api import types  # type: ignore[import-untyped]

    column = df[field]
    if types.is_numeric_dtype(column):
        return {"label": field, "values": column}
    if not types.is_string_dtype(column):
        raise ValueError(f"The column {field!r} has neither numbers nor texts.")
    texts = column.unique().tolist()
    numbers = [texts.index(text) for text in column]
    return {
        "label": field,
        "values": numbers,
        "tickvals": list(range(len(texts))),
        "ticktext": texts,
    }
