"""Modules with their critics, and learners, in env runners, whose own modules only act.

Workers of old had whole policies: their samples had the critic's values, their weights were those
of all layers, and they computed gradients. What is called by hand in a worker brings a reference to
the learners' weights along; it is followed where a critic is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from rllib_compat.ray_versions.modules import copy_with_critics, names_acted_with

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner, Learner, RLModule

#: Env runners of this process → their learners. Ray pickles none of both.
_LEARNERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def local_learner(env_runner: EnvRunner) -> Any:
    """The learner of an env runner, in its process; it is made when it is first asked for."""
    if env_runner not in _LEARNERS:
        config = env_runner.config.copy(copy_frozen=False)
        config.learners(num_learners=0, num_gpus_per_learner=config.num_gpus_per_env_runner)
        _LEARNERS[env_runner] = config.build_learner(spaces=env_runner.get_spaces())
    return _LEARNERS[env_runner]


class WholeModules:
    """What an env runner's modules lack: by policy, the weights of the layers that do not act.

    Args:
        env_runner: The env runner.
    """

    def __init__(self, env_runner: EnvRunner) -> None:
        self._env_runner = env_runner
        self._learned: list[Any] = []
        self._others: dict[str, dict[str, Any]] = {}
        self._copies: dict[str, RLModule] = {}

    def follow(self, learned: list[Any]) -> None:
        """Takes critics from other weights of the learners, from now on.

        Args:
            learned: A reference to weights by policy and name; in a list, so that Ray leaves it.
        """
        if learned != self._learned:
            self._learned, self._others = learned, {}

    def weights(self, policy_id: str, acting: RLModule) -> dict[str, Any]:
        """All weights of a policy: those that its module acts with, and the others."""
        if policy_id not in self._others:
            self._set_others(policy_id, acting, self._learned_by(policy_id))
        return {**acting.get_state(), **self._others[policy_id]}

    def set_weights(self, policy_id: str, acting: RLModule, weights: Mapping[str, Any]) -> None:
        """Sets the weights of a policy; others are those of the learners, until they change."""
        acting.set_state(dict(weights))
        self._set_others(policy_id, acting, weights)

    def module(self, policy_id: str, acting: RLModule) -> RLModule:
        """A copy of a module that has its critic, too; the module, if no learner is known."""
        weights = self.weights(policy_id, acting)
        if not self._others[policy_id]:
            return acting
        found = self._copies.get(policy_id)
        if found is None or type(found) is not type(acting):
            found = self._copies[policy_id] = copy_with_critics(acting)
        found.set_state(weights)
        return found

    def learner(self, policy_id: str, acting: RLModule) -> Learner:
        """A learner in this process, whose module of this policy has its weights."""
        found: Learner = local_learner(self._env_runner)
        found.module[policy_id].unwrapped().set_state(self.weights(policy_id, acting))
        return found

    def take_learned(self, policy_id: str, acting: RLModule) -> None:
        """Gives a policy the weights that its learner in this process has now."""
        learned = local_learner(self._env_runner).module[policy_id].unwrapped()
        self.set_weights(policy_id, acting, learned.get_state())

    def _learned_by(self, policy_id: str) -> Mapping[str, Any]:
        import ray

        weights: dict[str, Any] = ray.get(self._learned[0]) if self._learned else {}
        return dict(weights.get(policy_id, {}))

    def _set_others(self, policy_id: str, acting: RLModule, weights: Mapping[str, Any]) -> None:
        sent = names_acted_with(acting)
        # Arrays in Ray's store can't be changed, and stay there as long as somebody has them.
        self._others[policy_id] = {n: np.array(w) for n, w in weights.items() if n not in sent}
