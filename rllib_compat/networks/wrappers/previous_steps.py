"""What an LSTM or an attention net was wrapped around, and what else it took.

RLlib's wrappers (`use_lstm`, `use_attention`) put a base model below them: a trunk of dense layers
or convolutions without its own head. What comes out of it, and the previous actions and rewards
where the config asks for them, goes into the recurrent part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.network import Network
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import COMPLEX, is_complex
from rllib_compat.networks.trunks.dense import FULLY_CONNECTED, Trunk
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.neutral.spaces import Box, DictSpace, Discrete, MultiDiscrete, Space, TupleSpace

#: The inputs of a graph beside `obs`: flattened actions as they were taken, oldest first, and
#: rewards. Both are zero before the first step.
PREVIOUS_ACTIONS, PREVIOUS_REWARDS = "prev_actions", "prev_rewards"

_CONVOLUTION = re.compile(r"(^|[/._])_?conv", re.I)


def trunk_of(names: Iterable[str], policy: PolicyState | None = None) -> Trunk:
    """The base model that weights with these names have, for a policy's observations."""
    names = list(names)
    if policy is not None and is_complex(policy, names):
        return COMPLEX
    return VISION if any(_CONVOLUTION.search(name) for name in names) else FULLY_CONNECTED


def add_trunk(
    build: Builder,
    trunk: Trunk,
    arrays: Mapping[str, Array],
    policy: PolicyState,
    settings: ModelSettings,
    behind: Array,
) -> str:
    """Adds a trunk's steps, and returns the name of its features.

    Args:
        build: Collects the steps.
        trunk: The trunk.
        arrays: The canonical arrays of the whole network.
        policy: Whose network it is.
        settings: What the config says of it.
        behind: The rows that take the features, of the kernel behind the trunk: a trunk of several
            parts holds its size against them.
    """
    own = {**arrays, "logits.kernel": behind} if trunk is COMPLEX else arrays
    return trunk.add(build, own, policy, settings, "")


@dataclass(frozen=True)
class Previous:
    """Which previous actions and rewards a network takes.

    Attributes:
        actions: How many actions.
        rewards: How many rewards.
        parts: For each number of one flattened action how many choices it had, where it is taken
            as one-hot; 0 where it is taken as it is.
    """

    actions: int = 0
    rewards: int = 0
    parts: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many numbers the network sees of them."""
        return self.actions * sum(n or 1 for n in self.parts) + self.rewards

    def inputs(self) -> dict[str, tuple[int, ...]]:
        """The inputs of the graph that they are."""
        shapes: dict[str, tuple[int, ...]] = {}
        if self.actions:
            shapes[PREVIOUS_ACTIONS] = (self.actions * len(self.parts),)
        if self.rewards:
            shapes[PREVIOUS_REWARDS] = (self.rewards,)
        return shapes

    def add(self, build: Builder, features: str) -> str:
        """Puts them behind the features, actions first."""
        takes = [features]
        if self.actions:
            actions = PREVIOUS_ACTIONS
            if any(self.parts):
                parts = list(self.parts) * self.actions
                actions = build.add("one_hot", "previous_actions", actions, parts=parts)
            takes.append(actions)
        if self.rewards:
            takes.append(PREVIOUS_REWARDS)
        return build.add("concat", "with_previous", *takes) if len(takes) > 1 else features


def previous(
    policy: PolicyState, actions: int, rewards: int, size: int, *, raw_first: bool, where: str
) -> Previous:
    """How previous actions and rewards were fed.

    Ray up to 1.1 fed the number of a discrete action, later Rays made it one-hot; how many numbers
    the kernel takes tells which.

    Args:
        policy: The policy, with its action space where actions are fed.
        actions: How many previous actions the config asks for.
        rewards: How many previous rewards.
        size: How many numbers the kernel takes beside the features.
        raw_first: Whether the number is meant where both would fit (`Discrete(1)`).
        where: The place, for errors.

    Raises:
        MissingInformationError: The action space has to be given.
        CheckpointError: The kernel takes neither.
    """
    choices: tuple[int, ...] = ()
    if actions:
        if policy.action_space is None:
            raise MissingInformationError(
                "The network takes previous actions; the action space is needed to know them.",
                where=where,
                fix="Give --action-space 'Discrete(2)' or --env CartPole-v1.",
            )
        choices = choices_of(policy.action_space)
    options = [Previous(actions, rewards, (0,) * len(choices)), Previous(actions, rewards, choices)]
    for option in options if raw_first else reversed(options):
        if option.size == size:
            return option
    raise CheckpointError(
        f"The network takes {size} numbers beside its features; the config asks for {actions} "
        f"previous actions and {rewards} previous rewards, which are {options[1].size}.",
        where=where,
        fix="Give the right config with --config, or the right --action-space.",
    )


def one_hot_size(policy: PolicyState, actions: int, rewards: int) -> int:
    """How many numbers previous actions and rewards are where actions are one-hot."""
    space = policy.action_space
    parts = choices_of(space) if actions and space is not None else ()
    return Previous(actions, rewards, parts).size


def choices_of(space: Space) -> tuple[int, ...]:
    """For each number of a flattened action how many choices it has; 0: it is no choice."""
    if isinstance(space, Discrete):
        return (space.n,)
    if isinstance(space, MultiDiscrete):
        return tuple(space.nvec)
    if isinstance(space, TupleSpace):
        return tuple(n for part in space.spaces for n in choices_of(part))
    if isinstance(space, DictSpace):
        # `tree.flatten` takes a dict's parts by their sorted keys.
        return tuple(n for _, part in sorted(space.spaces.items()) for n in choices_of(part))
    return (0,) * (space.flat_size() if isinstance(space, Box) else 0)


def previous_steps(
    networks: Mapping[str, Network], policies: Mapping[str, PolicyState]
) -> tuple[int, int]:
    """How many previous actions and rewards networks take.

    Raises:
        NotYetError: Some of the networks take others than the rest: one connector feeds them all.
    """
    found = set()
    for policy_id, network in networks.items():
        inputs, space = network.graph.inputs, policies[policy_id].action_space
        size = len(choices_of(space)) if space is not None else 0
        (actions,) = inputs.get(PREVIOUS_ACTIONS, (0,))
        (rewards,) = inputs.get(PREVIOUS_REWARDS, (0,))
        found.add((actions // max(size, 1), rewards))
    if len(found) > 1:
        raise NotYetError(
            "Not yet: policies that take different numbers of previous actions and rewards "
            f"({', '.join(map(str, sorted(found)))}).",
            where="policies.*.model",
            fix="`--to msgpack` keeps all weights.",
        )
    return found.pop() if found else (0, 0)


def observation_shape(
    trunk: Trunk, arrays: Mapping[str, Array], policy: PolicyState, settings: ModelSettings
) -> tuple[int, ...]:
    """The shape of the observation that a trunk takes, also where it has no layer.

    Raises:
        MissingInformationError: The trunk has no layer, and the space is not known.
    """
    if trunk is not FULLY_CONNECTED or "hidden.0.kernel" in arrays:
        return trunk.inputs(arrays, policy, settings)
    if policy.observation_space is None:
        raise MissingInformationError(
            "The network has no hidden layers; its observation space has to be given.",
            where=f"policies.{policy.policy_id}.observation_space",
            fix="Give --observation-space 'Box(4,)' or --env CartPole-v1.",
        )
    return (policy.observation_space.flat_size() or 0,)


def size_of_features(
    build: Builder, arrays: Mapping[str, Array], shape: tuple[int, ...], features: str
) -> int:
    """How many numbers a trunk gives, found by computing it once."""
    graph = Graph({"obs": shape}, tuple(build.steps), {"features": features})
    zeros = {"obs": np.zeros((1, *shape))}
    return int(graph.evaluate(arrays, zeros, where="the wrapped model")["features"].shape[-1])
