"""What SAC's arrays were called, by every RLlib, and in which order it stored those without names.

The canonical names are those of `names.stacks`, and behind a stack's name those of a model
(`names.actor_critic`); `target.<name>` is the copy of an array that follows it slowly. TensorFlow
stored target networks, torch did not until the RLModules of today.

Since Ray 1.3 each stack is a model of the catalog. What came before is given the names of such a
model first, so one table tells the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeAlias

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import Move, Table, keras, row_for, torch_dense
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.names import sac_unnamed
from rllib_compat.networks.names.actor_critic import COMPLEX_SCHEMES, VISION_SCHEMES
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.names.stacks import CRITIC, POLICY, STATE, TWIN
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.optimizers.groups import ALPHA, MULTIPLIER
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import COMPLEX, dead_names
from rllib_compat.networks.trunks.components import original_space
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.spaces import Box

#: For each array, by the name it had: its stack (`target.q`), and what a model would call it.
Placed: TypeAlias = Mapping[str, tuple[str, str]]

#: What each stack is made of.
Trunks: TypeAlias = Mapping[str, Trunk]

TARGET_ENTROPY = "target_entropy"

#: Numbers among the arrays; a second one is a target model's, which nothing used.
_SCALAR = re.compile(rf"({ALPHA}|{TARGET_ENTROPY})(_\d+)?")

#: A model's arrays, of its three kinds.
_TABLES: Mapping[str, Mapping[str, Table]] = {
    DENSE.kind: {
        "torch": (*DENSE.tables["torch"], *torch_dense("_logits._model.0", "out")),
        "keras": (*DENSE.tables["keras"], *keras("value_out", "value")),
    },
    VISION.kind: VISION_SCHEMES,
    COMPLEX.kind: COMPLEX_SCHEMES,
}

#: Value functions that came with every model of the catalog, and that SAC never asked.
_VALUE = re.compile(r"(_value_branch|value_|fc_value_|conv_value_).*")

#: Parts of models that are not only dense layers, on torch and on TensorFlow.
_NOT_DENSE = re.compile(
    r"(action_model|q_net)\.(_convs|cnn|one_hot|flatten|post_fc_stack|logits_layer).*"
    r"|conv\d+(_\d+)?/.*"
)

_TORCH = {"action_model.": POLICY, "q_net.": CRITIC, "twin_q_net.": TWIN}

#: The RLModule's modules for each stack, and their targets (until Ray 2.3x, and later).
_MODULES = {
    "pi": POLICY,
    "qf": CRITIC,
    "qf_twin": TWIN,
    "qf_target": TARGET_PREFIX + CRITIC,
    "qf_target_twin": TARGET_PREFIX + TWIN,
    "target_qf": TARGET_PREFIX + CRITIC,
    "target_qf_twin": TARGET_PREFIX + TWIN,
}
_MLP = re.compile(
    r"(?P<layer>(?P<module>\w+?)(?P<encoder>_encoder)?\.net\.mlp\.(?P<number>\d+))\..+"
)

#: Constants that an RLModule's heads register as buffers.
_CONSTANT = ".log_std_clip_param_const"

_SEQUENTIAL = re.compile(
    r"sequential(_\d+)?/(?P<stack>action|q|twin_q)_"
    r"((?P<hidden>hidden_)?(?P<number>\d+)|out)/(?P<part>\w+)"
)
_FC = re.compile(r"fc_((?P<number>\d+)|out)(_\d+)?/(?P<part>kernel|bias)")

#: keras' names of layers, and how often it had met them before.
_COUNTED = re.compile(
    r"(?P<layer>conv\d+|conv_out|conv_value_\d+|conv_value_out|post_fcnet_\d+|fc_value_\d+|fc_\d+"
    r"|fc_out|value_out|logits)(_\d+)?/(?P<part>kernel|bias)"
)


def read_named(policy: PolicyState, settings: ModelSettings) -> tuple[Named, Trunks]:
    """Names the arrays of a policy, and tells what each stack is made of.

    Raises:
        NotYetError: Arrays belong to no network that is known.
        MissingInformationError: A space has to be given.
        CheckpointError: The config and unnamed arrays contradict each other.
    """
    scheme = "keras"
    if isinstance(policy.weights, dict):
        plain, _ = plain_names(policy)
        plain = {name: array for name, array in plain.items() if not name.endswith(_CONSTANT)}
    else:
        scheme, plain = sac_unnamed.name_arrays(policy, settings)
    trunks = _trunks(policy, plain)
    if any(name.startswith("pi_encoder.") for name in plain):
        scheme, placed = "rl_module", _of_modules(plain)
    elif any(name.startswith("action_model.") for name in plain):
        scheme, placed = "torch", dict(_of_torch(plain))
    elif any(map(_SEQUENTIAL.fullmatch, plain)):
        placed = dict(_of_sequential(list(plain)))
    else:
        placed = dict(_of_models(list(plain), trunks))
    framework = "keras" if scheme in ("keras", "list", "vector") else "torch"
    table, unused = _rows(placed, trunks, framework)
    unused += [name for name in plain if name.startswith(MULTIPLIER)]
    state: dict[str, float] = {}
    for name in [name for name in plain if _SCALAR.fullmatch(name) and name not in unused]:
        scalar = ALPHA if name.startswith(ALPHA) else TARGET_ENTROPY
        state.setdefault(scalar, float(plain.pop(name).reshape(())))
    named = Named.take(
        policy, settings, plain, scheme, table, of="SAC network", unused=unused, state=state
    )
    if not any(name.startswith(f"{POLICY}.") for name in named.arrays):
        raise refusals.unknown_arrays([], plain, "SAC network", where_of(policy))
    return named, trunks


def _trunks(policy: PolicyState, names: Mapping[str, Array]) -> Trunks:
    """What each stack is made of: a critic of continuous actions sees them as a part of a Tuple."""
    if not any(map(_NOT_DENSE.fullmatch, names)):
        return dict.fromkeys((POLICY, CRITIC, TWIN, STATE), DENSE)
    for kind, space in (("action", policy.action_space), ("observation", policy.observation_space)):
        if space is None:
            raise refusals.needed(
                f"The {kind} space is needed to tell what goes into policy and critics.",
                kind,
                f"policies.{policy.policy_id}.{kind}_space",
            )
    parts = not isinstance(original_space(policy.observation_space), Box)
    critics = COMPLEX if parts or isinstance(policy.action_space, Box) else VISION
    return {POLICY: COMPLEX if parts else VISION, CRITIC: critics, TWIN: critics}


def _rows(placed: Placed, trunks: Trunks, framework: str) -> tuple[Table, list[str]]:
    """A row for each array, and the names of those that no output depends on."""
    rows: list[Move] = []
    unused: list[str] = []
    for stack in dict.fromkeys(stack for stack, _ in placed.values()):
        trunk = trunks[stack.removeprefix(TARGET_PREFIX)]
        inner = {within: name for name, (own, within) in placed.items() if own == stack}
        dead = dead_names(inner, heads=True) if trunk is COMPLEX else []
        for within, name in inner.items():
            if stack == TARGET_PREFIX + POLICY or within in dead or _VALUE.fullmatch(within):
                unused.append(name)
            elif row := row_for(_TABLES[trunk.kind][framework], within):
                rows.append(replace(row, theirs=name, ours=f"{stack}.{row.ours}"))
    return tuple(rows), unused


def _of_torch(names: Mapping[str, Array]) -> Iterator[tuple[str, tuple[str, str]]]:
    """torch, ModelV2 (Ray 0.8.5 – 2.x): a module each; what is in none is the shared model's."""
    for name in names:
        module = next((prefix for prefix in _TORCH if name.startswith(prefix)), "")
        within = name.removeprefix(module)
        if module:  # Ray 0.8.5 – 1.2
            within = re.sub(r"^(action|(twin_)?q_hidden)_(\d+)\.", r"_hidden_layers.\3.", within)
            within = re.sub(r"^(action|(twin_)?q)_out\.", "_logits.", within)
        if module or within.startswith(("_hidden_layers.", "_value_branch")):
            yield name, (_TORCH.get(module, STATE), within)


def _of_modules(names: Mapping[str, Array]) -> Placed:
    """An RLModule (Ray 2.35 – 2.40): encoders, heads, and their targets.

    Layers count modules, activations among them; a head's hidden layers follow the encoder's.
    """
    found = {name: match for name in names if (match := _MLP.fullmatch(name))}
    placed = {}
    for module, stack in _MODULES.items():
        own = {
            match["layer"]: (match["encoder"] is None, int(match["number"]))
            for match in found.values()
            if match["module"] == module
        }
        layers = sorted(own, key=lambda layer: own[layer])
        for name, match in found.items():
            if match["module"] == module:
                i = layers.index(match["layer"])
                last = i == len(layers) - 1
                layer = "_logits._model.0" if last else f"_hidden_layers.{i}._model.0"
                placed[name] = (stack, name.replace(match["layer"], layer))
    return placed


def _of_sequential(names: Sequence[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Ray 0.7 – 1.2: stacks of keras' `Sequential`, behind an optional shared model.

    keras counts equal names up, over all policies and networks of a process, so the numbers say
    nothing. The order does: what comes behind the temperature belongs to the targets.
    """
    end = _end_of_online(names)
    last = sum(bool(_FC.fullmatch(name)) for name in names[:end]) // 2
    for index, name in enumerate(names):
        target = TARGET_PREFIX if index > end else ""
        if match := _SEQUENTIAL.fullmatch(name):
            stack = POLICY if match["stack"] == "action" else match["stack"]
            # `action_hidden_0` (0.7, 0.8.0) became `action_1`.
            first = 1 if match["hidden"] else 0
            layer = f"fc_{int(match['number']) + first}" if match["number"] else "fc_out"
            yield name, (target + stack, f"{layer}/{match['part']}")
        elif match := _FC.fullmatch(name):
            yield name, (target + STATE, f"fc_{match['number'] or last}/{match['part']}")
        elif _VALUE.fullmatch(name):
            yield name, (target + STATE, name)


def _of_models(names: Sequence[str], trunks: Trunks) -> Iterator[tuple[str, tuple[str, str]]]:
    """TensorFlow since Ray 1.3: models in the order in which they were made, names counted up.

    A model ends with its value function; one for complex observations has some inside, too, and
    ends with the one behind its `logits`.
    """
    end = _end_of_online(names)
    for target, half in (("", names[:end]), (TARGET_PREFIX, names[end + 1 :])):
        stacks = iter((POLICY, CRITIC, TWIN))
        stack, heads = next(stacks), False
        counts: dict[str, count[int]] = {}
        for name in half:
            match = _COUNTED.fullmatch(name)
            if match is None:
                continue
            key = f"{match['layer']}/{match['part']}"
            number = next(counts.setdefault(key, count()))
            layer = f"{match['layer']}_{number}" if number else match["layer"]
            yield name, (target + stack, f"{layer}/{match['part']}")
            heads |= match["layer"] == "logits"
            if key == "value_out/bias" and (heads or trunks[stack] is not COMPLEX):
                stack, heads, counts = next(stacks, TWIN), False, {}


def _end_of_online(names: Sequence[str]) -> int:
    """Where the temperature is: what comes behind it belongs to the targets."""
    found = [i for i, name in enumerate(names) if re.fullmatch(rf"{ALPHA}(_\d+)?", name)]
    return found[0] if found else len(names)
