"""A Q-network once its arrays have their canonical names: its target network, and its module.

Where today's default DQN module computes the same (dense layers, one Q-value or advantage for each
action), it takes the network; everything else becomes `rllib_compat.modules:QModule`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.networks.graph import Array, Graph
from rllib_compat.networks.heads.q_head import Head, hiddens_of
from rllib_compat.networks.mapping import Move, Table, torch_dense
from rllib_compat.networks.network import TARGET_PREFIX, Network, Target, own_module
from rllib_compat.networks.ops.activations import activation
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.report import Finding, Severity, Verdict

MODULE = "rllib_compat.modules:QModule"

#: What the module has to be told beside its network; DQN's own settings by their names.
SETTINGS = ("double_q", "dueling", "num_atoms", "v_min", "v_max")


def network(
    graph: Graph,
    arrays: dict[str, Array],
    head: Head,
    settings: ModelSettings,
    *,
    trunk: str,
    scheme: str,
    names: Table,
    unused: tuple[str, ...] = (),
    where: str,
) -> tuple[Network, list[Finding]]:
    """Makes the network of a policy.

    Args:
        graph: What it computes.
        arrays: Its canonical arrays, with those of the target network if they were stored.
        head: What the config says of its head.
        settings: What the config says of it.
        trunk: What its base model is made of.
        scheme: The scheme in which the arrays were named.
        names: The scheme's names.
        unused: Arrays that nothing reads.
        where: The place, for the report.

    Returns:
        The network, and what was noticed.
    """
    arrays, findings = _with_target(arrays, where)
    made = Network(
        kind=f"Q-network, {trunk}",
        summary=_describe(graph, arrays, head),
        scheme=scheme,
        graph=graph,
        arrays=arrays,
        target=_target(graph, arrays, head, settings),
        names=names,
        unused=unused,
    )
    return made, findings


def _with_target(arrays: dict[str, Array], where: str) -> tuple[dict[str, Array], list[Finding]]:
    """Adds a target network where none was stored: torch and TF2 policies never had it."""
    if any(name.startswith(TARGET_PREFIX) for name in arrays):
        return arrays, []
    finding = Finding(
        "target-network",
        Severity.INFO,
        Verdict.DERIVED,
        where,
        "no target network is stored; it starts as a copy of the network, as after that Ray's own "
        "restore()",
    )
    return arrays | {TARGET_PREFIX + name: array for name, array in arrays.items()}, [finding]


def _describe(graph: Graph, arrays: Mapping[str, Array], head: Head) -> str:
    """One line for tables: `Q 4-32-32-2, head 24, dueling`."""
    base = [int(arrays[f"{name}.kernel"].shape[-1]) for name in _base(arrays)]
    parts = [
        "Q " + "-".join(map(str, [*graph.inputs["obs"], *base])),
        "head " + ("-".join(map(str, hiddens_of(arrays))) or "without layers"),
        *(["LSTM"] if graph.states else []),
        *(["dueling"] if head.dueling else []),
        *([f"{head.num_atoms} atoms"] if head.num_atoms > 1 else []),
        *(["noisy (means)"] if head.noisy else []),
        *(["layer norm"] if head.norm else []),
    ]
    return ", ".join(parts)


def _base(arrays: Mapping[str, Array]) -> list[str]:
    """The base model's layers, first to last."""
    numbers = range(len(arrays))
    names = [f"{layer}.{i}" for layer in ("conv", "hidden") for i in numbers]
    return [n for n in (*names, "last", "conv_out", "out") if f"{n}.kernel" in arrays]


def _target(
    graph: Graph, arrays: Mapping[str, Array], head: Head, settings: ModelSettings
) -> Target:
    simple = settings.algorithm == "SimpleQ"
    common = {
        "double_q": bool(settings.config.get("double_q", True)) and not simple,
        "dueling": head.dueling,
        "num_atoms": head.num_atoms,
        "v_min": head.v_min,
        "v_max": head.v_max,
    }
    if _fits_default(graph, arrays):
        return _default_module(arrays, settings.activation, common)
    return own_module(MODULE, graph, arrays, **common)


def _fits_default(graph: Graph, arrays: Mapping[str, Array]) -> bool:
    """Whether today's default module computes a graph exactly.

    It has dense layers, at least one before the head, and gives one number for each action; it
    knows no noise, no norm, and no linear layer below the head. What it does with the distribution
    of a dueling network changed between releases.
    """
    ops = {step.op for step in graph.steps}
    above_logits = {step.op for step in graph.steps if "logits" in step.takes}
    first = {"hidden.0.kernel", "out.kernel"} & arrays.keys()
    streams = "dueling" not in ops or "state.kernel" in arrays
    return bool(first) and ops <= {"dense", "dueling"} and above_logits <= {"dueling"} and streams


def _default_module(
    arrays: Mapping[str, Array], activation_name: str, common: Mapping[str, Any]
) -> Target:
    """Today's default module, and what it has to be told."""
    base, head = _base(arrays), hiddens_of(arrays)
    target = activation(activation_name, where="model.fcnet_activation").target
    return Target(
        module=None,
        model_config={
            "fcnet_hiddens": [int(arrays[f"{name}.kernel"].shape[1]) for name in base],
            "fcnet_activation": target,
            "head_fcnet_hiddens": head,
            "head_fcnet_activation": "relu",
            **common,
        },
        table=default_table(len(base), len(head), linear=target == "linear"),
    )


def default_table(layers: int, head: int, *, linear: bool) -> Table:
    """The default module's names: `DQNRainbowTorchRLModule` (Ray 2.40), `DefaultDQNTorchRLModule`.

    Args:
        layers: How many layers the encoder has.
        head: How many hidden layers each stream has.
        linear: Whether the encoder has no activation modules between its layers.
    """
    rows: list[Move] = []
    for theirs, ours in (("", ""), ("_target_", TARGET_PREFIX)):
        encoder, every = f"{theirs}encoder.net.mlp", 1 if linear else 2
        rows += torch_dense(f"{encoder}.{{{every}*i}}", f"{ours}hidden.{{i}}")
        # On TensorFlow, the base model's last layer had a name of its own.
        rows += torch_dense(f"{encoder}.{every * (layers - 1)}", f"{ours}out")
        for stream, canonical in (("af", "advantage"), ("vf", "state")):
            name = f"{theirs}{stream}.net.mlp"
            rows += torch_dense(f"{name}.{2 * head}", f"{ours}{canonical}")
            rows += torch_dense(f"{name}.{{2*i}}", f"{ours}{canonical}_hidden.{{i}}")
        rows += torch_dense(f"{theirs}af.net.mlp.0", f"{ours}logits")
    return tuple(rows)
