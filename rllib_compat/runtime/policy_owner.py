"""What policies, and maps of them, ask their trainer for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import Learner


class PolicyOwner(Protocol):
    """What a trainer knows of its policies; a policy of an env runner alone has none."""

    @property
    def logdir(self) -> str:
        """The folder of the trainer's files."""

    def with_learners(self, policy: Any) -> Any:
        """The same policy, which reaches the learners."""

    def add_policy(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a policy to learners and workers."""

    def remove_policy(self, *args: Any, **kwargs: Any) -> None:
        """Removes a policy from learners and workers."""

    def local_learner(self) -> Learner | None:
        """The learner, where it is in this process."""

    def config_of(self, policy_id: str) -> Mapping[str, Any]:
        """The legacy config of a policy."""

    def callbacks(self) -> Any:
        """The user's callbacks object."""

    def timestep(self) -> int:
        """How many steps of the environment were sampled so far."""

    def get_weights(self, policies: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """Weights of the learners, by policy and name."""

    def set_weights(self, weights: Mapping[str, Mapping[str, Any]]) -> None:
        """Sets weights in learners and workers."""

    def refresh(self) -> None:
        """Gives the env runner of this process the weights that were trained last."""

    def weights_changed(self) -> None:
        """Says that the learner has other weights now."""
