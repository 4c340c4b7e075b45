"""Loads a checkpoint of any Ray as an `Algorithm` of the installed Ray that can be trained."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.formats.layouts import v2
from rllib_compat.formats.layouts.folder import Folder
from rllib_compat.formats.manifest import require_whole
from rllib_compat.neutral.errors import MissingInformationError, NotYetError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import algorithms, releases, tune
from rllib_compat.runtime.policy_mapping import MappingFn
from rllib_compat.trainer import coefficients
from rllib_compat.trainer.defaults import defaults_of, merge
from rllib_compat.trainer.result_files import UnifiedLogger
from rllib_compat.trainer.workers import ToTrain

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

    from rllib_compat.conversion.convert import Conversion
    from rllib_compat.conversion.given import Given

logger = logging.getLogger(__name__)


def load(
    path: str | Path,
    *,
    env: str | type | Callable[..., Any] | None = None,
    policy_mapping_fn: Callable[..., str] | None = None,
    policies_to_train: Collection[str] | Callable[..., bool] | None = None,
    algorithm: str | None = None,
    config: Mapping[str, Any] | str | Path | None = None,
    observation_space: object = None,
    action_space: object = None,
    model: str | type | Mapping[str, Any] | None = None,
    given: Given | None = None,
    **overrides: object,
) -> Algorithm:
    """Loads a checkpoint of any Ray, converted or not, ready to train.

    This package reads the checkpoint itself, proves the conversion, and writes new files for Ray;
    nothing in it is executed. The caller passes what was code in the old config: the environment,
    the mapping of agents to policies, callbacks.

    Args:
        path: The checkpoint.
        env: The environment: a registered name, a class, or a function of the env config.
        policy_mapping_fn: Which policy an agent has, as a function of any era's signature.
        policies_to_train: Ids of the policies to train, or a function; all that were, by default.
        algorithm: The algorithm that was trained, where the checkpoint does not say.
        config: The trainer's config, likewise, or a file of it; `{}` for its defaults.
        observation_space: The environment's observations, likewise: a space of gymnasium or gym, or
            text like `Box(4,)`.
        action_space: The environment's actions, likewise.
        model: The RLModule that takes the weights of a custom model, or `module:Class`; likewise of
            a checkpoint that was converted with it, since no name from a file is imported. A
            dict is the key of the config.
        given: What else the checkpoint does not contain, as for `convert`.
        **overrides: Other keys of the config, of any era: `num_workers=2`, `callbacks=…`.

    Returns:
        The algorithm, where the old one stopped; its results are logged in its `logdir`. The caller
        stops it.

    Raises:
        CheckpointError: The checkpoint can't be read or converted.
        NotYetError: It can act, but nothing in the installed Ray trains it.
        MissingInformationError: It learns from recorded steps, and there are none.
    """
    from rllib_compat.conversion.convert import convert
    from rllib_compat.conversion.given import Given

    agents = {"policy_mapping_fn": policy_mapping_fn, "policies_to_train": policies_to_train}
    keys: dict[str, Any] = dict(overrides)
    if isinstance(model, Mapping):
        keys["model"] = model
    if new := {name: value for name, value in agents.items() if value is not None}:
        keys["multiagent"] = {**keys.get("multiagent", {}), **new}
    module = None if isinstance(model, Mapping) else model
    facts = algorithm, config, env, observation_space, action_space, module
    given = (given or Given()).with_arguments(*facts)
    given = replace(given, overrides={**given.overrides, **keys})
    with tempfile.TemporaryDirectory(prefix="rllib-compat-") as folder:
        target = Path(folder) / "converted"
        done = convert(path, target, given=given)
        if not done.trains_on:
            raise NotYetError(
                f"It can act, but can't be trained yet: {done.plan.reason}.",
                where=str(path),
                fix=_instead(done),
            )
        _require_recordings(done, path)
        done.report.warn(logger)
        loaded = algorithms.load_algorithm(target)
    _log_results(loaded)
    return loaded


def _log_results(algorithm: Algorithm) -> None:
    """Makes an algorithm write `result.json` and `progress.csv` into its folder, as until Ray 2.6.

    In later Rays, only Tune writes them.
    """
    logger = UnifiedLogger(algorithm.config.to_dict(), tune.folder_of(algorithm))
    end = algorithm.cleanup

    def cleanup() -> None:
        logger.close()
        end()

    algorithm.log_result, algorithm.cleanup = logger.on_result, cleanup


def _instead(done: Conversion) -> str:
    """What to do with a checkpoint that can only be converted to modules."""
    if done.checkpoint.modules_alone:
        return "Load the checkpoint that they were made from."
    return "`rllib-compat convert` makes modules of it: RLModule.from_checkpoint(…)."


def _require_recordings(done: Conversion, path: str | Path) -> None:
    """Checks that an algorithm that learns from recorded steps only has some.

    Ray itself raises an AttributeError about a NoneType, and only in `train()`.

    Raises:
        MissingInformationError: It has none.
    """
    algorithm = registry.of(done.checkpoint.algorithm)
    if not algorithm.offline:
        return
    translation = done.translation
    offline_data = translation.calls.get("offline_data", {}) if translation else {}
    if not offline_data.get("input_"):
        raise MissingInformationError(
            f"{algorithm.name} learns from recorded steps, and the checkpoint's config names none "
            "that are here.",
            where=str(path),
            fix='Give them: rllib_compat.load(OLD, input="/path/to/recordings"); old JSON files '
            "will do.",
        )


#: Keys of `multiagent` in a legacy config; an `AlgorithmConfig` has them on the top level.
_AGENTS = ("policies", "policy_mapping_fn", "policies_to_train", "count_steps_by")


@frozen
class LoadedAlgorithm:
    """A loaded algorithm, and new settings of its agents.

    Attributes:
        algorithm: The algorithm.
        mapping: Which policy an agent has; None keeps the mapping.
        to_train: Which policies learn; None keeps them.
    """

    algorithm: Algorithm
    mapping: MappingFn | None
    to_train: ToTrain

    @classmethod
    def from_checkpoint(
        cls, path: Path, policy_mapping_fn: Callable[..., str] | None, policies_to_train: ToTrain
    ) -> LoadedAlgorithm:
        """Loads a checkpoint: one of the installed Ray as it is, one of an old Ray converted.

        Raises:
            CheckpointError: It is incomplete, or can't be converted.
        """
        if _is_todays(path):
            require_whole(path)
            if missing := v2.missing_states(Folder(path), {}, {}):
                raise missing[0]
            algorithm = algorithms.load_algorithm(path)
            coefficients.restore(algorithm, coefficients.load(path))
        else:
            algorithm = load(
                path, policy_mapping_fn=policy_mapping_fn, policies_to_train=policies_to_train
            )
            del algorithm.log_result  # the trainer has a logger of its own
        mapping = None if policy_mapping_fn is None else MappingFn(policy_mapping_fn)
        return cls(algorithm, mapping, policies_to_train)

    @property
    def name(self) -> str:
        """The algorithm's legacy name."""
        return registry.find(type(self.algorithm).__name__).name

    @property
    def legacy_config(self) -> dict[str, Any]:
        """Its config by the legacy keys, with the defaults of the algorithm."""
        todays, defaults = self.algorithm.config.to_dict(), defaults_of(self.name)
        known = {
            "multiagent": {key: todays[key] for key in _AGENTS},
            "num_workers": todays["num_env_runners"],
        }
        return merge(defaults, {k: v for k, v in todays.items() if k in defaults} | known)


def _is_todays(path: Path) -> bool:
    """Whether the installed Ray can load a checkpoint as it is."""
    try:
        metadata = json.loads((path / "rllib_checkpoint.json").read_text("utf-8"))
        return Version(metadata["ray_version"]) >= releases.OLDEST
    except (OSError, ValueError, KeyError, TypeError):
        return False
