"""What an LSTM or an attention net sits on: a base model, and what else goes in beside it.

RLlib's wrappers (`use_lstm`, `use_attention`) put a base model below them: a trunk without its own
head. What comes out of it, and the previous actions and rewards where the config asks for them,
goes into the recurrent part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.named import Named
from rllib_compat.networks.network import AnyNetwork, Network
from rllib_compat.networks.trunks.dense import Trunk
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import (
    Box,
    DictSpace,
    Discrete,
    MultiDiscrete,
    Space,
    TupleSpace,
    box,
)

#: The inputs of a graph beside `obs`: flattened actions as they were taken, oldest first, and
#: rewards. Both are zero before the first step.
PREVIOUS_ACTIONS, PREVIOUS_REWARDS = "prev_actions", "prev_rewards"

#: The layer that observations of the environment alone go into, where the step before goes past it.
_FIRST_LAYER = ".tokenizer.net.mlp.0.weight"

#: What a model config says of the step before: whether an LSTM sees its action, and its reward.
LOOKING_BACK = ("lstm_use_prev_action", "lstm_use_prev_reward")


@frozen
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

    def described(self) -> list[str]:
        """What there is of each, for tables."""
        counts = ((self.actions, "action"), (self.rewards, "reward"))
        return [f"{n} previous {what}{'s' if n > 1 else ''}" for n, what in counts if n]

    def add(self, build: Builder, features: str, prefix: str = "") -> str:
        """Puts them behind the features, actions first; names of steps begin with the prefix."""
        takes = [features]
        if self.actions:
            actions = PREVIOUS_ACTIONS
            if any(self.parts):
                parts = list(self.parts) * self.actions
                actions = build.add("one_hot", f"{prefix}previous_actions", actions, parts=parts)
            takes.append(actions)
        if self.rewards:
            takes.append(PREVIOUS_REWARDS)
        return build.add("concat", f"{prefix}with_previous", *takes) if takes[1:] else features


def previous(named: Named, actions: int, rewards: int, size: int, *, raw_first: bool) -> Previous:
    """How previous actions and rewards were fed.

    Ray up to 1.1 fed the number of a discrete action, later Rays made it one-hot; how many numbers
    the kernel takes decides which.

    `size` is how many numbers the kernel takes beside the features. With `raw_first`, the number is
    meant where both would fit (`Discrete(1)`).
    """
    choices: tuple[int, ...] = ()
    if actions:
        if named.policy.action_space is None:
            raise refusals.needed(
                "The network takes previous actions; the action space is needed to know them.",
                "action",
                named.where,
            )
        choices = choices_of(named.policy.action_space)
    options = [Previous(actions, rewards, (0,) * len(choices)), Previous(actions, rewards, choices)]
    for option in options if raw_first else reversed(options):
        if option.size == size:
            return option
    raise refusals.other_config(
        "numbers beside its features",
        size,
        f"{actions} previous actions and {rewards} previous rewards, which are {options[1].size}",
        named.where,
    )


def requested_steps(policy: PolicyState, model: Mapping[str, Any]) -> tuple[int, int]:
    """How many previous actions and rewards an LSTM is to see; a module says it itself."""
    if policy.is_module:
        model = {**policy.config.get("model", {}), **policy.extra.get("module_config", {})}
    action, reward = (int(bool(model.get(key))) for key in LOOKING_BACK)
    return action, reward


def with_own_observations(policy: PolicyState) -> PolicyState:
    """The policy with the space of what the environment gives.

    A module of the new API stack that sees the step before observes both as one vector.
    """
    space, actions, weights = policy.observation_space, policy.action_space, policy.weights
    if not policy.is_module or not isinstance(space, Box) or actions is None:
        return policy
    before = Previous(*requested_steps(policy, {}), choices_of(actions)).size
    own = space.flat_size() - before
    arrays = weights.items() if before and isinstance(weights, dict) else ()
    takes = {np.shape(array)[-1] for name, array in arrays if name.endswith(_FIRST_LAYER)}
    if own not in takes:  # Ray's own modules may be asked for the step before, and do not look
        return policy
    return replace(policy, observation_space=box(-np.inf, np.inf, (own,)))


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
    networks: Mapping[str, AnyNetwork], policies: Mapping[str, PolicyState]
) -> tuple[int, int]:
    """How many previous actions and rewards networks take.

    Raises:
        NotYetError: Some of the networks take others than the rest: one connector feeds them all.
    """
    found = set()
    for policy_id, network in networks.items():
        inputs = network.graph.inputs if isinstance(network, Network) else {}
        space = policies[policy_id].action_space
        size = len(choices_of(space)) if space is not None else 0
        (actions,) = inputs.get(PREVIOUS_ACTIONS, (0,))
        (rewards,) = inputs.get(PREVIOUS_REWARDS, (0,))
        found.add((actions // max(size, 1), rewards))
    if len(found) > 1:
        raise refusals.not_yet(
            "policies that take different numbers of previous actions and rewards "
            f"({', '.join(map(str, sorted(found)))})",
            "policies.*.model",
        )
    return found.pop() if found else (0, 0)


def choices_in(space: object) -> tuple[int, ...]:
    """The same of a space of gymnasium; nothing where it is none that is known."""
    read = spaces.from_object(space)
    return choices_of(read) if read is not None else ()


@frozen
class Core:
    """The part of a graph that a head sits on: a base model, and what is wrapped around it.

    Attributes:
        value: The name of what it gives.
        features: The name of the trunk's features.
        inputs: The graph's inputs so far.
        previous: Which previous actions and rewards go in.
        states: The graph's states, in the order of that Ray's lists.
    """

    value: str
    features: str
    inputs: Mapping[str, tuple[int, ...]]
    previous: Previous
    states: Mapping[str, str] = field(default_factory=dict)

    def wrapped(self, value: str, states: Mapping[str, str], shape: tuple[int, ...]) -> Core:
        """The same below a wrapper that gives `value`, and has states of one shape."""
        inputs = {**self.inputs, **dict.fromkeys(states, shape)}
        return replace(self, value=value, inputs=inputs, states=states)


def add_base(
    build: Builder,
    named: Named,
    trunk: Trunk,
    layer: str,
    actions: int,
    rewards: int,
    *,
    raw_first: bool = False,
) -> Core:
    """Adds a trunk, and previous actions and rewards (see `previous`).

    The number of inputs of `layer`, which takes all of it, shows what goes in.
    """
    kernel = named.arrays[f"{layer}.kernel"]
    # A trunk of several parts holds its size against the rows that take its features.
    space = named.policy.action_space
    choices = choices_of(space) if actions and space is not None else ()
    behind = kernel[: len(kernel) - Previous(actions, rewards, choices).size]
    shape = trunk.inputs(named)
    features = trunk.add(build, named.having({"logits.kernel": behind}))
    graph = Graph({"obs": shape}, tuple(build.steps), {"features": features})
    where = f"the {trunk.kind} network"
    made = graph.evaluate(named.arrays, graph.zeros(), where=where)["features"]
    size = len(kernel) - int(made.shape[-1])
    before = previous(named, actions, rewards, size, raw_first=raw_first)
    inputs = {"obs": shape, **before.inputs()}
    return Core(before.add(build, features), features, inputs, before)
