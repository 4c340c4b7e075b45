"""Critics and learners in env runners, whose own modules only act.

Old workers had complete policies: their samples had the critic's values, their weights were those
of all layers, and they computed gradients. A call in a worker passes a reference to the learners'
weights, which is resolved when a critic is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from rllib_compat.ray_versions.modules import copy_with_critics, names_acted_with

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner, Learner, RLModule

#: Env runners of this process → their learners. Neither is pickled.
_LEARNERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def local_learner(env_runner: EnvRunner) -> Any:
    """Returns the learner of an env runner in its process; it is created on first use."""
    if env_runner not in _LEARNERS:
        config = env_runner.config.copy(copy_frozen=False)
        config.learners(num_learners=0, num_gpus_per_learner=config.num_gpus_per_env_runner)
        _LEARNERS[env_runner] = config.build_learner(spaces=env_runner.get_spaces())
    return _LEARNERS[env_runner]


class CriticModules:
    """The critics of an env runner's policies: the weights of the layers that do not act."""

    def __init__(self, env_runner: EnvRunner) -> None:
        self._env_runner = env_runner
        self._learned: list[Any] = []
        self._others: dict[str, dict[str, Any]] = {}
        self._copies: dict[str, RLModule] = {}

    def set_learned(self, learned: list[Any]) -> None:
        """Sets the learners' weights that critics are taken from.

        Args:
            learned: A list with a reference to weights by policy and name; Ray does not resolve
                references in lists.
        """
        if learned != self._learned:
            self._learned, self._others = learned, {}

    def weights(self, policy_id: str, acting: RLModule) -> dict[str, Any]:
        """Returns all weights of a policy: those of its acting module, and its critic's."""
        if policy_id not in self._others:
            self._set_others(policy_id, acting, self._learned_by(policy_id))
        return {**acting.get_state(), **self._others[policy_id]}

    def set_weights(self, policy_id: str, acting: RLModule, weights: Mapping[str, Any]) -> None:
        """Sets the weights of a policy, until `set_learned` gets other ones."""
        acting.set_state(dict(weights))
        self._set_others(policy_id, acting, weights)

    def module(self, policy_id: str, acting: RLModule) -> RLModule:
        """Returns a copy of a module with its critic, or the module if there are no weights."""
        weights = self.weights(policy_id, acting)
        if not self._others[policy_id]:
            return acting
        found = self._copies.get(policy_id)
        if found is None or type(found) is not type(acting):
            found = self._copies[policy_id] = copy_with_critics(acting)
        found.set_state(weights)
        return found

    def learner(self, policy_id: str, acting: RLModule) -> Learner:
        """Returns the learner of this process, with the weights of this policy."""
        found: Learner = local_learner(self._env_runner)
        found.module[policy_id].unwrapped().set_state(self.weights(policy_id, acting))
        return found

    def update_from_learner(self, policy_id: str, acting: RLModule) -> None:
        """Sets a policy's weights to those of the learner in this process."""
        learned = local_learner(self._env_runner).module[policy_id].unwrapped()
        self.set_weights(policy_id, acting, learned.get_state())

    def _learned_by(self, policy_id: str) -> Mapping[str, Any]:
        import ray

        weights: dict[str, Any] = ray.get(self._learned[0]) if self._learned else {}
        return dict(weights.get(policy_id, {}))

    def _set_others(self, policy_id: str, acting: RLModule, weights: Mapping[str, Any]) -> None:
        sent = names_acted_with(acting)
        # Copies: arrays in Ray's object store are read-only, and stay there while referenced.
        self._others[policy_id] = {n: np.array(w) for n, w in weights.items() if n not in sent}
