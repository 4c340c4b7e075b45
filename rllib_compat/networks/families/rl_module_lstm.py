"""RLModules with an LSTM: those of the new API stack (Ray 2.7 – today), and as a target.

A module has one LSTM for both heads (`vf_share_layers`), or one each for actor and critic, with
states of their own: `h` and `c`, and the critic's `critic_h` and `critic_c`. Canonical arrays are
those of the wrapper (`names.lstm`); the critic's own have the prefix `critic_`.

Sources: `core/models/torch/encoder.py` (TorchLSTMEncoder), `core/models/base.py`
(StatefulActorCriticEncoder), Ray 2.7 – 2.60.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rllib_compat.networks.families.outputs import (
    actor_critic,
    own_actor_critic,
    sequence_length,
    todays_default,
)
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import TRANSPOSED, Move, Table, torch_dense
from rllib_compat.networks.named import Named
from rllib_compat.networks.network import Reading, Target
from rllib_compat.networks.ops.in_numpy import activation
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.wrappers.previous_steps import Previous, asked_for, previous
from rllib_compat.neutral.checkpoint import PolicyState

_CRITIC = "critic_"


def encoder(theirs: str, ours: str, *, linear: bool) -> Table:
    """One tokenizer and its LSTM; activation modules take every second number."""
    layer = "{i}" if linear else "{2*i}"
    return (
        *torch_dense(f"{theirs}.tokenizer.net.mlp.{layer}", f"{ours}hidden.{{i}}"),
        Move(f"{theirs}.lstm.weight_ih_l0", f"{ours}lstm.kernel", TRANSPOSED),
        Move(f"{theirs}.lstm.weight_hh_l0", f"{ours}lstm.recurrent_kernel", TRANSPOSED),
        Move(f"{theirs}.lstm.bias_ih_l0", f"{ours}lstm.bias"),
        Move(f"{theirs}.lstm.bias_hh_l0", f"{ours}lstm.recurrent_bias"),
    )


def encoder_activation(told: Mapping[str, Any]) -> str:
    """The activation of the layers in front of the LSTM, where a module's own config tells of it.

    What it does not tell is that of `DefaultModelConfig` (the same in Ray 2.40 - 2.60).
    """
    return str(told.get("fcnet_activation", "tanh") or "linear").lower()


def table(*, shares_layers: bool, linear: bool) -> Table:
    """The names in today's default PPO module."""
    heads = (*torch_dense("pi.net.mlp.0", "logits"), *torch_dense("vf.net.mlp.0", "value"))
    if shares_layers:
        return (*encoder("encoder.encoder", "", linear=linear), *heads)
    return (
        *encoder("encoder.actor_encoder", "", linear=linear),
        *encoder("encoder.critic_encoder", _CRITIC, linear=linear),
        *heads,
    )


def default_module(named: Named, *, shares_layers: bool) -> Target:
    """Today's default module with an LSTM, and what it has to be told; it needs hidden layers."""
    return todays_default(
        named,
        partial(table, shares_layers=shares_layers),
        vf_share_layers=shares_layers,
        use_lstm=True,
        lstm_cell_size=len(named.arrays["lstm.recurrent_kernel"]),
        max_seq_len=sequence_length(named.settings),
    )


def read(plain: Mapping[str, Array], policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads a module with an LSTM.

    Raises:
        NotYetError: It is not Ray's default module for vectors.
        CheckpointError: Arrays are missing.
    """
    shares_layers = any(name.startswith("encoder.encoder.") for name in plain)
    name = activation(settings.activation, where="model.fcnet_activation").target
    rows = table(shares_layers=shares_layers, linear=name == "linear")
    of = "RLModule with an LSTM behind dense layers"
    named = Named.take(policy, settings, plain, "rl_module", rows, of=of)
    named.require("hidden.0.kernel", "lstm.kernel", "lstm.recurrent_kernel", "logits.kernel")
    cells, hiddens = len(named.arrays["lstm.recurrent_kernel"]), named.sizes("hidden")
    owner = "shared value layers" if shares_layers else "own value network"
    sizes = "-".join(map(str, [named.takes("hidden.0"), *hiddens]))
    before = _previous(named)
    taken = "".join(f", {what}" for what in before.described())
    outputs = named.gives("logits")
    summary = f"LSTM {cells} over fc {sizes} {name}{taken}, {outputs} outputs, {owner}"
    graph = _graph(named, cells, before)
    if before.size:  # Ray's own module takes it in front of the layers
        length = sequence_length(settings)
        target = own_actor_critic(graph, named.arrays, max_seq_len=length)
    else:
        target = default_module(named, shares_layers=shares_layers)
    return named.reading(named.network("LSTM", summary, graph, target))


def _previous(named: Named) -> Previous:
    """What the LSTM sees of the step before."""
    size = len(named.arrays["lstm.kernel"]) - named.sizes("hidden")[-1]
    asked = asked_for(named.policy, named.settings.model)
    return previous(named, *asked, size, raw_first=False) if size else Previous()


def _graph(named: Named, cells: int, before: Previous) -> Graph:
    build = Builder()
    states: dict[str, str] = {}
    tops: dict[str, str] = {}
    for owner in ("", _CRITIC):
        if f"{owner}lstm" in named:
            hidden = before.add(build, DENSE.add(build, named, owner), owner)
            taken = (f"{owner}h", f"{owner}c")
            tops[owner] = build.add("lstm", f"{owner}lstm", hidden, *taken)
            states |= {f"{owner}{state}": f"{owner}lstm.{state}" for state in ("h", "c")}
    logits = build.add("dense", "logits", tops[""])
    value = build.add("dense", "value", tops.get(_CRITIC, tops[""]))
    own = {"obs": (named.takes("hidden.0"),), **before.inputs()}
    inputs = {**own, **dict.fromkeys(states, (cells,))}
    outputs = actor_critic(build, logits, value)
    return Graph(inputs, tuple(build.steps), outputs, states)
