"""The names of an attention wrapper's arrays in every scheme.

Canonical arrays beside those of the trunk, a unit `{i}` each::

    embed                     the dense layer in front
    attention.{i}             qkv, pos, out, u, v; gamma, beta of its layer norm
    attention_gate.{i}        w_r, w_z, w_h, u_r, u_z, u_h, bias_z
    mlp_norm.{i}              gamma, beta
    mlp_hidden.{i} mlp_out.{i}  kernel, bias (TensorFlow only)
    mlp_gate.{i}              as the other gate
    logits, value             kernel, bias
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rllib_compat.networks.mapping import TRANSPOSED, Move, Table, keras, torch_dense
from rllib_compat.networks.trunks.trunk import Trunk

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
    """Keras' names with the counters that run through a whole process replaced by ranks.

    `mha_1/…/dense_3/kernel` is the second dense layer of the first `mha`: `mha.0/…/dense.1/kernel`.

    Returns:
        The new name of each.
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


def table(trunk: Trunk, scheme: str, names: Iterable[str]) -> Table:
    """The names of a whole network with attention, as the arrays really have them.

    Args:
        trunk: The base model below.
        scheme: The naming scheme.
        names: The names of the arrays that something reads.
    """
    names = list(names)
    renamed = ordered(names) if scheme == "keras" else {name: name for name in names}
    rows = []
    for real, name in renamed.items():
        for move in (*ATTENTION_TABLES[scheme], *trunk.tables[scheme]):
            theirs, ours = move.names
            index = theirs.index_of(name)
            if index is not None:
                rows.append(Move(real, ours.at(index), move.change))
                break
    return tuple(rows)
