"""The fully connected network of every RLlib.

What it is (`ray/rllib/models/**/fcnet.py`, 0.5 – 2.x): hidden layers, each with the same
activation; a linear layer for the action distribution's inputs; a value function that is either
one more linear layer on the last hidden one (`vf_share_layers`), or a network of its own with the
same hidden sizes; and, with `free_log_std`, a vector of log standard deviations that does not
depend on the observation and is appended to the means.

The canonical arrays, whatever framework wrote them, kernels as `[in, out]`::

    hidden.{i}.kernel         hidden.{i}.bias
    value_hidden.{i}.kernel   value_hidden.{i}.bias     (own value network only)
    logits.kernel             logits.bias
    value.kernel              value.bias
    log_std.value                                       (free_log_std only)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import (
    Move,
    Table,
    keras,
    require_same_names,
    torch_dense,
)
from rllib_compat.networks.network import Network, Target, own_module
from rllib_compat.networks.ops.activations import activation
from rllib_compat.neutral.errors import CheckpointError, NotYetError


def _rl_module(*, shares_layers: bool, linear: bool) -> Table:
    """Today's default PPO module; activation modules take every second number, if there are any."""
    actor = "encoder.encoder" if shares_layers else "encoder.actor_encoder"
    layer = "net.mlp.{i}" if linear else "net.mlp.{2*i}"
    return (
        *torch_dense(f"{actor}.{layer}", "hidden.{i}"),
        *torch_dense(f"encoder.critic_encoder.{layer}", "value_hidden.{i}"),
        *torch_dense("pi.net.mlp.0", "logits"),
        *torch_dense("vf.net.mlp.0", "value"),
        Move("pi.log_std", "log_std.value"),
    )


#: Every naming scheme in which this network is found, by the code that wrote it.
SCHEMES: dict[str, Table] = {
    # tf.keras, ModelV2 (0.7.5 – 2.x)
    "keras": (
        *keras("fc_{i+1}", "hidden.{i}"),
        *keras("fc_out", "logits"),
        *keras("fc_value_{i+1}", "value_hidden.{i}"),
        *keras("value_out", "value"),
        Move("log_std", "log_std.value"),
    ),
    # slim in scopes of its own, MARWIL (0.7 – 0.8.0)
    "marwil": (
        *keras("p_func/fc{i+1}", "hidden.{i}"),
        *keras("p_func/fc_out", "logits"),
        Move("v_func/value/w", "value.kernel"),
        Move("v_func/value/b", "value.bias"),
    ),
    # torch, ModelV2 (0.8.5 – 2.x)
    "torch": (
        *torch_dense("_hidden_layers.{i}._model.0", "hidden.{i}"),
        *torch_dense("_logits._model.0", "logits"),
        *torch_dense("_value_branch_separate.{i}._model.0", "value_hidden.{i}"),
        *torch_dense("_value_branch._model.0", "value"),
        # Ray 1.0 – 2.x trained the slope of torch's swish.
        Move("_hidden_layers.{i}._model.1._beta", "hidden.{i}.beta"),
        Move("_value_branch_separate.{i}._model.1._beta", "value_hidden.{i}.beta"),
        Move("_append_free_log_std.log_std", "log_std.value"),
        Move("log_std", "log_std.value"),
    ),
    # RLModule (2.7 Learner API – today): {own or shared critic} × {with activations or linear}
    "rl_module": _rl_module(shares_layers=False, linear=False),
    "rl_module_shared": _rl_module(shares_layers=True, linear=False),
    "rl_module_linear": _rl_module(shares_layers=False, linear=True),
    "rl_module_shared_linear": _rl_module(shares_layers=True, linear=True),
}

#: Constants that an RLModule registers as buffers; they hold no training.
BUFFERS = tuple(
    f"{part}.log_std_clip_param_const"
    for part in ("pi", "vf", "_old_pi", "_pi_head", "af", "_target_af", "_target_vf")
)


KIND = "fully connected"

#: What takes a network that Ray's own module can't represent.
ACTOR_CRITIC_MODULE = "rllib_compat.modules:ActorCriticModule"

#: Below this, a slope of swish can't be divided by without losing digits.
_SMALLEST_SLOPE = 1e-3


def fold_slopes(arrays: Mapping[str, Array], *, where: str) -> dict[str, Array]:
    """Moves the trained slopes of swish into the weights around them.

    RLlib's own swish was `x · sigmoid(beta · x)` with a trained `beta` a layer. That is
    `silu(beta · x) / beta`: the layer before times beta, the layers behind divided by it, and
    plain silu in between compute the same.

    Raises:
        NotYetError: A slope is too small to be divided by.
    """
    out = dict(arrays)
    for name in [n for n in arrays if n.endswith(".beta")]:
        beta = float(out.pop(name).reshape(()))
        if not abs(beta) >= _SMALLEST_SLOPE:
            raise NotYetError(f"Not yet: swish with a slope of {beta:g}.", where=f"{where}.{name}")
        layer = name.removesuffix(".beta")
        for part in ("kernel", "bias"):
            out[f"{layer}.{part}"] = out[f"{layer}.{part}"].astype(np.float64) * beta
        for behind in _behind(layer, out):
            out[behind] = out[behind].astype(np.float64) / beta
    return out


def _behind(layer: str, arrays: Mapping[str, Array]) -> list[str]:
    """The kernels that take what a hidden layer gives."""
    stack, _, index = layer.partition(".")
    following = f"{stack}.{int(index) + 1}.kernel"
    if following in arrays:
        return [following]
    if stack == "value_hidden":
        return ["value.kernel"]
    shared = not any(name.startswith("value_hidden.") for name in arrays)
    return ["logits.kernel", "value.kernel"] if shared else ["logits.kernel"]


@dataclass(frozen=True)
class Shape:
    """The shape of a fully connected network.

    Attributes:
        inputs: The size of the preprocessed observation.
        hiddens: The sizes of the hidden layers.
        outputs: What the action distribution takes, log standard deviations included.
        shares_layers: Whether the value function sits on the policy's layers.
        free_log_std: Whether half of the outputs are free parameters.
    """

    inputs: int
    hiddens: tuple[int, ...]
    outputs: int
    shares_layers: bool
    free_log_std: bool

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Shape:
        """The shape that canonical arrays have.

        Raises:
            CheckpointError: The policy's last layer is missing.
        """
        hiddens: list[int] = []
        while (bias := arrays.get(f"hidden.{len(hiddens)}.bias")) is not None:
            hiddens.append(len(bias))
        first = arrays.get("hidden.0.kernel" if hiddens else "logits.kernel")
        missing = [n for n in ("logits.kernel", "logits.bias") if n not in arrays]
        if first is None or missing:
            raise CheckpointError(
                f"The arrays do not fit the network: missing: {', '.join(missing)}.", where=KIND
            )
        return cls(
            inputs=int(first.shape[0]),
            hiddens=tuple(hiddens),
            outputs=len(arrays["logits.bias"]) + len(arrays.get("log_std.value", ())),
            shares_layers="value_hidden.0.kernel" not in arrays,
            free_log_std="log_std.value" in arrays,
        )

    def _stack(self, prefix: str, last: str, size: int) -> list[tuple[str, tuple[int, ...]]]:
        rows: list[tuple[str, tuple[int, ...]]] = []
        before = self.inputs
        for i, hidden in enumerate(self.hiddens):
            rows += [(f"{prefix}.{i}.kernel", (before, hidden)), (f"{prefix}.{i}.bias", (hidden,))]
            before = hidden
        return [*rows, (f"{last}.kernel", (before, size)), (f"{last}.bias", (size,))]

    def policy(self) -> list[tuple[str, tuple[int, ...]]]:
        """The names and shapes of the policy's network, input to output."""
        means = self.outputs // 2 if self.free_log_std else self.outputs
        log_std = [("log_std.value", (means,))] if self.free_log_std else []
        return [*self._stack("hidden", "logits", means), *log_std]

    def value(self) -> list[tuple[str, tuple[int, ...]]]:
        """The names and shapes of the value function, input to output."""
        own = self._stack("value_hidden", "value", 1)
        return own[-2:] if self.shares_layers else own

    def describe(self, activation: str) -> str:
        """One line for tables: `fc 4-32-32-2 relu, own value network`."""
        sizes = "-".join(map(str, [self.inputs, *self.hiddens, self.outputs]))
        value = "shared value layers" if self.shares_layers else "own value network"
        free = ", free log std" if self.free_log_std else ""
        return f"fc {sizes} {activation}, {value}{free}"


def fully_connected(arrays: Mapping[str, Array], activation: str, scheme: str) -> Network:
    """The network of an actor-critic algorithm, and today's default module for it.

    Args:
        arrays: The canonical arrays.
        activation: The hidden layers' activation by its legacy name.
        scheme: The naming scheme in which the arrays were found.

    Raises:
        CheckpointError: Arrays are missing, too many, or of shapes that do not fit.
        NotYetError: The activation is not one that is known.
    """
    shape = Shape.of(arrays)
    wanted = dict([*shape.policy(), *shape.value()])
    require_same_names(arrays, wanted, where=KIND)
    for name, size in wanted.items():
        if arrays[name].shape != size:
            raise CheckpointError(
                f"The array {name} has the shape {arrays[name].shape} where {size} belongs.",
                where=KIND,
            )
    graph = _graph(shape, activation)
    default = bool(shape.hiddens)  # Ray's own module can't be without hidden layers
    return Network(
        kind=KIND,
        summary=shape.describe(activation),
        scheme=scheme,
        graph=graph,
        arrays=arrays,
        target=_default_module(shape, activation)
        if default
        else own_module(ACTOR_CRITIC_MODULE, graph, arrays),
        names=SCHEMES.get(scheme, SCHEMES["keras"]),
    )


def add_hidden(build: Builder, prefix: str, count: int, takes: str, activation: str | None) -> str:
    """Adds `count` dense layers `<prefix>.<i>`, and returns the name of the last one's value."""
    for i in range(count):
        takes = build.add("dense", f"{prefix}.{i}", takes, activation=activation)
    return takes


def add_heads(
    build: Builder, hidden: str, value_hidden: str, *, free_log_std: bool
) -> dict[str, str]:
    """Adds what an actor-critic network ends in, and returns the graph's outputs."""
    logits = build.add("dense", "logits", hidden)
    if free_log_std:
        logits = build.add("free_log_std", "log_std", logits)
    value = build.add("dense", "value", value_hidden)
    return {"action_dist_inputs": logits, "vf_preds": build.add("scalar", "vf_preds", value)}


def _graph(shape: Shape, activation: str) -> Graph:
    build, layers = Builder(), len(shape.hiddens)
    hidden = add_hidden(build, "hidden", layers, "obs", activation)
    value_hidden = hidden
    if not shape.shares_layers:
        value_hidden = add_hidden(build, "value_hidden", layers, "obs", activation)
    outputs = add_heads(build, hidden, value_hidden, free_log_std=shape.free_log_std)
    return Graph({"obs": (shape.inputs,)}, tuple(build.steps), outputs)


def _default_module(shape: Shape, name: str) -> Target:
    """Today's default module of PPO and its kin, and what it has to be told."""
    target = activation(name, where="model.fcnet_activation").target
    return Target(
        module=None,
        model_config={
            "fcnet_hiddens": list(shape.hiddens),
            "fcnet_activation": target,
            "head_fcnet_hiddens": [],
            "vf_share_layers": shape.shares_layers,
            "free_log_std": shape.free_log_std,
            # Legacy networks did not clip; today's default of 20 never binds in practice, but a
            # conversion has to be exact for any number.
            "log_std_clip_param": float("inf"),
        },
        table=_rl_module(shares_layers=shape.shares_layers, linear=target == "linear"),
    )
