"""The parts of a Dict or Tuple observation, and where each lies in the flat vector.

RLlib flattened such observations part by part in the order of the space
(`DictFlatteningPreprocessor`, `TupleFlatteningPreprocessor`). Networks for complex observations cut
the vector again, and numbered its parts in the order of `tree.flatten`: of a Dict by the sorted
names (`ray/rllib/utils/spaces/space_utils.py`, `flatten_space`).
"""

from __future__ import annotations

from collections.abc import Iterator

from rllib_compat.networks import refusals
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Box, DictSpace, Space, TupleSpace


@frozen
class Component:
    """One part of an observation.

    Attributes:
        space: What it is.
        start: Where it begins in the flat vector.
    """

    space: Space
    start: int

    @property
    def size(self) -> int:
        """How many numbers of the flat vector it is."""
        return self.space.flat_size()

    @property
    def image(self) -> tuple[int, ...] | None:
        """Its shape if it is an image."""
        if isinstance(self.space, Box) and len(self.space.shape) == 3:
            return self.space.shape
        return None


def original_space(space: Space | None) -> Space | None:
    """A space as the environment had it, before a preprocessor flattened it."""
    return space if space is None or space.original_space is None else space.original_space


def require_components(policy: PolicyState) -> list[Component]:
    """The parts of a policy's observations as its network numbers them.

    Raises:
        MissingInformationError: The observation space has to be given.
    """
    space = original_space(policy.observation_space)
    if space is None:
        raise refusals.needed(
            "The network takes observations of several parts; the observation space is needed to "
            "tell them apart.",
            "parts",
            f"policies.{policy.policy_id}.observation_space",
        )
    return parts_of(space)


def parts_of(space: Space | None) -> list[Component]:
    """The parts of a space as networks number them; one for a space without parts."""
    if space is None:
        return []
    return [part for _, part in sorted(_parts(space, 0), key=lambda found: found[0])]


def _parts(space: Space, start: int) -> Iterator[tuple[tuple[int | str, ...], Component]]:
    """Every part with its path; paths sort as `tree.flatten` does."""
    if isinstance(space, DictSpace):
        ranks = {key: i for i, key in enumerate(sorted(space.spaces))}
        inner = [((ranks[key],), part) for key, part in space.spaces.items()]
    elif isinstance(space, TupleSpace):
        inner = [((i,), part) for i, part in enumerate(space.spaces)]
    else:
        yield (), Component(space, start)
        return
    for rank, part in inner:
        for path, component in _parts(part, start):
            yield (*rank, *path), component
        start += part.flat_size()
