"""Reads networks with an LSTM (`use_lstm`): RLlib's wrapper around its default models.

Sources: `models/lstm.py` (0.5 – 0.6), `models/tf/lstm_v1.py` (0.7 – 0.8.4),
`models/{tf,torch}/recurrent_net.py` (0.8.6 – 2.x). Ray 0.8.5 ignored `use_lstm` on TensorFlow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads import recurrent_rl_module
from rllib_compat.networks.heads.fcnet import add_hidden
from rllib_compat.networks.mapping import Table, to_canonical
from rllib_compat.networks.names import lstm as names
from rllib_compat.networks.names import unnamed_lstm as recurrent_unnamed
from rllib_compat.networks.names.plain import keep_kl_coefficient, plain_names
from rllib_compat.networks.network import Network, Target, own_module
from rllib_compat.networks.ops.activations import activation
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.complex import COMPLEX, second_names
from rllib_compat.networks.trunks.dense import FULLY_CONNECTED, Trunk
from rllib_compat.networks.wrappers.previous_steps import (
    Previous,
    add_trunk,
    observation_shape,
    one_hot_size,
    previous,
    size_of_features,
    trunk_of,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, NotYetError
from rllib_compat.neutral.report import Finding, Severity, Verdict

KIND = "LSTM"

MODULE = "rllib_compat.modules:ActorCriticModule"
ACTOR_MODULE = "rllib_compat.modules:ActorModule"

#: keras' LSTM of TensorFlow 1 and 2.0 – 2.1 has no `lstm_cell` in its names.
_TENSORFLOW_1 = re.compile(r"lstm(_\d+)?/kernel")


@dataclass(frozen=True)
class Wrapped:
    """The arrays of an LSTM wrapper, found by their names.

    Attributes:
        trunk: What the LSTM was wrapped around.
        scheme: The naming scheme.
        table: Their names in it.
        arrays: The canonical arrays; see `recurrent_names`.
        left: Names that belong to something else (the heads of a Q-network).
        unused: Names that nothing reads.
        gates: What the gates are squashed by: a key of `ops_recurrent.GATES`.
        aliases: Second names of arrays.
    """

    trunk: Trunk
    scheme: str
    table: Table
    arrays: Mapping[str, Array]
    left: tuple[str, ...]
    unused: tuple[str, ...]
    gates: str
    aliases: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many cells the LSTM has."""
        return int(self.arrays["lstm.recurrent_kernel"].shape[0])


@dataclass(frozen=True)
class Core:
    """The recurrent part of a graph: what every head sits on.

    Attributes:
        value: The name of the LSTM's output.
        features: The name of the trunk's.
        inputs: The graph's inputs.
        states: The graph's states, in the order of that Ray's lists.
        previous: Which previous actions and rewards go in.
    """

    value: str
    features: str
    inputs: Mapping[str, tuple[int, ...]]
    states: Mapping[str, str]
    previous: Previous


def read(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the network of an actor-critic algorithm with an LSTM.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A space has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    where = f"policies.{policy.policy_id}.weights"
    plain, scalars = plain_arrays(policy, settings)
    if any(name.startswith("encoder.") for name in plain):
        return recurrent_rl_module.read(plain, policy, settings), []
    wrapped = take(plain, policy)
    if wrapped.left:
        raise NotYetError(
            f"Not yet: {len(wrapped.left)} of the {len(plain)} arrays belong to no LSTM around a "
            f"{wrapped.trunk.kind} network, for example {wrapped.left[0]!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    _compare(wrapped, policy, settings, where)
    build = Builder()
    core = add_lstm(build, wrapped, policy, settings)
    outputs = {"action_dist_inputs": build.add("dense", "logits", core.value)}
    value = _add_value(build, wrapped, core, policy, settings)
    if value is not None:
        outputs["vf_preds"] = build.add("scalar", "vf_preds", value)
    graph = Graph(core.inputs, tuple(build.steps), outputs, core.states)
    keep_kl_coefficient(policy, scalars)
    network = Network(
        kind=KIND,
        summary=_describe(wrapped, core),
        scheme=wrapped.scheme,
        graph=graph,
        arrays=wrapped.arrays,
        target=_target(wrapped, graph, core, settings),
        names=wrapped.table,
        unused=wrapped.unused,
        aliases=wrapped.aliases,
    )
    return network, _findings(wrapped, where)


def plain_arrays(
    policy: PolicyState, settings: ModelSettings
) -> tuple[dict[str, Array], dict[str, float]]:
    """The arrays of a policy with an LSTM by the names of their variables, and the scalars."""
    if isinstance(policy.weights, dict):
        return plain_names(policy)
    if isinstance(policy.weights, list):
        return recurrent_unnamed.name_list(policy.weights, policy, settings), {}
    space = policy.observation_space
    image = len(getattr(space, "shape", ())) == 3
    trunk = trunk_of(["conv1"] if image else [])
    return recurrent_unnamed.name_vector(np.asarray(policy.weights), trunk, policy, settings)


def take(plain: Mapping[str, Array], policy: PolicyState) -> Wrapped:
    """Finds the arrays of an LSTM wrapper.

    Raises:
        CheckpointError: There is no LSTM among them.
    """
    trunk = trunk_of(plain, policy)
    split = names.split_cells(plain)
    scheme = names.scheme_of(split)
    unused = names.dead(trunk, scheme, split)
    table = names.table(trunk, scheme)
    arrays, left = to_canonical(table, {k: v for k, v in split.items() if k not in unused})
    missing = [n for n in ("kernel", "recurrent_kernel", "bias") if f"lstm.{n}" not in arrays]
    if missing:
        where = f"policies.{policy.policy_id}.weights"
        raise CheckpointError(f"The LSTM has no {', '.join(missing)}.", where=where)
    hard = any(_TENSORFLOW_1.fullmatch(name) for name in plain)
    gates = "hard_sigmoid" if hard else "sigmoid"
    aliases = tuple(second_names(plain)) if trunk is COMPLEX else ()
    return Wrapped(trunk, scheme, table, arrays, tuple(left), tuple(unused), gates, aliases)


def add_lstm(
    build: Builder, wrapped: Wrapped, policy: PolicyState, settings: ModelSettings
) -> Core:
    """Adds the trunk, the previous actions and rewards, and the LSTM to a graph."""
    arrays, where = wrapped.arrays, f"policies.{policy.policy_id}.weights"
    shape = observation_shape(wrapped.trunk, arrays, policy, settings)
    actions, rewards, raw_first = _previous_of(settings)
    kernel = arrays["lstm.kernel"]
    behind = kernel[: len(kernel) - one_hot_size(policy, actions, rewards)]
    features = add_trunk(build, wrapped.trunk, arrays, policy, settings, behind)
    size = len(kernel) - size_of_features(build, arrays, shape, features)
    before = previous(policy, actions, rewards, size, raw_first=raw_first, where=where)
    takes = before.add(build, features)
    value = build.add("lstm", "lstm", takes, "h", "c", gates=wrapped.gates)
    # In the order of that Ray's lists of states.
    order = ("c", "h") if wrapped.scheme in ("slim", "layers") else ("h", "c")
    states: dict[str, tuple[int, ...]] = dict.fromkeys(order, (wrapped.size,))
    return Core(
        value,
        features,
        {"obs": shape, **before.inputs(), **states},
        {name: f"lstm.{name}" for name in order},
        before,
    )


def _previous_of(settings: ModelSettings) -> tuple[int, int, bool]:
    """How many previous actions and rewards the config asks for, and whether by Ray 1.1's key."""
    model = settings.model
    both = model.get("lstm_use_prev_action_reward") is True  # -1: Ray's mark of an old key
    actions = both or model.get("lstm_use_prev_action") is True
    rewards = both or model.get("lstm_use_prev_reward") is True
    return int(actions), int(rewards), both


def _add_value(
    build: Builder,
    wrapped: Wrapped,
    core: Core,
    policy: PolicyState,
    settings: ModelSettings,
) -> str | None:
    """Adds the value function: on the LSTM, or a network of its own; PG had none."""
    arrays = wrapped.arrays
    if "value.kernel" in arrays:
        return build.add("dense", "value", core.value)
    if "value_out.kernel" not in arrays:
        return None
    if "value_last.kernel" in arrays:
        hidden = wrapped.trunk.add(build, arrays, policy, settings, "value_")
    else:
        layers = sum(bool(re.fullmatch(r"value_hidden\.\d+\.kernel", name)) for name in arrays)
        takes = core.features if wrapped.scheme == "layers" else "obs"
        hidden = add_hidden(build, "value_hidden", layers, takes, settings.activation)
    return build.add("dense", "value_out", hidden)


def _target(wrapped: Wrapped, graph: Graph, core: Core, settings: ModelSettings) -> Target:
    """Today's default module where it computes and trains the same, else one of ours.

    It does for torch's dense layers: with one bias, as keras has it, its LSTM would learn
    differently, since torch's two biases move both.
    """
    length = int(settings.model.get("max_seq_len", 20))
    layers = sum(name.startswith("hidden.") and name.endswith("kernel") for name in wrapped.arrays)
    sloped = any(name.endswith(".beta") for name in wrapped.arrays)
    if wrapped.trunk is FULLY_CONNECTED and layers and not core.previous.size and not sloped:
        both = {"lstm.recurrent_bias", "value.kernel"}
        if both <= wrapped.arrays.keys():
            return recurrent_rl_module.default_module(
                [len(wrapped.arrays[f"hidden.{i}.bias"]) for i in range(layers)],
                wrapped.size,
                activation(settings.activation, where="model.fcnet_activation").target,
                max_seq_len=length,
                shares_layers=True,
            )
    module = MODULE if "vf_preds" in graph.outputs else ACTOR_MODULE
    return own_module(module, graph, wrapped.arrays, max_seq_len=length)


def _compare(wrapped: Wrapped, policy: PolicyState, settings: ModelSettings, where: str) -> None:
    """Holds the LSTM against the config and the action space."""
    hiddens: list[int] = []
    while (bias := wrapped.arrays.get(f"hidden.{len(hiddens)}.bias")) is not None:
        hiddens.append(len(bias))
    told: list[tuple[str, Any, Any]] = [
        ("lstm_cell_size", settings.model.get("lstm_cell_size"), wrapped.size)
    ]
    if wrapped.trunk is FULLY_CONNECTED and settings.hiddens is not None:
        told.append(("fcnet_hiddens", list(settings.hiddens), hiddens))
    for key, said, found in told:
        if said is not None and said != found:
            raise CheckpointError(
                f"The weights were made with {key} {found}, the config says {said}: the config is "
                "not this checkpoint's.",
                where=where,
                fix="Give the right config with --config, or check --policy names.",
            )
    if "logits.bias" not in wrapped.arrays:
        raise CheckpointError("The last layer of the policy is missing.", where=where)
    outputs = len(wrapped.arrays["logits.bias"])
    wanted = distribution_inputs(policy.action_space) if policy.action_space else None
    if wanted is not None and wanted != outputs:
        raise CheckpointError(
            f"The network has {outputs} outputs, the action space {policy.action_space} needs "
            f"{wanted}.",
            where=where,
            fix="Give the right one with --action-space.",
        )


def _describe(wrapped: Wrapped, core: Core) -> str:
    """One line for tables: `LSTM 16 over fully connected, 2 previous actions`."""
    taken = [
        f"{count} previous {what}{'s' if count > 1 else ''}"
        for count, what in ((core.previous.actions, "action"), (core.previous.rewards, "reward"))
        if count
    ]
    own = ["own value network"] if "value_out.kernel" in wrapped.arrays else []
    hard = [wrapped.gates.replace("_", " ") + " gates"] if wrapped.gates != "sigmoid" else []
    shape = "x".join(map(str, core.inputs["obs"]))
    outputs = len(wrapped.arrays["logits.bias"])
    size = f"LSTM {wrapped.size} over {wrapped.trunk.kind} {shape}, {outputs} outputs"
    return ", ".join([size, *taken, *own, *hard])


def _findings(wrapped: Wrapped, where: str) -> list[Finding]:
    if wrapped.gates == "sigmoid":
        return []
    return [
        Finding(
            "network",
            Severity.INFO,
            Verdict.DERIVED,
            where,
            "the LSTM's gates are taken as keras' of TensorFlow 1, clip(0.2 x + 0.5), since the "
            "weights are named as there",
            "with TensorFlow 2.0 or 2.1, which named them the same, they were a sigmoid",
        )
    ]
