"""What the steps of a network compute, in numpy and float64.

An operation takes its own arrays by part, its settings, and the values that go in. Leading axes
(batch, or batch and time) pass through. `in_torch` beside has the same operations in torch, written
for themselves: a conversion is proven by comparing the two.

Activation functions have their legacy names: RLlib took any attribute of `tf.nn`, and of `torch.nn`
a few lower-case names. Where TensorFlow and torch differ by a constant (leaky_relu: slope 0.2
against 0.01), the function is left out rather than converted wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np

from rllib_compat.neutral.checkpoint import cut_to_integers
from rllib_compat.neutral.errors import NotYetError
from rllib_compat.neutral.frozen import frozen

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Own: TypeAlias = Mapping[str, Array]
Settings: TypeAlias = Mapping[str, Any]

#: The operations by name; those of `in_torch` and `in_onnx` have the same names.
OPS: dict[str, Callable[..., Any]] = {}

_Operation = TypeVar("_Operation", bound=Callable[..., Any])


def operation(function: _Operation) -> _Operation:
    """Makes a function an operation of graphs, under its own name."""
    OPS[function.__name__] = function
    return function


def sigmoid(x: Array) -> Array:
    """The logistic function, without overflow for large |x|."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


@frozen
class Activation:
    """One activation function.

    Attributes:
        numpy: It, on arrays.
        target: Its name in today's model configs; `linear` means none.
    """

    numpy: Callable[[Array], Array]
    target: str


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


_SWISH = Activation(lambda x: x * sigmoid(x), "swish")
_LINEAR = Activation(lambda x: x, "linear")
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

ACTIVATIONS: dict[str, Activation] = {
    "linear": _LINEAR,
    "relu": Activation(lambda x: np.maximum(x, 0), "relu"),
    "tanh": Activation(np.tanh, "tanh"),
    "swish": _SWISH,
    "silu": _SWISH,
    "elu": Activation(_elu, "ELU"),
    "selu": Activation(
        lambda x: _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(np.minimum(x, 0))), "SELU"
    ),
    "sigmoid": Activation(sigmoid, "Sigmoid"),
    "softplus": Activation(lambda x: np.logaddexp(x, 0), "Softplus"),
    "softsign": Activation(lambda x: x / (1 + np.abs(x)), "Softsign"),
    "relu6": Activation(lambda x: np.clip(x, 0, 6), "ReLU6"),
}


def activation(name: object, *, where: str) -> Activation:
    """Looks an activation up by what a legacy config calls it (None means linear).

    Raises:
        NotYetError: The function is not in the table.
    """
    found = ACTIVATIONS.get(str(name).lower()) if name is not None else _LINEAR
    if found is None:
        raise NotYetError(
            f"Not supported yet: the activation function {name!r}.",
            where=where,
            fix=f"Known are {', '.join(ACTIVATIONS)}.",
        )
    return found


def _act(x: Array, settings: Settings) -> Array:
    return activation(settings.get("activation"), where="model").numpy(x)


@operation
def dense(own: Own, settings: Settings, x: Array) -> Array:
    """A fully connected layer; arrays: kernel `[in, out]`, bias `[out]` (if it has one)."""
    out = x @ own["kernel"]
    if "bias" in own:
        out = out + own["bias"]
    return _act(out, settings)


@operation
def conv(own: Own, settings: Settings, x: Array) -> Array:
    """A convolution over `[..., h, w, c]`; arrays: kernel `[h, w, in, out]`, bias `[out]`.

    Settings: `stride` (rows, columns) and `padding` ((top, bottom), (left, right)); a negative
    padding cuts off, as torch's does.
    """
    kernel = own["kernel"]
    lead = x.shape[:-3]
    x = x.reshape(-1, *x.shape[-3:])
    (top, bottom), (left, right) = settings["padding"]
    x = x[:, max(-top, 0) : x.shape[1] - max(-bottom, 0)]
    x = x[:, :, max(-left, 0) : x.shape[2] - max(-right, 0)]
    x = np.pad(x, ((0, 0), (max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0)), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], axis=(1, 2))
    rows, columns = settings["stride"]
    windows = windows[:, ::rows, ::columns]
    out = np.tensordot(windows, kernel, axes=([4, 5, 3], [0, 1, 2]))
    if "bias" in own:
        out = out + own["bias"]
    return _act(out.reshape(*lead, *out.shape[1:]), settings)


@operation
def flatten(own: Own, settings: Settings, x: Array) -> Array:
    """An image `[..., h, w, c]` as a vector; `channels_first`: in torch's order (c, h, w)."""
    if settings.get("channels_first"):
        x = np.moveaxis(x, -1, -3)
    return x.reshape(*x.shape[:-3], -1)


@operation
def concat(own: Own, settings: Settings, *values: Array) -> Array:
    """Vectors one after the other."""
    return np.concatenate(values, axis=-1)


@operation
def cut(own: Own, settings: Settings, x: Array) -> Array:
    """A part of a vector, `start` to `stop`, in the shape `shape`."""
    return x[..., settings["start"] : settings["stop"]].reshape(*x.shape[:-1], *settings["shape"])


@operation
def free_log_std(own: Own, settings: Settings, x: Array) -> Array:
    """Means, and behind them log standard deviations that are parameters; array: value `[n]`."""
    value = np.broadcast_to(own["value"], (*x.shape[:-1], len(own["value"])))
    return np.concatenate([x, value], axis=-1)


@operation
def scalar(own: Own, settings: Settings, x: Array) -> Array:
    """The only number of a vector of one."""
    return x[..., 0]


@operation
def divide(own: Own, settings: Settings, x: Array) -> Array:
    """Numbers divided by a constant: `by`."""
    return np.asarray(x / settings["by"])


@operation
def swish(own: Own, settings: Settings, x: Array) -> Array:
    """RLlib's own swish `x · sigmoid(slope · x)`; array: the trained slope, one number.

    Ray 1.0 – 2.0 on torch (`models/torch/modules/…`, `Swish`).
    """
    return np.asarray(x * sigmoid(own["slope"] * x))


@operation
def ravel(own: Own, settings: Settings, x: Array) -> Array:
    """The last `axes` axes as one."""
    return x.reshape(*x.shape[: -settings["axes"]], -1)


@operation
def sloped_dense(own: Own, settings: Settings, x: Array) -> Array:
    """A layer with RLlib's own swish `x · sigmoid(beta · x)`; arrays: kernel, bias, beta `[1]`.

    Ray 1.0 – 2.x trained the slope on torch (`models/torch/misc.py`).
    """
    out = x @ own["kernel"] + own["bias"]
    return np.asarray(out * sigmoid(own["beta"] * out))


@operation
def activate(own: Own, settings: Settings, x: Array) -> Array:
    """An activation function by itself."""
    return activation(settings.get("activation"), where="model").numpy(x)


@operation
def squash(own: Own, settings: Settings, x: Array) -> Array:
    """Numbers squashed into the range of the actions: `low + range · sigmoid(factor · x)`."""
    low, size = np.asarray(settings["low"]), np.asarray(settings["range"])
    return np.asarray(low + size * sigmoid(settings["factor"] * x))


@operation
def softplus_log_std(own: Own, settings: Settings, x: Array) -> Array:
    """Means, and logs of standard deviations that were `softplus(x) + shift`, x clipped.

    That was how Ray 0.7 and 0.8.0 made a normal distribution of an output
    (`agents/sac/sac_model.py`, tensorflow-probability's `MultivariateNormalTriL`).
    """
    mean, raw = np.split(x, 2, axis=-1)
    raw = np.clip(raw, settings["low"], settings["high"])
    log_std = np.log(np.logaddexp(raw, 0) + settings["shift"])
    return np.concatenate([mean, log_std], axis=-1)


@operation
def normalize(own: Own, settings: Settings, x: Array) -> Array:
    """`MeanStdFilter`; arrays: mean and std, of an observation's shape.

    Settings, as the filter had them: `demean`, `destd`, `clip` (None: it does not), `epsilon`; and
    `integers`, the type that it cuts to, where it does.
    """
    if settings["demean"]:
        x = x - own["mean"]
    if settings["destd"]:
        x = x / (own["std"] + settings["epsilon"])
    if (clip := settings["clip"]) is not None:
        x = np.clip(x, -clip, clip)
    return cut_to_integers(x, settings.get("integers"))


@operation
def noisy_dense(own: Own, settings: Settings, x: Array) -> Array:
    """A layer of a noisy net without its noise: what it computes on average before activation.

    Arrays: kernel `[in, out]`, bias `[out]`; `sigma_kernel` and `sigma_bias`, which scale the
    noise, of the same shapes.
    """
    return _act(x @ own["kernel"] + own["bias"], settings)


@operation
def layer_norm(own: Own, settings: Settings, x: Array) -> Array:
    """Normalises each vector; arrays: gamma, beta `[n]`; settings: `epsilon`, `activation`."""
    return _act(_layer_norm(x, own["gamma"], own["beta"], settings["epsilon"]), settings)


@operation
def dueling(own: Own, settings: Settings, advantages: Array, value: Array) -> Array:
    """Advantages `[…, actions]`, centred over the actions, and a state's value `[…, 1]`."""
    return np.asarray(advantages - advantages.mean(-1, keepdims=True) + value)


@operation
def atoms(own: Own, settings: Settings, advantages: Array, state: Array | None = None) -> Array:
    """The logits of each action's distribution, `[…, actions, atoms]`.

    Takes the advantages `[…, actions * atoms]` and, of a dueling network, the state's logits
    `[…, atoms]` (or `[…, 1]`: Ray 1.0 on torch, and the new API stack). Setting `centred`: the
    axis over which the advantages are centred, -2 (actions) or -1 (atoms).
    """
    logits = advantages.reshape(*advantages.shape[:-1], -1, settings["num_atoms"])
    if state is None:
        return logits
    centred = logits - logits.mean(settings["centred"], keepdims=True)
    return np.asarray(centred + state[..., None, :])


@operation
def expectation(own: Own, settings: Settings, logits: Array) -> Array:
    """The mean of each distribution over the atoms from `v_min` to `v_max`."""
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    support = np.linspace(settings["v_min"], settings["v_max"], logits.shape[-1])
    return np.asarray((weights * support).sum(-1) / weights.sum(-1))


#: What the gates of an LSTM are squashed by. keras did it the hard way up to TensorFlow 1.15.
GATES: dict[str, Callable[[Array], Array]] = {
    "sigmoid": sigmoid,
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0.0, 1.0),
}


@operation
def lstm(
    own: Own, settings: Settings, x: Array, h: Array, c: Array
) -> tuple[Array, dict[str, Array]]:
    """An LSTM over `x` `[B, T, in]` from the states `h` and `c` `[B, n]`.

    Arrays: kernel `[in, 4 n]`, recurrent_kernel `[n, 4 n]`, bias `[4 n]`, and torch's second bias
    (recurrent_bias); gates in the order input, forget, cell, output. Setting: `gates`.
    """
    gate = GATES[settings.get("gates", "sigmoid")]
    inputs = x @ own["kernel"] + own["bias"] + own.get("recurrent_bias", 0.0)
    outputs = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(inputs[:, t] + h @ own["recurrent_kernel"], 4, axis=-1)
        c = gate(f) * c + gate(i) * np.tanh(g)
        h = gate(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs, axis=1), {"h": h, "c": c}


@operation
def one_hot(own: Own, settings: Settings, x: Array) -> Array:
    """Flattened actions `[..., k]` as networks take them.

    Setting: `parts`, for each of the `k` numbers how many choices it had; 0: it is taken as it is.
    """
    columns = [
        (np.rint(x[..., k, None]) == np.arange(choices)) if choices else x[..., k, None]
        for k, choices in enumerate(settings["parts"])
    ]
    return np.concatenate([np.asarray(column, np.float64) for column in columns], axis=-1)


@operation
def relative_attention(
    own: Own, settings: Settings, x: Array, memory: Array
) -> tuple[Array, dict[str, Array]]:
    """Multi-head attention over `x` `[B, T, n]` and a memory `[B, M, n]` of what `x` was before.

    Step t sees the whole memory, and the steps up to itself. The next memory is the last `M` of
    both. Heads have `d` numbers each; there are `h`.

    Arrays: gamma, beta `[n]` of the layer norm; qkv `[n, 3 h d]`, pos `[n, h d]`, out `[h d, n]`;
    u and v `[h, d]`, which are added to the queries. Setting: `epsilon` of the layer norm.
    """
    seen = np.concatenate([memory, x], axis=1)
    normed = _layer_norm(seen, own["gamma"], own["beta"], settings["epsilon"])
    queries, keys, contents = (
        _heads(part, own["u"]) for part in np.split(normed @ own["qkv"], 3, -1)
    )
    queries = queries[:, memory.shape[1] :]
    places = _heads(positions(seen.shape[1], x.shape[-1]) @ own["pos"], own["u"])
    score = np.einsum("bihd,bjhd->bijh", queries + own["u"], keys)
    score = score + shift(np.einsum("bihd,jhd->bijh", queries + own["v"], places))
    weights = _softmax(_without_later(score / np.sqrt(own["u"].shape[1])))
    out = np.einsum("bijh,bjhd->bihd", weights, contents)
    out = np.maximum(out.reshape(*x.shape[:2], -1) @ own["out"], 0)
    return out, {"memory": seen[:, seen.shape[1] - memory.shape[1] :]}


def positions(length: int, size: int) -> Array:
    """Sinusoids `[length, size]` of how far away a step is: the last row is the step itself."""
    steps_back = np.arange(length)[::-1]
    wavelengths = np.power(10000.0, np.arange(0, size, 2) / size)
    angles = np.divide.outer(steps_back, wavelengths)
    return np.hstack([np.sin(angles), np.cos(angles)])


def shift(score: Array) -> Array:
    """Moves the scores of positions `[B, T, M + T, h]` so that each step counts from itself."""
    steps, seen = score.shape[1:3]
    # The last row of positions is the step itself: that of the last step stays where it is.
    sources = np.arange(seen) + np.arange(steps)[::-1, None]
    sources = np.minimum(sources, seen - 1)  # later steps, which are masked
    return np.take_along_axis(score, sources[None, :, :, None], axis=2)


@operation
def gru_gate(own: Own, settings: Settings, h: Array, x: Array) -> Array:
    """A residual connection around a layer: takes what went in, `h`, and what came out, `x`.

    Arrays: w_r, w_z, w_h, u_r, u_z, u_h `[n, n]`, bias_z `[n]`.
    """
    r = sigmoid(x @ own["w_r"] + h @ own["u_r"])
    z = sigmoid(x @ own["w_z"] + h @ own["u_z"] - own["bias_z"])
    return np.asarray((1 - z) * h + z * np.tanh(x @ own["w_h"] + (h * r) @ own["u_h"]))


def _layer_norm(x: Array, gamma: Array, beta: Array, epsilon: float) -> Array:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(variance + epsilon) * gamma + beta)


def _heads(x: Array, like: Array) -> Array:
    """`[…, h d]` as `[…, h, d]`."""
    return x.reshape(*x.shape[:-1], *like.shape)


def _without_later(score: Array) -> Array:
    """Scores `[B, T, M + T, h]` where no step sees a later one."""
    steps, seen = score.shape[1:3]
    visible = np.tri(steps, seen, seen - steps, dtype=bool)[None, :, :, None]
    return np.where(visible, score, -1e30)


def _softmax(score: Array) -> Array:
    """Over what is seen, axis 2."""
    powers = np.exp(score - score.max(axis=2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=2, keepdims=True))


@operation
def linear_bandit(own: Own, settings: Settings, x: Array) -> Array:
    """The reward that each arm is expected to bring, and a bonus for what is not known of it.

    Arrays, one row for each regression: theta `[k, d]` and covariance `[k, d, d]`; precision and f,
    from which these follow, only have to be of their shapes. It takes what is observed: `[…, d]`
    of k arms, or a table `[…, n, d]` of n items, for which there is one regression. Settings:
    `bonus`, how many standard deviations are added; `times`, how often the expectation counts.
    """
    theta, covariance = own["theta"], own["covariance"]
    arms, size = theta.shape
    if own["f"].shape != (arms, size) or own["precision"].shape != covariance.shape:
        raise ValueError("the parts of the posterior are of different sizes")
    if covariance.shape != (arms, size, size):
        raise ValueError(f"a covariance of the shape {covariance.shape} for {arms} of {size}")
    if settings["items"]:
        scores, wide = x @ theta[0], np.sum(x @ covariance[0] * x, -1)
    else:
        scores, wide = x @ theta.T, np.einsum("...d,kde,...e->...k", x, covariance, x)
    return np.asarray(settings["times"] * scores + settings["bonus"] * np.sqrt(wide))
