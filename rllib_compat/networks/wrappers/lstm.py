"""RLlib's LSTM wrapper (`use_lstm`) around its default models.

Sources: `models/lstm.py` (0.5 – 0.6), `models/tf/lstm_v1.py` (0.7 – 0.8.4),
`models/{tf,torch}/recurrent_net.py` (0.8.6 – 2.x). Ray 0.8.5 ignored `use_lstm` on TensorFlow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rllib_compat.networks.graph import Builder
from rllib_compat.networks.named import Named
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.wrappers.base import Base, add_base
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict

#: keras' LSTM of TensorFlow 1 and 2.0 – 2.1 has no `lstm_cell` in its names, and hard gates.
_TENSORFLOW_1 = re.compile(r"lstm(_\d+)?/kernel")


@frozen
class Core:
    """The recurrent part of a graph: what every head sits on.

    Attributes:
        value: The name of the LSTM's output.
        base: What it takes.
        inputs: The graph's inputs.
        states: The graph's states, in the order of that Ray's lists.
        cells: How many cells the LSTM has.
        gates: What the gates are squashed by: a key of `ops.recurrent.GATES`.
    """

    value: str
    base: Base
    inputs: Mapping[str, tuple[int, ...]]
    states: Mapping[str, str]
    cells: int
    gates: str


def add_lstm(build: Builder, named: Named, trunk: Trunk) -> Core:
    """Adds the trunk, the previous actions and rewards, and the LSTM to a graph.

    Raises:
        MissingInformationError: A space has to be given.
        CheckpointError: The LSTM lacks an array, or takes other numbers than the config says.
    """
    named.require("lstm.kernel", "lstm.recurrent_kernel", "lstm.bias")
    model = named.settings.model
    both = bool(model.get("lstm_use_prev_action_reward"))
    actions = both or bool(model.get("lstm_use_prev_action"))
    rewards = both or bool(model.get("lstm_use_prev_reward"))
    base = add_base(build, named, trunk, "lstm", int(actions), int(rewards), raw_first=both)
    gates = _gates_of(named.policy)
    value = build.add("lstm", "lstm", base.value, "h", "c", gates=gates)
    # In the order of that Ray's lists of states.
    order = ("c", "h") if named.scheme in ("slim", "layers") else ("h", "c")
    cells = len(named.arrays["lstm.recurrent_kernel"])
    inputs = {**base.inputs, **dict.fromkeys(order, (cells,))}
    return Core(value, base, inputs, {name: f"lstm.{name}" for name in order}, cells, gates)


def _gates_of(policy: PolicyState) -> str:
    if not isinstance(policy.weights, dict):
        return "sigmoid"
    hard = any(map(_TENSORFLOW_1.fullmatch, plain_names(policy)[0]))
    return "hard_sigmoid" if hard else "sigmoid"


def findings(named: Named, core: Core) -> list[Finding]:
    """What can't be told from the weights alone."""
    if core.gates == "sigmoid":
        return []
    return [
        named.note(
            "the LSTM's gates are taken as keras' of TensorFlow 1, clip(0.2 x + 0.5), since the "
            "weights are named as there",
            "with TensorFlow 2.0 or 2.1, which named them the same, they were a sigmoid",
            verdict=Verdict.DERIVED,
        )
    ]
