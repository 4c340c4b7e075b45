"""Replay buffers of algorithms that train several policies: one for each, as in the old Rays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.utils.checkpoints import Checkpointable

from rllib_compat.algorithms.replay import TransitionReplay
from rllib_compat.algorithms.ring import Array

#: Which policies learn: their ids, or a function of an id and a batch; None: all.
ToTrain = Collection[str] | Callable[..., bool] | None


class PolicyReplay(Checkpointable):  # type: ignore[misc]  # Ray has no types
    """Keeps the last transitions of each policy, whichever of its agents made them.

    Each is drawn from by itself (`replay_mode="independent"`, the default of the old Rays, and all
    that today's buffers know).

    Args:
        default: What `TransitionReplay` takes, for a policy that comes later.
        of_policies: The same for each policy that is there.
    """

    def __init__(
        self, default: Mapping[str, Any], of_policies: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._default, self._of_policies = dict(default), dict(of_policies)
        self._kept: dict[str, TransitionReplay] = {}

    def __len__(self) -> int:
        """How many transitions all of them hold."""
        return sum(map(len, self._kept.values()))

    def of(self, policy_id: str) -> TransitionReplay:
        """The buffer of a policy."""
        if policy_id not in self._kept:
            settings = self._of_policies.get(policy_id, self._default)
            self._kept[policy_id] = TransitionReplay(**settings)
        return self._kept[policy_id]

    def add(self, episodes: Iterable[Any], to_train: ToTrain) -> None:
        """Keeps what episodes of several agents, or chunks of them, complete.

        Args:
            episodes: The episodes.
            to_train: Which policies learn. What others did is not kept: nobody would draw it.
        """
        for episode in episodes:
            for part in episode.agent_episodes.values():
                policy_id = part.module_id or DEFAULT_MODULE_ID
                if learns(policy_id, to_train):
                    self.of(policy_id).add([part])

    def sample(self, count: int, beta: float, to_train: ToTrain) -> dict[str, dict[str, Any]]:
        """Draws so many transitions for each policy that learns, and remembers which.

        Args:
            count: How many.
            beta: How far their weights make up for their priorities.
            to_train: Which policies learn.

        Returns:
            Policy → its train batch; without those that have done nothing yet.
        """
        return {
            policy_id: kept.sample(count, beta)
            for policy_id, kept in self._kept.items()
            if len(kept) and learns(policy_id, to_train)
        }

    def prioritize(self, errors: Mapping[str, Array]) -> None:
        """Gives what was drawn last other priorities: what the learner was wrong by."""
        for policy_id, wrong_by in errors.items():
            self._kept[policy_id].prioritize(wrong_by)

    def get_state(self, *_: Any, **__: Any) -> dict[str, Any]:
        """What all of them hold, for a checkpoint."""
        return {policy_id: kept.get_state() for policy_id, kept in self._kept.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Holds what another one held.

        Raises:
            ConfigError: The other one had another capacity.
        """
        self._kept.clear()
        for policy_id, kept in state.items():
            self.of(policy_id).set_state(kept)

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that made it."""
        return (self._default, self._of_policies), {}


def learns(policy_id: str, to_train: ToTrain) -> bool:
    """Whether a policy is one of those that learn."""
    if to_train is None:
        return True
    return bool(to_train(policy_id, None)) if callable(to_train) else policy_id in to_train
