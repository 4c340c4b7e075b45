"""Names for the arrays of a vision network that was stored without any.

A flat vector (TensorFlow, Ray 0.5 – 0.7) is in the order in which the layers were made, a list
(TF2, Ray 1.x) in keras' order: by the distance from the outputs. The names are those of
`heads.vision`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array
from rllib_compat.networks.named import where_of
from rllib_compat.networks.names.unnamed import (
    Rows,
    conv_rows,
    cut_vector,
    keras_order,
    layers,
    scalars_of,
)
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.conv_filters import Filter, filters_for
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.neutral.checkpoint import PolicyState


def name_vision(
    policy: PolicyState, settings: ModelSettings
) -> tuple[dict[str, Array], dict[str, float]]:
    """Names the arrays of a list or a flat vector.

    Returns:
        The canonical arrays, and the scalars found between them.

    Raises:
        MissingInformationError: A space has to be given.
        CheckpointError: No order fits.
    """
    outputs = policy.action_space and distribution_inputs(policy.action_space)
    if not outputs:
        raise refusals.needed(
            "The weights have no names; the action space is needed to tell them apart.",
            "action",
            where_of(policy),
        )
    if isinstance(policy.weights, list):
        return _name_list(policy.weights, policy, settings), {}
    vector = np.asarray(policy.weights)
    for free_log_std in {settings.free_log_std, False}:
        rows = _rows(policy, settings, outputs, free_log_std=free_log_std)
        if found := cut_vector(vector, *rows, scalars_of(settings)):
            return found
    raise refusals.no_fit(
        f"The vector of {vector.size} numbers",
        f"vision network with these convolutions and {outputs} outputs",
        where_of(policy),
    )


def _rows(
    policy: PolicyState, settings: ModelSettings, outputs: int, *, free_log_std: bool
) -> tuple[Rows, Rows]:
    """The rows of the policy and of its value function, in the order in which they were made."""
    image = require_image(policy, settings)
    filters = filters_for(settings.model, image)

    def stack(prefix: str, head: str, size: int) -> Rows:
        *before, last = filters
        if settings.model.get("no_final_linear") and not prefix:
            made = [*before, Filter(size, last.kernel, last.stride)]
        else:
            made = [*filters, Filter(size, (1, 1), (1, 1))]
        names = [*layers(f"{prefix}conv", len(made) - 1), head]
        return conv_rows(names, image[-1], made)

    means = outputs // 2 if free_log_std else outputs
    rows = stack("", "conv_out", means)
    if free_log_std:
        rows.append(("log_std.value", (means,)))
    if not settings.shares_layers:
        return rows, stack("value_", "value", 1)
    return rows, [("value.kernel", (filters[-1].channels, 1)), ("value.bias", (1,))]


def _name_list(
    arrays: Sequence[Array], policy: PolicyState, settings: ModelSettings
) -> dict[str, Array]:
    model = settings.model
    count = len(filters_for(model, require_image(policy, settings)))
    post = len(model.get("post_fcnet_hiddens") or ())
    activated = bool(model.get("no_final_linear"))
    behind = [f"post.{i + (not activated)}" for i in range(post)]
    order = vision_order(
        [*layers("conv", count - activated), "conv_out", *behind],
        count,
        shares=settings.shares_layers,
    )
    if 2 * len(order) != len(arrays):
        raise refusals.no_fit(
            f"The {len(arrays)} unnamed arrays",
            f"vision network of the config, which has {2 * len(order)}",
            where_of(policy),
        )
    names = [f"{layer}.{part}" for layer in order for part in ("kernel", "bias")]
    return dict(zip(names, arrays, strict=True))


def vision_order(policy: list[str], count: int, *, shares: bool) -> list[str]:
    """The layers in the order of keras, the policy's before the value function's.

    The value function ends in a layer without arrays that takes its 1×1 image apart, which puts
    convolutions of its own one further away.
    """
    if shares:
        # It sits on a layer of the policy, and so at the same distance as the policy's last.
        return [*policy, "value"]
    return keras_order((policy, 0), ([*layers("value_conv", count), "value"], 1))
