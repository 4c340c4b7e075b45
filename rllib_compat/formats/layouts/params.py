"""The config of a trial, where a checkpoint holds none: `params.pkl` and `params.json`.

Tune's loggers write them into the trial's folder, one above the checkpoint's. `params.pkl` keeps
tuples, spaces and classes; `params.json` has only their `repr`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rllib_compat.formats.layouts.folder import Folder
from rllib_compat.neutral.report import Finding, Severity, Verdict

_NAMES = ("params.pkl", "params.json")
_LEVELS_UP = 3


def find(checkpoint: Path) -> Path | None:
    """The folder that holds the params of a checkpoint: its own, or one of those above it.

    A folder beside these is taken if it is the only one with params, since people move
    checkpoints and logs apart; the report tells which was read.
    """
    above = [checkpoint, *checkpoint.resolve().parents[:_LEVELS_UP]]
    for folder in above:
        if _holds_params(folder):
            return folder
    for folder in above[:3]:
        beside = [p for p in _subfolders(folder) if _holds_params(p)]
        if len(beside) == 1:
            return beside[0]
    return None


def _holds_params(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _NAMES)


def _subfolders(folder: Path) -> list[Path]:
    try:
        return [p for p in folder.iterdir() if p.is_dir() and not p.is_symlink()]
    except OSError:
        return []


def read(checkpoint: Path, into: Folder) -> dict[str, Any]:
    """Reads the params of a checkpoint; what was noticed goes to `into`.

    Returns:
        What the user gave as config; empty where no params are found.
    """
    place = find(checkpoint)
    if place is None:
        return {}
    folder = Folder(place, budget=into.budget)
    for name in _NAMES:
        params = folder.try_side_file(name)
        if isinstance(params, dict):
            above = place == checkpoint or place in checkpoint.resolve().parents
            into.findings.append(
                Finding(
                    "params",
                    Severity.INFO if above else Severity.WARNING,
                    Verdict.DERIVED,
                    name,
                    f"the config was read from {place.name}/{name}"
                    + ("" if above else ", which lies beside the checkpoint"),
                    "" if above else "give --config if it is not the checkpoint's",
                )
            )
            into.findings += folder.findings
            for stand_in, count in folder.stand_ins.items():
                into.stand_ins[stand_in] = into.stand_ins.get(stand_in, 0) + count
            return params
    into.findings += folder.findings
    return {}
