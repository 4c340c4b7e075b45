"""The names of an LSTM wrapper's arrays in every scheme, and names for those that had none.

Canonical arrays beside those of the trunk; gates in the order input, forget, cell, output::

    lstm.kernel    lstm.recurrent_kernel    lstm.bias    lstm.recurrent_bias (torch only)
    logits.kernel  logits.bias              value.kernel value.bias   (both on the LSTM's output)

A value function of its own, which had no memory (TensorFlow, Ray 0.5 – 0.8.4, `vf_share_layers`
off), has the trunk's names with the prefix `value_`, and ends in `value_out`. Up to Ray 0.6 it saw
the observation, from 0.7 on the trunk's features (`modelv1_compat.py` took the wrong input).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from rllib_compat.checkpoints.state import PolicyState
from rllib_compat.errors import MissingInformationError, NotYetError
from rllib_compat.networks.conv_filters import filters_for
from rllib_compat.networks.families.unnamed import Rows, cut_vector, scalars_of
from rllib_compat.networks.graph import Array
from rllib_compat.networks.images import preprocessed_image
from rllib_compat.networks.mapping import TRANSPOSED, Change, Move, Table, keras, torch_dense
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunk_complex import COMPLEX, dead_names
from rllib_compat.networks.trunks import FULLY_CONNECTED, Trunk
from rllib_compat.networks.wrappers import choices_of

#: tf.contrib's and tf.layers' cells of Ray 0.5 – 0.8.4. `_split` has parted their kernels.
_CELL = re.compile(r"rnn/(?:basic_)?lstm_cell/(kernel|bias)")

#: Arrays of the wrapped model that Ray made and nothing reads, by scheme.
_DEAD = {
    "slim": r"fc_out/.*",
    "layers": r"default_model/fc_out/.*",
    "keras": r"fc_value_\d+/.*|conv_value_.*|value_out/.*",
    "torch": r"_value_branch_separate\..*",
}
#: With convolutions, up to 0.8.4, the head was called `fc2`.
_DEAD_CONVOLUTION = {"slim": r"fc2/.*", "layers": r"default_model/fc2/.*"}


def _swap_gates(x: Array) -> Array:
    """Between the old cells' gates (input, cell, forget, output) and ours; its own reverse."""
    i, j, f, o = np.split(x, 4, axis=-1)
    return np.concatenate([i, f, j, o], axis=-1)


def _forget_bias(bias: Array) -> Array:
    """What the old cells added to the forget gate when they ran."""
    size = len(bias) // 4
    return np.repeat([0.0, 1.0, 0.0, 0.0], size)


_OLD_GATES = Change(_swap_gates, _swap_gates)
_OLD_BIAS = Change(
    lambda x: _swap_gates(x) + _forget_bias(x), lambda x: _swap_gates(x - _forget_bias(x))
)


_HEADS_OF_OLD = (
    Move("action/w", "logits.kernel"),
    Move("action/b", "logits.bias"),
    Move("cell/kernel", "lstm.kernel", _OLD_GATES),
    Move("cell/recurrent_kernel", "lstm.recurrent_kernel", _OLD_GATES),
    Move("cell/bias", "lstm.bias", _OLD_BIAS),
)
#: With convolutions, the value function's head was one of 1 x 1.
_CONVOLUTION_HEAD = (
    Move(
        "value_function/fc2/weights",
        "value_out.kernel",
        Change(lambda x: x.reshape(x.shape[-2:]), lambda x: x[None, None]),
    ),
    Move("value_function/fc2/biases", "value_out.bias"),
)


def _keras_cell(theirs: str) -> Table:
    return tuple(
        Move(f"{theirs}/{part}", f"lstm.{part}") for part in ("kernel", "recurrent_kernel", "bias")
    )


#: By scheme, the rows beside the trunk's.
LSTM_TABLES: Mapping[str, Table] = {
    "slim": (
        *_HEADS_OF_OLD,
        Move("value/w", "value.kernel"),
        Move("value/b", "value.bias"),
        Move("value_function/fc_out/weights", "value_out.kernel"),
        Move("value_function/fc_out/biases", "value_out.bias"),
    ),
    "layers": (
        *(Move(f"default_model/{m.theirs}", m.ours, m.change) for m in _HEADS_OF_OLD),
        Move("default_model/value_function/value_function/w", "value.kernel"),
        Move("default_model/value_function/value_function/b", "value.bias"),
        *keras("default_model/value_function/fc_out", "value_out"),
        *keras("default_model/value_function/fc{i+1}", "value_hidden.{i}"),
    ),
    "keras": (
        # TensorFlow 1 and 2.0, and TensorFlow from 2.2 on
        *_keras_cell("lstm"),
        *_keras_cell("lstm/lstm_cell"),
        *keras("logits", "logits"),
        *keras("values", "value"),
    ),
    "torch": (
        Move("lstm.weight_ih_l0", "lstm.kernel", TRANSPOSED),
        Move("lstm.weight_hh_l0", "lstm.recurrent_kernel", TRANSPOSED),
        Move("lstm.bias_ih_l0", "lstm.bias"),
        Move("lstm.bias_hh_l0", "lstm.recurrent_bias"),
        *torch_dense("_logits_branch._model.0", "logits"),
        *torch_dense("_value_branch._model.0", "value"),
    ),
}


def scheme_of(names: Iterable[str]) -> str:
    """Which code named the arrays of a wrapper."""
    found = tuple(names)
    if any(name.startswith("default_model/") for name in found):
        return "layers"
    if any(name.startswith("cell/") for name in found):
        return "slim"
    return "torch" if any("weight_ih" in name for name in found) else "keras"


def table(trunk: Trunk, scheme: str) -> Table:
    """The names of a whole wrapper in one scheme."""
    if scheme != "layers" and scheme != "slim":
        return (*LSTM_TABLES[scheme], *trunk.tables[scheme])
    slim = trunk.tables["slim"]
    own = tuple(
        Move(f"value_function/{m.theirs}", f"value_{m.ours}", m.change)
        for m in slim
        if "fc_out" not in m.theirs
    )
    if scheme == "slim":
        head = () if trunk is FULLY_CONNECTED else _CONVOLUTION_HEAD
        return (*LSTM_TABLES["slim"], *head, *own, *slim)
    renamed = (
        Move(f"default_model/{_as_layers(m.theirs)}", m.ours, m.change)
        for m in slim
        if "fc_out" not in m.theirs
    )
    return (*LSTM_TABLES["layers"], *renamed)


def _as_layers(slim: str) -> str:
    """What tf.layers called an array of tf.contrib.slim."""
    return slim.replace("/weights", "/kernel").replace("/biases", "/bias")


def split_cells(plain: Mapping[str, Array]) -> dict[str, Array]:
    """Parts the kernel of an old cell `[in + n, 4 n]` into that of its input and of its state."""
    out: dict[str, Array] = {}
    for name, array in plain.items():
        found = _CELL.search(name)
        if found is None:
            out[name] = array
            continue
        cell = name[: found.start()] + "cell/"
        if found[1] == "kernel":
            size = array.shape[1] // 4
            out[f"{cell}kernel"], out[f"{cell}recurrent_kernel"] = array[:-size], array[-size:]
        else:
            out[f"{cell}bias"] = array
    return out


def dead(trunk: Trunk, scheme: str, names: Iterable[str]) -> list[str]:
    """The names of arrays that nothing reads."""
    if trunk is COMPLEX:
        return dead_names(names, heads=False)
    patterns = [_DEAD[scheme]]
    if trunk is not FULLY_CONNECTED and scheme in _DEAD_CONVOLUTION:
        patterns.append(_DEAD_CONVOLUTION[scheme])
    pattern = re.compile("|".join(patterns))
    return [name for name in names if pattern.fullmatch(name)]


def name_list(
    arrays: list[Array], policy: PolicyState, settings: ModelSettings
) -> dict[str, Array]:
    """Names the arrays of a TF2 policy (Ray 1.x): keras' order, the wrapped model first.

    Raises:
        NotYetError: The wrapped model is not fully connected.
    """
    layers = len(settings.hiddens if settings.hiddens is not None else (256, 256))
    for own_value in (False, True):
        # keras sorts a model's layers by their distance from its outputs. The last hidden layer
        # is one itself, unless the value function sits on it.
        away = {f"fc_{i + 1}": layers - i - own_value for i in range(layers)}
        if own_value:
            away |= {f"fc_value_{i + 1}": layers - i for i in range(layers)}
        away["value_out"] = 0
        base = sorted(away, key=lambda name: -away[name])
        names = [f"{name}/{part}" for name in base for part in ("kernel", "bias")]
        cell = [f"lstm/lstm_cell/{part}" for part in ("kernel", "recurrent_kernel", "bias")]
        names += [*cell, "logits/kernel", "logits/bias", "values/kernel", "values/bias"]
        if len(names) == len(arrays):
            return dict(zip(names, arrays, strict=True))
    raise NotYetError(
        f"Not yet: an LSTM of TF2 with {len(arrays)} unnamed arrays around {layers} hidden layers.",
        where=f"policies.{policy.policy_id}.weights",
        fix="`--to msgpack` keeps all weights.",
    )


def name_vector(
    vector: Array, trunk: Trunk, policy: PolicyState, settings: ModelSettings
) -> tuple[dict[str, Array], dict[str, float]]:
    """Cuts the flat vector of a TensorFlow policy (Ray 0.5 – 0.7) into named arrays.

    Returns:
        The arrays under the names of their variables, and the scalars found between them.

    Raises:
        MissingInformationError: The spaces have to be given.
        NotYetError: The vector has a length that no such network has.
    """
    where = f"policies.{policy.policy_id}.weights"
    if policy.observation_space is None or policy.action_space is None:
        raise MissingInformationError(
            f"The weights are one vector of {vector.size} numbers without names; the spaces are "
            "needed to cut it.",
            where=where,
            fix="Give --observation-space and --action-space, or --env CartPole-v1.",
        )
    scalars = scalars_of(settings)
    between: Rows = [(name, ()) for name in scalars]
    for scheme, policy_rows, value_rows in _layouts(trunk, policy, settings):
        # Ray 0.7 made the value function last, after the scalars of the loss.
        for rows in ([*policy_rows, *between], policy_rows):
            cut = cut_vector(vector, rows, value_rows, scalars)
            if cut is not None:
                prefix = "default_model/" if scheme == "layers" else ""
                return {prefix + name: array for name, array in cut[0].items()}, cut[1]
    raise NotYetError(
        f"Not yet: a vector of {vector.size} numbers that is no LSTM around the config's network.",
        where=where,
        fix="Check that the config (params.json) and the spaces belong to this checkpoint; "
        "`--to msgpack` keeps all weights.",
    )


def _layouts(
    trunk: Trunk, policy: PolicyState, settings: ModelSettings
) -> Iterator[tuple[str, Rows, Rows]]:
    """Scheme, the policy's rows and the value function's, for each layout that there was."""
    model = settings.model
    size = int(model.get("lstm_cell_size", 256))
    assert policy.observation_space is not None
    assert policy.action_space is not None
    outputs = distribution_inputs(policy.action_space) or 0
    extra = 0
    if model.get("lstm_use_prev_action_reward") is True:
        extra = len(choices_of(policy.action_space)) + 1
    observation = policy.observation_space.flat_size()
    hiddens = settings.hiddens if settings.hiddens is not None else (256, 256)
    base, features = (
        dense_rows("", observation, hiddens)
        if trunk is FULLY_CONNECTED
        else _convolution_rows("", policy, settings)
    )
    rows = [
        *base,
        ("rnn/lstm_cell/kernel", (features + extra + size, 4 * size)),
        ("rnn/lstm_cell/bias", (4 * size,)),
        ("action/w", (size, outputs)),
        ("action/b", (outputs,)),
    ]
    if settings.shares_layers:
        yield "layers", rows, _head("value_function/value_function/{}", ("w", "b"), size)
        # The same as `layers`, where no names are there to tell.
    else:
        # Ray 0.7 made an entropy coefficient, too, so that the two are never of one length.
        own, last = dense_rows("value_function/", features, hiddens)
        yield "layers", rows, [*own, *_head("value_function/fc_out/{}", ("kernel", "bias"), last)]
        if trunk is FULLY_CONNECTED:
            own, last = dense_rows("value_function/", observation, hiddens, slim=True)
            head = _head("value_function/fc_out/{}", ("weights", "biases"), last)
        else:
            own, last = _convolution_rows("value_function/", policy, settings)
            head = [("value_function/fc2/weights", (1, 1, last, 1))]
            head += [("value_function/fc2/biases", (1,))]
        yield "slim", [(_as_slim(name), shape) for name, shape in rows], [*own, *head]
    yield "layers", rows, []


def _as_slim(layers: str) -> str:
    if "rnn/" in layers:
        return layers
    return layers.replace("/kernel", "/weights").replace("/bias", "/biases")


def dense_rows(
    prefix: str, inputs: int, hiddens: tuple[int, ...], *, slim: bool = False
) -> tuple[Rows, int]:
    """Names and shapes of a stack of dense layers, and the size of the last one."""
    rows: Rows = []
    kernel, bias = ("weights", "biases") if slim else ("kernel", "bias")
    for i, hidden in enumerate(hiddens, start=1):
        rows += [(f"{prefix}fc{i}/{kernel}", (inputs, hidden))]
        rows += [(f"{prefix}fc{i}/{bias}", (hidden,))]
        inputs = hidden
    return rows, inputs


def _convolution_rows(
    prefix: str, policy: PolicyState, settings: ModelSettings
) -> tuple[Rows, int]:
    """Names and shapes of the convolutions, and how many channels the last one makes."""
    image = preprocessed_image(policy.observation_space, settings)
    assert image is not None
    filters = filters_for(settings.model, image)
    rows: Rows = []
    kernel, bias = ("weights", "biases") if prefix else ("kernel", "bias")
    channels = image[-1]
    for number, filter_ in enumerate(filters, start=1):
        name = "fc1" if number == len(filters) else f"conv{number}"
        rows += [(f"{prefix}{name}/{kernel}", (*filter_.kernel, channels, filter_.channels))]
        rows += [(f"{prefix}{name}/{bias}", (filter_.channels,))]
        channels = filter_.channels
    return rows, channels


def _head(name: str, parts: tuple[str, str], size: int) -> Rows:
    kernel, bias = parts
    return [(name.format(kernel), (size, 1)), (name.format(bias), (1,))]
