"""Names for the arrays of a vision network that was stored without any.

A flat vector (TensorFlow, Ray 0.5 – 0.7) is in the order in which the layers were made, a list
(TF2, Ray 1.x) in keras' order: by the distance from the outputs. The names are those of
`heads.vision`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rllib_compat.networks.graph import Array
from rllib_compat.networks.names.unnamed import Rows, cut_vector, scalars_of
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.conv_filters import filters_for
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError


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
    where = f"policies.{policy.policy_id}.weights"
    outputs = policy.action_space and distribution_inputs(policy.action_space)
    if not outputs:
        raise MissingInformationError(
            "The weights have no names; the action space is needed to tell them apart.",
            where=where,
            fix="Give --action-space 'Discrete(4)' or --env (Python: action_space=, env=).",
        )
    if isinstance(policy.weights, list):
        return _name_list(policy.weights, policy, settings), {}
    vector = np.asarray(policy.weights)
    shares = settings.shares_layers
    for free_log_std in {settings.free_log_std, False}:
        rows = _rows(policy, settings, outputs, free_log_std=free_log_std, shares=shares)
        found = cut_vector(vector, *rows, scalars_of(settings))
        if found:
            return found
    raise CheckpointError(
        f"The vector of {vector.size} numbers fits no vision network with these convolutions and "
        f"{outputs} outputs.",
        where=where,
        fix="Check that the config (params.json) and the spaces belong to this checkpoint.",
    )


def _rows(
    policy: PolicyState, settings: ModelSettings, outputs: int, *, free_log_std: bool, shares: bool
) -> tuple[Rows, Rows]:
    """The rows of the policy and of its value function, in the order in which they were made."""
    image = require_image(policy, settings)
    filters = filters_for(settings.model, image)

    def stack(prefix: str, head: str, size: int) -> Rows:
        made: Rows = []
        channels = image[-1]
        layers = [(f"{prefix}conv.{i}", f.kernel, f.channels) for i, f in enumerate(filters)]
        if settings.model.get("no_final_linear") and not prefix:
            layers[-1] = (head, filters[-1].kernel, size)
        else:
            layers.append((head, (1, 1), size))
        for name, kernel, made_channels in layers:
            made.append((f"{name}.kernel", (*kernel, channels, made_channels)))
            made.append((f"{name}.bias", (made_channels,)))
            channels = made_channels
        return made

    means = outputs // 2 if free_log_std else outputs
    rows = stack("", "conv_out", means)
    if free_log_std:
        rows.append(("log_std.value", (means,)))
    if not shares:
        return rows, stack("value_", "value", 1)
    features = filters[-1].channels
    return rows, [("value.kernel", (features, 1)), ("value.bias", (1,))]


def _name_list(
    arrays: Sequence[Array], policy: PolicyState, settings: ModelSettings
) -> dict[str, Array]:
    where = f"policies.{policy.policy_id}.weights"
    count = len(filters_for(settings.model, require_image(policy, settings)))
    post = len(settings.model.get("post_fcnet_hiddens") or ())
    layers = keras_order(
        _policy_layers(count, post, no_final_linear=bool(settings.model.get("no_final_linear"))),
        count,
        shares=settings.shares_layers,
    )
    if 2 * len(layers) != len(arrays):
        raise CheckpointError(
            f"The {len(arrays)} unnamed arrays are not the {2 * len(layers)} of the config's "
            "vision network.",
            where=where,
            fix="Check that the config (params.json) belongs to this checkpoint.",
        )
    names = [f"{layer}.{part}" for layer in layers for part in ("kernel", "bias")]
    return dict(zip(names, arrays, strict=True))


def _policy_layers(count: int, post: int, *, no_final_linear: bool) -> list[str]:
    """The policy's layers, input to output."""
    if no_final_linear:
        return [
            *(f"conv.{i}" for i in range(count - 1)),
            "conv_out",
            *(f"post.{i}" for i in range(post)),
        ]
    return [
        *(f"conv.{i}" for i in range(count)),
        "conv_out",
        *(f"post.{i + 1}" for i in range(post)),
    ]


def keras_order(policy: list[str], count: int, *, shares: bool) -> list[str]:
    """Sorts layers by their distance from the outputs, the policy's before the value function's.

    The value function ends in a layer without arrays that takes its 1×1 image apart, which puts
    convolutions of its own one further away.
    """
    depth = {name: len(policy) - 1 - i for i, name in enumerate(policy)}
    if shares:
        # It sits on a layer of the policy, and so at the same distance as the policy's last.
        return [*policy, "value"]
    value = [*(f"value_conv.{i}" for i in range(count)), "value"]
    depth |= {name: len(value) - i for i, name in enumerate(value)}
    return sorted([*policy, *value], key=lambda name: -depth[name])
