"""Version 0.1: one pickle file, `checkpoint-N`, with a pickle of the worker inside (Ray 0.5 – 2.0).

Ray 0.5 put everything into `checkpoint-N.extra_data`. The file's dict changed its keys over the
years (`evaluator`, `worker`, `optimizer`, `trainer_state`, `train_exec_impl`); what they hold is
the same. Spaces and config are in it from Ray 1.13 on; before, they lie in the trial's
`params.pkl`. Sources: `ray/rllib/agents/trainer.py`, `_save` / `__getstate__`, of each Ray.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.formats import pickles
from rllib_compat.formats.files import open_regular
from rllib_compat.formats.layouts.configs import config_dict, read_params
from rllib_compat.formats.layouts.folder import Folder, LayoutMismatch, as_mapping, with_text_keys
from rllib_compat.formats.layouts.policies import (
    integer,
    number,
    read_policy_state,
    text,
    with_filters,
    with_spec,
)
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import (
    Counters,
    LegacyCheckpoint,
    ObservationFilter,
    PolicyState,
    Source,
)
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.neutral.policy_id import PolicyId
from rllib_compat.neutral.report import Finding, Verdict

name = "0.1"

_FILE = re.compile(r"checkpoint[-_](\d+)(?:\.extra_data)?", re.IGNORECASE)
_TRIAL_FOLDER = re.compile(r"checkpoint_\w+", re.IGNORECASE)
_FOLDER_NUMBER = re.compile(r"checkpoint_0*(\d+)", re.IGNORECASE)
_NAMED = 5
_METADATA_ENDING = ".tune_metadata"
#: How files beside `checkpoint-N` end, which show that it was there where it is lost.
SIDE_ENDINGS = (".extra_data", _METADATA_ENDING)
_SIDE_FILES = re.compile(r"(\.tune_metadata|\.json|\.csv|params\.pkl)$|^\.|^events\.")

#: How far into a pickle the first keys of its dict are.
_HEAD = 200

#: The keys under which the worker's pickle was stored, and the Ray that a file with it is from.
_WORKER_KEYS = {"worker": None, "evaluator": "0.6", "local_state": "0.5"}

#: Keys by which a `checkpoint-N` is known from any other pickled dict.
_KNOWN_KEYS = {*_WORKER_KEYS, "weights", "remote_state"}

#: The places in Tune's metadata list of Ray 0.5.
_METADATA_FIELDS = ("experiment_id", "iteration", "timesteps_total", "time_total")


def read(path: Path, budget: Budget) -> LegacyCheckpoint:
    """Reads a checkpoint file, its folder, or the trial's folder above (then the last one)."""
    file, findings = _find_file(path)
    folder = Folder(file.parent, budget, findings)
    is_there = not folder.lacks(file.name)
    outer = _read_outer(folder, file.name) if is_there else {}
    metadata = _read_metadata(folder, file)
    ray_version = text(metadata.pop("ray_version", None)) or _guess_ray(outer)
    policies, mapping = _read_worker(outer, folder, file.name) if is_there else ({}, {})
    config, is_complete = _read_config(metadata, outer, folder)
    counters = _read_counters(outer, metadata, policies.values())
    beside = {"tune_metadata": metadata} if metadata else {}
    checkpoint = LegacyCheckpoint(
        Source(path, name, ray_version, folder.digests),
        config=config,
        config_is_complete=is_complete,
        policies=policies,
        policy_mapping_fn=mapping.get("policy_mapping_fn"),
        policies_to_train=mapping.get("is_policy_to_train"),
        counters=counters,
        extra={**outer, **beside},
    )
    return folder.finish(checkpoint)


def _read_outer(folder: Folder, file: str) -> dict[str, Any]:
    """The content of the checkpoint's file."""
    if not pickles.looks_like_pickle(folder.path(file)):
        raise LayoutMismatch(f"{file} is not a pickle")
    outer = _as_dict(folder.pickle(file))
    if outer is None:
        raise LayoutMismatch(f"{file} has none of the keys {', '.join(sorted(_KNOWN_KEYS))}")
    return outer


def _find_file(path: Path) -> tuple[Path, list[Finding]]:
    """The checkpoint file at, or below, a path."""
    extra_data = path.parent / f"{path.name}.extra_data"  # `.` and `/` have no name
    if path.is_file():
        return path, []
    if extra_data.is_file():  # what save() returned in Ray 0.5 was not a file
        return extra_data, []
    if (path.parent / f"{path.name}{_METADATA_ENDING}").is_file():  # the file itself is lost
        return path, []
    if not path.is_dir():
        raise LayoutMismatch("there is no such file or folder")
    folders = [path] if find_files(path) else [path, *_find_trial_folders(path)]
    files = [file for folder in folders for file in find_files(folder)]
    lost = [file for d in folders if not find_files(d) and (file := _find_by_metadata(d))]
    if not files and lost:
        return lost[-1], []
    if not files:
        raise LayoutMismatch("no file `checkpoint-N`, in it or in a folder `checkpoint_N` below it")
    if len(files) == 1:
        return files[0], [_lost_finding(path, lost, files[0])] if lost else []
    note = Finding.warning(
        "several-checkpoints",
        Verdict.NOTE,
        files[-1].relative_to(path).as_posix(),
        f"the last of {len(files)} checkpoints was taken, of {_join_names(files)}",
        "give the path of another one to read that; --recursive converts all",
    )
    return files[-1], [note, *([_lost_finding(path, lost, files[-1])] if lost else [])]


def _lost_finding(path: Path, lost: list[Path], taken: Path) -> Finding:
    """What is said of checkpoints of a trial that have nothing but their metadata."""
    where = lost[-1].relative_to(path).as_posix()
    message = f"its metadata is there, and the file itself is not; {taken.name} was taken"
    hint = "copy the checkpoint again, with all its files"
    return Finding.warning("missing", Verdict.ABSENT, where, message, hint)


def _join_names(files: list[Path]) -> str:
    names = [file.name for file in files]
    return ", ".join([*names[:2], "…", *names[-2:]] if len(names) > _NAMED else names)


def _find_by_metadata(folder: Path) -> Path | None:
    """Where the file was whose metadata is all that is left."""
    names = [path.name for path in folder.iterdir() if path.suffix == _METADATA_ENDING]
    if (folder / "rllib_checkpoint.json").exists():  # a later layout's, which Tune knew as well
        return None
    if names:
        return folder / names[0].removesuffix(_METADATA_ENDING)
    numbered = _FOLDER_NUMBER.fullmatch(folder.resolve().name)
    if numbered and (folder / _METADATA_ENDING).is_file():
        return folder / f"checkpoint-{int(numbered[1])}"
    return None


def find_files(folder: Path) -> list[Path]:
    """The checkpoint files in a folder, oldest first; a renamed one is known by its content."""
    files = [file for file in sorted(folder.iterdir()) if file.is_file()]
    if numbered := find_numbered(file.name for file in files):
        return [folder / name for name in numbered]
    renamed = (f for f in files if f.suffix == "" and not _SIDE_FILES.search(f.name))
    return [file for file in renamed if _is_checkpoint(file)]


def find_numbered(names: Iterable[str]) -> list[str]:
    """The checkpoint files among the sorted names of a folder, oldest first."""
    numbered: dict[int, str] = {}
    for name in names:
        if match := _FILE.fullmatch(name):
            numbered.setdefault(int(match[1]), name)  # what lies beside it is a part of it
    return [numbered[number] for number in sorted(numbered)]


def _is_checkpoint(file: Path) -> bool:
    """Whether a file begins as a pickle of a trainer's state does."""
    if not pickles.looks_like_pickle(file):
        return False
    with open_regular(file) as opened:
        head = opened.read(_HEAD)
    return any(key.encode() in head for key in _KNOWN_KEYS)


def _find_trial_folders(folder: Path) -> Iterator[Path]:
    found = [d for d in folder.iterdir() if d.is_dir() and _TRIAL_FOLDER.fullmatch(d.name)]
    yield from sorted(found, key=lambda d: (len(d.name), d.name))


def _as_dict(outer: object) -> dict[str, Any] | None:
    """The file's content as a dict; the lists of Ray 0.5 get the keys that Ray 0.6 gave them."""
    if isinstance(outer, Mapping):
        known = with_text_keys(outer)
        return known if _KNOWN_KEYS & known.keys() else None
    if isinstance(outer, list) and outer:
        if isinstance(outer[0], (bytes, bytearray, memoryview)):
            # [worker, [remote workers], optimizer, num_target_updates, last_target_update_ts]
            names = ("local_state", "remote_state", "optimizer", "num_target_updates")
            return dict(zip((*names, "last_target_update_ts"), outer, strict=False))
        if isinstance(outer[0], np.ndarray):  # ES and ARS
            keys = ("weights", "episodes_so_far", "timesteps_so_far")
            return dict(zip(keys, outer, strict=False))
    return None


def _guess_ray(outer: Mapping[str, Any]) -> str | None:
    """The Ray that a file is from, by its keys; metadata has it only from Ray 0.8.0 on."""
    for key, ray in _WORKER_KEYS.items():
        if key in outer and ray:
            return ray
    if "timesteps_so_far" in outer:  # ES and ARS; from Ray 0.6 on, they kept their filter instead
        return "0.5"
    return "0.7" if "optimizer" in outer else None


def read_iteration(file: Path, budget: Budget) -> int | None:
    """The iteration of a checkpoint by what lies beside its file, and by its name."""
    return _iteration_of(_read_metadata(Folder(file.parent, budget, []), file))


def _iteration_of(metadata: Mapping[str, Any]) -> int | None:
    last = as_mapping(metadata.get("last_result"))
    return _first_integer(metadata.get("iteration"), last.get("training_iteration"))


def _read_metadata(folder: Folder, file: Path) -> dict[str, Any]:
    stem, found = file.name.removesuffix(".extra_data"), dict[str, Any]()
    for side_file in (stem + _METADATA_ENDING, _METADATA_ENDING):
        content = folder.try_side_file(side_file)
        if isinstance(content, list):
            content = dict(zip(_METADATA_FIELDS, content, strict=False))
        if isinstance(content, Mapping):
            found = with_text_keys(content)
            break
    if number := _FILE.fullmatch(file.name):  # what `Trainer._save` called it
        found.setdefault("iteration", int(number[1]))
    return found


def _read_worker(
    outer: dict[str, Any], folder: Folder, file: str
) -> tuple[dict[str, PolicyState], dict[str, Any]]:
    """Reads the policies with their filters and specs, and which agent and learner they have.

    What else the worker held goes into `outer`.
    """
    key = next((k for k in _WORKER_KEYS if k in outer), None)
    if key is None:  # ES and ARS: one vector, one filter
        stored = outer.pop("filter", None)
        policy = PolicyState(
            PolicyId("default_policy"),
            outer.pop("weights"),
            observation_filter=stored if isinstance(stored, ObservationFilter) else None,
        )
        return {policy.policy_id: policy}, {}
    where = f"{file} → {key}"
    worker = folder.nested(outer.pop(key), where)
    if not isinstance(worker, Mapping) or not isinstance(worker.get("state"), Mapping):
        raise CorruptCheckpointError("The worker's state has no policies.", where=where)
    rest = with_text_keys(worker)
    states = rest.pop("state")
    ids = folder.policy_ids(states, where)
    policies: dict[str, PolicyState] = {}
    for found, state in states.items():
        policy_id = ids[found]
        place = f"{where} → state → {policy_id}"
        policy = read_policy_state(policy_id, folder.nested(state, place), place, folder.findings)
        policies[policy_id] = replace(policy, found_as=ids.found_as(policy_id))
    policies = with_filters(policies, ids, rest.pop("filters", None))
    for found, spec in as_mapping(rest.pop("policy_specs", None)).items():
        if (known := ids.get(found)) is not None:
            policies[known] = with_spec(
                policies[known], spec, f"{where} → policy_specs", folder.findings
            )
    mapping = {name: rest.pop(name, None) for name in ("policy_mapping_fn", "is_policy_to_train")}
    outer.update(rest)
    return policies, mapping


def _read_counters(
    outer: dict[str, Any], metadata: Mapping[str, Any], policies: Iterable[PolicyState]
) -> Counters:
    execution = with_text_keys(outer.pop("train_exec_impl", None))
    raw = with_text_keys(execution.pop("counters", None))
    if execution:  # the last losses, coefficients and times
        outer["train_exec_impl"] = execution
    last = as_mapping(metadata.get("last_result"))
    optimizer = outer.get("optimizer")
    # `PolicyOptimizer.save()`, up to Ray 0.8.5
    if not (isinstance(optimizer, list) and len(optimizer) == 2):
        optimizer = [None, None]
    trained, sampled = optimizer
    return Counters(
        iteration=_iteration_of(metadata),
        env_steps=_first_integer(
            raw.get("num_env_steps_sampled"),
            raw.get("num_steps_sampled"),
            metadata.get("timesteps_total"),
            last.get("num_env_steps_sampled"),
            last.get("timesteps_total"),
            sampled,
            *(policy.global_timestep for policy in policies),
        ),
        agent_steps=_first_integer(
            raw.get("num_agent_steps_sampled"), last.get("num_agent_steps_sampled")
        ),
        trained_steps=_first_integer(
            raw.get("num_env_steps_trained"),
            raw.get("num_steps_trained"),
            last.get("num_env_steps_trained"),
            trained,
        ),
        episodes=_first_integer(metadata.get("episodes_total"), outer.get("episodes_so_far")),
        seconds=number(metadata.get("time_total")),
        raw=raw,
    )


def _read_config(
    metadata: Mapping[str, Any], outer: dict[str, Any], folder: Folder
) -> tuple[dict[str, Any], bool]:
    """The config of params, the worker (2.0) or the last result (1.13), and if it has defaults."""
    given = read_params(folder)
    of_worker, of_result = outer.pop("policy_config", None), metadata.get("last_result")
    complete = config_dict(of_worker, "policy_config", folder.findings) or config_dict(
        as_mapping(of_result).get("config"), "last_result → config", folder.findings
    )
    return (complete, True) if complete and not given else (given, False)


def _first_integer(*values: object) -> int | None:
    """The first that is an integer; Ray left out or zeroed what it did not count."""
    numbers = [n for value in values if (n := integer(value)) is not None]
    return next((n for n in numbers if n), numbers[0] if numbers else None)
