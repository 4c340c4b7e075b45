"""What RLlib called the arrays of Q-networks, and in which order it stored those without names.

The canonical arrays, behind those of the base model (`trunks`)::

    logits                  the linear layer that the base model ends in (`hiddens: []`, SimpleQ)
    advantage_hidden.{i}    advantage    the Q-values, or with `dueling` the advantages
    state_hidden.{i}        state        the value of the state (`dueling`)
    advantage_norm.{i}      state_norm.{i}   layer norm (parameter noise)

each with kernel and bias, of noisy nets also `sigma_kernel` and `sigma_bias`; layer norm has gamma
and beta. The target network's arrays have the same names behind `target.`.

TensorFlow counts layers on over the networks of a process (`dense_3`, `fc_1_2`), so the first half
of what is called alike belongs to the network, the second to its target network.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rllib_compat.errors import CheckpointError
from rllib_compat.networks.mapping import (
    Change,
    Move,
    Table,
    keras,
    torch_dense,
)
from rllib_compat.networks.network import TARGET_PREFIX

#: A 1x1 convolution over an image of one pixel is a dense layer.
_PIXEL = Change(
    lambda x: x[:, :, 0, 0].T if x.ndim == 4 else x.T,
    lambda x: x.T,
)
_PIXEL_KERAS = Change(lambda x: x[0, 0] if x.ndim == 4 else x, lambda x: x)


def _stream(theirs: str, letter: str, last: str, ours: str) -> Table:
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
    *_stream("advantage_module", "A", "A", "advantage"),
    *torch_dense("advantage_module.Q", "advantage"),
    *_stream("value_module", "V", "V", "state"),
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


#: TensorFlow, once what it counted is told apart (`_Counted`): dense layers without names of their
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


@dataclass(frozen=True)
class Names:
    """The names of a policy's arrays.

    Attributes:
        table: A row for each array, with the name as the checkpoint has it.
        unused: Arrays that Ray made and no Q-value depends on.
        left: Arrays that no table knows.
    """

    table: Table
    unused: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def torch_names(names: Iterable[str], trunk: Table) -> Names:
    """Names torch's arrays; torch stored no target networks."""
    return _named(((name, name, "") for name in names), (*TORCH, *trunk))


def keras_names(names: Iterable[str], trunk: Table, *, parts: bool = False) -> Names:
    """Names TensorFlow's arrays, by what they are called and how often.

    Args:
        names: The names without the policy's scope.
        trunk: The base model's names.
        parts: Whether the base model has layers that are called alike (one for each part of the
            observation), and counts them itself.
    """
    counted = _Counted.of(names)
    counted.parts = parts
    table = (*KERAS, *trunk)
    if not any(re.search(r"hidden|fully_connected|layer_norm", name) for name in counted.names):
        table = (*KERAS, *KERAS_LOGITS, *trunk)
    return _named(counted, table)


def _named(found: Iterable[tuple[str, str, str]], table: Table) -> Names:
    """Names arrays, given (raw name, name in the tables, prefix of the canonical name)."""
    rows, unused, left = [], [], []
    for raw, name, prefix in found:
        if DEAD.fullmatch(name):
            unused.append(raw)
            continue
        for move in table:
            theirs, ours = move.names
            index = theirs.index_of(name)
            if index is not None:
                rows.append(Move(raw, prefix + ours.at(index), move.change, move.adds))
                break
        else:
            left.append(raw)
    return Names(tuple(rows), tuple(unused), tuple(left))


#: A layer's own name, which may end in a number, and what TensorFlow appends when it is taken.
_LAYER = re.compile(
    r"(?P<base>(fc|fc_value|(dueling_|q_)?hidden|conv_value|post_fcnet)_\d+|conv\d+|.+?)"
    r"(_(?P<number>\d+))?"
)
#: Layers that keras and tf.contrib named, counting over all of them.
_AUTOMATIC = ("dense", "fully_connected", "layer_normalization")


#: The arrays of one layer: raw name, and the part of it that tells kernel from bias.
_Group: TypeAlias = list[tuple[str, str]]


@dataclass
class _Counted:
    """TensorFlow's names, told apart.

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
    def of(cls, names: Iterable[str]) -> _Counted:
        counted = cls(tuple(names))
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
                raise CheckpointError(f"There are {len(arrays)} layers called {base}.")
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
        """The layers that are told apart by their order alone."""
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
            for copy, prefix in enumerate(("", TARGET_PREFIX)[:copies]):
                yield from _place(
                    _both(_part(dense, copy, copies), _part(norms, copy, copies), self._hiddens()),
                    prefix,
                )

    def _has_target(self) -> bool:
        # A layer that a network has once.
        own = [base for _, base in self.layers if base not in _AUTOMATIC]
        if self.parts:
            own = ["logits"]
        return any(len(self.layers.get(("", base), ())) > 1 for base in own)

    def _hiddens(self) -> int:
        return sum(base.startswith("hidden_") for _, base in self.layers)


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
