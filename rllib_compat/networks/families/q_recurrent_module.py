"""R2D2's new networks (`networks.modules.r2d2`), read from checkpoints of trainers.

Ray's encoder with its LSTM, a linear layer, RLlib's streams; a target network of the same names.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from rllib_compat.networks.families.rl_module_lstm import encoder, encoder_activation
from rllib_compat.networks.mapping import Move, Table, torch_dense
from rllib_compat.networks.named import Named
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.network import OWN_PREFIX, OWN_TARGET_PREFIX, TARGET_PREFIX
from rllib_compat.networks.ops.in_numpy import activation
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState

_FIRST = f"{OWN_PREFIX}encoder."


def is_meant(names: Any) -> bool:
    """Whether arrays have the module's names."""
    return any(name.startswith(_FIRST) for name in names)


def _table(head: int, *, linear: bool) -> Table:
    """The module's names; with how many hidden layers each stream has."""
    rows: list[Move] = []
    for theirs, ours in ((OWN_PREFIX, ""), (OWN_TARGET_PREFIX, TARGET_PREFIX)):
        rows += encoder(f"{theirs}encoder", ours, linear=linear)
        rows += torch_dense(f"{theirs}logits", f"{ours}logits")
        for stream in ("advantage", "state"):
            rows += torch_dense(f"{theirs}{stream}.{2 * head}", f"{ours}{stream}")
            rows += torch_dense(f"{theirs}{stream}.{{2*i}}", f"{ours}{stream}_hidden.{{i}}")
    return tuple(rows)


def named(policy: PolicyState, settings: ModelSettings) -> Named:
    """Names the arrays of a module, beside what it says itself of its layers.

    Raises:
        NotYetError: Its encoder is not of dense layers.
    """
    told = policy.extra.get("module_config", {})
    settings = replace(
        settings,
        activation=encoder_activation(told),
        hiddens=None,
        model={**settings.model, **told},
        config={**settings.config, **told},
    )
    plain, _ = plain_names(policy)
    linear = activation(settings.activation, where="model.fcnet_activation").target == "linear"
    stream = re.compile(rf"{OWN_PREFIX}advantage\.\d+\.weight")
    layers = sum(bool(stream.fullmatch(name)) for name in plain)
    names = _table(max(layers - 1, 0), linear=linear)
    of = "Q-network with an LSTM behind dense layers"
    return Named.take(policy, settings, plain, "rl_module", names, of=of)
