"""An algorithm that a checkpoint was loaded as, for a trainer around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.formats.layouts import v2
from rllib_compat.formats.layouts.folder import Folder
from rllib_compat.formats.manifest import require_whole
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import algorithms, releases
from rllib_compat.runtime.policy_mapping import MappingFn
from rllib_compat.trainer import coefficients
from rllib_compat.trainer.defaults import defaults_of, merge
from rllib_compat.trainer.load import load
from rllib_compat.trainer.workers import ToTrain

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

#: What a legacy config has below `multiagent`, and today's on the top level.
_AGENTS = ("policies", "policy_mapping_fn", "policies_to_train", "count_steps_by")


@frozen
class LoadedAlgorithm:
    """An algorithm that is there already, and what it is told of its agents.

    Attributes:
        algorithm: The algorithm.
        mapping: Which policy an agent has; None for what it was.
        to_train: Which policies learn; None for those that did.
    """

    algorithm: Algorithm
    mapping: MappingFn | None
    to_train: ToTrain

    @classmethod
    def from_checkpoint(
        cls, path: Path, policy_mapping_fn: Callable[..., str] | None, policies_to_train: ToTrain
    ) -> LoadedAlgorithm:
        """Loads a checkpoint: one of today's Ray as it is, one of an old Ray converted.

        Raises:
            CheckpointError: It is not whole, or can't be converted.
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
    """Whether a Ray has written a checkpoint that today's Ray loads."""
    try:
        told = json.loads((path / "rllib_checkpoint.json").read_text("utf-8"))
        return Version(told["ray_version"]) >= releases.OLDEST
    except (OSError, ValueError, KeyError, TypeError):
        return False
