"""Names for the arrays of Q-networks that were stored without any.

Ray 0.5 – 0.7 stored the network and its target network as one flat vector, Ray 1.x a TF2 policy
as a list of its network's arrays. Both are in the order in which the variables were made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from rllib_compat.networks.graph import Array
from rllib_compat.networks.heads.q_head import Head
from rllib_compat.networks.names.unnamed import Rows, cut
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.conv_filters import filters_for
from rllib_compat.networks.trunks.images import preprocessed_image
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError
from rllib_compat.neutral.spaces import Discrete

#: What a head takes where the base model has no hidden layers, and SimpleQ's always (Ray 0.7).
_DEFAULT_WIDTH = 256


def _stream(head: Head, name: str, width: int, size: int) -> Rows:
    """The rows of one stream, in the order in which tf.contrib's variables were made."""
    rows: Rows = []
    for i, hidden in enumerate(head.hiddens):
        layer, shape = f"{name}_hidden.{i}", (width, hidden)
        if head.norm and not head.noisy:
            norm = f"{name}_norm.{i}"
            rows += [(f"{layer}.kernel", shape)]
            rows += [(f"{norm}.{part}", (hidden,)) for part in ("beta", "gamma")]
        else:
            rows += _layer(head, layer, shape)
        width = hidden
    return [*rows, *_layer(head, name, (width, size))]


def _layer(head: Head, name: str, shape: tuple[int, int]) -> Rows:
    dense: Rows = [(f"{name}.kernel", shape), (f"{name}.bias", shape[1:])]
    if not head.noisy:
        return dense
    noise: Rows = [(f"{name}.sigma_kernel", shape), (f"{name}.sigma_bias", shape[1:])]
    return noise + dense


def name_vector(
    vector: Array, policy: PolicyState, settings: ModelSettings, where: str
) -> dict[str, Array]:
    """Cuts a flat vector into the arrays of a network and of its target network.

    Raises:
        MissingInformationError: The size of the observations has to be given.
        CheckpointError: No network that the config allows has this many numbers, or several.
    """
    head, space = Head.of(settings), policy.action_space
    if settings.algorithm == "SimpleQ":  # it had a head only as long as vectors were stored
        head = replace(head, hiddens=tuple(settings.config.get("hiddens", (_DEFAULT_WIDTH,)) or ()))
    given = space.n if isinstance(space, Discrete) else None
    fits: dict[tuple[str, ...], dict[str, Array]] = {}
    for trunk, width in _trunks(policy, settings, where):
        for actions in (given,) if given else range(1, vector.size):
            for rows in _networks(trunk, width, head, actions):
                total = 2 * sum(math.prod(shape) for _, shape in rows)
                if total == vector.size:
                    both = [*rows, *((TARGET_PREFIX + name, shape) for name, shape in rows)]
                    shapes = tuple(f"{name}{shape}" for name, shape in rows)
                    fits.setdefault(shapes, cut(vector, both))
            if total > vector.size:
                break
    if len(fits) == 1:
        return next(iter(fits.values()))
    what = "no" if not fits else "more than one"
    raise CheckpointError(
        f"The vector of {vector.size} numbers fits {what} Q-network with hidden layers "
        f"{list(settings.hiddens or (256, 256))} and a head of {list(head.hiddens)}.",
        where=where,
        fix="Check that the config (params.json) and the spaces belong to this checkpoint.",
    )


def _networks(trunk: Rows, width: int, head: Head, actions: int) -> Iterator[Rows]:
    """The networks on a base model, as the Rays made them."""
    size = actions * head.num_atoms
    if head.hiddens:
        state = _stream(head, "state", width, head.num_atoms) if head.dueling else []
        yield [*trunk, *_stream(head, "advantage", width, size), *state]
        return
    # Ray 0.5 made the layer in the head; 0.6 took the base model's own, and its last hidden layer
    # for the state's value; 0.7 took what the base model gives for both.
    if head.noisy or head.num_atoms > 1:
        state = _stream(head, "state", width, head.num_atoms) if head.dueling else []
        yield [*trunk, *_stream(head, "advantage", width, size), *state]
    logits: Rows = [("logits.kernel", (width, actions)), ("logits.bias", (actions,))]
    for takes in dict.fromkeys((width, actions)):
        state = _stream(head, "state", takes, head.num_atoms) if head.dueling else []
        scores = _stream(head, "advantage", actions, size) if head.noisy else []
        yield [*trunk, *logits, *scores, *state]
        if not head.dueling:
            return


def _trunks(policy: PolicyState, settings: ModelSettings, where: str) -> Iterator[tuple[Rows, int]]:
    """The base models that the config allows, and how wide their features are."""
    space = policy.observation_space
    inputs = space.flat_size() if space else None
    if inputs is None and policy.observation_filter and policy.observation_filter.stats:
        inputs = sum(stat.mean.size for stat in policy.observation_filter.stats)
    if inputs is None:
        raise MissingInformationError(
            "The weights are one vector without names; the size of the observations is needed "
            "to cut it.",
            where=where,
            fix="Give --observation-space 'Box(4,)' or --env CartPole-v1 (Python: "
            "observation_space=, env=).",
        )
    hiddens = settings.hiddens if settings.hiddens is not None else (256, 256)
    image = preprocessed_image(space, settings)
    if image is not None:
        with suppress(CheckpointError):  # images that no convolutions are known for
            for last in dict.fromkeys((None, *hiddens[-1:], _DEFAULT_WIDTH)):
                yield _convolutions(image, settings, last)
    # Ray 0.7.5 and 0.7.6 took the fully connected network for images, too.
    for sizes in dict.fromkeys((hiddens, (*hiddens[:-1], _DEFAULT_WIDTH))):
        rows: Rows = []
        width = inputs
        for i, hidden in enumerate(sizes):
            rows += [(f"hidden.{i}.kernel", (width, hidden)), (f"hidden.{i}.bias", (hidden,))]
            width = hidden
        yield rows, width


def _convolutions(
    image: tuple[int, ...], settings: ModelSettings, last: int | None
) -> tuple[Rows, int]:
    rows: Rows = []
    channels = image[-1]
    filters = filters_for(settings.model, image)
    for i, filter_ in enumerate(filters):
        final = i == len(filters) - 1
        name, out = ("last" if final else f"conv.{i}"), (last if final else None)
        out = out or filter_.channels
        rows += [(f"{name}.kernel", (*filter_.kernel, channels, out)), (f"{name}.bias", (out,))]
        channels = out
    return rows, channels


def name_list(
    arrays: Sequence[Array], settings: ModelSettings, where: str
) -> tuple[dict[str, Array], list[str]]:
    """Names the arrays of a TF2 policy (Ray 1.x – 2.x, `framework="tf2"`).

    Returns:
        The canonical arrays, and the names of those that nothing reads.

    Raises:
        CheckpointError: The config's network has another number of arrays.
    """
    head = Head.of(settings)
    layers = [*_base_model(arrays, settings, head), *_head_layers(head)]
    names = [f"{layer}.{part}" for layer, parts in layers for part in parts]
    if len(names) != len(arrays):
        raise CheckpointError(
            f"The policy has {len(arrays)} arrays, the config's Q-network {len(names)}.",
            where=where,
            fix="Check that the config (params.json) belongs to this checkpoint.",
        )
    # The last convolution of images without a head is a dense layer over one pixel.
    named = {
        name: array[0, 0] if name == "logits.kernel" and array.ndim == 4 else array
        for name, array in zip(names, arrays, strict=True)
    }
    unused = [name for name in named if name.startswith("value")]
    return {name: array for name, array in named.items() if name not in unused}, unused


_Layer = tuple[str, tuple[str, ...]]
_DENSE = ("kernel", "bias")


def _base_model(arrays: Sequence[Array], settings: ModelSettings, head: Head) -> Iterator[_Layer]:
    """The layers of the base model: keras sorts them by their distance from the outputs."""
    shares = bool(settings.model.get("vf_share_layers", True))
    convolutions = sum(array.ndim == 4 for array in arrays)
    if convolutions:
        if not shares or settings.model.get("post_fcnet_hiddens"):
            raise CheckpointError("Such a list of a vision network has no known order.")
        stack = [f"conv.{i}" for i in range(convolutions - 1)]
    else:
        count = len(settings.hiddens if settings.hiddens is not None else (256, 256))
        stack = [f"hidden.{i}" for i in range(max(count - 1, 0) if head.hiddens else count)]
    last = ("conv_out" if convolutions else "out") if head.hiddens else "logits"
    policy = [*stack, last]
    value = ["value"]
    if not shares:
        value = [*(f"value_hidden.{i}" for i in range(count)), "value"]
    depth = {name: len(policy) - i for i, name in enumerate(policy)}
    depth |= {name: len(value) - i for i, name in enumerate(value)}
    for name in sorted([*policy, *value], key=lambda name: -depth[name]):
        yield name, _DENSE


def _head_layers(head: Head) -> Iterator[_Layer]:
    noisy = ("sigma_kernel", "sigma_bias", "kernel", "bias")
    for stream in ("advantage", "state") if head.dueling else ("advantage",):
        for i in range(len(head.hiddens)):
            yield f"{stream}_hidden.{i}", noisy if head.noisy else _DENSE
            if head.norm and not head.noisy:
                yield f"{stream}_norm.{i}", ("gamma", "beta")
        if head.noisy:
            yield stream, noisy
        elif head.hiddens or stream == "state":
            yield stream, _DENSE
