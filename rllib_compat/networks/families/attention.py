"""Actor-critics on attention (`use_attention`, GTrXL): its arrays' names, its graph, new ones.

A unit's memory is what went into it in the last `attention_memory_inference` steps, zeros before
the first one: the states `memory_0`, `memory_1`, … `[memory, attention_dim]`, oldest first. In
training it is as long: no Ray read `attention_memory_training`. Canonical arrays beside those of
the trunk, a unit `{i}` each::

    embed                     the dense layer in front
    attention.{i}             qkv, pos, out, u, v; gamma, beta of its layer norm
    attention_gate.{i}        w_r, w_z, w_h, u_r, u_z, u_h, bias_z
    mlp_norm.{i}              gamma, beta
    mlp_hidden.{i} mlp_out.{i}  kernel, bias (TensorFlow only)
    mlp_gate.{i}              as the other gate
    logits, value             kernel, bias

Sources: `models/{torch,tf}/attention_net.py` (Ray 1.2 – 2.x; the same in all of them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rllib_compat.networks.families.dense import (
    actor_critic,
    own_actor_critic,
    sequence_length,
    trunk_of,
)
from rllib_compat.networks.families.recurrent import dead_arrays, described_base
from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.mapping import TRANSPOSED, Move, Table, keras, row_for, torch_dense
from rllib_compat.networks.named import Named, plain_names
from rllib_compat.networks.network import Reading
from rllib_compat.networks.previous_steps import Core, add_base
from rllib_compat.networks.refusals import not_yet
from rllib_compat.networks.settings import ModelSettings, model_setting
from rllib_compat.networks.trunks.complex import COMPLEX, second_names
from rllib_compat.networks.trunks.dense import Trunk
from rllib_compat.neutral.checkpoint import PolicyState

_GATE = ("w_r", "w_z", "w_h", "u_r", "u_z", "u_h", "bias_z")

_UNIT = "gtrxl.attention_layers.{{{}}}"
_EVEN, _ODD = _UNIT.format("2*i"), _UNIT.format("2*i+1")

_MHA = "mha.{i}/relative_multi_head_attention.0"
_MLP = "pos_wise_mlp.{i}/sequential.0"

#: Names as `ordered` makes them.
_KERAS: Table = (
    *keras("dense.0", "embed"),
    *keras("dense.1", "logits"),
    *keras("dense.2", "value"),
    Move("Variable.{2*i}", "attention.{i}.u"),
    Move("Variable.{2*i+1}", "attention.{i}.v"),
    Move(f"{_MHA}/dense.0/kernel", "attention.{i}.qkv"),
    Move(f"{_MHA}/dense.1/kernel", "attention.{i}.pos"),
    Move(f"{_MHA}/time_distributed.0/kernel", "attention.{i}.out"),
    Move(f"{_MHA}/layer_normalization.0/gamma", "attention.{i}.gamma"),
    Move(f"{_MHA}/layer_normalization.0/beta", "attention.{i}.beta"),
    *(
        Move(f"mha.{{i}}/gru_gate.0/Variable.{k}", f"attention_gate.{{i}}.{part}")
        for k, part in enumerate(_GATE)
    ),
    Move(f"{_MLP}/layer_normalization.0/gamma", "mlp_norm.{i}.gamma"),
    Move(f"{_MLP}/layer_normalization.0/beta", "mlp_norm.{i}.beta"),
    *keras(f"{_MLP}/positionwise_feedforward.0/dense.0", "mlp_hidden.{i}"),
    *keras(f"{_MLP}/positionwise_feedforward.0/dense.1", "mlp_out.{i}"),
    *(
        Move(f"pos_wise_mlp.{{i}}/gru_gate.0/Variable.{k}", f"mlp_gate.{{i}}.{part}")
        for k, part in enumerate(_GATE)
    ),
)

#: By scheme, the rows beside the trunk's.
ATTENTION_TABLES: Mapping[str, Table] = {
    "keras": _KERAS,
    "torch": (
        *torch_dense("gtrxl.linear_layer._model.0", "embed"),
        Move(f"{_EVEN}._layer._uvar", "attention.{i}.u"),
        Move(f"{_EVEN}._layer._vvar", "attention.{i}.v"),
        Move(f"{_EVEN}._layer._qkv_layer._model.0.weight", "attention.{i}.qkv", TRANSPOSED),
        Move(f"{_EVEN}._layer._pos_proj._model.0.weight", "attention.{i}.pos", TRANSPOSED),
        Move(f"{_EVEN}._layer._linear_layer._model.0.weight", "attention.{i}.out", TRANSPOSED),
        Move(f"{_EVEN}._layer._input_layernorm.weight", "attention.{i}.gamma"),
        Move(f"{_EVEN}._layer._input_layernorm.bias", "attention.{i}.beta"),
        *(Move(f"{_EVEN}._fan_in_layer._{p}", f"attention_gate.{{i}}.{p}") for p in _GATE),
        Move(f"{_ODD}._layer.0.weight", "mlp_norm.{i}.gamma"),
        Move(f"{_ODD}._layer.0.bias", "mlp_norm.{i}.beta"),
        *torch_dense(f"{_ODD}._layer.1._model.0", "mlp_hidden.{i}"),
        *torch_dense(f"{_ODD}._layer.2._model.0", "mlp_out.{i}"),
        *(Move(f"{_ODD}._fan_in_layer._{p}", f"mlp_gate.{{i}}.{p}") for p in _GATE),
        *torch_dense("_logits_branch._model.0", "logits"),
        *torch_dense("_value_branch._model.0", "value"),
    ),
}

#: Sinusoids that torch's modules kept as a buffer; they follow from the size.
CONSTANT = re.compile(r"gtrxl\.attention_layers\.\d+\._layer\._rel_pos_embedding\.inverse_freq")

_COUNTED = re.compile(
    r"(dense|Variable|mha|relative_multi_head_attention|gru_gate|layer_normalization|"
    r"time_distributed|pos_wise_mlp|sequential|positionwise_feedforward)(?:_(\d+))?"
)


def ordered(names: Iterable[str]) -> dict[str, str]:
    """The new names of Keras' arrays: counters that run through a whole process become ranks.

    `mha_1/…/dense_3/kernel` is the second dense layer of the first `mha`: `mha.0/…/dense.1/kernel`.
    """
    made = dict.fromkeys(names, "")
    parts = {name: name.split("/") for name in made}
    for depth in range(max(map(len, parts.values()), default=0)):
        counters: dict[tuple[str, str], set[int]] = {}
        found = {n: _COUNTED.fullmatch(p[depth]) for n, p in parts.items() if len(p) > depth}
        for name, match in found.items():
            if match is not None:
                counters.setdefault((made[name], match[1]), set()).add(int(match[2] or 0))
        ranks = {key: sorted(numbers) for key, numbers in counters.items()}
        for name, match in found.items():
            part = parts[name][depth]
            if match is not None:
                part = f"{match[1]}.{ranks[made[name], match[1]].index(int(match[2] or 0))}"
            # Once a layer's names are read, its scope is complete: siblings share it.
            parts[name][depth] = part
        made = {n: "/".join(p[: depth + 1]) for n, p in parts.items()}
    return made


def names_of(trunk: Trunk, scheme: str, names: Iterable[str]) -> Table:
    """The names of a whole network with attention, as the arrays really have them."""
    names = list(names)
    renamed = ordered(names) if scheme == "keras" else {name: name for name in names}
    table = (*ATTENTION_TABLES[scheme], *trunk.tables[scheme])
    rows = ((real, row_for(table, name)) for real, name in renamed.items())
    return tuple(replace(row, theirs=real) for real, row in rows if row)


#: What each framework's layer norm adds to the variance. Only TensorFlow's layers behind attention
#: have biases, and so have new ones for TensorFlow, whatever they are called.
_TORCH_EPSILON, _KERAS_EPSILON = 1e-5, 1e-3


def add_attention(build: Builder, named: Named, trunk: Trunk) -> Core:
    """Adds the trunk, the previous actions and rewards, and the units to a graph."""
    units = _require_units(named)
    model = named.settings.model
    actions = int(model.get("attention_use_n_prev_actions") or 0)
    rewards = int(model.get("attention_use_n_prev_rewards") or 0)
    base = add_base(build, named, trunk, "embed", actions, rewards)
    top = build.add("dense", "embed", base.value)
    epsilon = _KERAS_EPSILON if "mlp_hidden.0.bias" in named.arrays else _TORCH_EPSILON
    for unit in range(units):
        top = _add_unit(build, unit, top, epsilon)
    memory = (int(model_setting(model, "attention_memory_inference")), named.gives("embed"))
    states = {f"memory_{i}": f"attention.{i}.memory" for i in range(units)}
    return base.wrapped(top, states, memory)


def _add_unit(build: Builder, unit: int, takes: str, epsilon: float) -> str:
    """Adds one transformer unit: attention, then two dense layers, each behind a gate."""
    seen = build.add(
        "relative_attention", f"attention.{unit}", takes, f"memory_{unit}", epsilon=epsilon
    )
    between = build.add("gru_gate", f"attention_gate.{unit}", takes, seen)
    normed = build.add("layer_norm", f"mlp_norm.{unit}", between, epsilon=epsilon)
    hidden = build.add("dense", f"mlp_hidden.{unit}", normed, activation="relu")
    out = build.add("dense", f"mlp_out.{unit}", hidden, activation="relu")
    return build.add("gru_gate", f"mlp_gate.{unit}", between, out)


def _require_units(named: Named) -> int:
    """How many units there are; the arrays are held against the config."""
    named.require("embed.bias", "attention.0.u")
    units = sum(f"attention.{i}.u" in named.arrays for i in range(len(named.arrays)))
    heads, head = named.arrays["attention.0.u"].shape
    found = {
        "attention_num_transformer_units": units,
        "attention_dim": named.gives("embed"),
        "attention_num_heads": int(heads),
        "attention_head_dim": int(head),
    }
    named.require_told(found)
    return units


def read_attention(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of an actor-critic with attention."""
    if not isinstance(policy.weights, dict):
        raise not_yet(
            "attention in weights without names (TF2)", f"policies.{policy.policy_id}.weights"
        )
    plain, state = plain_names(policy)
    trunk = trunk_of(plain, policy)
    scheme = "torch" if any(name.startswith("gtrxl.") for name in plain) else "keras"
    plain = {k: v for k, v in plain.items() if not CONSTANT.fullmatch(k)}
    unread = dead_arrays(trunk, scheme, plain)
    named = Named.take(
        policy,
        settings,
        plain,
        scheme,
        names_of(trunk, scheme, [name for name in plain if name not in unread]),
        of=f"{trunk.kind} network with attention",
        unused=unread,
        state=state,
        aliases=second_names(plain) if trunk is COMPLEX else (),
    )
    named.require("logits.bias", "value.bias")
    named.require_outputs(named.gives("logits"))
    build = Builder()
    core = add_attention(build, named, trunk)
    logits, value = (build.add("dense", head, core.value) for head in ("logits", "value"))
    outputs = actor_critic(build, logits, value)
    graph = Graph(core.inputs, tuple(build.steps), outputs, core.states)
    steps, size = graph.inputs["memory_0"]
    over = described_base(named, trunk, graph)
    summary = f"attention {len(core.states)} x {size}, memory {steps}, over {over}"
    length = sequence_length(settings)
    target = own_actor_critic(graph, named.arrays, max_seq_len=length)
    network = named.network("attention", summary, graph, target)
    return named.reading(network)
