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
    log_std                                             (free_log_std only)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.errors import CheckpointError, NotYetError
from rllib_compat.networks.activations import activation
from rllib_compat.networks.mapping import Move, Table, dense, from_canonical, require_same_names

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _keras(theirs: str, ours: str) -> Table:
    return dense(theirs, ours, kernel="/kernel", bias="/bias", transpose=False)


def _torch(theirs: str, ours: str) -> Table:
    return dense(theirs, ours, kernel=".weight", bias=".bias", transpose=True)


def _rl_module(*, shares_layers: bool, linear: bool) -> Table:
    """Today's default PPO module; activation modules take every second number, if there are any."""
    actor = "encoder.encoder" if shares_layers else "encoder.actor_encoder"
    layer = "net.mlp.{i}" if linear else "net.mlp.{2*i}"
    return (
        *_torch(f"{actor}.{layer}", "hidden.{i}"),
        *_torch(f"encoder.critic_encoder.{layer}", "value_hidden.{i}"),
        *_torch("pi.net.mlp.0", "logits"),
        *_torch("vf.net.mlp.0", "value"),
        Move("pi.log_std", "log_std"),
    )


#: Every naming scheme in which this network is found, by the code that wrote it.
SCHEMES: dict[str, Table] = {
    # tf.keras, ModelV2 (0.7.5 – 2.x)
    "keras": (
        *_keras("fc_{i+1}", "hidden.{i}"),
        *_keras("fc_out", "logits"),
        *_keras("fc_value_{i+1}", "value_hidden.{i}"),
        *_keras("value_out", "value"),
        Move("log_std", "log_std"),
    ),
    # torch, ModelV2 (0.8.5 – 2.x)
    "torch": (
        *_torch("_hidden_layers.{i}._model.0", "hidden.{i}"),
        *_torch("_logits._model.0", "logits"),
        *_torch("_value_branch_separate.{i}._model.0", "value_hidden.{i}"),
        *_torch("_value_branch._model.0", "value"),
        # Ray 1.0 – 2.x trained the slope of torch's swish.
        Move("_hidden_layers.{i}._model.1._beta", "hidden.{i}.beta"),
        Move("_value_branch_separate.{i}._model.1._beta", "value_hidden.{i}.beta"),
        Move("_append_free_log_std.log_std", "log_std"),
        Move("log_std", "log_std"),
    ),
    # RLModule (2.7 Learner API – today): {own or shared critic} × {with activations or linear}
    "rl_module": _rl_module(shares_layers=False, linear=False),
    "rl_module_shared": _rl_module(shares_layers=True, linear=False),
    "rl_module_linear": _rl_module(shares_layers=False, linear=True),
    "rl_module_shared_linear": _rl_module(shares_layers=True, linear=True),
}

#: Constants that an RLModule registers as buffers; they hold no training.
BUFFERS = ("pi.log_std_clip_param_const", "vf.log_std_clip_param_const")


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
class Outputs:
    """What a policy network computes for a batch.

    Attributes:
        action_dist_inputs: `[B, n]`, the inputs of the action distribution.
        vf_preds: `[B]`, the value predictions; None where the network has no value function.
    """

    action_dist_inputs: Array
    vf_preds: Array | None


@dataclass(frozen=True)
class FullyConnected:
    """One fully connected network with its arrays.

    Attributes:
        arrays: The canonical arrays.
        activation: The hidden layers' activation by its legacy name.
        scheme: The naming scheme in which the arrays were found.
    """

    arrays: Mapping[str, Array]
    activation: str
    scheme: str

    kind = "fully connected"

    def __post_init__(self) -> None:
        names = {"logits", "value", *(f"hidden.{i}" for i in range(len(self.hiddens)))}
        if not self.shares_layers:
            names |= {f"value_hidden.{i}" for i in range(len(self.hiddens))}
        wanted = {f"{name}.{part}" for name in names for part in ("kernel", "bias")}
        if "log_std" in self.arrays:
            wanted.add("log_std")
        require_same_names(self.arrays, wanted, where=self.kind)
        sizes = [self.inputs, *self.hiddens]
        for prefix, last in (("hidden", "logits"), ("value_hidden", "value")):
            layers = [*(f"{prefix}.{i}" for i in range(len(self.hiddens))), last]
            if prefix == "value_hidden" and self.shares_layers:
                layers = [last]
                sizes = sizes[-1:]
            for size, layer in zip(sizes, layers, strict=True):
                kernel, bias = self.arrays[f"{layer}.kernel"], self.arrays[f"{layer}.bias"]
                if kernel.shape != (size, len(bias)):
                    raise CheckpointError(
                        f"The layer {layer} has a kernel {kernel.shape} where "
                        f"({size}, {len(bias)}) belongs.",
                        where=self.kind,
                    )

    @property
    def hiddens(self) -> list[int]:
        """The sizes of the hidden layers."""
        sizes: list[int] = []
        while (bias := self.arrays.get(f"hidden.{len(sizes)}.bias")) is not None:
            sizes.append(len(bias))
        return sizes

    @property
    def shares_layers(self) -> bool:
        """Whether the value function sits on the policy's hidden layers."""
        return "value_hidden.0.kernel" not in self.arrays

    @property
    def free_log_std(self) -> bool:
        """Whether the standard deviations are free parameters."""
        return "log_std" in self.arrays

    @property
    def inputs(self) -> int:
        """How many numbers the network takes: the size of the preprocessed observation."""
        first = "hidden.0.kernel" if self.hiddens else "logits.kernel"
        return int(self.arrays[first].shape[0])

    @property
    def outputs(self) -> int:
        """How many numbers the action distribution gets, log standard deviations included."""
        return len(self.arrays["logits.bias"]) + len(self.arrays.get("log_std", ()))

    @property
    def parameters(self) -> int:
        """How many numbers it was trained in."""
        return sum(array.size for array in self.arrays.values())

    def describe(self) -> str:
        """One line for tables: `fc 4-32-32-2 relu, own value network`."""
        sizes = "-".join(map(str, [self.inputs, *self.hiddens, self.outputs]))
        value = "shared value layers" if self.shares_layers else "own value network"
        free = ", free log std" if self.free_log_std else ""
        return f"fc {sizes} {self.activation}, {value}{free}"

    def forward(self, observations: Array) -> Outputs:
        """Computes the outputs in float64.

        Args:
            observations: `[B, inputs]`, preprocessed and filtered.
        """
        act = activation(self.activation, where="model.fcnet_activation").numpy

        def layer(name: str, x: Array) -> Array:
            kernel, bias = self.arrays[f"{name}.kernel"], self.arrays[f"{name}.bias"]
            return np.asarray(x @ kernel.astype(np.float64) + bias)

        def stack(prefix: str) -> Array:
            x = np.asarray(observations, np.float64)
            for i in range(len(self.hiddens)):
                x = act(layer(f"{prefix}.{i}", x))
            return x

        hidden = stack("hidden")
        value_hidden = hidden if self.shares_layers else stack("value_hidden")
        logits = layer("logits", hidden)
        if self.free_log_std:
            log_std = np.broadcast_to(self.arrays["log_std"], (len(logits), logits.shape[1]))
            logits = np.concatenate([logits, log_std], axis=1)
        return Outputs(logits, layer("value", value_hidden)[:, 0])

    def model_config(self) -> dict[str, Any]:
        """What `DefaultModelConfig` has to say for the installed Ray to build the same network."""
        return {
            "fcnet_hiddens": self.hiddens,
            "fcnet_activation": activation(self.activation, where="model").target,
            "head_fcnet_hiddens": [],
            "vf_share_layers": self.shares_layers,
            "free_log_std": self.free_log_std,
            # Legacy networks did not clip; today's default of 20 never binds in practice, but a
            # conversion has to be exact for any number.
            "log_std_clip_param": float("inf"),
        }

    def module_state(self) -> dict[str, Array]:
        """The weights as today's default PPO module has them."""
        return self.for_module(self.arrays)

    def for_module(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Arrays under the names of today's default PPO module, kernels as `[out, in]`.

        Args:
            arrays: Weights of this network, or what is kept for each of them.
        """
        linear = activation(self.activation, where="model").target == "linear"
        table = _rl_module(shares_layers=self.shares_layers, linear=linear)
        return {k: v.astype(np.float32) for k, v in from_canonical(table, arrays).items()}
