"""`Algorithm.from_checkpoint` of Ray 2.1 – 2.9: a trainer out of a checkpoint alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.config import translate
from rllib_compat.ray_versions import algorithms, metrics, releases, tune
from rllib_compat.runtime.callbacks import CallbackAdapter
from rllib_compat.runtime.envs import find_creator
from rllib_compat.runtime.policy_mapping import MappingFn
from rllib_compat.trainer import coefficients
from rllib_compat.trainer.defaults import defaults_of, merge
from rllib_compat.trainer.load import load

if TYPE_CHECKING:
    from rllib_compat.trainer.trainer import Trainer


class _Loaded:
    """What differs in a trainer around an algorithm that is there already.

    Attributes:
        loaded: The algorithm.
    """

    loaded: ClassVar[Any]
    _asked: dict[str, Any]
    _adapters: Callable[[], list[CallbackAdapter]]

    def setup(self, config: dict[str, Any]) -> None:
        """Takes the algorithm as it is."""
        self.algorithm = self.loaded
        name = registry.find(type(self.algorithm).__name__).name
        self._asked["algorithm"] = name
        self.raw_user_config, self._own_policy = config, None
        todays = self.algorithm.config.to_dict()
        agents = ("policies", "policy_mapping_fn", "policies_to_train", "count_steps_by")
        known = {"multiagent": {key: todays[key] for key in agents}}
        known["num_workers"] = todays["num_env_runners"]
        defaults = defaults_of(name)
        self.config = merge(defaults, {k: v for k, v in todays.items() if k in defaults} | known)
        self.translation = translate(config, algorithm=name)
        metrics.mark_steps_as_counted(self.algorithm)
        for callbacks in self._adapters():
            callbacks.adopt(self)

    @property
    def env_creator(self) -> Callable[..., Any] | None:
        """What makes the environment from an env context."""
        return find_creator(self.algorithm.config.env)


class Loading:
    """How a trainer is made of a checkpoint."""

    @classmethod
    def from_checkpoint(
        cls,
        path: Any,
        policy_ids: Collection[str] | None = None,
        policy_mapping_fn: Callable[..., str] | None = None,
        policies_to_train: Any = None,
    ) -> Trainer:
        """A trainer that goes on where a checkpoint was saved.

        A checkpoint of today's Ray brings its config and environment along, and Ray unpickles them;
        one of an old Ray is converted, and nothing in it is run.

        Args:
            path: The checkpoint: its path, or what Tune has instead.
            policy_ids: Which policies to take; None for all.
            policy_mapping_fn: Which policy an agent has; None for what it was.
            policies_to_train: Which policies learn; None for those that did.
        """
        if not isinstance(path, (str, Path)):
            with getattr(path, "checkpoint", path).as_directory() as folder:
                return cls.from_checkpoint(folder, policy_ids, policy_mapping_fn, policies_to_train)
        place = Path(path).expanduser()
        if _is_todays(place):
            algorithm: Any = algorithms.load_algorithm(place)
            coefficients.take(algorithm, coefficients.saved(place))
        else:
            algorithm = load(
                place, policy_mapping_fn=policy_mapping_fn, policies_to_train=policies_to_train
            )
        made = type(
            cls.__name__, (_Loaded, cls), {"loaded": algorithm, "__module__": cls.__module__}
        )
        trainer: Trainer = made()
        tune.mark_restored(trainer, iteration=algorithm.iteration)
        if policy_mapping_fn is not None or policies_to_train is not None:
            mapping = None if policy_mapping_fn is None else MappingFn(policy_mapping_fn)
            trainer.tell_workers(mapping, policies_to_train)
        if policy_ids is not None:
            for policy in set(trainer.workers.local_worker().policy_map) - set(policy_ids):
                trainer.remove_policy(policy)
        return trainer


def _is_todays(place: Path) -> bool:
    """Whether a Ray has written a checkpoint that today's Ray loads."""
    try:
        told = json.loads((place / "rllib_checkpoint.json").read_text("utf-8"))
        return Version(told["ray_version"]) >= releases.OLDEST
    except (OSError, ValueError, KeyError, TypeError):
        return False
