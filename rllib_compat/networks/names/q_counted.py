"""Layers that TensorFlow counted on over the networks of a process, told apart.

A second network's layers are called `fc_1_1`, `hidden_0_1`, and `dense_3` where keras chose the
name itself. By number, the first half of what is called alike belongs to the network, the second to
its target network; of a head's dense layers, the advantages' come first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.neutral.errors import CheckpointError

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
class Counted:
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
