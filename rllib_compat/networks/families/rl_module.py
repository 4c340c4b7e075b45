"""RLModules of actor-critics: those with images, larger heads or an LSTM; and the last as a target.

What they are (`core/models/torch/{encoder,heads,primitives}.py`, `core/models/base.py`, 2.5 –
2.60): an encoder, or one each for actor and critic, of convolutions (all with "same" padding if the
filter says nothing else) or of dense layers; and a head each for actions and values, with hidden
layers of its own (`post_fcnet_hiddens`, later `head_fcnet_hiddens`). Log standard deviations are
clipped where the head has a constant for it. Canonical arrays: `conv.{i}` or `hidden.{i}`, with the
prefix `value_` of the critic's own encoder, `pi.{i}` and `vf.{i}`, each numbered as torch numbers
modules in a sequence, and `log_std.value`.

With an LSTM (Ray 2.7 – today), there is one for both heads (`vf_share_layers`), or one each for
actor and critic, with states of their own: `h` and `c`, and the critic's `critic_h` and `critic_c`.
Canonical arrays are those of `recurrent`; the critic's own have the prefix `critic_`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.families.dense import (
    actor_critic,
    own_actor_critic,
    sequence_length,
    todays_default,
    with_log_std,
)
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import (
    Move,
    Table,
    torch_dense,
    torch_layer,
    torch_lstm,
    torch_mlp,
)
from rllib_compat.networks.named import BUFFERS, Named, plain_names, where_of
from rllib_compat.networks.network import Reading, Target
from rllib_compat.networks.observations import require_image
from rllib_compat.networks.ops.in_numpy import activation
from rllib_compat.networks.previous_steps import Previous, previous, requested_steps
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import DENSE, add_layers
from rllib_compat.networks.trunks.vision import (
    NO_PADDING,
    VISION,
    add_convolution,
    filters_for,
    same_padding,
    size_after,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.spaces import Box

_CRITIC = "critic_"


def lstm_encoder_names(theirs: str, ours: str, *, linear: bool) -> Table:
    """One tokenizer and its LSTM."""
    return (
        *torch_mlp(f"{theirs}.tokenizer", f"{ours}hidden", linear=linear),
        *torch_lstm(f"{theirs}.lstm", f"{ours}lstm"),
    )


def encoder_activation(options: Mapping[str, Any]) -> str:
    """The activation of the layers in front of the LSTM, if a module's own config has it.

    What it does not have is that of `DefaultModelConfig` (the same in Ray 2.40 - 2.60).
    """
    return str(options.get("fcnet_activation", "tanh") or "linear").lower()


def lstm_module_names(*, shares_layers: bool, linear: bool) -> Table:
    """The names in today's default PPO module."""
    heads = (*torch_dense("pi.net.mlp.0", "logits"), *torch_dense("vf.net.mlp.0", "value"))
    if shares_layers:
        return (*lstm_encoder_names("encoder.encoder", "", linear=linear), *heads)
    return (
        *lstm_encoder_names("encoder.actor_encoder", "", linear=linear),
        *lstm_encoder_names("encoder.critic_encoder", _CRITIC, linear=linear),
        *heads,
    )


def default_lstm_module(named: Named, *, shares_layers: bool) -> Target:
    """Ray's default module with an LSTM, and its options; it needs hidden layers."""
    return todays_default(
        named,
        partial(lstm_module_names, shares_layers=shares_layers),
        vf_share_layers=shares_layers,
        use_lstm=True,
        lstm_cell_size=len(named.arrays["lstm.recurrent_kernel"]),
        max_seq_len=sequence_length(named.settings),
    )


def read_lstm_module(
    plain: Mapping[str, Array], policy: PolicyState, settings: ModelSettings
) -> Reading:
    """Reads a module with an LSTM.

    Raises:
        NotYetError: It is not Ray's default module for vectors.
        CheckpointError: Arrays are missing.
    """
    shares_layers = any(name.startswith("encoder.encoder.") for name in plain)
    name = activation(settings.activation, where="model.fcnet_activation").target
    rows = lstm_module_names(shares_layers=shares_layers, linear=name == "linear")
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
        target = default_lstm_module(named, shares_layers=shares_layers)
    return named.reading(named.network("LSTM", summary, graph, target))


def _previous(named: Named) -> Previous:
    """What the LSTM sees of the step before."""
    size = len(named.arrays["lstm.kernel"]) - named.sizes("hidden")[-1]
    asked = requested_steps(named.policy, named.settings.model)
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


NAMES: Table = (
    *(
        row
        for theirs, ours in (
            ("encoder.encoder", ""),
            ("encoder.actor_encoder", ""),
            ("encoder.critic_encoder", "value_"),
        )
        for row in (
            *torch_layer(f"{theirs}.net.0.cnn.{{i}}", f"{ours}conv.{{i}}"),
            *torch_dense(f"{theirs}.net.mlp.{{i}}", f"{ours}hidden.{{i}}"),
        )
    ),
    *torch_dense("pi.net.mlp.{i}", "pi.{i}"),
    *torch_dense("vf.net.mlp.{i}", "vf.{i}"),
    Move("pi.log_std", "log_std.value"),
)


def is_meant(names: Mapping[str, Array]) -> bool:
    """Whether arrays with these names are of an RLModule with convolutions or larger heads."""
    heads = sum(name.startswith("pi.net.mlp.") and name.endswith(".weight") for name in names)
    return heads > 1 or any(".net.0.cnn." in name for name in names)


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the module of a policy."""
    assert isinstance(policy.weights, dict)
    plain, state = plain_names(policy)
    of = "RLModule of convolutions and dense layers"
    named = Named.take(policy, settings, plain, "rl_module", NAMES, of=of, state=state)
    kernels = [name for name in named.arrays if name.endswith(".kernel")]
    if odd := [name for name in kernels if named.arrays[name].ndim not in (2, 4)]:
        raise refusals.unknown_arrays(odd, plain, of, where_of(policy))
    limit = policy.weights.get(BUFFERS[0])
    build = Builder()
    actor = _add_encoder(build, named, "")
    own = named.layers("value_conv") or named.layers("value_hidden")
    critic = _add_encoder(build, named, "value_") if own else actor
    logits = with_log_std(build, named, _add_head(build, named, "pi", actor))
    heads = named.sizes("pi")
    named.require_outputs(heads[-1] + len(named.arrays.get("log_std.value", ())))
    if limit is not None and isinstance(policy.action_space, Box):
        bound = float(np.reshape(limit, ()))
        logits = build.add("clip_log_std", "clipped", logits, limit=bound)
    outputs = actor_critic(build, logits, _add_head(build, named, "vf", critic))
    images = named.layers("conv")
    inputs = (
        require_image(policy, settings) if images else (named.takes(named.layers("hidden")[0]),)
    )
    graph = Graph({"obs": inputs}, tuple(build.steps), outputs)
    head = f", head {'-'.join(map(str, heads[:-1]))}" if len(heads) > 1 else ""
    sizes = "-".join(map(str, named.sizes("conv") or named.sizes("hidden")))
    shape = "x".join(map(str, inputs))
    summary = f"RLModule {shape}, encoder {sizes}{head}, {heads[-1]} outputs"
    kind = VISION.kind if images else DENSE.kind
    return named.reading(named.network(kind, summary, graph, own_actor_critic(graph, named.arrays)))


def _add_encoder(build: Builder, named: Named, prefix: str) -> str:
    if not named.layers("conv"):
        layers = named.layers(f"{prefix}hidden")
        activation = named.activation("fcnet_activation")
        return add_layers(build, named.arrays, layers, "obs", activation)
    image = require_image(named.policy, named.settings)
    filters = filters_for(named.settings.model, image)
    names = named.layers(f"{prefix}conv")
    if len(names) != len(filters):
        raise refusals.other_config("conv_filters", len(names), len(filters), named.where)
    activation = named.activation("conv_activation")
    takes, size = "obs", (image[0], image[1])
    for name, filter_ in zip(names, filters, strict=True):
        valid = filter_.padding == "valid"
        padding = NO_PADDING if valid else same_padding(size, filter_, torch=True)
        takes = add_convolution(build, named, name, filter_, takes, padding, activation)
        size = size_after(size, filter_, padding)
    return build.add("flatten", f"{prefix}features", takes)


def _add_head(build: Builder, named: Named, stack: str, takes: str) -> str:
    named.require(f"{stack}.0.kernel")
    *hidden, last = named.layers(stack)
    activation = named.activation("head_fcnet_activation", "post_fcnet_activation")
    return build.add("dense", last, add_layers(build, named.arrays, hidden, takes, activation))
