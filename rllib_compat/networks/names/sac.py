"""What SAC's arrays were called, by every RLlib.

The canonical names are those of `networks.stacks`; `target.<name>` is the copy of an array that
follows it slowly. TensorFlow stored target networks, torch did not until the RLModules of today.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rllib_compat.networks.mapping import Move, Table, torch_dense
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.stacks import CRITIC, POLICY, STATE, TWIN

#: torch's modules of each stack, and what their layers were called in Ray 0.8.5 – 1.2.
_TORCH_STACKS = (
    (POLICY, "action_model.", "action"),
    (CRITIC, "q_net.", "q"),
    (TWIN, "twin_q_net.", "twin_q"),
)


def _torch() -> Iterator[Move]:
    for stack, module, name in _TORCH_STACKS:
        old = "action_{i}" if stack == POLICY else f"{name}_hidden_{{i}}"
        yield from torch_dense(f"{module}{old}._model.0", f"{stack}.hidden.{{i}}")
        yield Move(f"{module}{old}._model.1._beta", f"{stack}.hidden.{{i}}.beta")
        yield from torch_dense(f"{module}{name}_out._model.0", f"{stack}.out")
        # Ray 1.3 – 2.x: each stack is a whole model of the catalog.
        layer = f"{module}_hidden_layers.{{i}}._model"
        yield from torch_dense(f"{layer}.0", f"{stack}.hidden.{{i}}")
        yield Move(f"{layer}.1._beta", f"{stack}.hidden.{{i}}.beta")
        yield from torch_dense(f"{module}_logits._model.0", f"{stack}.out")
    yield from torch_dense("_hidden_layers.{i}._model.0", f"{STATE}.hidden.{{i}}")
    yield Move("_hidden_layers.{i}._model.1._beta", f"{STATE}.hidden.{{i}}.beta")


#: torch, ModelV2 (Ray 0.8.5 – 2.x). `state` is the shared model of `use_state_preprocessor`.
TORCH: Table = tuple(_torch())

#: Value functions that came with every model of the catalog, and that SAC never asked.
_TORCH_UNUSED = re.compile(r"((action_model|q_net|twin_q_net)\.)?_value_branch(_separate)?\..+")

#: The RLModule's modules for each stack, and their targets (until Ray 2.3x, and later).
_MODULES = (
    ("pi", POLICY),
    ("qf", CRITIC),
    ("qf_twin", TWIN),
    ("qf_target", TARGET_PREFIX + CRITIC),
    ("qf_target_twin", TARGET_PREFIX + TWIN),
    ("target_qf", TARGET_PREFIX + CRITIC),
    ("target_qf_twin", TARGET_PREFIX + TWIN),
)
_MLP = re.compile(r"(?P<part>\w+)\.net\.mlp\.(?P<number>\d+)\.weight")

_SEQUENTIAL = re.compile(
    r"sequential(_\d+)?/(?P<stack>action|q|twin_q)_"
    r"((?P<hidden>hidden_)?(?P<number>\d+)|out)/(?P<part>\w+)"
)
_FC = re.compile(r"(fc_(?P<number>\d+)|(?P<out>fc_out))(_\d+)?/(?P<part>kernel|bias)")
_VALUE = re.compile(r"(fc_value_\d+|value_out)(_\d+)?/(kernel|bias)")
_LAST_OF_MODEL = re.compile(r"value_out(_\d+)?/bias")

#: Constants that an RLModule's heads register as buffers.
CONSTANT = ".log_std_clip_param_const"

#: Single numbers among the arrays, by the names without TensorFlow's count of them.
LOG_ALPHA, TARGET_ENTROPY = "log_alpha", "target_entropy"

#: CQL's Lagrange multiplier (`lagrangian=True`); today's CQL has none.
MULTIPLIER = "log_alpha_prime"


def unused_torch(names: Iterable[str]) -> list[str]:
    """The names of arrays that nothing depends on."""
    return [name for name in names if _TORCH_UNUSED.fullmatch(name)]


def rl_module(names: Iterable[str]) -> Table:
    """The table of an RLModule (Ray 2.35 – 2.40): encoders, heads, and their targets.

    Layers count modules, activations among them; a head's hidden layers follow the encoder's.
    """
    numbers: dict[str, list[int]] = {}
    for name in names:
        if match := _MLP.fullmatch(name):
            numbers.setdefault(match["part"], []).append(int(match["number"]))
    rows: list[Move] = []
    for module, stack in _MODULES:
        layers = [
            f"{part}.net.mlp.{number}"
            for part in (f"{module}_encoder", module)
            for number in sorted(numbers.get(part, []))
        ]
        for i, layer in enumerate(layers[:-1]):
            rows += torch_dense(layer, f"{stack}.hidden.{i}")
        rows += torch_dense(layers[-1], f"{stack}.out") if layers else ()
    return tuple(rows)


def keras(names: Sequence[str]) -> tuple[Table, list[str]]:
    """The table of TensorFlow's variables, in the order in which they were made.

    keras counts equal names up, over all policies and networks of a process, so the numbers say
    nothing. The order does: policy, critic, twin critic, temperature, and all of them once more
    for the targets.

    Returns:
        The table, and the names of arrays that nothing depends on (value functions of the
        catalog's models, and the target policy).
    """
    if any(_SEQUENTIAL.fullmatch(name) for name in names):
        return _keras_sequential(names)
    return _keras_models(names)


def _keras_sequential(names: Sequence[str]) -> tuple[Table, list[str]]:
    """Ray 0.7 – 1.2: stacks of keras' `Sequential`, behind an optional shared model."""
    rows, unused = [], []
    end = _end_of_online(names)
    state_layers = sum(bool(_FC.fullmatch(name)) for name in names[:end]) // 2
    for index, name in enumerate(names):
        target = TARGET_PREFIX if index > end else ""
        if match := _SEQUENTIAL.fullmatch(name):
            stack = POLICY if match["stack"] == "action" else match["stack"]
            if target and stack == POLICY:
                unused.append(name)
                continue
            # `action_hidden_0` (0.7, 0.8.0) became `action_1`.
            first = 0 if match["hidden"] else 1
            layer = f"hidden.{int(match['number']) - first}" if match["number"] else "out"
            rows.append(Move(name, f"{target}{stack}.{layer}.{match['part']}"))
        elif match := _FC.fullmatch(name):
            number = state_layers if match["out"] else int(match["number"])
            rows.append(Move(name, f"{target}{STATE}.hidden.{number - 1}.{match['part']}"))
        elif _VALUE.fullmatch(name):
            unused.append(name)
    return tuple(rows), unused


def _keras_models(names: Sequence[str]) -> tuple[Table, list[str]]:
    """Ray 1.3 – 2.x: each stack is a model of the catalog, which ends with its value function."""
    rows, unused = [], []
    end = _end_of_online(names)
    online = sum(bool(_LAST_OF_MODEL.fullmatch(name)) for name in names[:end])
    stacks = [POLICY, CRITIC, TWIN][:online]
    model = 0
    for index, name in enumerate(names):
        target = TARGET_PREFIX if index > end else ""
        stack = stacks[model % online] if online else POLICY
        if match := _FC.fullmatch(name):
            layer = "out" if match["out"] else f"hidden.{int(match['number']) - 1}"
            if target and stack == POLICY:
                unused.append(name)
            else:
                rows.append(Move(name, f"{target}{stack}.{layer}.{match['part']}"))
        elif _VALUE.fullmatch(name):
            unused.append(name)
        model += bool(_LAST_OF_MODEL.fullmatch(name))
    return tuple(rows), unused


def _end_of_online(names: Sequence[str]) -> int:
    """Where the temperature is: what comes behind it belongs to the targets."""
    found = [i for i, name in enumerate(names) if is_scalar(name, LOG_ALPHA)]
    return found[0] if found else len(names)


def is_scalar(name: str, scalar: str) -> bool:
    """Whether a name is that of a single number (`log_alpha`, or `log_alpha_1` of a target)."""
    return re.fullmatch(rf"{scalar}(_\d+)?", name) is not None


def keras_names(
    policy: Sequence[int], critic: Sequence[int], *, twin: bool, models: bool, shared_value: bool
) -> list[str]:
    """The names of an online network's variables, for arrays that were stored without any.

    Args:
        policy: The policy's hidden sizes.
        critic: The critics' hidden sizes.
        twin: Whether there are two critics.
        models: Whether each stack is a model of the catalog (Ray 1.3 and later).
        shared_value: Whether the shared model has a value function (Ray 0.8.5 – 1.2).
    """
    layers = ["value_out"] if shared_value else []
    stacks = [("action", policy), ("q", critic), *([("twin_q", critic)] if twin else [])]
    for name, hiddens in stacks:
        if models:
            layers += [*(f"fc_{i + 1}" for i in range(len(hiddens))), "fc_out", "value_out"]
        else:
            hidden = [f"sequential/{name}_hidden_{i}" for i in range(len(hiddens))]
            if name == "action":
                hidden = [f"sequential/action_{i + 1}" for i in range(len(hiddens))]
            layers += hidden
            layers += [f"sequential/{name}_out"]
    return [f"{layer}/{part}" for layer in layers for part in ("kernel", "bias")] + [LOG_ALPHA]


def vector_rows(stack: str, sizes: Sequence[int], copy: int) -> list[tuple[str, tuple[int, ...]]]:
    """The names and shapes of a stack of Ray 0.7, in the order of a flat vector.

    Args:
        stack: `pi`, `q` or `twin_q`.
        sizes: What it takes, the hidden sizes, and what it gives.
        copy: 0 for the online network, 1 for its target.
    """
    name = "action" if stack == POLICY else stack
    layers = [f"{name}_hidden_{i}" for i in range(len(sizes) - 2)] + [f"{name}_out"]
    rows: list[tuple[str, tuple[int, ...]]] = []
    for i, layer in enumerate(layers):
        rows.append((f"sequential_{copy}/{layer}/kernel", (sizes[i], sizes[i + 1])))
        rows.append((f"sequential_{copy}/{layer}/bias", (sizes[i + 1],)))
    return rows
