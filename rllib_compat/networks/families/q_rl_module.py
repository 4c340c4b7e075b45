"""Q-networks in modules of the new API stack: Ray's default one of DQN, and ours of R2D2.

The default module (`DQNRainbowTorchRLModule` in Ray 2.40, `DefaultDQNTorchRLModule`) is read from
checkpoints of Ray 2.35 on, and is where old networks go: an encoder of dense layers, `af` for the
advantages or Q-values, `vf` for the state's value, and a target of each. In ours
(`ExploringQModule`) layers of both streams may be noisy, or have norms behind them.

R2D2's new networks (`networks.modules.r2d2`) are read from checkpoints of trainers: Ray's encoder
with its LSTM, a linear layer, RLlib's streams; a target network of the same names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rllib_compat.networks import refusals
from rllib_compat.networks.families import q_head
from rllib_compat.networks.families.q_head import Head
from rllib_compat.networks.families.rl_module import encoder_activation, lstm_encoder_names
from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.mapping import TRANSPOSED, Move, Table, torch_dense
from rllib_compat.networks.named import Named, plain_names, where_of
from rllib_compat.networks.network import OWN_PREFIX, OWN_TARGET_PREFIX, TARGET_PREFIX, Target
from rllib_compat.networks.ops.in_numpy import activation
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.neutral.checkpoint import PolicyState

_FIRST = f"{OWN_PREFIX}encoder."


def is_recurrent(names: Iterable[str]) -> bool:
    """Whether arrays have the module's names."""
    return any(name.startswith(_FIRST) for name in names)


def _recurrent_names(head: int, *, linear: bool) -> Table:
    """The module's names; with how many hidden layers each stream has."""
    rows: list[Move] = []
    for theirs, ours in ((OWN_PREFIX, ""), (OWN_TARGET_PREFIX, TARGET_PREFIX)):
        rows += lstm_encoder_names(f"{theirs}encoder", ours, linear=linear)
        rows += torch_dense(f"{theirs}logits", f"{ours}logits")
        for stream in ("advantage", "state"):
            rows += torch_dense(f"{theirs}{stream}.{2 * head}", f"{ours}{stream}")
            rows += torch_dense(f"{theirs}{stream}.{{2*i}}", f"{ours}{stream}_hidden.{{i}}")
    return tuple(rows)


def name_recurrent(policy: PolicyState, settings: ModelSettings) -> Named:
    """Names the arrays of a module, beside what it says itself of its layers.

    Raises:
        NotYetError: Its encoder is not of dense layers.
    """
    options = policy.extra.get("module_config", {})
    settings = replace(
        settings,
        activation=encoder_activation(options),
        hiddens=None,
        model={**settings.model, **options},
        config={**settings.config, **options},
    )
    plain, _ = plain_names(policy)
    linear = activation(settings.activation, where="model.fcnet_activation").target == "linear"
    stream = re.compile(rf"{OWN_PREFIX}advantage\.\d+\.weight")
    layers = sum(bool(stream.fullmatch(name)) for name in plain)
    names = _recurrent_names(max(layers - 1, 0), linear=linear)
    of = "Q-network with an LSTM behind dense layers"
    return Named.take(policy, settings, plain, "rl_module", names, of=of)


#: Releases whose module centred the advantages' logits over the actions; later ones over the atoms.
_CENTRED_OVER_ACTIONS = re.compile(r"2\.([1-3]\d|40)\.")
_OVER_ATOMS = -1

_KIND = "Q-network of dense layers"


def is_module(names: Iterable[str]) -> bool:
    """Whether arrays have the module's names."""
    return any(name.startswith("encoder.") for name in names)


def module_names(layers: int, head: int, *, linear: bool, norms: bool = False) -> Table:
    """The module's names.

    Args:
        layers: How many layers the encoder has.
        head: How many hidden layers each stream has.
        linear: Whether the encoder has no activation modules between its layers.
        norms: Whether a norm follows each hidden layer of the streams.
    """
    step = 3 if norms else 2
    rows: list[Move] = []
    for theirs, ours in (("", ""), ("_target_", TARGET_PREFIX)):
        encoder, every = f"{theirs}encoder.net.mlp", 1 if linear else 2
        rows += torch_dense(f"{encoder}.{{{every}*i}}", f"{ours}hidden.{{i}}")
        # On TensorFlow, the base model's last layer had a name of its own.
        rows += torch_dense(f"{encoder}.{every * (layers - 1)}", f"{ours}out")
        for stream, canonical in (("af", "advantage"), ("vf", "state")):
            name = f"{theirs}{stream}.net.mlp"
            rows += _dense(f"{name}.{step * head}", f"{ours}{canonical}")
            rows += _dense(f"{name}.{{{step}*i}}", f"{ours}{canonical}_hidden.{{i}}")
            if norms:
                norm, of = f"{name}.{{{step}*i+2}}", f"{ours}{canonical}_norm.{{i}}"
                rows += (Move(f"{norm}.weight", f"{of}.gamma"), Move(f"{norm}.bias", f"{of}.beta"))
        rows += torch_dense(f"{theirs}af.net.mlp.0", f"{ours}logits")
    return tuple(rows)


def _dense(theirs: str, ours: str) -> Table:
    """The rows of a layer that may be noisy."""
    return (
        *torch_dense(theirs, ours),
        Move(f"{theirs}.sigma_weight", f"{ours}.sigma_kernel", TRANSPOSED),
        Move(f"{theirs}.sigma_bias", f"{ours}.sigma_bias"),
    )


def name_arrays(policy: PolicyState, settings: ModelSettings) -> Named:
    """Names the arrays of a module.

    Raises:
        NotYetError: Its encoder or its heads are not of dense layers.
    """
    plain, _ = plain_names(policy)
    linear = activation(settings.activation, where="model").target == "linear"
    stream = [a for name, a in plain.items() if re.fullmatch(r"af\.net\.mlp\.\d+\.weight", name)]
    layers = sum(array.ndim > 1 for array in stream)
    if not layers:
        raise refusals.unknown_arrays(list(plain), plain, _KIND, where_of(policy))
    names = module_names(0, layers - 1, linear=linear, norms=len(stream) > layers)
    return Named.take(policy, settings, plain, "rl_module", names, of=_KIND)


def read(named: Named) -> tuple[Head, Graph]:
    """Reads a module: its head, and what it computes.

    Raises:
        CheckpointError: The module and the config contradict each other.
    """
    head = Head.of(named.settings)
    if head.dueling != ("state" in named):
        raise refusals.other_config("dueling", "state" in named, head.dueling, named.where)
    build = Builder()
    features = DENSE.add(build, named)
    old = _CENTRED_OVER_ACTIONS.match(named.settings.ray or "")
    axis = q_head.OVER_ACTIONS if old else _OVER_ATOMS
    outputs = q_head.add(build, named, features, head, centred=axis)
    inputs = {"obs": (named.takes(build.steps[0].name),)}
    return head, Graph(inputs, tuple(build.steps), outputs)


def base_layers(named: Named) -> list[str]:
    """The base model's layers, first to last."""
    single = ("last", "conv_out", "out")
    own = [layer for layer in single if layer in named]
    return [*named.layers("conv"), *named.layers("hidden"), *own]


def computes(graph: Graph, named: Named) -> bool:
    """Whether the module computes a graph exactly.

    It has dense layers, at least one before the head, and gives one number for each action; it
    knows no noise, no norm, and no linear layer below the head. What it does with the distribution
    of a dueling network changed between releases.
    """
    ops = {step.op for step in graph.steps}
    above_logits = {step.op for step in graph.steps if "logits" in step.takes}
    first = "hidden.0" in named or "out" in named
    streams = "dueling" not in ops or "state" in named
    return first and ops <= {"dense", "dueling"} and above_logits <= {"dueling"} and streams


def target(named: Named, options: Mapping[str, Any]) -> Target:
    """The module for a network that it computes."""
    base, head = base_layers(named), list(named.sizes("advantage_hidden"))
    name = activation(named.settings.activation, where="model.fcnet_activation").target
    return Target(
        module=None,
        model_config={
            "fcnet_hiddens": [named.gives(layer) for layer in base],
            "fcnet_activation": name,
            "head_fcnet_hiddens": head,
            "head_fcnet_activation": "relu",
            **options,
        },
        table=module_names(len(base), len(head), linear=name == "linear"),
    )
