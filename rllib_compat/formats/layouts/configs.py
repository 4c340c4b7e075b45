"""The config of a checkpoint: as a file holds it, or of the trial's params beside it."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

from rllib_compat.formats.files import list_folders
from rllib_compat.formats.layouts.folder import Folder, with_text_keys
from rllib_compat.formats.paths import LEVELS_UP, PARAMS
from rllib_compat.neutral.records import StandIn
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: The rule of what is said of params that are not the checkpoint's own.
NEIGHBOUR = "params.neighbour"
#: No config is nested deeper.
_DEEPEST = 50


def config_dict(config: object, where: str, findings: list[Finding]) -> dict[str, Any]:
    """A config as a plain dict; of an `AlgorithmConfig` object (Ray 2.3 on), its attributes.

    What is a subclass of dict with names as keys, or of list, anywhere in it becomes a dict or
    list, with a finding.
    """
    if isinstance(config, StandIn) and not config.pairs:
        config = config.state
    contents = _Contents()
    plain = with_text_keys(contents.of(config))
    findings.extend(
        Finding.info("config.subclass", Verdict.CONVERTED, where, f"{name}, read as a {kind}")
        for name, kind in contents.found
    )
    return plain


class _Contents:
    """Takes the content out of stand-ins of classes that are dicts or lists.

    Attributes:
        found: The classes, and what each was read as.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], None] = {}
        self._done: dict[int, Any] = {}

    def of(self, value: object, depth: int = 0) -> Any:
        """The same value with dicts and lists in the place of their subclasses' stand-ins.

        A value that occurs several times is visited once. One that contains itself, or is nested
        deeper than any config, is returned unchanged.
        """
        if id(value) in self._done or depth > _DEEPEST:
            return self._done.get(id(value), value)
        self._done[id(value)] = value
        made: Any = value
        match value:
            case dict() if type(value) is dict:
                made = {key: self.of(inner, depth + 1) for key, inner in value.items()}
            case list() | tuple() if type(value) in (list, tuple):
                made = type(value)(self.of(inner, depth + 1) for inner in value)
            # Other keys may be none for a dict, or made to collide.
            case StandIn(pairs=[_, *_]) if all(type(key) is str for key, _ in value.pairs):
                self.found[value.label, "dict"] = None
                made = {key: self.of(inner, depth + 1) for key, inner in value.pairs}
            case StandIn(items=[_, *_]):
                self.found[value.label, "list"] = None
                made = [self.of(inner, depth + 1) for inner in value.items]
        self._done[id(value)] = made
        return made


def find_params(checkpoint: Path) -> Path | None:
    """The folder with the params of a checkpoint's trial.

    It is the nearest of the checkpoint's own and three above it; or else the only one beside these
    that has params and no checkpoint, since people keep checkpoints and logs apart.
    """
    above = [checkpoint, *checkpoint.resolve().parents[:LEVELS_UP]]
    if own := next(filter(_holds_params, above), None):
        return own
    for folder in above[:3]:
        beside = list(filter(_holds_params, list_folders(folder)))
        if len(beside) == 1 and not any(beside[0].glob("checkpoint*")):
            return beside[0]
    return None


def _find_neighbours(checkpoint: Path) -> list[Path]:
    """Params in folders beside the checkpoint's, which may be another trial's."""
    folders = chain.from_iterable(map(list_folders, checkpoint.resolve().parents[:2]))
    return [folder / name for folder in folders for name in PARAMS if (folder / name).is_file()]


def _holds_params(folder: Path) -> bool:
    return any((folder / name).is_file() for name in PARAMS)


def read_params(folder: Folder) -> dict[str, Any]:
    """What the user gave as config, of the trial's params; empty where there are none.

    Those of a folder beside that may be another trial's are never used; a finding names them. What
    is noticed goes to the checkpoint's folder.
    """
    place = find_params(folder.root)
    if place is None:
        folder.findings += map(_neighbour_finding, _find_neighbours(folder.root)[:1])
        return {}
    trial = Folder(place, budget=folder.budget)
    params: dict[str, Any] = {}
    for name in PARAMS:
        params = config_dict(trial.try_side_file(name), name, folder.findings)
        if params:
            folder.findings.append(_params_finding(folder, f"{place.name}/{name}", place))
            folder.count_stand_ins(trial.stand_ins)
            break
    folder.findings += trial.findings
    return params


def _params_finding(folder: Folder, name: str, place: Path) -> Finding:
    severity, beside, hint = Severity.INFO, "", ""
    if place != folder.root and place not in folder.root.resolve().parents:
        severity, beside = Severity.WARNING, ", which lies beside the checkpoint"
        hint = "pass --config if it is not the checkpoint's"
    message = f"the config was read from {name}{beside}"
    return Finding("params", severity, Verdict.DERIVED, Path(name).name, message, hint)


def _neighbour_finding(params: Path) -> Finding:
    message = "a config lies in a folder beside the checkpoint, and was not used"
    hint = f"pass --config {quote(str(params))} if it is the checkpoint's"
    return Finding.info(NEIGHBOUR, Verdict.NOTE, params.name, message, hint)
