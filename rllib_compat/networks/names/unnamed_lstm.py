"""Names for the arrays of an LSTM wrapper that were stored without any.

Ray 0.5 – 0.7 stored a TensorFlow policy as one flat float32 vector, Ray 1.x a TF2 policy as a list.
"""

from __future__ import annotations

from collections.abc import Iterator

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array
from rllib_compat.networks.named import where_of
from rllib_compat.networks.names.unnamed import (
    DEFAULT_HIDDENS,
    Rows,
    cut_vector,
    keras_order,
    scalars_of,
)
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.conv_filters import filters_for
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.trunks.images import preprocessed_image
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.networks.wrappers.previous_steps import choices_of
from rllib_compat.neutral.checkpoint import PolicyState


def name_list(
    arrays: list[Array], policy: PolicyState, settings: ModelSettings
) -> dict[str, Array]:
    """Names the arrays of a TF2 policy (Ray 1.x): keras' order, the wrapped model first.

    Raises:
        NotYetError: The wrapped model is not fully connected.
    """
    layers = len(DEFAULT_HIDDENS if settings.hiddens is None else settings.hiddens)
    for own_value in (False, True):
        # The last hidden layer is an output itself, unless the value function sits on it.
        hidden = [f"fc_{i + 1}" for i in range(layers)]
        value = [f"fc_value_{i + 1}" for i in range(layers)] if own_value else []
        base = keras_order((hidden, 1 - own_value), ([*value, "value_out"], 0))
        names = [f"{name}/{part}" for name in base for part in ("kernel", "bias")]
        cell = [f"lstm/lstm_cell/{part}" for part in ("kernel", "recurrent_kernel", "bias")]
        names += [*cell, "logits/kernel", "logits/bias", "values/kernel", "values/bias"]
        if len(names) == len(arrays):
            return dict(zip(names, arrays, strict=True))
    raise refusals.not_yet(
        f"an LSTM of TF2 with {len(arrays)} unnamed arrays around {layers} hidden layers",
        where_of(policy),
    )


def name_vector(
    vector: Array, policy: PolicyState, settings: ModelSettings
) -> tuple[dict[str, Array], dict[str, float]]:
    """Cuts the flat vector of a TensorFlow policy (Ray 0.5 – 0.7) into named arrays.

    Returns:
        The arrays under the names of their variables, and the scalars found between them.

    Raises:
        MissingInformationError: The spaces have to be given.
        CheckpointError: The vector has a length that no such network has.
    """
    where = where_of(policy)
    if policy.observation_space is None or policy.action_space is None:
        raise refusals.needed(
            f"The weights are one vector of {vector.size} numbers without names; the spaces are "
            "needed to cut it.",
            "both",
            where,
        )
    trunk = VISION if len(getattr(policy.observation_space, "shape", ())) == 3 else DENSE
    scalars = scalars_of(settings)
    between: Rows = [(name, ()) for name in scalars]
    for scheme, policy_rows, value_rows in _layouts(trunk, policy, settings):
        # Ray 0.7 made the value function last, after the scalars of the loss.
        for rows in ([*policy_rows, *between], policy_rows):
            cut = cut_vector(vector, rows, value_rows, scalars)
            if cut is not None:
                prefix = "default_model/" if scheme == "layers" else ""
                return {prefix + name: array for name, array in cut[0].items()}, cut[1]
    raise refusals.no_fit(
        f"The vector of {vector.size} numbers", "LSTM around the config's network", where
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
    if model.get("lstm_use_prev_action_reward"):
        extra = len(choices_of(policy.action_space)) + 1
    observation = policy.observation_space.flat_size()
    hiddens = DEFAULT_HIDDENS if settings.hiddens is None else settings.hiddens
    base, features = (
        dense_rows("", observation, hiddens)
        if trunk is DENSE
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
        if trunk is DENSE:
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
