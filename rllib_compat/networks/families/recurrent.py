"""Actor-critics on an LSTM (`use_lstm`): its arrays' names, its graph, its place in a new network.

Canonical arrays beside those of the trunk; gates in the order input, forget, cell, output::

    lstm.kernel    lstm.recurrent_kernel    lstm.bias    lstm.recurrent_bias (torch only)
    logits.kernel  logits.bias              value.kernel value.bias   (both on the LSTM's output)

A value function of its own, which had no memory (TensorFlow, Ray 0.5 – 0.8.4, `vf_share_layers`
off), has the trunk's names with the prefix `value_`, and ends in `value_out`. Up to Ray 0.6 it saw
the observation, from 0.7 on the trunk's features (`modelv1_compat.py` took the wrong input).

Sources: `models/lstm.py` (0.5 – 0.6), `models/tf/lstm_v1.py` (0.7 – 0.8.4),
`models/{tf,torch}/recurrent_net.py` (0.8.6 – 2.x). Ray 0.8.5 ignored `use_lstm` on TensorFlow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from packaging.version import Version

from rllib_compat.networks import refusals
from rllib_compat.networks.families.dense import (
    actor_critic,
    own_actor_critic,
    sequence_length,
    trunk_of,
)
from rllib_compat.networks.families.rl_module import default_lstm_module, read_lstm_module
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import Change, Move, Table, keras, torch_dense, torch_lstm
from rllib_compat.networks.named import Named, plain_names, where_of
from rllib_compat.networks.network import Reading, Target
from rllib_compat.networks.observations import preprocessed_image
from rllib_compat.networks.previous_steps import Core, add_base, choices_of
from rllib_compat.networks.settings import ModelSettings, distribution_inputs, model_setting
from rllib_compat.networks.trunks.complex import COMPLEX, dead_names, second_names
from rllib_compat.networks.trunks.dense import DENSE, Trunk, add_layers
from rllib_compat.networks.trunks.vision import Filter, filters_for
from rllib_compat.networks.unnamed import (
    Rows,
    conv_rows,
    cut_vector,
    dense_rows,
    keras_order,
    require_spaces,
    scalars_of,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.report import Verdict
from rllib_compat.neutral.spaces import Space

#: By scheme (see `LSTM_TABLES`), the scope of all variables, and what a layer's two were called.
_CALLED = {"layers": ("default_model/", "kernel", "bias"), "slim": ("", "weights", "biases")}


def name_list(
    arrays: list[Array], policy: PolicyState, settings: ModelSettings
) -> dict[str, Array]:
    """Names the arrays of a TF2 policy (Ray 1.x): keras' order, the wrapped model first."""
    layers = len(settings.hidden_sizes)
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
    """
    scalars = scalars_of(settings)
    between: Rows = [(name, ()) for name in scalars]
    for policy_rows, value_rows in _layouts(*require_spaces(policy), settings):
        # Ray 0.7 made the value function last, after the scalars of the loss.
        for rows in ([*policy_rows, *between], policy_rows):
            if found := cut_vector(vector, rows, value_rows, scalars):
                return found
    what = f"The vector of {vector.size} numbers"
    raise refusals.no_fit(what, "LSTM around the config's network", where_of(policy))


def _layouts(seen: Space, acts: Space, settings: ModelSettings) -> Iterator[tuple[Rows, Rows]]:
    """The policy's rows and the value function's, for each layout that there was."""
    model = settings.model
    size, outputs = int(model_setting(model, "lstm_cell_size")), distribution_inputs(acts) or 0
    extra = len(choices_of(acts)) + 1 if model.get("lstm_use_prev_action_reward") else 0
    hiddens = settings.hidden_sizes
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
        # `slim` is the same, without names to distinguish them.
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


#: tf.contrib's and tf.layers' cells of Ray 0.5 – 0.8.4. `_split` has parted their kernels.
_CELL = re.compile(r"rnn/(?:basic_)?lstm_cell/(kernel|bias)")

#: Arrays of the wrapped model that Ray made and nothing reads, by scheme.
_DEAD = {
    "slim": r"fc_out/.*",
    "layers": r"default_model/fc_out/.*",
    "keras": r"fc_value_\d+/.*|conv_value_.*|value_out/.*",
    "torch": r"_value_branch_separate\..*",
}
#: With convolutions, up to 0.8.4, the head was called `fc2`.
_DEAD_CONVOLUTION = {"slim": r"fc2/.*", "layers": r"default_model/fc2/.*"}


def _swap_gates(x: Array) -> Array:
    """Between the old cells' gates (input, cell, forget, output) and ours; its own reverse."""
    i, j, f, o = np.split(x, 4, axis=-1)
    return np.concatenate([i, f, j, o], axis=-1)


def _forget_bias(bias: Array) -> Array:
    """What the old cells added to the forget gate when they ran."""
    size = len(bias) // 4
    return np.repeat([0.0, 1.0, 0.0, 0.0], size)


_OLD_GATES = Change(_swap_gates, _swap_gates)
_OLD_BIAS = Change(
    lambda x: _swap_gates(x) + _forget_bias(x), lambda x: _swap_gates(x - _forget_bias(x))
)

_HEADS_OF_OLD = (
    Move("action/w", "logits.kernel"),
    Move("action/b", "logits.bias"),
    Move("cell/kernel", "lstm.kernel", _OLD_GATES),
    Move("cell/recurrent_kernel", "lstm.recurrent_kernel", _OLD_GATES),
    Move("cell/bias", "lstm.bias", _OLD_BIAS),
)
#: With convolutions, the value function's head was one of 1 x 1.
_CONVOLUTION_HEAD = (
    Move(
        "value_function/fc2/weights",
        "value_out.kernel",
        Change(lambda x: x.reshape(x.shape[-2:]), lambda x: x[None, None]),
    ),
    Move("value_function/fc2/biases", "value_out.bias"),
)


def _keras_cell(theirs: str) -> Table:
    return tuple(
        Move(f"{theirs}/{part}", f"lstm.{part}") for part in ("kernel", "recurrent_kernel", "bias")
    )


#: By scheme, the rows beside the trunk's.
LSTM_TABLES: Mapping[str, Table] = {
    "slim": (
        *_HEADS_OF_OLD,
        Move("value/w", "value.kernel"),
        Move("value/b", "value.bias"),
        Move("value_function/fc_out/weights", "value_out.kernel"),
        Move("value_function/fc_out/biases", "value_out.bias"),
    ),
    "layers": (
        *(Move(f"default_model/{m.theirs}", m.ours, m.change) for m in _HEADS_OF_OLD),
        Move("default_model/value_function/value_function/w", "value.kernel"),
        Move("default_model/value_function/value_function/b", "value.bias"),
        *keras("default_model/value_function/fc_out", "value_out"),
        *keras("default_model/value_function/fc{i+1}", "value_hidden.{i}"),
    ),
    "keras": (
        # TensorFlow 1 and 2.0, and TensorFlow from 2.2 on
        *_keras_cell("lstm"),
        *_keras_cell("lstm/lstm_cell"),
        *keras("logits", "logits"),
        *keras("values", "value"),
    ),
    "torch": (
        *torch_lstm("lstm", "lstm"),
        *torch_dense("_logits_branch._model.0", "logits"),
        *torch_dense("_value_branch._model.0", "value"),
        # What only TensorFlow had: names of ours, for new networks.
        *torch_dense("_own_value.{i}._model.0", "value_hidden.{i}"),
        *torch_dense("_own_value_out._model.0", "value_out"),
    ),
}


def scheme_of(names: Iterable[str]) -> str:
    """Which code named the arrays of a wrapper."""
    found = tuple(names)
    if any(name.startswith("default_model/") for name in found):
        return "layers"
    if any(name.startswith("cell/") for name in found):
        return "slim"
    return "torch" if any("weight_ih" in name for name in found) else "keras"


def names_of(trunk: Trunk, scheme: str) -> Table:
    """The names of a whole wrapper in one scheme."""
    if scheme != "layers" and scheme != "slim":
        return (*LSTM_TABLES[scheme], *trunk.tables[scheme])
    slim = trunk.tables["slim"]
    own = tuple(
        Move(f"value_function/{m.theirs}", f"value_{m.ours}", m.change)
        for m in slim
        if "fc_out" not in m.theirs
    )
    if scheme == "slim":
        head = () if trunk is DENSE else _CONVOLUTION_HEAD
        return (*LSTM_TABLES["slim"], *head, *own, *slim)
    renamed = (  # what tf.layers called an array of tf.contrib.slim
        Move(f"default_model/{name}", m.ours, m.change)
        for m in slim
        for name in [m.theirs.replace("/weights", "/kernel").replace("/biases", "/bias")]
        if "fc_out" not in name
    )
    return (*LSTM_TABLES["layers"], *renamed)


def split_cells(plain: Mapping[str, Array]) -> dict[str, Array]:
    """Parts the kernel of an old cell `[in + n, 4 n]` into that of its input and of its state."""
    out: dict[str, Array] = {}
    for name, array in plain.items():
        found = _CELL.search(name)
        if found is None:
            out[name] = array
            continue
        cell = name[: found.start()] + "cell/"
        if found[1] == "kernel":
            size = array.shape[1] // 4
            out[f"{cell}kernel"], out[f"{cell}recurrent_kernel"] = array[:-size], array[-size:]
        else:
            out[f"{cell}bias"] = array
    return out


def dead_arrays(trunk: Trunk, scheme: str, names: Iterable[str]) -> list[str]:
    """The names of arrays that nothing reads."""
    if trunk is COMPLEX:
        return dead_names(names, heads=False)
    patterns = [_DEAD[scheme]]
    if trunk is not DENSE and scheme in _DEAD_CONVOLUTION:
        patterns.append(_DEAD_CONVOLUTION[scheme])
    pattern = re.compile("|".join(patterns))
    return [name for name in names if pattern.fullmatch(name)]


#: keras' LSTM of TensorFlow 1 and 2.0 – 2.1 has no `lstm_cell` in its names, and hard gates.
_TENSORFLOW_1 = re.compile(r"lstm(_\d+)?/kernel")


def add_lstm(build: Builder, named: Named, trunk: Trunk) -> Core:
    """Adds the trunk, the previous actions and rewards, and the LSTM to a graph."""
    named.require("lstm.kernel", "lstm.recurrent_kernel", "lstm.bias")
    model = named.settings.model
    both = bool(model.get("lstm_use_prev_action_reward"))
    actions = both or bool(model.get("lstm_use_prev_action"))
    rewards = both or bool(model.get("lstm_use_prev_reward"))
    base = add_base(build, named, trunk, "lstm", int(actions), int(rewards), raw_first=both)
    value = build.add("lstm", "lstm", base.value, "h", "c", gates=_gates_of(named.policy))
    # In the order of that Ray's lists of states.
    order = ("c", "h") if named.scheme in ("slim", "layers") else ("h", "c")
    cells = len(named.arrays["lstm.recurrent_kernel"])
    return base.wrapped(value, {name: f"lstm.{name}" for name in order}, (cells,))


def _gates_of(policy: PolicyState) -> str:
    """What the gates are squashed by: a key of `ops.in_numpy.GATES`."""
    if not isinstance(policy.weights, dict):
        return "sigmoid"
    hard = any(map(_TENSORFLOW_1.fullmatch, plain_names(policy)[0]))
    return "hard_sigmoid" if hard else "sigmoid"


def read_lstm(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of an actor-critic with an LSTM."""
    plain, state = _plain_of_lstm(policy, settings)
    if any(name.startswith("encoder.") for name in plain):
        return read_lstm_module(plain, policy, settings)
    trunk = trunk_of(plain, policy)
    split = split_cells(plain)
    scheme = scheme_of(split)
    named = Named.take(
        policy,
        settings,
        split,
        scheme,
        names_of(trunk, scheme),
        of=f"{trunk.kind} network with an LSTM",
        unused=dead_arrays(trunk, scheme, split),
        state=state,
        aliases=second_names(plain) if trunk is COMPLEX else (),
    )
    named.require("lstm.recurrent_kernel", "logits.kernel", "logits.bias")
    named.require_told({"lstm_cell_size": len(named.arrays["lstm.recurrent_kernel"])})
    if trunk is DENSE:
        named.require_hiddens(named.sizes("hidden"), settings.hiddens)
    named.require_outputs(named.gives("logits"))
    build = Builder()
    core = add_lstm(build, named, trunk)
    logits = build.add("dense", "logits", core.value)
    value = _add_value(build, named, trunk, core)
    outputs = {"action_dist_inputs": logits} | (actor_critic(build, logits, value) if value else {})
    graph = Graph(core.inputs, tuple(build.steps), outputs, core.states)
    gates = _gates_of(policy)
    hard = [gates.replace("_", " ") + " gates"] if gates != "sigmoid" else []
    own = ["own value network"] if "value_out" in named else []
    (cells,) = graph.inputs["h"]
    size = f"LSTM {cells} over {described_base(named, trunk, graph)}"
    summary = ", ".join([size, *core.previous.described(), *own, *hard])
    network = named.network("LSTM", summary, graph, _target_of_lstm(named, trunk, graph, core))
    assumed = named.note(
        "the LSTM's gates are taken as keras' of TensorFlow 1, clip(0.2 x + 0.5), since the "
        "weights are named as there",
        "with TensorFlow 2.0 or 2.1, which named them the same, they were a sigmoid",
        verdict=Verdict.DERIVED,
    )
    return named.reading(network, *([assumed] if hard else []))


def _plain_of_lstm(
    policy: PolicyState, settings: ModelSettings
) -> tuple[Mapping[str, Array], dict[str, float]]:
    """The arrays by the names of their variables, and the scalars."""
    if isinstance(policy.weights, dict):
        return plain_names(policy)
    if isinstance(policy.weights, list):
        return name_list(policy.weights, policy, settings), {}
    return name_vector(np.asarray(policy.weights), policy, settings)


def _add_value(build: Builder, named: Named, trunk: Trunk, core: Core) -> str | None:
    """Adds the value function: on the LSTM, or a network of its own; PG had none."""
    if "value" in named:
        return build.add("dense", "value", core.value)
    if "value_out" not in named:
        return None
    if "value_last" in named:
        hidden = trunk.add(build, named, "value_")
    else:
        takes = core.features if _shows_features(named) else "obs"
        own = named.layers("value_hidden")
        hidden = add_layers(build, named.arrays, own, takes, named.settings.activation)
    return build.add("dense", "value_out", hidden)


def _shows_features(named: Named) -> bool:
    """Whether a value function of its own sees features: it did since Ray 0.7."""
    ray = named.settings.ray
    new = named.torch and ray is not None and Version(ray) >= Version("0.7")
    return named.scheme == "layers" or new


def _target_of_lstm(named: Named, trunk: Trunk, graph: Graph, core: Core) -> Target:
    """Today's default module where it computes and trains the same, else one of ours.

    It does for torch's dense layers: with one bias, as keras has it, its LSTM would learn
    differently, since torch's two biases move both.
    """
    sloped = any(name.endswith(".beta") for name in named.arrays)
    both = {"lstm.recurrent_bias", "value.kernel"} <= named.arrays.keys()
    dense = trunk is DENSE and named.layers("hidden") and not sloped
    if dense and both and not core.previous.size:
        return default_lstm_module(named, shares_layers=True)
    length = sequence_length(named.settings)
    return own_actor_critic(graph, named.arrays, max_seq_len=length)


def described_base(named: Named, trunk: Trunk, graph: Graph) -> str:
    """What a wrapper is around, for tables: `fully connected 4, 2 outputs`."""
    shape = "x".join(map(str, graph.inputs["obs"]))
    return f"{trunk.kind} {shape}, {named.gives('logits')} outputs"
