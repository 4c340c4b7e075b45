"""Experiments of old Rays go on: `tune.run(resume=…)` and `Tuner.restore(FOLDER)`.

Ray resumes from the state that it keeps of an experiment. For one that an old Ray left, such a
state takes the old one's place: each trial with its config, results and last checkpoint. The old
one, whose name may be of a later hour elsewhere, and what that Ray kept of the whole (searchers,
callbacks, its `Tuner`: pickles that Ray would load) are moved into a folder below.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rllib_compat.formats.atomic import atomic_file
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import tune
from rllib_compat.trials.experiments import read_old_experiment

logger = logging.getLogger(__name__)

#: What `resume` could be → what says the same today.
RESUME = {"LOCAL": True, "REMOTE": True, "PROMPT": "AUTO", "ERRORED_ONLY": "AUTO+ERRORED_ONLY"}
#: Where the old Ray's own files go, and which of them are pickles.
ASIDE = "of_old_ray"
_PICKLES = re.compile(r".+\.pkl|.+[-_]states?-.+\.json")
#: What was code, as `params.json` has it.
_CODE = re.compile(r"<.+>|functools\.partial\(.*", re.DOTALL)


def take_up(folder: Path, trainable: object, given: Mapping[str, Any]) -> None:
    """Lets Ray resume an experiment that an old Ray left; another one stays as it is.

    Args:
        folder: The experiment's folder.
        trainable: What its trials run.
        given: The arguments of `run`: `config` has the code that the trials' files can't hold,
            `stop` counts where the experiment had a function.

    Raises:
        ConfigError: A trial's config had code that `config` does not have.
        CorruptCheckpointError: A file is damaged.
    """
    if not folder.is_dir() or (old := read_old_experiment(folder)) is None:
        return
    caller = given.get("config") or {}
    stop = given.get("stop")
    trials = []
    for one in old:
        config = with_code(one.config, caller)
        if lost := sorted(_code_in(config)):
            raise ConfigError(
                f"The config of the trial {one.trial_id} had code in {', '.join(lost)}; it is not "
                "run from the experiment's files.",
                where=str(folder),
                fix="Give the same config again: tune.run(…, config=CONFIG, resume=True).",
            )
        if one.results and not one.checkpoints and one.status != "TERMINATED":
            logger.warning("Trial %s starts from zero: it has no checkpoint.", one.trial_id)
        one.config = config
        one.stop = one.stop or (dict(stop) if isinstance(stop, Mapping) else {})
        if not one.stop and stop is None and one.status != "TERMINATED":
            logger.warning(
                "Trial %s trains until you stop it: the experiment's files have no condition (a "
                "function is not run from them). Pass it: tune.run(…, stop=STOP, resume=True).",
                one.trial_id,
            )
        trials.append(tune.unfinished_trial(one, folder, trainable, given))
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    states = [path for path in files if path.name.startswith("experiment_state")]
    _move_aside(path for path in files if path not in states and _PICKLES.fullmatch(path.name))
    tune.share_driver_folder(trials)
    name, state = tune.experiment_state_of(trials)
    with atomic_file(folder / name) as file:
        file.write(state.encode())
    _move_aside(states)
    logger.info("%s was written by an old Ray: it continues from its last checkpoints.", folder)


def _move_aside(files: Iterable[Path]) -> None:
    for file in files:
        (file.parent / ASIDE).mkdir(exist_ok=True)
        file.rename(file.parent / ASIDE / file.name)


def with_code(found: Any, caller: Any) -> Any:
    """A trial's config with the caller's code in the place of its text; all else is the trial's."""
    if isinstance(found, dict):
        given = caller if isinstance(caller, Mapping) else {}
        return {key: with_code(value, given.get(key)) for key, value in found.items()}
    same = isinstance(found, str) and str(caller) == found  # a space, an object that prints itself
    return caller if caller is not None and (same or _is_code(found)) else found


def _is_code(value: object) -> bool:
    return isinstance(value, str) and _CODE.fullmatch(value) is not None


def _code_in(value: Any, path: str = "$") -> Iterator[str]:
    if _is_code(value):
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _code_in(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _code_in(inner, f"{path}[{number}]")
