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
    conv_rows,
    cut_vector,
    dense_rows,
    keras_order,
    scalars_of,
)
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.conv_filters import Filter, filters_for
from rllib_compat.networks.trunks.images import preprocessed_image
from rllib_compat.networks.wrappers.previous_steps import choices_of
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.spaces import Space

#: By scheme (see `names.lstm`), the scope of all variables, and what a layer's two were called.
_CALLED = {"layers": ("default_model/", "kernel", "bias"), "slim": ("", "weights", "biases")}


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
    where, seen, acts = where_of(policy), policy.observation_space, policy.action_space
    if seen is None or acts is None:
        raise refusals.needed(
            f"The weights are one vector of {vector.size} numbers without names; the spaces are "
            "needed to cut it.",
            "both",
            where,
        )
    scalars = scalars_of(settings)
    between: Rows = [(name, ()) for name in scalars]
    for policy_rows, value_rows in _layouts(seen, acts, settings):
        # Ray 0.7 made the value function last, after the scalars of the loss.
        for rows in ([*policy_rows, *between], policy_rows):
            if found := cut_vector(vector, rows, value_rows, scalars):
                return found
    raise refusals.no_fit(
        f"The vector of {vector.size} numbers", "LSTM around the config's network", where
    )


def _layouts(seen: Space, acts: Space, settings: ModelSettings) -> Iterator[tuple[Rows, Rows]]:
    """The policy's rows and the value function's, for each layout that there was."""
    model = settings.model
    size, outputs = int(model.get("lstm_cell_size", 256)), distribution_inputs(acts) or 0
    extra = len(choices_of(acts)) + 1 if model.get("lstm_use_prev_action_reward") else 0
    hiddens = DEFAULT_HIDDENS if settings.hiddens is None else settings.hiddens
    dense = [f"fc{i + 1}" for i in range(len(hiddens))]
    image = preprocessed_image(seen, settings)
    if image is None:
        inputs = (seen.flat_size(), *hiddens)
        base, features = dense_rows(dense, inputs), inputs[-1]
        slim_value = dense_rows([*dense, "fc_out"], (*inputs, 1))
    else:
        filters = filters_for(model, image)
        names = [*(f"conv{i + 1}" for i in range(len(filters) - 1)), "fc1"]
        base, features = conv_rows(names, image[-1], filters), filters[-1].channels
        pixel = Filter(1, (1, 1), (1, 1))
        slim_value = conv_rows([*names, "fc2"], image[-1], [*filters, pixel])
    rows: Rows = [
        *base,
        ("rnn/lstm_cell/kernel", (features + extra + size, 4 * size)),
        ("rnn/lstm_cell/bias", (4 * size,)),
        ("action/w", (size, outputs)),
        ("action/b", (outputs,)),
    ]
    policy = _called("layers", rows)
    if settings.shares_layers:
        # `slim` is the same, where no names are there to tell.
        shared: Rows = [("value_function/w", (size, 1)), ("value_function/b", (1,))]
        yield policy, _called("layers", shared, "value_function/")
    else:
        # Ray 0.7 made an entropy coefficient, too, so that the two are never of one length.
        value = dense_rows([*dense, "fc_out"], (features, *hiddens, 1))
        yield policy, _called("layers", value, "value_function/")
        yield _called("slim", rows), _called("slim", slim_value, "value_function/")
    yield policy, []


def _called(scheme: str, rows: Rows, scope: str = "") -> Rows:
    """Rows under the names of their variables: `fc1.kernel` is `default_model/fc1/kernel`."""
    outer, kernel, bias = _CALLED[scheme]
    return [
        (outer + scope + name.replace(".kernel", f"/{kernel}").replace(".bias", f"/{bias}"), shape)
        for name, shape in rows
    ]
