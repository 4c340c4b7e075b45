"""RLlib's attention wrapper (`use_attention`, GTrXL) around its default models.

A unit's memory is what went into it in the last `attention_memory_inference` steps, zeros before
the first one: the states `memory_0`, `memory_1`, … `[memory, attention_dim]`, oldest first. In
training, old Rays remembered `attention_memory_training` steps in front of each sequence; modules
have one memory for both.

Sources: `models/{torch,tf}/attention_net.py` (Ray 1.2 – 2.x; the same in all of them).
"""

from __future__ import annotations

from collections.abc import Mapping

from rllib_compat.networks import compare
from rllib_compat.networks.graph import Builder
from rllib_compat.networks.named import Named
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.wrappers.base import Base, add_base
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: What each framework's layer norm adds to the variance. Only TensorFlow's layers behind attention
#: have biases, and so have new ones for TensorFlow, whatever they are called.
_TORCH_EPSILON, _KERAS_EPSILON = 1e-5, 1e-3


@frozen
class Core:
    """The attention part of a graph: what every head sits on.

    Attributes:
        value: The name of the last unit's output.
        base: What goes into the first.
        inputs: The graph's inputs.
        states: The graph's states, a memory for each unit.
        units: How many units there are.
        memory: How many steps each remembers, and the size of a step.
    """

    value: str
    base: Base
    inputs: Mapping[str, tuple[int, ...]]
    states: Mapping[str, str]
    units: int
    memory: tuple[int, int]


def add_attention(build: Builder, named: Named, trunk: Trunk) -> Core:
    """Adds the trunk, the previous actions and rewards, and the units to a graph.

    Raises:
        MissingInformationError: A space has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    units = _require_units(named)
    model = named.settings.model
    actions = int(model.get("attention_use_n_prev_actions") or 0)
    rewards = int(model.get("attention_use_n_prev_rewards") or 0)
    base = add_base(build, named, trunk, "embed", actions, rewards)
    top = build.add("dense", "embed", base.value)
    epsilon = _KERAS_EPSILON if "mlp_hidden.0.bias" in named.arrays else _TORCH_EPSILON
    for unit in range(units):
        top = _add_unit(build, unit, top, epsilon)
    memory = (int(model.get("attention_memory_inference", 50)), named.gives("embed"))
    states = {f"memory_{i}": f"attention.{i}.memory" for i in range(units)}
    inputs = {**base.inputs, **dict.fromkeys(states, memory)}
    return Core(top, base, inputs, states, units, memory)


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
    compare.require_told(named, found)
    return units


def findings(named: Named, core: Core) -> list[Finding]:
    """What the module can't do as that Ray did."""
    training = named.settings.model.get("attention_memory_training", 50)
    if training == core.memory[0]:
        return []
    return [
        named.note(
            f"training remembered {training} steps in front of a sequence, acting "
            f"{core.memory[0]}; the module remembers as many for both",
            "actions are as before; further training sees another memory",
            severity=Severity.WARNING,
            verdict=Verdict.DERIVED,
        )
    ]
