"""Reads the networks of QMIX (`agents/qmix/{model,mixers}.py`, Ray 0.6 – 2.10).

An agent's network (a dense layer, a GRU's cell, a dense layer), a mixer, and targets of both. They
become `networks.modules.qmix`, which names the layers otherwise; every array stays as it is.
"""

from __future__ import annotations

from typing import Any

from rllib_compat.networks.custom import inputs_of
from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import Move, to_canonical
from rllib_compat.networks.named import where_of
from rllib_compat.networks.network import CustomNetwork, Reading, Target
from rllib_compat.networks.refusals import missing, needed, unknown_arrays
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState

MODULE = "rllib_compat.modules:QMIXModule"

#: An old layer → ours, and what its arrays are called in both.
_DENSE = (("weight", "weight"), ("bias", "bias"))
_GRU = tuple(
    (f"{part}_{way}", f"{part}_{way}_l0") for part in ("weight", "bias") for way in ("ih", "hh")
)
_LAYERS = (
    ("model.fc1", "agent.encoder", _DENSE),
    ("model.rnn", "agent.gru", _GRU),
    ("model.fc2", "agent.q", _DENSE),
    ("mixer.hyper_w_1", "mixer.first_weight", _DENSE),
    ("mixer.hyper_b_1", "mixer.first_bias", _DENSE),
    ("mixer.hyper_w_final", "mixer.last_weight", _DENSE),
    ("mixer.V.0", "mixer.last_bias.0", _DENSE),
    ("mixer.V.2", "mixer.last_bias.2", _DENSE),
)
TABLE = tuple(
    Move(f"{theirs}{layer}.{part}", f"{ours}.{name}.{new}")
    for theirs, ours in (("", "net"), ("target_", "target_net"))
    for layer, name, parts in _LAYERS
    for part, new in parts
)
#: Those of a module that was converted before.
OWN = tuple(Move(row.ours, row.ours) for row in TABLE)


def read(policy: PolicyState, _: ModelSettings) -> Reading:
    """Reads the networks of a policy."""
    where = where_of(policy)
    if policy.observation_space is None or policy.action_space is None:
        raise needed("The module is built with the group's spaces, unknown here.", "both", where)
    assert isinstance(policy.weights, dict)
    table = OWN if policy.is_module else TABLE
    arrays, left = to_canonical(table, policy.weights)
    if left:
        raise unknown_arrays(left, policy.weights, "QMIX", where)
    mixes = any(".mixer." in name for name in arrays)
    expected = (row.ours for row in table if mixes or ".mixer." not in row.ours)
    if lacking := [name for name in expected if name not in arrays]:
        raise missing(lacking, where)
    module_config = _told(policy, arrays)
    network = CustomNetwork(
        kind="QMIX",
        summary=f"qmix, {module_config['lstm_cell_size']} cells, mixer {module_config['mixer']}",
        scheme="torch",
        arrays=arrays,
        target=Target(MODULE, module_config, tuple(Move(name, name) for name in arrays)),
        names=table,
        inputs=inputs_of(policy),
        space=policy.observation_space,
    )
    return Reading(network)


def _told(policy: PolicyState, arrays: dict[str, Array]) -> dict[str, Any]:
    """The module's options; VDN's mixer had no arrays."""
    if policy.is_module:
        without = policy.extra.get("module_config", {}).get("mixer")
    else:
        without = "vdn" if "mixer" not in policy.extra else None
    units = arrays.get("net.mixer.first_bias.weight")
    return {
        "mixer": without if units is None else "qmix",
        "lstm_cell_size": len(arrays["net.agent.encoder.weight"]),
        **({} if units is None else {"mixing_embed_dim": len(units)}),
    }
