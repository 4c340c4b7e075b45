"""Experiments as Tune of an old Ray left them: their trials, read without running what they hold.

An experiment's folder has a folder a trial, and in `experiment_state-<time>.json` what Tune knew of
its trials: until Ray 2.6 below `checkpoints`, each an object or the text of one; since Ray 2.7
below `trial_data`, each two texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from rllib_compat.formats import pickles
from rllib_compat.formats.files import list_folders, parse_record, read_json, read_lines
from rllib_compat.formats.layouts.folder import as_mapping
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CompatError, CorruptCheckpointError
from rllib_compat.neutral.records import StandIn
from rllib_compat.ray_versions.releases import OLDEST

RESULTS, PROGRESS, CONFIG = "result.json", "progress.csv", "params.json"
#: The subfolder for the files of an old Ray's Tune, where the installed one continues.
ASIDE = "of_old_ray"
_STATE = "experiment_state*.json"
_CHECKPOINT = re.compile(r"checkpoint[-_](\d+)", re.IGNORECASE)

#: What the state of an experiment has until Ray 2.9.
_SERVER = "launch_web_server"


@dataclass
class OldTrial:
    """What is left of a trial.

    Attributes:
        folder: Its folder; None if it had not begun.
        trial_id: Its id.
        status: PENDING, RUNNING, PAUSED, TERMINATED or ERROR, as Tune saved it last.
        trainable: What it ran, by its registered name.
        tag: What Tune varied, as part of its name.
        config: Its config; what was code is text.
        stop: When it was to stop; empty where a function said so.
        results: What it has logged.
        checkpoints: Its checkpoints by their iterations, which ascend.
        saving: When it saves which checkpoints, as arguments of Tune's `CheckpointConfig`.
        max_failures: How often it is started again after an error; -1: each time.
    """

    folder: Path | None
    trial_id: str
    status: str
    trainable: str
    tag: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    stop: dict[str, Any] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: dict[int, Path] = field(default_factory=dict)
    saving: dict[str, Any] = field(default_factory=dict)
    max_failures: int = 0


def read_old_experiment(path: Path) -> list[OldTrial] | None:
    """Reads the trials of an experiment that an old Ray left; None where it is none.

    The state of Ray 2.10 – 2.39 looks as that of newer ones: the trials' checkpoints name the Ray.

    Raises:
        CorruptCheckpointError: A file is damaged.
    """
    trials, is_old = read_experiment(path)
    return trials if is_old else None


def read_experiment(path: Path) -> tuple[list[OldTrial], bool]:
    """Reads the trials of an experiment of any Ray, and whether an old one left it.

    Raises:
        CorruptCheckpointError: A file is damaged.
    """
    folder = path if path.is_dir() else path.parent
    states = [path] if path.is_file() else sorted(folder.glob(_STATE))
    if not states:
        begun = [inner for inner in list_folders(folder) if (inner / RESULTS).is_file()]
        return [_read_trial(inner, {}) for inner in begun], bool(begun)
    state = read_json(states[-1], Budget(), str(states[-1]))
    found = state if isinstance(state, dict) else {}
    saved = found.get("checkpoints") or found.get("trial_data")
    is_new = "trial_data" in found
    is_old = not is_new or _SERVER in as_mapping(found.get("runner_data")) or _is_of_old_ray(folder)
    if not isinstance(saved, list):
        return [], False
    records = [_as_saved(one, str(states[-1])) for one in saved]
    trials = [_read_saved(record, folder) for record in records]
    if not is_new and any("relative_logdir" in record for record in records):  # Ray 2.0 – 2.6
        trials.sort(key=lambda trial: trial.trial_id)
    return trials, is_old


def _is_of_old_ray(experiment: Path) -> bool:
    """Whether a Ray that this package does not run with has written a checkpoint of a trial."""
    if (experiment / ASIDE).is_dir():
        return False
    for file in sorted(experiment.glob("*/checkpoint_*/rllib_checkpoint.json")):
        written = read_json(file, Budget(), str(file))
        try:
            return Version(str(written["ray_version"])) < OLDEST
        except (InvalidVersion, LookupError, TypeError):
            return True  # until Ray 2.2, it did not name itself
    return False


def _as_saved(saved: object, where: str) -> dict[str, Any]:
    """What the experiment's state has of a trial."""
    if isinstance(saved, list) and len(saved) == 2:  # since Ray 2.5, what changes is kept apart
        constant, changing = (_as_saved(part, where) for part in saved)
        return constant | {"run_metadata": changing}
    if isinstance(saved, str):
        try:
            saved = json.loads(saved)
        except (ValueError, RecursionError) as error:
            raise CorruptCheckpointError(f"Not JSON: {error}", where=where) from error
    if not isinstance(saved, dict):
        raise CorruptCheckpointError("A trial is not a JSON object.", where=where)
    return saved


def _read_saved(saved: Mapping[str, Any], folder: Path) -> OldTrial:
    """A trial from its record in the experiment's state; its folder may have been moved."""
    names = (saved.get(key) for key in ("relative_logdir", "logdir", "_logdir"))
    name = next((Path(name).name for name in names if isinstance(name, str)), None)
    inner = folder / name if name else None
    return _read_trial(inner if inner and inner.is_dir() else None, saved)


def _read_trial(folder: Path | None, saved: Mapping[str, Any]) -> OldTrial:
    def text(key: str) -> str | None:
        return value if isinstance(value := saved.get(key), str) else None

    results = list(_read_results(folder)) if folder else []
    last = results[-1] if results else {}
    ended = "TERMINATED" if last.get("done") else "RUNNING"
    config = (_read_config(folder) if folder else None) or saved.get("config")
    stop, failures = saved.get("stopping_criterion"), saved.get("max_failures")
    manager = _checkpoint_manager(as_mapping(saved.get("run_metadata")), str(folder))
    return OldTrial(
        folder,
        text("trial_id") or str(last.get("trial_id") or (folder.name if folder else "")),
        text("status") or ended,
        text("trainable_name") or "",
        text("experiment_tag") or str(last.get("experiment_tag") or ""),
        _as_record(config),
        _as_record(stop),
        results,
        _find_checkpoints(folder, _saved_iterations(manager)) if folder else {},
        _read_saving(saved, _state_of(manager.get("_checkpoint_config"))),
        failures if type(failures) is int else 0,
    )


def _read_saving(saved: Mapping[str, Any], since_2_7: Mapping[str, Any]) -> dict[str, Any]:
    """When a trial saves which checkpoints, from its record until Ray 2.6, or its manager."""
    score = saved.get("checkpoint_score_attr")
    score = score if isinstance(score, str) else ""
    found = {
        "checkpoint_frequency": saved.get("checkpoint_freq"),
        "checkpoint_at_end": saved.get("checkpoint_at_end"),
        "num_to_keep": saved.get("keep_checkpoints_num"),
        "checkpoint_score_attribute": score.removeprefix("min-") or None,
        "checkpoint_score_order": "min" if score.startswith("min-") else "max",
        **since_2_7,
    }
    return {name: found[name] for name, fits in _SAVING.items() if fits(found[name])}


#: An argument of Tune's `CheckpointConfig` → whether it takes a value.
_SAVING: Mapping[str, Callable[[Any], bool]] = {
    "checkpoint_frequency": lambda value: type(value) is int and value >= 0,
    "checkpoint_at_end": lambda value: isinstance(value, bool),
    "num_to_keep": lambda value: type(value) is int and value > 0,
    "checkpoint_score_attribute": lambda value: isinstance(value, str),
    "checkpoint_score_order": lambda value: value in ("min", "max"),
}


def _read_results(folder: Path) -> Iterator[dict[str, Any]]:
    file = folder / RESULTS
    for where, line in read_lines(file) if file.is_file() else ():
        try:
            record = parse_record(line, where)
        except CompatError:
            if line.endswith(b"\n"):
                raise
            return  # the process ended while it wrote
        yield _as_record(record)


def _as_record(value: object) -> dict[str, Any]:
    found = _without_pickles(value)
    return found if isinstance(found, dict) else {}


def _without_pickles(value: object) -> Any:
    """The same without what Tune would unpickle, when it reads the value as JSON again."""
    if isinstance(value, dict):
        if "_type" in value:
            return "<pickled>"
        return {key: _without_pickles(inner) for key, inner in value.items()}
    return [_without_pickles(inner) for inner in value] if isinstance(value, list) else value


def _read_config(folder: Path) -> dict[str, Any]:
    file = folder / CONFIG
    found = read_json(file, Budget(), str(file)) if file.is_file() else {}
    return found if isinstance(found, dict) else {}


def _find_checkpoints(folder: Path, iterations: Mapping[str, int]) -> dict[int, Path]:
    """A trial's checkpoints by their iterations.

    Until Ray 2.6, folders are called by them; since then they are counted, and a pickle has them.
    """
    found = {
        iterations.get(inner.name, int(match[1])): inner
        for inner in list_folders(folder)
        if (match := _CHECKPOINT.fullmatch(inner.name))
    }
    return dict(sorted(found.items()))


def _checkpoint_manager(metadata: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What Tune's manager of a trial's checkpoints had, as Ray 2.7 saved it."""
    text = as_mapping(metadata.get("checkpoint_manager")).get("value")
    if not isinstance(text, str):
        return {}
    try:
        data = bytes.fromhex(text)
    except ValueError as error:
        raise CorruptCheckpointError(
            f"A trial's pickle is no text: {error}", where=where
        ) from error
    return _state_of(pickles.load(data, where=where).value)


def _saved_iterations(manager: Mapping[str, Any]) -> dict[str, int]:
    """The iterations of checkpoints by the names of their folders."""
    kept = manager.get("_checkpoint_results")
    found = {}
    for result in map(_state_of, kept if isinstance(kept, list) else ()):
        path = _state_of(result.get("checkpoint")).get("path")
        iteration = as_mapping(result.get("metrics")).get("training_iteration")
        if isinstance(path, str) and isinstance(iteration, int):
            found[Path(path).name] = iteration
    return found


def _state_of(value: object) -> dict[str, Any]:
    state = value.state if isinstance(value, StandIn) else None
    return state if isinstance(state, dict) else {}
