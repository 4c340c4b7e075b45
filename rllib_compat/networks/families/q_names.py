"""What RLlib called the arrays of Q-networks, and in which order it stored those without names.

The canonical arrays, behind those of the base model (`trunks`)::

    logits                  the linear layer that the base model ends in (`hiddens: []`, SimpleQ)
    advantage_hidden.{i}    advantage    the Q-values, or with `dueling` the advantages
    state_hidden.{i}        state        the value of the state (`dueling`)
    advantage_norm.{i}      state_norm.{i}   layer norm (parameter noise)

each with kernel and bias, of noisy nets also `sigma_kernel` and `sigma_bias`; layer norm has gamma
and beta. The target network's arrays have the same names behind `target.`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.families.attention import ATTENTION_TABLES, CONSTANT
from rllib_compat.networks.families.dense import trunk_of
from rllib_compat.networks.families.q_head import Head
from rllib_compat.networks.families.recurrent import LSTM_TABLES
from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import Change, Move, Table, keras, row_for, torch_dense
from rllib_compat.networks.named import Named, plain_names, where_of
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.observations import preprocessed_image
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import COMPLEX
from rllib_compat.networks.trunks.dense import DENSE, Trunk
from rllib_compat.networks.trunks.vision import VISION, filters_for
from rllib_compat.networks.unnamed import (
    Rows,
    conv_rows,
    cut,
    dense_rows,
    keras_order,
    layers,
    observation_size,
    total,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.spaces import Discrete

#: A layer's own name, which may end in a number, and what TensorFlow appends when it is taken.
_LAYER = re.compile(
    r"(?P<base>(fc|fc_value|(dueling_|q_)?hidden|conv_value|post_fcnet)_\d+|conv\d+|.+?)"
    r"(_(?P<number>\d+))?"
)
#: Layers that keras and tf.contrib named, counting over all of them.
_AUTOMATIC = ("dense", "fully_connected", "layer_normalization")

#: The arrays of one layer: raw name, and the part of it that distinguishes kernel and bias.
_Group: TypeAlias = list[tuple[str, str]]


@dataclass
class Counted:
    """TensorFlow's names, distinguished.

    Attributes:
        names: The raw names.
        parts: Whether one network has layers that are called alike.
        layers: Raw names by (scope, layer's own name) and number.
    """

    names: tuple[str, ...]
    parts: bool = False
    layers: dict[tuple[str, str], dict[int, _Group]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    @classmethod
    def of(cls, names: Iterable[str], *, parts: bool = False) -> Counted:
        """Sorts names into layers."""
        counted = cls(tuple(names), parts)
        for name in counted.names:
            scope, layer, part = _split(name)
            match = _LAYER.fullmatch(layer)
            assert match is not None  # the last alternative takes anything
            number = int(match["number"] or 0)
            counted.layers[scope, match["base"]][number].append((name, part))
        return counted

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        """(raw name, name in the tables, prefix of the canonical name) of each array."""
        automatic: dict[tuple[str, str], list[_Group]] = {}
        for (scope, base), numbered in self.layers.items():
            arrays = [numbered[number] for number in sorted(numbered)]
            if base in _AUTOMATIC:
                automatic[scope, base] = arrays
                continue
            copies = 2 if self._has_target() and not scope else 1
            alike = len(arrays) // copies if self.parts else 1
            if len(arrays) > alike * copies:
                raise CheckpointError(
                    f"There are {len(arrays)} layers called {base}.", fix=refusals.CHECK
                )
            for i, group in enumerate(arrays):
                copy, number = divmod(i, alike)
                target = scope.startswith("target_") or copy == 1
                name = f"{base}_{number}" if number else base
                yield from self._plain(scope, name, group, TARGET_PREFIX if target else "")
        yield from self._automatic(automatic)

    @staticmethod
    def _plain(scope: str, base: str, group: _Group, prefix: str) -> Iterator[tuple[str, str, str]]:
        inner = scope.removeprefix("target_").removeprefix("q_func/")
        for raw, part in group:
            # Only the noisy layers of both streams are called alike.
            own = f"{inner}{base}" if part.startswith("_") else base
            yield raw, own + re.sub(r"(?<=lstm_cell)_\d+", "", part), prefix

    def _automatic(
        self, layers: Mapping[tuple[str, str], list[_Group]]
    ) -> Iterator[tuple[str, str, str]]:
        """The layers that only their order distinguishes."""
        for scope in dict.fromkeys(scope for scope, _ in layers):
            dense = layers.get((scope, "dense"), [])
            hidden = layers.get((scope, "fully_connected"), [])
            norms = layers.get((scope, "layer_normalization"), [])
            if scope:
                prefix = TARGET_PREFIX if scope.startswith("target_") else ""
                stream = "state" if "state_value" in scope else "advantage"
                yield from _place(_stack(stream, [*hidden, *dense], norms), prefix)
                continue
            copies = 2 if self._has_target() else 1
            hiddens = sum(base.startswith("hidden_") for _, base in self.layers)
            for copy, prefix in enumerate(("", TARGET_PREFIX)[:copies]):
                yield from _place(
                    _both(_part(dense, copy, copies), _part(norms, copy, copies), hiddens),
                    prefix,
                )

    def _has_target(self) -> bool:
        # A layer that a network has once.
        own = [base for _, base in self.layers if base not in _AUTOMATIC]
        if self.parts:
            own = ["logits"]
        return any(len(self.layers.get(("", base), ())) > 1 for base in own)


def _split(name: str) -> tuple[str, str, str]:
    """Scope, layer and part: `q_func/action_value/` `dense_1` `/kernel`."""
    match = re.fullmatch(
        r"(?P<scope>(target_)?q_func/(action_value/|state_value/)?)?"
        r"(?P<layer>(?:dueling_)?(?:hidden_\d+|output)(?=_fc_|_sigma_)|[^/]+)(?P<part>.*)",
        name,
    )
    assert match is not None
    return match["scope"] or "", match["layer"], match["part"]


def _part(layers: list[_Group], copy: int, copies: int) -> list[_Group]:
    size = len(layers) // copies
    return layers[copy * size : (copy + 1) * size]


def _both(dense: list[_Group], norms: list[_Group], hiddens: int) -> Iterator[tuple[str, _Group]]:
    """Both streams of a head whose layers are counted along; the advantages come first."""
    if norms:
        streams = len(dense) - len(norms)
        first = len(dense) // streams
        yield from _stack("advantage", dense[:first], norms[: first - 1])
        if streams > 1:
            yield from _stack("state", dense[first:], norms[first - 1 :])
        return
    # Hidden layers of the advantages have names of their own.
    first = 1 if hiddens else 0
    yield from _stack("advantage", dense[:first], [])
    if dense[first:]:
        yield from _stack("state", dense[first:], [])


def _stack(stream: str, layers: list[_Group], norms: list[_Group]) -> Iterator[tuple[str, _Group]]:
    """Names the layers of one stream, the last of which gives its values."""
    for i, group in enumerate(layers[:-1]):
        yield f"{stream}_hidden.{i}", group
    for group in layers[-1:]:
        yield stream, group
    for i, group in enumerate(norms):
        yield f"{stream}_norm.{i}", group


def _place(named: Iterable[tuple[str, _Group]], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Names the arrays of layers; tf.contrib put the norm's inside of the layer's scope."""
    for layer, group in named:
        for raw, part in group:
            if part.startswith("/LayerNorm"):
                norm = layer.replace("_hidden", "_norm")
                yield raw, norm + part.removeprefix("/LayerNorm"), prefix
            else:
                kind = part.replace("/weights", "/kernel").replace("/biases", "/bias")
                yield raw, layer + kind, prefix


#: What a head takes where the base model has no hidden layers, and SimpleQ's always (Ray 0.7).
_DEFAULT_WIDTH = 256

#: The arrays of a layer in the order in which keras and RLlib's noisy layers made them.
_DENSE = ("kernel", "bias")
_NOISY = ("sigma_kernel", "sigma_bias", *_DENSE)


def read_unnamed(policy: PolicyState, settings: ModelSettings) -> tuple[Named, Trunk]:
    """Names the arrays of a policy, and finds the base model among them.

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
        f"Q-network with hidden layers {list(settings.hidden_sizes)} and a head of "
        f"{list(head.hiddens)}",
        where_of(policy),
        len(fits),
    )


def _networks(base: Rows, width: int, head: Head, actions: int) -> Iterator[Rows]:
    """The networks on a base model, as the Rays made them."""
    size = actions * head.num_atoms

    def stream(name: str, takes: int, gives: int) -> Rows:
        return _contrib_stream(head, name, takes, gives)

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


def _contrib_stream(head: Head, name: str, width: int, size: int) -> Rows:
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
    hiddens = settings.hidden_sizes
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
    count = len(settings.hidden_sizes)
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


#: A 1x1 convolution over an image of one pixel is a dense layer: torch's, keras'.
_PIXEL = Change(lambda x: x[:, :, 0, 0].T, lambda x: x.T[:, :, None, None])
_PIXEL_KERAS = Change(lambda x: x[0, 0], lambda x: x[None, None])


def _torch_stream(theirs: str, letter: str, last: str, ours: str) -> Table:
    """One stream of torch's head: `advantage_module.dueling_A_0`, …, `advantage_module.A`."""
    hidden = f"{theirs}.dueling_{letter}_{{i}}"
    rows: list[Move] = []
    for name, canonical in ((hidden, f"{ours}_hidden.{{i}}"), (f"{theirs}.{last}", ours)):
        # `_model.0` since Ray 0.8.6
        rows += torch_dense(f"{name}._model.0", canonical) + torch_dense(name, canonical)
        rows += [
            Move(f"{name}.w", f"{canonical}.kernel"),
            Move(f"{name}.b", f"{canonical}.bias"),
            Move(f"{name}.sigma_w", f"{canonical}.sigma_kernel"),
            Move(f"{name}.sigma_b", f"{canonical}.sigma_bias"),
        ]
    norm = f"{theirs}.LayerNorm_{letter}_{{i}}"
    return (
        *rows,
        Move(f"{norm}.weight", f"{ours}_norm.{{i}}.gamma"),
        Move(f"{norm}.bias", f"{ours}_norm.{{i}}.beta"),
    )


#: torch, ModelV2 (Ray 0.8.5 – 2.x); the head of Ray 0.8.5 without dueling is called `Q`.
TORCH: Table = (
    *_torch_stream("advantage_module", "A", "A", "advantage"),
    *torch_dense("advantage_module.Q", "advantage"),
    *_torch_stream("value_module", "V", "V", "state"),
    *torch_dense("_logits._model.0", "logits"),
    *torch_dense("logits_layer._model.0", "logits"),  # of several parts
    Move("_logits._model.1.weight", "logits.kernel", _PIXEL),
    Move("_logits._model.1.bias", "logits.bias"),
)


def _noisy(theirs: str, ours: str) -> Table:
    return (
        Move(f"{theirs}_fc_w", f"{ours}.kernel"),
        Move(f"{theirs}_fc_b", f"{ours}.bias"),
        Move(f"{theirs}_sigma_w", f"{ours}.sigma_kernel"),
        Move(f"{theirs}_sigma_b", f"{ours}.sigma_bias"),
    )


#: TensorFlow, once its counters are resolved (`Counted`): dense layers without names of their
#: own are called `advantage.dense`, … by then.
KERAS: Table = (
    *keras("logits", "logits"),  # over an LSTM, or several parts
    *keras("hidden_{i}", "advantage_hidden.{i}"),
    *keras("q_hidden_{i}", "advantage_hidden.{i}"),  # SimpleQ of Ray 0.7 and 0.8
    *keras("q_out", "advantage"),
    *_noisy("action_value/hidden_{i}", "advantage_hidden.{i}"),
    *_noisy("action_value/output", "advantage"),
    *_noisy("state_value/dueling_hidden_{i}", "state_hidden.{i}"),
    *_noisy("state_value/dueling_output", "state"),
    *keras("advantage_hidden.{i}", "advantage_hidden.{i}"),
    *keras("advantage", "advantage"),
    *keras("state_hidden.{i}", "state_hidden.{i}"),
    *keras("state", "state"),
    *(
        Move(f"{stream}_norm.{{i}}/{part}", f"{stream}_norm.{{i}}.{part}")
        for stream in ("advantage", "state")
        for part in ("gamma", "beta")
    ),
)

#: The linear layer that the base model ends in, where no hidden layer of a head follows.
KERAS_LOGITS: Table = (
    *keras("fc_out", "logits"),
    Move("conv_out/kernel", "logits.kernel", _PIXEL_KERAS),
    Move("conv_out/bias", "logits.bias"),
)

#: Ray's value branches, which nothing of a Q-network reads.
DEAD = re.compile(
    r"(.*\._value_branch|_value_branch(_separate)?\.|value_layer\.|value_out(_\d+)?/|values/"
    r"|fc_value_|conv_value_).*"
)


def read_named(policy: PolicyState, settings: ModelSettings) -> tuple[Named, Trunk]:
    """Names the arrays of a policy, and finds the base model among them.

    Raises:
        NotYetError: Some of them are not a Q-network's, or have no known order.
        MissingInformationError: A size has to be given.
        CheckpointError: Arrays without names do not fit the config.
    """
    if not isinstance(policy.weights, dict):
        return read_unnamed(policy, settings)
    plain, _ = plain_names(policy)
    plain = {name: array for name, array in plain.items() if not CONSTANT.fullmatch(name)}
    torch = any(name.endswith((".weight", ".bias", ".w")) for name in plain)
    scheme, trunk = "torch" if torch else "keras", trunk_of(plain, policy)
    base = (*trunk.tables[scheme], *LSTM_TABLES[scheme])
    if torch:  # keras' attention has no names of its own
        base += ATTENTION_TABLES[scheme]
    if torch:
        table, unused = torch_names(plain, base)
    else:
        table, unused = keras_names(plain, base, parts=trunk is COMPLEX)
    named = Named.take(policy, settings, plain, scheme, table, of="Q-network", unused=unused)
    return named, trunk


def torch_names(names: Iterable[str], base: Table) -> tuple[Table, list[str]]:
    """The rows of torch's arrays, and those that nothing reads; it stored no target networks."""
    return _rows(((name, name, "") for name in names), (*TORCH, *base))


def keras_names(
    names: Iterable[str], base: Table, *, parts: bool = False
) -> tuple[Table, list[str]]:
    """The rows of TensorFlow's arrays, and those that nothing reads.

    Args:
        names: The names without the policy's scope.
        base: The base model's names.
        parts: Whether the base model has layers that are called alike (one for each part of the
            observation), and counts them itself.
    """
    counted = Counted.of(names, parts=parts)
    headless = not any(re.search(r"hidden|fully_connected|layer_norm", n) for n in counted.names)
    return _rows(counted, (*KERAS, *(KERAS_LOGITS if headless else ()), *base))


def _rows(found: Iterable[tuple[str, str, str]], table: Table) -> tuple[Table, list[str]]:
    """Rows, given (raw name, name in the tables, prefix of the canonical name) of each array."""
    rows, unused = [], []
    for raw, name, prefix in found:
        if DEAD.fullmatch(name):
            unused.append(raw)
        elif row := row_for(table, name):
            rows.append(replace(row, theirs=raw, ours=prefix + row.ours))
    return tuple(rows), unused
