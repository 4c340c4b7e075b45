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

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads.outputs import actor_critic, todays_default
from rllib_compat.networks.mapping import TRANSPOSED, Move, Table, torch_dense
from rllib_compat.networks.named import Named
from rllib_compat.networks.network import Reading, Target
from rllib_compat.networks.ops.activations import activation
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.neutral.checkpoint import PolicyState

_CRITIC = "critic_"


def _encoder(theirs: str, ours: str, *, linear: bool) -> Table:
    """One tokenizer and its LSTM; activation modules take every second number."""
    layer = "{i}" if linear else "{2*i}"
    return (
        *torch_dense(f"{theirs}.tokenizer.net.mlp.{layer}", f"{ours}hidden.{{i}}"),
        Move(f"{theirs}.lstm.weight_ih_l0", f"{ours}lstm.kernel", TRANSPOSED),
        Move(f"{theirs}.lstm.weight_hh_l0", f"{ours}lstm.recurrent_kernel", TRANSPOSED),
        Move(f"{theirs}.lstm.bias_ih_l0", f"{ours}lstm.bias"),
        Move(f"{theirs}.lstm.bias_hh_l0", f"{ours}lstm.recurrent_bias"),
    )


def table(*, shares_layers: bool, linear: bool) -> Table:
    """The names in today's default PPO module."""
    heads = (*torch_dense("pi.net.mlp.0", "logits"), *torch_dense("vf.net.mlp.0", "value"))
    if shares_layers:
        return (*_encoder("encoder.encoder", "", linear=linear), *heads)
    return (
        *_encoder("encoder.actor_encoder", "", linear=linear),
        *_encoder("encoder.critic_encoder", _CRITIC, linear=linear),
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
        max_seq_len=int(named.settings.model.get("max_seq_len", 20)),
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
    summary = f"LSTM {cells} over fc {sizes} {name}, {named.gives('logits')} outputs, {owner}"
    target = default_module(named, shares_layers=shares_layers)
    return named.reading(named.network("LSTM", summary, _graph(named, cells), target))


def _graph(named: Named, cells: int) -> Graph:
    build = Builder()
    states: dict[str, str] = {}
    tops: dict[str, str] = {}
    for owner in ("", _CRITIC):
        if f"{owner}lstm" in named:
            hidden = DENSE.add(build, named, owner)
            taken = (f"{owner}h", f"{owner}c")
            tops[owner] = build.add("lstm", f"{owner}lstm", hidden, *taken)
            states |= {f"{owner}{state}": f"{owner}lstm.{state}" for state in ("h", "c")}
    logits = build.add("dense", "logits", tops[""])
    value = build.add("dense", "value", tops.get(_CRITIC, tops[""]))
    inputs = {"obs": (named.takes("hidden.0"),), **dict.fromkeys(states, (cells,))}
    outputs = actor_critic(build, logits, value)
    return Graph(inputs, tuple(build.steps), outputs, states)
