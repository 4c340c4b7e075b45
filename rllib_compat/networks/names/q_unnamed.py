"""Names for the arrays of Q-networks that were stored without any.

Ray 0.5 – 0.7 stored the network and its target network as one flat vector, Ray 1.x a TF2 policy
as a list of its network's arrays. Both are in the order in which the variables were made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array
from rllib_compat.networks.heads.q_head import Head
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.names.unnamed import (
    DEFAULT_HIDDENS,
    Rows,
    conv_rows,
    cut,
    dense_rows,
    keras_order,
    layers,
    observation_size,
    total,
)
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.conv_filters import filters_for
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.trunks.images import preprocessed_image
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.spaces import Discrete

#: What a head takes where the base model has no hidden layers, and SimpleQ's always (Ray 0.7).
_DEFAULT_WIDTH = 256

#: The arrays of a layer in the order in which keras and RLlib's noisy layers made them.
_DENSE = ("kernel", "bias")
_NOISY = ("sigma_kernel", "sigma_bias", *_DENSE)


def read_unnamed(policy: PolicyState, settings: ModelSettings) -> tuple[Named, Trunk]:
    """Names the arrays of a policy, and tells the base model among them.

    Raises:
        NotYetError: Their order is not known.
        MissingInformationError: The size of the observations has to be given.
        CheckpointError: They do not fit the config.
    """
    if settings.wrapper:
        what = f"a Q-network with {settings.wrapper} whose arrays have no names"
        raise refusals.not_yet(what, where_of(policy))
    if isinstance(policy.weights, list):
        scheme, arrays = "list", _name_list(policy, settings)
    else:
        scheme, arrays = "vector", _name_vector(policy, settings)
    images = any(name.startswith(("conv", "last.")) for name in arrays)
    unused = tuple(name for name in arrays if name.startswith("value"))
    kept = {name: array for name, array in arrays.items() if name not in unused}
    named = Named(policy, settings, kept, scheme, unused=unused)
    return named, VISION if images else DENSE


def _name_vector(policy: PolicyState, settings: ModelSettings) -> dict[str, Array]:
    """Cuts a flat vector into the arrays of a network and of its target network."""
    vector, head, space = np.asarray(policy.weights), Head.of(settings), policy.action_space
    if settings.algorithm == "SimpleQ":  # it had a head only as long as vectors were stored
        head = replace(head, hiddens=tuple(settings.config.get("hiddens", (_DEFAULT_WIDTH,)) or ()))
    given = space.n if isinstance(space, Discrete) else None
    fits: dict[tuple[str, ...], dict[str, Array]] = {}
    for base, width in _base_models(policy, settings):
        for actions in (given,) if given else range(1, vector.size):
            for rows in _networks(base, width, head, actions):
                numbers = 2 * total(rows)
                if numbers == vector.size:
                    both = [*rows, *((TARGET_PREFIX + name, shape) for name, shape in rows)]
                    fits.setdefault(tuple(map(str, rows)), cut(vector, both))
            if numbers > vector.size:
                break
    if len(fits) == 1:
        return next(iter(fits.values()))
    raise refusals.no_fit(
        f"The vector of {vector.size} numbers",
        f"Q-network with hidden layers {list(settings.hiddens or DEFAULT_HIDDENS)} and a head of "
        f"{list(head.hiddens)}",
        where_of(policy),
        len(fits),
    )


def _networks(base: Rows, width: int, head: Head, actions: int) -> Iterator[Rows]:
    """The networks on a base model, as the Rays made them."""
    size = actions * head.num_atoms

    def stream(name: str, takes: int, gives: int) -> Rows:
        return _stream(head, name, takes, gives)

    if head.hiddens or head.noisy or head.num_atoms > 1:
        state = stream("state", width, head.num_atoms) if head.dueling else []
        yield [*base, *stream("advantage", width, size), *state]
    if head.hiddens:
        return
    # Ray 0.5 made the layer in the head; 0.6 took the base model's own, and its last hidden layer
    # for the state's value; 0.7 took what the base model gives for both.
    logits = dense_rows(["logits"], (width, actions))
    for takes in dict.fromkeys((width, actions)):
        state = stream("state", takes, head.num_atoms) if head.dueling else []
        scores = stream("advantage", actions, size) if head.noisy else []
        yield [*base, *logits, *scores, *state]
        if not head.dueling:
            return


def _stream(head: Head, name: str, width: int, size: int) -> Rows:
    """The rows of one stream, in the order in which tf.contrib's variables were made."""
    rows: Rows = []
    names = [*layers(f"{name}_hidden", len(head.hiddens)), name]
    for layer, (takes, gives) in zip(names, pairwise((width, *head.hiddens, size)), strict=True):
        dense = dense_rows([layer], (takes, gives))
        if head.noisy:
            rows += [(f"{layer}.sigma_kernel", (takes, gives)), (f"{layer}.sigma_bias", (gives,))]
        elif head.norm and layer != name:
            dense.pop()  # the norm took the place of the bias
            norm = layer.replace("_hidden", "_norm")
            dense += [(f"{norm}.{part}", (gives,)) for part in ("beta", "gamma")]
        rows += dense
    return rows


def _base_models(policy: PolicyState, settings: ModelSettings) -> Iterator[tuple[Rows, int]]:
    """The base models that the config allows, and how wide their features are."""
    hiddens = settings.hiddens if settings.hiddens is not None else DEFAULT_HIDDENS
    image = preprocessed_image(policy.observation_space, settings)
    if image is not None:
        with suppress(CheckpointError):  # images that no convolutions are known for
            filters = filters_for(settings.model, image)
            names = [*layers("conv", len(filters) - 1), "last"]
            for width in dict.fromkeys((filters[-1].channels, *hiddens[-1:], _DEFAULT_WIDTH)):
                own = [*filters[:-1], replace(filters[-1], channels=width)]
                yield conv_rows(names, image[-1], own), width
    # Ray 0.7.5 and 0.7.6 took the fully connected network for images, too.
    inputs = observation_size(policy, settings)
    for sizes in dict.fromkeys((hiddens, (*hiddens[:-1], _DEFAULT_WIDTH))):
        yield dense_rows(layers("hidden", len(sizes)), (inputs, *sizes)), (inputs, *sizes)[-1]


def _name_list(policy: PolicyState, settings: ModelSettings) -> dict[str, Array]:
    """Names the arrays of a TF2 policy (Ray 1.x – 2.x, `framework="tf2"`)."""
    arrays, head = policy.weights, Head.of(settings)
    assert isinstance(arrays, list)
    base = _base_model(arrays, settings, head, where_of(policy))
    names = [f"{layer}.{part}" for layer in base for part in _DENSE]
    names += [f"{layer}.{part}" for layer, parts in _head_layers(head) for part in parts]
    if len(names) != len(arrays):
        found = f"The list of {len(arrays)} arrays"
        raise refusals.no_fit(found, f"Q-network of {len(names)} arrays", where_of(policy))
    # The last convolution of images without a head is a dense layer over one pixel.
    return {
        name: array[0, 0] if name == "logits.kernel" and array.ndim == 4 else array
        for name, array in zip(names, arrays, strict=True)
    }


def _base_model(
    arrays: Sequence[Array], settings: ModelSettings, head: Head, where: str
) -> list[str]:
    """The layers of the base model in the order of keras, with those of its value function."""
    shares = bool(settings.model.get("vf_share_layers", True))
    count = len(settings.hiddens if settings.hiddens is not None else DEFAULT_HIDDENS)
    convolutions = sum(array.ndim == 4 for array in arrays)
    if convolutions:
        if not shares or settings.model.get("post_fcnet_hiddens"):
            raise refusals.not_yet("a list of arrays of a vision network of more parts", where)
        stack, last = layers("conv", convolutions - 1), "conv_out"
    else:
        stack, last = layers("hidden", max(count - 1, 0) if head.hiddens else count), "out"
    value = [*([] if shares else layers("value_hidden", count)), "value"]
    return keras_order(([*stack, last if head.hiddens else "logits"], 1), (value, 1))


def _head_layers(head: Head) -> Iterator[tuple[str, tuple[str, ...]]]:
    parts = _NOISY if head.noisy else _DENSE
    for stream in ("advantage", "state") if head.dueling else ("advantage",):
        for i in range(len(head.hiddens)):
            yield f"{stream}_hidden.{i}", parts
            if head.norm and not head.noisy:
                yield f"{stream}_norm.{i}", ("gamma", "beta")
        if head.noisy or head.hiddens or stream == "state":
            yield stream, parts
