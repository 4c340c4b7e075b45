"""Actor-critics on an LSTM or on attention: a linear layer each for the outputs and the values.

A value function of its own, which had no memory (TensorFlow, Ray 0.5 – 0.8.4, `vf_share_layers`
off), is described in `names.lstm`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from packaging.version import Version

from rllib_compat.networks import compare
from rllib_compat.networks.families import rl_module_lstm
from rllib_compat.networks.families.outputs import actor_critic, own_actor_critic, sequence_length
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.named import Named
from rllib_compat.networks.names import attention as attention_names
from rllib_compat.networks.names import lstm as lstm_names
from rllib_compat.networks.names.actor_critic import trunk_of
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.network import Reading, Target
from rllib_compat.networks.refusals import not_yet
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import COMPLEX, second_names
from rllib_compat.networks.trunks.dense import DENSE, add_layers
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.wrappers import attention, lstm
from rllib_compat.neutral.checkpoint import PolicyState


def read_lstm(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of an actor-critic with an LSTM.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A space has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    plain, state = _plain_of_lstm(policy, settings)
    if any(name.startswith("encoder.") for name in plain):
        return rl_module_lstm.read(plain, policy, settings)
    trunk = trunk_of(plain, policy)
    split = lstm_names.split_cells(plain)
    scheme = lstm_names.scheme_of(split)
    named = Named.take(
        policy,
        settings,
        split,
        scheme,
        lstm_names.table(trunk, scheme),
        of=f"{trunk.kind} network with an LSTM",
        unused=lstm_names.dead(trunk, scheme, split),
        state=state,
        aliases=second_names(plain) if trunk is COMPLEX else (),
    )
    named.require("lstm.recurrent_kernel", "logits.kernel", "logits.bias")
    compare.require_told(named, {"lstm_cell_size": len(named.arrays["lstm.recurrent_kernel"])})
    if trunk is DENSE:
        compare.require_hiddens(named, named.sizes("hidden"), settings.hiddens)
    compare.require_outputs(named, named.gives("logits"))
    build = Builder()
    core = lstm.add_lstm(build, named, trunk)
    logits = build.add("dense", "logits", core.value)
    value = _add_value(build, named, trunk, core)
    outputs = {"action_dist_inputs": logits} | (actor_critic(build, logits, value) if value else {})
    graph = Graph(core.inputs, tuple(build.steps), outputs, core.states)
    hard = [core.gates.replace("_", " ") + " gates"] if core.gates != "sigmoid" else []
    own = ["own value network"] if "value_out" in named else []
    size = f"LSTM {core.cells} over {_over(named, trunk, graph)}"
    summary = ", ".join([size, *core.base.previous.described(), *own, *hard])
    network = named.network("LSTM", summary, graph, _target_of_lstm(named, trunk, graph, core))
    return named.reading(network, *lstm.findings(named, core))


def _plain_of_lstm(
    policy: PolicyState, settings: ModelSettings
) -> tuple[Mapping[str, Array], dict[str, float]]:
    """The arrays by the names of their variables, and the scalars."""
    if isinstance(policy.weights, dict):
        return plain_names(policy)
    if isinstance(policy.weights, list):
        return lstm_names.name_list(policy.weights, policy, settings), {}
    return lstm_names.name_vector(np.asarray(policy.weights), policy, settings)


def _add_value(build: Builder, named: Named, trunk: Trunk, core: lstm.Core) -> str | None:
    """Adds the value function: on the LSTM, or a network of its own; PG had none."""
    if "value" in named:
        return build.add("dense", "value", core.value)
    if "value_out" not in named:
        return None
    if "value_last" in named:
        hidden = trunk.add(build, named, "value_")
    else:
        takes = core.base.features if _shows_features(named) else "obs"
        own = named.layers("value_hidden")
        hidden = add_layers(build, named.arrays, own, takes, named.settings.activation)
    return build.add("dense", "value_out", hidden)


def _shows_features(named: Named) -> bool:
    """Whether a value function of its own sees features: it did since Ray 0.7."""
    ray = named.settings.ray
    new = named.torch and ray is not None and Version(ray) >= Version("0.7")
    return named.scheme == "layers" or new


def _target_of_lstm(named: Named, trunk: Trunk, graph: Graph, core: lstm.Core) -> Target:
    """Today's default module where it computes and trains the same, else one of ours.

    It does for torch's dense layers: with one bias, as keras has it, its LSTM would learn
    differently, since torch's two biases move both.
    """
    sloped = any(name.endswith(".beta") for name in named.arrays)
    both = {"lstm.recurrent_bias", "value.kernel"} <= named.arrays.keys()
    dense = trunk is DENSE and named.layers("hidden") and not sloped
    if dense and both and not core.base.previous.size:
        return rl_module_lstm.default_module(named, shares_layers=True)
    length = sequence_length(named.settings)
    return own_actor_critic(graph, named.arrays, max_seq_len=length)


def read_attention(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of an actor-critic with attention.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A space has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    if not isinstance(policy.weights, dict):
        raise not_yet(
            "attention in weights without names (TF2)", f"policies.{policy.policy_id}.weights"
        )
    plain, state = plain_names(policy)
    trunk = trunk_of(plain, policy)
    scheme = "torch" if any(name.startswith("gtrxl.") for name in plain) else "keras"
    plain = {k: v for k, v in plain.items() if not attention_names.CONSTANT.fullmatch(k)}
    dead = lstm_names.dead(trunk, scheme, plain)
    named = Named.take(
        policy,
        settings,
        plain,
        scheme,
        attention_names.table(trunk, scheme, [name for name in plain if name not in dead]),
        of=f"{trunk.kind} network with attention",
        unused=dead,
        state=state,
        aliases=second_names(plain) if trunk is COMPLEX else (),
    )
    named.require("logits.bias", "value.bias")
    compare.require_outputs(named, named.gives("logits"))
    build = Builder()
    core = attention.add_attention(build, named, trunk)
    logits, value = (build.add("dense", head, core.value) for head in ("logits", "value"))
    outputs = actor_critic(build, logits, value)
    graph = Graph(core.inputs, tuple(build.steps), outputs, core.states)
    steps, size = core.memory
    over = _over(named, trunk, graph)
    summary = f"attention {core.units} x {size}, memory {steps}, over {over}"
    length = sequence_length(settings)
    target = own_actor_critic(graph, named.arrays, max_seq_len=length)
    network = named.network("attention", summary, graph, target)
    return named.reading(network, *attention.findings(named, core))


def _over(named: Named, trunk: Trunk, graph: Graph) -> str:
    """What a wrapper is around, for tables: `fully connected 4, 2 outputs`."""
    shape = "x".join(map(str, graph.inputs["obs"]))
    return f"{trunk.kind} {shape}, {named.gives('logits')} outputs"
