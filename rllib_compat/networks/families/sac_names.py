"""What RLlib called the arrays of SAC and CQL, and in which order it stored those without names.

Each is one of a stack's (the policy, a critic, its twin, what all share), or of a stack's target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.families.dense import COMPLEX_SCHEMES, VISION_SCHEMES, trunk_of
from rllib_compat.networks.graph import CRITIC, POLICY, STATE, TWIN, Array
from rllib_compat.networks.mapping import Move, Table, keras, row_for, torch_dense
from rllib_compat.networks.named import Named, plain_names, where_of
from rllib_compat.networks.network import ALPHA, TARGET_PREFIX
from rllib_compat.networks.observations import original_space
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import COMPLEX, dead_names
from rllib_compat.networks.trunks.dense import DENSE, Trunk
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.networks.unnamed import Rows, cut, dense_rows, require_spaces, total
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.spaces import Box
from rllib_compat.registry import keys

#: `MODEL_DEFAULTS` as SAC overrides them (`DEFAULT_CONFIG` of every Ray).
_DEFAULTS = {
    key: keys.last_default("SAC", f"policy_model_config.{key}")
    for key in ("fcnet_hiddens", "fcnet_activation", "post_fcnet_activation")
}

#: CQL's Lagrange multiplier (`lagrangian=True`) until Ray 2.x.
MULTIPLIER = "log_alpha_prime"

#: The keys of the models, oldest first.
_MODEL_KEYS = {
    POLICY: ("policy_model", "policy_model_config"),
    CRITIC: ("Q_model", "q_model", "q_model_config"),
}


def model_of(settings: ModelSettings, stack: str) -> ModelSettings:
    """What the config says of the policy's or the critics' own model."""
    model: dict[str, Any] = {}
    for key in _MODEL_KEYS[POLICY if stack == POLICY else CRITIC]:
        given = settings.config.get(key)
        model |= given if isinstance(given, Mapping) else {}
    # Ray 0.7 and 0.8.0 had names of their own; later Rays mark them as gone with -1.
    for old, new in (
        ("hidden_layer_sizes", "fcnet_hiddens"),
        ("hidden_activation", "fcnet_activation"),
    ):
        if model.get(old, -1) != -1:
            model[new] = model[old]  # a later Ray's default may be beside it
    return ModelSettings.from_config({"model": {**_DEFAULTS, **model}}, {})


def hiddens_of(settings: ModelSettings, stack: str) -> tuple[int, ...]:
    """The hidden sizes that the config has for a stack."""
    hiddens = model_of(settings, stack).hiddens
    assert hiddens is not None  # they have a default
    return hiddens


def _name_list(weights: list[Array], settings: ModelSettings, where: str) -> dict[str, Array]:
    """Names the arrays of a TF2 policy (Ray 1.x, `framework="tf2"`); targets are not stored."""
    dimensions = {"kernel": 2, "bias": 1, ALPHA: 0}
    for models, shared_value in ((True, False), (False, True), (False, False)):
        given = _keras_names(settings, models=models, shared_value=shared_value)
        wanted = [dimensions[name.rpartition("/")[2]] for name in given]
        if wanted == [np.ndim(array) for array in weights]:
            return {_numbered(given, i): np.asarray(a) for i, a in enumerate(weights)}
    policy, critic = (list(hiddens_of(settings, stack)) for stack in (POLICY, CRITIC))
    network = f"SAC network with hidden layers {policy} and {critic}"
    raise refusals.no_fit(f"The list of {len(weights)} arrays", network, where)


def _keras_names(settings: ModelSettings, *, models: bool, shared_value: bool) -> list[str]:
    """The names of an online network's variables.

    Args:
        settings: What the config says.
        models: Whether each stack is a model of the catalog (Ray 1.3 and later).
        shared_value: Whether the shared model has a value function (Ray 0.8.5 – 1.2).
    """
    names = ["value_out"] if shared_value else []
    for stack in (POLICY, *_critics(settings)):
        count = len(hiddens_of(settings, stack))
        if models:
            names += [*(f"fc_{i + 1}" for i in range(count)), "fc_out", "value_out"]
        elif stack == POLICY:
            names += [
                *(f"sequential/action_{i + 1}" for i in range(count)),
                "sequential/action_out",
            ]
        else:
            names += [*layers_of(stack, count, 0)]
    return [f"{name}/{part}" for name in names for part in ("kernel", "bias")] + [ALPHA]


def _critics(settings: ModelSettings) -> tuple[str, ...]:
    return (CRITIC, TWIN) if settings.config.get("twin_q", True) else (CRITIC,)


def layers_of(stack: str, count: int, copy: int) -> list[str]:
    """The layers of a stack of Ray 0.7: the online network's (`copy` 0) or its target's (1)."""
    name = "action" if stack == POLICY else stack
    scope = f"sequential_{copy}" if copy else "sequential"
    hidden = [f"{scope}/{name}_hidden_{i}" for i in range(count)]
    return [*hidden, f"{scope}/{name}_out"]


def _numbered(given: Sequence[str], index: int) -> str:
    """A name, counted up as keras does where it comes again (`fc_1`, `fc_1_1`)."""
    layer, _, part = given[index].rpartition("/")
    before = list(given[:index]).count(given[index])
    return f"{layer}_{before}/{part}" if layer and before else given[index]


def _name_vector(policy: PolicyState, settings: ModelSettings) -> dict[str, Array]:
    """Cuts the flat vector of Ray 0.7: online networks, temperature, and the critics' targets."""
    vector, where = np.asarray(policy.weights), where_of(policy)
    observations, acts = require_spaces(policy)
    if settings.config.get("use_state_preprocessor"):
        raise refusals.not_yet("a vector of a SAC policy with use_state_preprocessor", where)
    seen, actions = observations.flat_size(), acts.flat_size()
    # The policy gave means, and a triangle of deviations of which the diagonal counts.
    outputs = actions + actions * (actions + 1) // 2
    sizes = {POLICY: (seen, *hiddens_of(settings, POLICY), outputs)}
    critics = _critics(settings)
    sizes |= {critic: (seen + actions, *hiddens_of(settings, CRITIC), 1) for critic in critics}
    rows: Rows = []
    for stack, copy in [*((stack, 0) for stack in sizes), *((critic, 1) for critic in critics)]:
        if copy and stack == CRITIC:
            rows.append((ALPHA, ()))
        names = layers_of(stack, len(sizes[stack]) - 2, copy)
        rows += [(name.replace(".", "/"), shape) for name, shape in dense_rows(names, sizes[stack])]
    if total(rows) != vector.size:
        raise refusals.no_fit(
            f"The vector of {vector.size} numbers",
            f"SAC policy of sizes {sizes[POLICY]} with critics of {sizes[CRITIC]}, which has "
            f"{total(rows)}",
            where,
        )
    return cut(vector, rows)


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
_STACKS_OF_MODULES = {
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
    """Names the arrays of a policy, and finds the parts of each stack."""
    scheme = "keras"
    if isinstance(policy.weights, dict):
        plain, _ = plain_names(policy)
        plain = {name: array for name, array in plain.items() if not name.endswith(_CONSTANT)}
    elif isinstance(policy.weights, list):
        scheme, plain = "list", _name_list(policy.weights, settings, where_of(policy))
    else:
        scheme, plain = "vector", _name_vector(policy, settings)
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
                f"The {kind} space is needed: it decides the inputs of policy and critics.",
                kind,
                f"policies.{policy.policy_id}.{kind}_space",
            )
    if any(name.startswith("action_model.") for name in names):  # torch has a module for each
        return {
            stack: trunk_of([n.removeprefix(module) for n in names if n.startswith(module)], policy)
            for module, stack in _TORCH.items()
        }
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
    for module, stack in _STACKS_OF_MODULES.items():
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
