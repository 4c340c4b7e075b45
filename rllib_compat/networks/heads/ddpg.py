"""Reads the networks of DDPG, TD3 and APEX_DDPG.

What they are (`agents/ddpg/*`, 0.5 – 1.x; `algorithms/ddpg/*`, 2.x): a policy that gives one
action, squashed into the environment's range, and a critic of observation and action, or two.
Today's Ray has no such algorithm; they become `rllib_compat.networks.modules.deterministic`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rllib_compat.networks import stacks
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import to_canonical
from rllib_compat.networks.named import Named
from rllib_compat.networks.names import ddpg as names
from rllib_compat.networks.network import Network, Reading, own_module
from rllib_compat.networks.settings import ModelSettings, require_inputs
from rllib_compat.networks.stacks import CRITIC, POLICY, STATE, TWIN
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box

#: What is added to a layer's variance: tf.contrib, keras, torch.
_EPSILON = {"scoped": 1e-12, "keras": 1e-3, "torch": 1e-5}

#: `DEFAULT_CONFIG`: 64 and 64 until Ray 0.6, then these.
_HIDDENS = [400, 300]


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the networks of a policy.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: The range of the actions has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    where = f"policies.{policy.policy_id}.weights"
    named = _named(policy, settings, where)
    scheme, table, unused = names.find_table(list(named))
    constants, rest = _take_constants({k: v for k, v in named.items() if k not in unused})
    arrays, left = to_canonical(table, rest)
    if left or f"{CRITIC}.out.kernel" not in arrays:
        raise NotYetError(
            f"Not yet: {len(left)} of the {len(named)} arrays belong to no "
            f"{settings.algorithm} network that is known, for example "
            f"{left[0] if left else 'none'!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    _compare(arrays, policy, settings, where)
    # Ray 0.5 and 0.6 took the sigmoid itself, later ones that of twice the number (a tanh).
    factor = 1.0 if any(name.startswith("p_func/") for name in named) else 2.0
    squash = _range(constants, policy, scheme, where)
    graph = _graph(arrays, policy, settings, scheme, squash and {**squash, "factor": factor})
    network = Network(
        kind="deterministic policy",
        summary=_summary(arrays, settings),
        scheme=scheme if isinstance(policy.weights, dict) else "list",
        graph=graph,
        arrays=arrays,
        target=own_module("rllib_compat.modules:DeterministicModule", graph, arrays),
        names=table,
        unused=tuple(unused),
    )
    return Reading(network, tuple(_missing_twin(arrays, settings, where)))


def _named(policy: PolicyState, settings: ModelSettings, where: str) -> dict[str, Array]:
    weights = policy.weights
    if isinstance(weights, dict):
        scope = "default/" if any(k.startswith("default/") for k in weights) else None
        scope = scope or f"{policy.old_id}/"
        return {k.removeprefix(scope).removesuffix(":0"): np.asarray(v) for k, v in weights.items()}
    given = names.keras_names(
        settings.config.get("actor_hiddens", _HIDDENS),
        settings.config.get("critic_hiddens", _HIDDENS),
        twin=_twin(settings),
    )
    if not isinstance(weights, list) or len(weights) != len(given):
        raise NotYetError(
            f"Not yet: unnamed arrays of {settings.algorithm} that are not the {len(given)} of "
            "a policy and critics of dense layers.",
            where=where,
            fix="Check that the config belongs to this checkpoint; `--to msgpack` keeps them.",
        )
    return dict(zip(given, map(np.asarray, weights), strict=True))


def _twin(settings: ModelSettings) -> bool:
    return bool(settings.config.get("twin_q", settings.algorithm == "TD3"))


def _take_constants(named: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Splits off the range of the actions, which torch's policies registered."""
    matches = {name: names.CONSTANTS.fullmatch(name) for name in named}
    constants = {m["name"]: named[name] for name, m in matches.items() if m}
    return constants, {name: named[name] for name, m in matches.items() if not m}


def _range(
    constants: Mapping[str, Array], policy: PolicyState, scheme: str, where: str
) -> dict[str, Any] | None:
    """What actions are squashed into: the lowest, and the size of the range; None: they are not.

    Raises:
        MissingInformationError: It is not stored, and the action space does not tell it.
    """
    if names.LOW in constants and names.RANGE in constants:
        low, size = np.ravel(constants[names.LOW]), np.ravel(constants[names.RANGE])
    elif isinstance(policy.action_space, Box):
        space = policy.action_space
        low = np.ravel(space.low).astype(np.float32)
        size = np.ravel(space.high).astype(np.float32) - low
    else:
        raise MissingInformationError(
            "The range of the actions is needed: the policy squashed them into it.",
            where=where,
            fix="Give --action-space 'Box(-2, 2, (1,))' or --env Pendulum-v1 (Python: "
            "action_space=, env=).",
        )
    bounded = np.isfinite(low) & np.isfinite(size)
    if not bounded.any() and scheme != "scoped":
        return None  # since Ray 0.8.6
    if not bounded.all():
        raise MissingInformationError(
            f"The bounds of the actions are needed: {policy.action_space} has none.",
            where=where,
            fix="Give them with --action-space 'Box(-2, 2, (1,))'.",
        )
    return {"low": low.astype(float).tolist(), "range": size.astype(float).tolist()}


def _compare(
    arrays: Mapping[str, Array], policy: PolicyState, settings: ModelSettings, where: str
) -> None:
    """Holds the arrays against the config and the observation space.

    Raises:
        CheckpointError: They contradict each other.
    """
    for stack, key in ((POLICY, "actor_hiddens"), (CRITIC, "critic_hiddens")):
        told, have = settings.config.get(key), stacks.sizes(arrays, stack)
        if told is not None and tuple(told) != have:
            raise CheckpointError(
                f"The weights of {stack} have hidden layers {list(have)}, the config says "
                f"{key}={list(told)}: the config is not this checkpoint's.",
                where=where,
                fix="Give the right config with --config, or check --policy names.",
            )
    taken = math.prod(_inputs(arrays, policy, settings))
    require_inputs(policy.observation_space, taken, where)


def _inputs(
    arrays: Mapping[str, Array], policy: PolicyState, settings: ModelSettings
) -> tuple[int, ...]:
    if _has_images(arrays):
        return require_image(policy, settings)
    for stack in (STATE, f"{POLICY}_{STATE}"):
        if stacks.sizes(arrays, stack):
            return (stacks.inputs(arrays, stack),)
    if f"{POLICY}.out.kernel" in arrays:
        return (stacks.inputs(arrays, POLICY),)
    # TensorFlow without hidden layers: the observation itself is squashed.
    return (stacks.inputs(arrays, CRITIC) // 2,)


def _has_images(arrays: Mapping[str, Array]) -> bool:
    return f"{STATE}.conv.0.kernel" in arrays


@dataclass
class _Features:
    """Adds what policy and critics take of an observation, a model once for both or for each."""

    build: Builder
    arrays: Mapping[str, Array]
    policy: PolicyState
    settings: ModelSettings
    scheme: str
    made: dict[str, str] = field(default_factory=dict)

    def of(self, owner: str) -> str:
        """The name of what a stack takes."""
        own = f"{owner}_{STATE}"
        stack = own if stacks.sizes(self.arrays, own) else STATE
        if stack not in self.made:
            self.made[stack] = self._add(stack)
        return self.made[stack]

    def _add(self, stack: str) -> str:
        if _has_images(self.arrays):
            named = Named(self.policy, self.settings, self.arrays, self.scheme)
            return VISION.add(self.build, named, f"{stack}.")
        activation = self.settings.activation
        return stacks.add_hidden(self.build, self.arrays, stack, "obs", activation)


def _graph(
    arrays: Mapping[str, Array],
    policy: PolicyState,
    settings: ModelSettings,
    scheme: str,
    squash: Mapping[str, Any] | None,
) -> Graph:
    build = Builder()
    features = _Features(build, arrays, policy, settings, scheme)
    activation = str(settings.config.get("actor_hidden_activation", "relu"))
    actions = _add_policy(build, arrays, features.of(POLICY), activation, scheme)
    if squash is not None:
        actions = build.add("squash", "squashed", actions, **squash)
    activation = str(settings.config.get("critic_hidden_activation", "relu"))
    critics = stacks.add_critics(build, arrays, features.of(CRITIC), activation, of_actions=True)
    inputs = _inputs(arrays, policy, settings)
    has_policy = f"{POLICY}.out.kernel" in arrays
    size = stacks.outputs(arrays, POLICY) if has_policy else inputs[0]
    outputs = {"actions": actions, "action_dist_inputs": actions, **critics}
    return Graph({"obs": inputs, "actions": (size,)}, tuple(build.steps), outputs)


def _add_policy(
    build: Builder, arrays: Mapping[str, Array], takes: str, activation: str, scheme: str
) -> str:
    """Adds the policy's layers; with parameter noise, each is normalized."""
    if f"{POLICY}.out.kernel" not in arrays:
        return takes
    if f"{POLICY}.norm.0.gamma" not in arrays:
        hidden = stacks.add_hidden(build, arrays, POLICY, takes, activation)
        return build.add("dense", f"{POLICY}.out", hidden)
    # tf.contrib normalized what goes into the activation, the others what comes out of it.
    before = scheme == "scoped"
    for i in range(len(stacks.sizes(arrays, POLICY))):
        dense = None if before else activation
        takes = build.add("dense", f"{POLICY}.hidden.{i}", takes, activation=dense)
        takes = build.add("layer_norm", f"{POLICY}.norm.{i}", takes, epsilon=_EPSILON[scheme])
        if before:
            takes = build.add("activate", f"{POLICY}.active.{i}", takes, activation=activation)
    return build.add("dense", f"{POLICY}.out", takes)


def _summary(arrays: Mapping[str, Array], settings: ModelSettings) -> str:
    """One line for tables: `ddpg 3-32-16-1, critic 4-24-24-1`."""
    critics = "twin critics" if f"{TWIN}.out.kernel" in arrays else "critic"
    policy = f" {stacks.describe(arrays, POLICY)}" if f"{POLICY}.out.kernel" in arrays else ""
    return f"{settings.algorithm.lower()}{policy}, {critics} {stacks.describe(arrays, CRITIC)}"


def _missing_twin(
    arrays: Mapping[str, Array], settings: ModelSettings, where: str
) -> list[Finding]:
    """Ray 0.6 – 0.8.0 forgot the second critic when it saved."""
    if not _twin(settings) or f"{TWIN}.out.kernel" in arrays:
        return []
    message = "the twin critic is not in the checkpoint: that Ray did not save it"
    return [Finding("network", Severity.WARNING, Verdict.ABSENT, where, message)]
