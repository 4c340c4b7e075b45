"""Resumes experiments of old Rays: `tune.run(resume=…)` and `Tuner.restore(FOLDER)`.

Ray resumes from an experiment's state file. For an experiment of an old Ray, a new state file
replaces the old one: each trial with its config, results and last checkpoint. The old one and other
files of that Ray (searchers, callbacks, its `Tuner`: pickles that Ray would load) are moved into a
subfolder.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ray

from rllib_compat.config.era import AUTO
from rllib_compat.formats import layouts
from rllib_compat.formats.atomic import atomic_file
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import tune
from rllib_compat.trainer.classes import keep_era
from rllib_compat.trainer.trainer import Trainer
from rllib_compat.trials.experiments import ASIDE, OldTrial, read_experiment

logger = logging.getLogger(__name__)

#: An old value of `resume` → the one of the installed Ray.
RESUME = {"LOCAL": True, "REMOTE": True, "PROMPT": "AUTO", "ERRORED_ONLY": "AUTO+ERRORED_ONLY"}
#: The pattern of the old Ray's own files that are pickles.
_PICKLES = re.compile(r".+\.pkl|.+[-_]states?-.+\.json")
#: The pattern of code in `params.json`.
_CODE = re.compile(r"<.+>|functools\.partial\(.*", re.DOTALL)


def prepare_resume(folder: Path, trainable: Any, given: Mapping[str, Any]) -> Any:
    """Converts an experiment of an old Ray so that Ray can resume it; others are not changed.

    Args:
        folder: The experiment's folder.
        trainable: The trainable of its trials.
        given: The arguments of `run`: `config` has the code that the trials' files lack, `stop`
            applies if the experiment had a function.

    Returns:
        The trainable; a trainer of an old experiment has the defaults of the Ray that wrote it.

    Raises:
        ConfigError: A trial's config contained code that `config` lacks, or needs more resources
            than there are.
        CorruptCheckpointError: A file is damaged.
    """
    if not folder.is_dir():
        return trainable
    old, is_old = read_experiment(folder)
    warn_of_lost_progress(old)
    if not is_old:
        return trainable
    trainable = _with_era(trainable, old)
    if not ray.is_initialized():
        ray.init()  # errors about resources come before Ray restores: after one, it starts from 0
    caller = given.get("config") or {}
    stop = given.get("stop")
    trials = []
    for one in old:
        config = with_code(one.config, caller)
        if lost := sorted(_code_in(config)):
            raise ConfigError(
                f"The config of trial {one.trial_id} contained code in {', '.join(lost)}, which "
                "the experiment's files do not have.",
                where=str(folder),
                fix="pass the same config again: tune.run(…, config=CONFIG, resume=True)",
            )
        one.config = config
        one.stop = one.stop or (dict(stop) if isinstance(stop, Mapping) else {})
        if not one.stop and stop is None and one.status != "TERMINATED":
            logger.warning(
                "Trial %s trains until you stop it: the experiment's files have no stop criterion "
                "(a function is not saved). Pass it: tune.run(…, stop=STOP, resume=True).",
                one.trial_id,
            )
        trials.append(tune.unfinished_trial(one, folder, trainable, given))
    (folder / ASIDE).mkdir(exist_ok=True)
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    states = [path for path in files if path.name.startswith("experiment_state")]
    _move_aside(path for path in files if path not in states and _PICKLES.fullmatch(path.name))
    tune.share_driver_folder(trials)
    name, state = tune.experiment_state_of(trials)
    with atomic_file(folder / name) as file:
        file.write(state.encode())
    _move_aside(states)
    logger.info("%s was written by an old Ray: it continues from its last checkpoints.", folder)
    return trainable


def warn_of_lost_progress(trials: Iterable[OldTrial]) -> None:
    """Names the trials that have results, but nothing to continue from."""
    for one in trials:
        if one.results and not one.checkpoints and one.status != "TERMINATED":
            logger.warning("Trial %s starts from zero: it has no checkpoint.", one.trial_id)


def _with_era(trainable: Any, trials: Iterable[OldTrial]) -> Any:
    """A trainer class with the defaults of the Ray of the trials' last checkpoint."""
    saved = [path for one in trials for path in one.checkpoints.values()]
    is_name = isinstance(trainable, str) and tune.is_registered_trainable(trainable)
    kind = ray.tune.registry.get_trainable_cls(trainable) if is_name else trainable
    is_trainer = isinstance(kind, type) and issubclass(kind, Trainer)
    if not saved or not is_trainer or kind.legacy_ray != AUTO:
        return trainable
    return keep_era(kind, layouts.read(saved[-1], Budget()).source.ray_version)


def _move_aside(files: Iterable[Path]) -> None:
    for file in files:
        file.rename(file.parent / ASIDE / file.name)


def with_code(found: object, caller: object) -> Any:
    """Replaces the text of code in a trial's config with the caller's code."""
    if isinstance(found, dict):
        given = caller if isinstance(caller, Mapping) else {}
        return {key: with_code(value, given.get(key)) for key, value in found.items()}
    same = isinstance(found, str) and str(caller) == found  # such as a space
    return caller if caller is not None and (same or _is_code(found)) else found


def _is_code(value: object) -> bool:
    return isinstance(value, str) and _CODE.fullmatch(value) is not None


def _code_in(value: object, path: str = "$") -> Iterator[str]:
    if _is_code(value):
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _code_in(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _code_in(inner, f"{path}[{number}]")
