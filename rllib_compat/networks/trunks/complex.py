"""The base of RLlib's network for observations with images and other parts.

What it is (`models/**/complex_input_net.py`, 1.2 – 2.x): convolutions for each image, dense layers
for each other part (none at all until Ray 1.9), all of that behind one another, and then the dense
layers of `post_fcnet_hiddens`. It takes the flat vector of the whole observation.

Canonical arrays: `cnn.{n}.conv.{i}` of images, `fc.{n}.hidden.{i}` of other parts, and
`fc.post.hidden.{i}` behind. torch numbers all parts; TensorFlow counts what is called alike, so
there `fc.{n}` is of the n-th part that is no image, and the layers behind come after the last part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import OUT, NewModel, draw_stack, is_image, since
from rllib_compat.networks.graph import Builder
from rllib_compat.networks.mapping import Move, Table, keras, torch_layer
from rllib_compat.networks.named import Named
from rllib_compat.networks.observations import (
    Component,
    original_space,
    parts_of,
    require_components,
)
from rllib_compat.networks.settings import ModelSettings, model_setting
from rllib_compat.networks.trunks.dense import Trunk, add_layers
from rllib_compat.networks.trunks.vision import add_convolutions, draw_convolutions, filters_for
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import NotConvertibleError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Box, DictSpace, MultiBinary, Space, TupleSpace

#: More layers of one part than this had no network.
_MOST_LAYERS = 12

#: Names that only this network has on torch, where its parts are modules of their own.
_TORCH = ("cnn_", "one_hot_", "flatten_", "post_fc_stack.", "logits_layer.", "value_layer.")

#: Value branches of the parts, which Ray made and nothing read; on torch also a second name for
#: each part (`cnns.0` is `cnn_0`, Ray 2.3 on).
_DEAD_TORCH = re.compile(r"(cnns?|one_hot|flatten|post_fc_stack)[._\d]*\._value_branch.*")
_DEAD_KERAS = re.compile(r"(conv|fc)_value_.*|value_out(_\d+)?/.*")


def _torch_table() -> Table:
    """Each part is a network of its own; Ray 2.3 on has a second name for it."""
    rows: list[Move] = []
    for i in range(_MOST_LAYERS):
        for part in ("cnn_{i}", "cnns.{i}"):
            for model in ("_model.0", "_model.1"):
                rows += torch_layer(f"{part}._convs.{i}.{model}", f"cnn.{{i}}.conv.{i}")
            rows += [
                Move(f"{part}._convs.{i}._model.{n}._beta", f"cnn.{{i}}.conv.{i}.swish.slope")
                for n in (1, 2)
            ]
        for part in ("one_hot_{i}", "one_hot.{i}", "flatten_{i}", "flatten.{i}"):
            rows += _torch_dense(f"{part}._hidden_layers.{i}", f"fc.{{i}}.hidden.{i}")
        rows += _torch_dense(f"post_fc_stack._hidden_layers.{i}", f"fc.post.hidden.{i}")
    return tuple(rows)


def _torch_dense(theirs: str, ours: str) -> Table:
    return (
        *torch_layer(f"{theirs}._model.0", ours),
        Move(f"{theirs}._model.1._beta", f"{ours}.beta"),
    )


def _keras_table() -> Table:
    """What is called alike is counted: `fc_1`, `fc_1_1`, `fc_1_2` are of three parts."""
    rows: list[Move] = []
    for i in range(_MOST_LAYERS):
        for theirs, ours in ((f"conv{i + 1}", "cnn.{}.conv"), (f"fc_{i + 1}", "fc.{}.hidden")):
            rows += keras(theirs, f"{ours.format(0)}.{i}")
            rows += keras(f"{theirs}_{{i}}", f"{ours.format('{i}')}.{i}")
    return tuple(rows)


TABLES: Mapping[str, Table] = {"torch": _torch_table(), "keras": _keras_table()}


def is_complex(policy: PolicyState, names: Iterable[str]) -> bool:
    """Whether arrays with these names (without TensorFlow's scope) are of such a network."""
    names = list(names)
    if any(name.startswith(_TORCH) for name in names):
        return True
    convolutions = any(name.startswith("conv") for name in names)
    space = original_space(policy.observation_space)
    return convolutions and space is not None and not isinstance(space, Box)


def dead_names(names: Iterable[str], *, heads: bool) -> list[str]:
    """The arrays that nothing reads, of all without TensorFlow's scope, in the checkpoint's order.

    TensorFlow calls a network's own value function `value_out`, as those of the parts; it comes
    last.
    """
    dead = [n for n in names if _DEAD_TORCH.fullmatch(n) or _DEAD_KERAS.fullmatch(n)]
    if not heads:
        return dead
    counted = {int(found[1] or 0) for n in dead if (found := _VALUE_OUT.match(n))}
    last = max(counted, default=0)
    own = f"value_out_{last}/" if last else "value_out/"
    return [name for name in dead if not name.startswith(own)]


def second_names(names: Iterable[str]) -> list[str]:
    """The names under which torch keeps an array once more (Ray 2.3 on): `cnn_0.` of `cnns.0.`."""
    names = set(names)
    second = []
    for name in sorted(names):
        found = _SECOND.match(name)
        first = found and f"{_FIRST[found[1]]}.{found[2]}.{name[found.end() :]}"
        second += [name] if first in names else []
    return second


_SECOND = re.compile(r"(cnn|one_hot|flatten)_(\d+)\.")
_FIRST = {"cnn": "cnns", "one_hot": "one_hot", "flatten": "flatten"}
_VALUE_OUT = re.compile(r"value_out(?:_(\d+))?/")


def _inputs(named: Named) -> tuple[int, ...]:
    return (sum(part.size for part in require_components(named.policy)),)


def _add(build: Builder, named: Named, prefix: str = "", takes: str = "obs") -> str:
    assert not prefix, "the value function always shares this network's layers"
    components = require_components(named.policy)
    layers = _Layers.of(named, components)
    activation = named.activation("fcnet_activation")
    made: list[str] = []
    width = 0
    for i, part in enumerate(components):
        taken = build.add(
            "cut",
            f"part.{i}",
            takes,
            start=part.start,
            stop=part.start + part.size,
            shape=list(part.image or (part.size,)),
        )
        if part.image is None:
            own = layers.dense[i]
            made.append(add_layers(build, named.arrays, own, taken, activation))
            width += named.gives(own[-1]) if own else part.size
            continue
        stack = layers.convolutions[i]
        image, size = add_convolutions(build, named, stack, image=part.image, takes=taken)
        made.append(build.add("flatten", f"{stack}features", image, channels_first=named.torch))
        width += math.prod(size) * named.gives(image)
    _require_all_parts(named, components, layers, width)
    features = build.add("concat", "parts", *made)
    behind = named.activation("post_fcnet_activation")
    return add_layers(build, named.arrays, layers.behind, features, behind)


@frozen
class _Layers:
    """Which arrays are whose.

    Attributes:
        convolutions: The prefix of an image's arrays, by its number among all parts.
        dense: The layers of every other part; none where the part goes in as it is.
        behind: The layers behind all of them.
    """

    convolutions: Mapping[int, str]
    dense: Mapping[int, Sequence[str]]
    behind: Sequence[str]

    @classmethod
    def of(cls, named: Named, components: Sequence[Component]) -> _Layers:
        """Finds the layers of each part."""
        images = [i for i, part in enumerate(components) if part.image is not None]
        others = [i for i, part in enumerate(components) if part.image is None]
        if named.torch or not images:
            return cls(
                {i: f"cnn.{i}." for i in images},
                {i: named.layers(f"fc.{i}.hidden") for i in others},
                named.layers("fc.post.hidden"),
            )
        # keras counts what is called alike: first the parts, then the layers behind.
        model = named.settings.model
        each = len(model_setting(model, "fcnet_hiddens"))
        post = len(model.get("post_fcnet_hiddens") or ())
        count = sum(f"fc.{i}.hidden.0" in named for i in range(len(named.arrays)))
        if count < len(others) + bool(post):
            each = 0  # Ray until 1.9 let the parts in as they are
        behind = [f"fc.{len(others) if i < each else 0}.hidden.{i}" for i in range(post)]
        return cls(
            {i: f"cnn.{n}." for n, i in enumerate(images)},
            {i: [f"fc.{n}.hidden.{j}" for j in range(each)] for n, i in enumerate(others)},
            behind,
        )


def _require_all_parts(
    named: Named, components: Sequence[Component], layers: _Layers, width: int
) -> None:
    """Makes sure that no part's layers were left out of the checkpoint.

    Ray 1.10 – 2.2 kept them in a plain dict on torch, where torch finds no parameters.
    """
    first = (layers.behind or ["logits"])[0]
    if first not in named or named.takes(first) == width:
        return
    bare = [str(i) for i, part in enumerate(components) if not layers.dense.get(i, part.image)]
    raise NotConvertibleError(
        f"The dense layers of the observation's parts {', '.join(bare)} are not in the checkpoint: "
        "on torch, this Ray neither saved nor trained them, and used random ones in each process.",
        where=named.where,
        fix=f"The checkpoint does not show what the policy computed. {refusals.KEEPS}",
    )


def is_in_parts(space: Space, settings: ModelSettings) -> bool:
    """Whether the network for several parts was chosen, though a vector was made of them.

    It was for images and tables in a Dict or Tuple, and for what no preprocessor flattened.
    With gym, those inside of inner Dicts and Tuples did not count.
    """
    if not isinstance(space, (DictSpace, TupleSpace)):
        is_box = isinstance(space, Box) and len(space.shape) != 1
        return is_box or isinstance(space, MultiBinary)
    if since(settings, "2.3"):
        parts = [part.space for part in parts_of(space)]
    else:
        parts = list(space.parts())
    return any(isinstance(part, Box) and len(part.shape) > 1 for part in parts)


def _draw(new: NewModel, seen: Space) -> int:
    """Draws a network for observations of several parts."""
    parts = [part.space for part in parts_of(original_space(seen) or seen)]
    arrays, settings, prefix = new.arrays, new.settings, new.prefix
    own = tuple(model_setting(settings.model, "fcnet_hiddens"))
    features = 0
    for number, part in enumerate(parts):
        if is_image(part):
            filters = filters_for(settings.model, part.shape)
            name = f"{prefix}cnn_{number}._convs"
            channels, size = draw_convolutions(new, name, part.shape, filters)
            features += channels * math.prod(size)
        elif since(settings, "1.10"):
            kind = "flatten" if isinstance(part, (Box, MultiBinary)) else "one_hot"
            name = f"{prefix}{kind}_{number}._hidden_layers"
            features += draw_stack(arrays, name, part.flat_size(), own)
        else:
            features += part.flat_size()
    post = settings.model.get("post_fcnet_hiddens") or ()
    last = draw_stack(arrays, f"{prefix}post_fc_stack._hidden_layers", features, post)
    if new.outputs is None:
        return last
    arrays.dense(f"{prefix}logits_layer._model.0", last, new.outputs, OUT)
    if new.value:
        arrays.dense(f"{prefix}value_layer._model.0", last, 1, OUT)
    return new.outputs


COMPLEX = Trunk(kind="complex input", tables=TABLES, inputs=_inputs, add=_add, draw=_draw)
