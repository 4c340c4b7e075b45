"""Reads the networks of DDPG, TD3 and APEX_DDPG.

What they are (`agents/ddpg/*`, 0.5 – 1.x; `algorithms/ddpg/*`, 2.x): a policy that gives one
action, squashed into the environment's range, a critic of observation and action, or two, and
targets that follow all of them. They become `networks.modules.deterministic`, which the learners of
`rllib_compat.algorithms` train.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.networks import compare, refusals
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads import stacks
from rllib_compat.networks.heads.targets import with_targets
from rllib_compat.networks.named import Named
from rllib_compat.networks.names import ddpg as names
from rllib_compat.networks.names.stacks import CRITIC, POLICY, STATE, TWIN
from rllib_compat.networks.network import Network, Reading, own_module
from rllib_compat.networks.optimizers.groups import ACTOR_AND_CRITIC
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import add_layers
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.neutral.spaces import Box

MODULE = "rllib_compat.modules:DeterministicModule"

#: What is added to a layer's variance: tf.contrib, keras, torch.
_EPSILON = {"scoped": 1e-12, "keras": 1e-3, "list": 1e-3, "torch": 1e-5}


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the networks of a policy.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: The range of the actions has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    named, constants = names.read_named(policy, settings)
    for stack, key in ((POLICY, "actor_hiddens"), (CRITIC, "critic_hiddens")):
        said, found = settings.config.get(key), list(named.sizes(f"{stack}.hidden"))
        if said is not None and list(said) != found:
            raise refusals.other_config(key, found, list(said), named.where)
    compare.require_inputs(named, _inputs(named))
    graph = _graph(named, _range(named, constants))
    arrays, findings = with_targets(named)
    target = own_module(MODULE, graph, arrays)
    network = named.network("deterministic policy", _summary(named), graph, target, arrays)
    network = replace(network, optimizers=ACTOR_AND_CRITIC)
    if names.has_twin(settings) and f"{TWIN}.out" not in named:
        # Ray 0.6 – 0.8.0 forgot the second critic when it saved.
        message = "the twin critic is not in the checkpoint: that Ray did not save it"
        lost = named.note(message, severity=Severity.WARNING, verdict=Verdict.ABSENT)
        return named.reading(network, *findings, lost)
    return named.reading(network, *findings)


#: How many features `use_state_preprocessor` made ("arbitrary", said `build_ddpg_models`).
_FEATURES = 256


def fresh(config: Mapping[str, Any], inputs: int, actions: Box) -> Network:
    """The network that a config asks for, with arrays of zeros.

    It is read from arrays that are named and shaped as torch's policy of Ray 1.13 had them
    (`agents/ddpg/ddpg_torch_model.py`).

    Args:
        config: `actor_hiddens`, `critic_hiddens`, their activations, `twin_q`; and, with
            `use_state_preprocessor`, `fcnet_hiddens` and `fcnet_activation`.
        inputs: How many numbers an observation has.
        actions: The action space.

    Raises:
        MissingInformationError: Some dimensions of the actions have bounds, and some have none.
    """
    model = {k: config[k] for k in ("fcnet_hiddens", "fcnet_activation") if k in config}
    shapes: dict[str, tuple[int, ...]] = {}
    features = inputs
    if config.get("use_state_preprocessor"):
        hiddens = [*list(model.get("fcnet_hiddens", [256, 256]))[:-1], _FEATURES]
        shapes |= _layers("_hidden_layers.", features, hiddens)
        features = hiddens[-1]
    size = actions.flat_size()
    norms = "policy_model.LayerNorm_A_" if config.get("parameter_noise") else ""
    shapes |= _layers(
        "policy_model.action_", features, [*config["actor_hiddens"], size], "out", norms=norms
    )
    for prefix in ("q", "twin_q")[: 2 if config.get("twin_q") else 1]:
        hiddens = [*config["critic_hiddens"], 1]
        last = f"{prefix}_out"
        shapes |= _layers(
            f"{prefix}_model.", features + size, hiddens, last, between=f"{prefix}_hidden_"
        )
    zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    settings = ModelSettings.from_config({**config, "model": model}, {}, algorithm="DDPG")
    return read(PolicyState("new", zeros, action_space=actions), settings).known


def _layers(
    prefix: str,
    takes: int,
    sizes: Sequence[int],
    last: str = "",
    *,
    between: str = "",
    norms: str = "",
) -> dict[str, tuple[int, ...]]:
    """The shapes of a stack's arrays, by torch's names, in torch's order.

    With `last`, that is the last layer's name; with `norms`, norms follow the others.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for index, size in enumerate(sizes):
        is_last = bool(last) and index == len(sizes) - 1
        layer = f"{prefix}{last}" if is_last else f"{prefix}{between}{index}"
        shapes |= {f"{layer}._model.0.weight": (size, takes), f"{layer}._model.0.bias": (size,)}
        if norms and not is_last:
            shapes |= {f"{norms}{index}.{part}": (size,) for part in ("weight", "bias")}
        takes = size
    return shapes


def _range(named: Named, constants: Mapping[str, Array]) -> dict[str, Any] | None:
    """What actions are squashed into: the lowest, and the size of the range; None: they are not.

    Raises:
        MissingInformationError: It is not stored, and the action space does not tell it.
    """
    space = named.policy.action_space
    stored = {names.LOW, names.RANGE} <= constants.keys()
    if stored:
        low, size = np.ravel(constants[names.LOW]), np.ravel(constants[names.RANGE])
    elif isinstance(space, Box):
        low = np.ravel(space.low).astype(np.float32)
        size = np.ravel(space.high).astype(np.float32) - low
    else:
        raise refusals.range_needed(space, named.where)
    bounded = np.isfinite(low) & np.isfinite(size)
    if not stored and isinstance(space, Box) and not space.exact:
        raise refusals.range_needed(space, named.where)
    if not bounded.any() and named.scheme != "scoped":
        return None  # since Ray 0.8.6
    if not bounded.all():
        raise refusals.range_needed(space, named.where)
    # Ray 0.5 and 0.6 took the sigmoid itself, later ones that of twice the number (a tanh).
    first = any(row.theirs.startswith("p_func/") for row in named.table)
    return {
        "low": low.astype(float).tolist(),
        "range": size.astype(float).tolist(),
        "factor": 1.0 if first else 2.0,
    }


def _inputs(named: Named) -> tuple[int, ...]:
    if _has_images(named):
        return require_image(named.policy, named.settings)
    for stack in (STATE, f"{POLICY}_{STATE}", POLICY):
        for first in stacks.layers_of(named, stack)[:1]:
            return (named.takes(first),)
    # TensorFlow without hidden layers: the observation itself is squashed.
    return (named.takes(stacks.layers_of(named, CRITIC)[0]) // 2,)


def _has_images(named: Named) -> bool:
    return f"{STATE}.conv.0" in named


def _graph(named: Named, squash: Mapping[str, Any] | None) -> Graph:
    build = Builder()
    features = _add_features(build, named, POLICY)
    actions = _add_policy(build, named, features)
    if squash is not None:
        actions = build.add("squash", "squashed", actions, **squash)
    if f"{CRITIC}_{STATE}.hidden.0" in named:
        features = _add_features(build, named, CRITIC)
    activation = str(named.settings.config.get("critic_hidden_activation", "relu"))
    critics = stacks.add_critics(build, named, features, activation, of_actions=True)
    inputs = _inputs(named)
    size = named.gives(f"{POLICY}.out") if f"{POLICY}.out" in named else inputs[0]
    outputs = {"actions": actions, "action_dist_inputs": actions, **critics}
    return Graph({"obs": inputs, "actions": (size,)}, tuple(build.steps), outputs)


def _add_features(build: Builder, named: Named, owner: str) -> str:
    """Adds what a stack takes of an observation: a model of its own, or one for all."""
    if _has_images(named):
        return VISION.add(build, named, f"{STATE}.")
    layers = named.layers(f"{owner}_{STATE}.hidden") or named.layers(f"{STATE}.hidden")
    return add_layers(build, named.arrays, layers, "obs", named.settings.activation)


def _add_policy(build: Builder, named: Named, takes: str) -> str:
    """Adds the policy's layers; with parameter noise, each is normalized."""
    activation = str(named.settings.config.get("actor_hidden_activation", "relu"))
    if f"{POLICY}.out" not in named:
        return takes
    if f"{POLICY}.norm.0.gamma" not in named.arrays:
        return stacks.add_stack(build, named, POLICY, takes, activation)
    # tf.contrib normalized what goes into the activation, the others what comes out of it.
    before, epsilon = named.scheme == "scoped", _EPSILON[named.scheme]
    for i, layer in enumerate(named.layers(f"{POLICY}.hidden")):
        takes = build.add("dense", layer, takes, activation=None if before else activation)
        takes = build.add("layer_norm", f"{POLICY}.norm.{i}", takes, epsilon=epsilon)
        if before:
            takes = build.add("activate", f"{POLICY}.active.{i}", takes, activation=activation)
    return build.add("dense", f"{POLICY}.out", takes)


def _summary(named: Named) -> str:
    """One line for tables: `ddpg 3-32-16-1, critic 4-24-24-1`."""
    critics = "twin critics" if f"{TWIN}.out" in named else "critic"
    policy = f" {stacks.describe(named, POLICY)}" if f"{POLICY}.out" in named else ""
    algorithm = named.settings.algorithm.lower()
    return f"{algorithm}{policy}, {critics} {stacks.describe(named, CRITIC)}"
