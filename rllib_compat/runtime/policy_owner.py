"""The interface of a trainer for its policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import Learner


class PolicyOwner(Protocol):
    """The trainer of policies; policies of an env runner in another process have none."""

    @property
    def logdir(self) -> str:
        """The folder of the trainer's files."""

    def with_learners(self, policy: Any) -> Any:
        """Returns a policy that uses the learners."""

    def add_policy(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a policy to learners and workers."""

    def remove_policy(self, *args: Any, **kwargs: Any) -> None:
        """Removes a policy from learners and workers."""

    def local_learner(self) -> Learner | None:
        """Returns the learner, if it is in this process."""

    def config_of(self, policy_id: str) -> Mapping[str, Any]:
        """Returns the legacy config of a policy."""

    def callbacks(self) -> Any:
        """Returns the user's callbacks object."""

    def timestep(self) -> int:
        """Returns the number of environment steps that were sampled so far."""

    def get_weights(self, policies: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """Returns the learners' weights, by policy and name."""

    def set_weights(self, weights: Mapping[str, Mapping[str, Any]]) -> None:
        """Sets weights in learners and workers."""

    def refresh(self) -> None:
        """Sets the newest weights in the env runner of this process."""

    def weights_changed(self) -> None:
        """Notes that the learner's weights have changed."""
