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
from collections.abc import Iterable
from dataclasses import replace

from rllib_compat.networks.mapping import Change, Move, Table, keras, row_for, torch_dense
from rllib_compat.networks.named import Named
from rllib_compat.networks.names import q_unnamed
from rllib_compat.networks.names.kind import trunk_of
from rllib_compat.networks.names.lstm import LSTM_TABLES
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.names.q_counted import Counted
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import COMPLEX
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.neutral.checkpoint import PolicyState

#: A 1x1 convolution over an image of one pixel is a dense layer: torch's, keras'.
_PIXEL = Change(lambda x: x[:, :, 0, 0].T, lambda x: x.T[:, :, None, None])
_PIXEL_KERAS = Change(lambda x: x[0, 0], lambda x: x[None, None])


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


#: TensorFlow, once what it counted is told apart (`Counted`): dense layers without names of their
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
    """Names the arrays of a policy, and tells the base model among them.

    Raises:
        NotYetError: Some of them are not a Q-network's, or have no known order.
        MissingInformationError: A size has to be given.
        CheckpointError: Arrays without names do not fit the config.
    """
    if not isinstance(policy.weights, dict):
        return q_unnamed.read_unnamed(policy, settings)
    plain, _ = plain_names(policy)
    torch = any(name.endswith((".weight", ".bias", ".w")) for name in plain)
    scheme, trunk = "torch" if torch else "keras", trunk_of(plain, policy)
    base = (*trunk.tables[scheme], *LSTM_TABLES[scheme])
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
