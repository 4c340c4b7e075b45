"""Reads and draws the networks of DDPG, TD3 and APEX_DDPG.

What they are (`agents/ddpg/*`, 0.5 – 1.x; `algorithms/ddpg/*`, 2.x): a policy that gives one
action, squashed into the environment's range, a critic of observation and action, or two, and
targets that follow all of them. They become `DeterministicModule`, which the learners of
`rllib_compat.algorithms` train.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import Arrays, NewModel, draw_hidden, since
from rllib_compat.networks.families.dense import COMPLEX_SCHEMES, draw_trunk
from rllib_compat.networks.families.q_head import Head
from rllib_compat.networks.graph import CRITIC, POLICY, STATE, TWIN, Array, Builder, Graph
from rllib_compat.networks.mapping import Move, Table, torch_dense
from rllib_compat.networks.named import Named, plain_names, where_of
from rllib_compat.networks.network import TARGET_PREFIX, Group, Reading, own_module
from rllib_compat.networks.observations import original_space
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import COMPLEX, dead_names, second_names
from rllib_compat.networks.trunks.dense import (
    DENSE,
    Trunk,
    add_critics,
    add_stack,
    describe_stack,
    layers_of_stack,
    with_targets,
)
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.neutral.spaces import Box, Space

#: How many features `use_state_preprocessor` makes, whatever the observations.
_FEATURES = 256

#: Scopes of Ray 0.5 and 0.6, and of 0.7 and 0.8.0.
_SCOPES = {
    "p_func": POLICY,
    "q_func": CRITIC,
    "twin_q_func": TWIN,
    "policy": POLICY,
    "critic": CRITIC,
    "twin_critic": TWIN,
}
_SCOPED = re.compile(
    rf"(?P<scope>{'|'.join(_SCOPES)})/"
    r"((?P<state>fc)_?(?P<first>\d+)|(?P<kind>fully_connected|dense)(_(?P<number>\d+))?)/"
    r"(?P<part>\w+|LayerNorm/\w+)"
)
_PARTS = {
    "weights": "kernel",
    "biases": "bias",
    "kernel": "kernel",
    "bias": "bias",
    "LayerNorm/gamma": "gamma",
    "LayerNorm/beta": "beta",
}
_SCOPED_TARGET = re.compile(r"(?P<twin>(twin_)?)target_(?P<followed>.+)")
_SCOPED_UNUSED = re.compile(
    r"twin_target_\w+/.+|(a_func|action)/ornstein_uhlenbeck|\w+/(fc_out|fc_value)/.+"
)

_STATE_LAYER = re.compile(r"fc_((?P<from_one>\d+)|out)(_\d+)?/(?P<part>\w+)")
_KERAS = (
    (re.compile(r"actor_hidden_(?P<i>\d+)(_\d+)?/(?P<part>\w+)"), POLICY),
    (re.compile(r"actor_out(_\d+)?/(?P<part>\w+)"), POLICY),
    (re.compile(r"LayerNorm_(?P<norm>\d+)(_\d+)?/(?P<part>\w+)"), POLICY),
    (re.compile(r"sequential(_\d+)?/twin_q_(hidden_(?P<i>\d+)|out)/(?P<part>\w+)"), TWIN),
    (re.compile(r"sequential(_\d+)?/q_(hidden_(?P<i>\d+)|out)/(?P<part>\w+)"), CRITIC),
    (_STATE_LAYER, STATE),
    (re.compile(r"(?P<conv>conv(\d+|_out))(_\d+)?/(?P<part>\w+)"), STATE),
)
_KERAS_UNUSED = re.compile(r"(value_out|fc_value_\d+|conv_value_(\d+|out))(_\d+)?/\w+")

#: What torch's policies registered of the range of the actions (Ray 1.0 and later).
LOW, RANGE = "low_action", "action_range"
_CONSTANTS = re.compile(rf"(policy_model\.action_out_squashed\.)?(?P<name>{LOW}|{RANGE})")

#: Value functions that came with every model of the catalog, and that nothing asked.
_TORCH_UNUSED = re.compile(r"(_value_branch(_separate)?|value_layer)\..+")


def draw(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a policy and its critics, and what comes before all of them where it is asked for.

    Raises:
        ConfigError: Actions are no Box, or the config asks for a half of the features.
    """
    if not isinstance(actions, Box):
        raise ConfigError(
            f"{settings.algorithm} needs Box actions; these are {actions}.",
            where="action_space",
            fix="Train PPO, which supports all action spaces, or DQN for Discrete ones.",
        )
    config = settings.config
    features, size = (original_space(seen) or seen).flat_size(), actions.flat_size()
    asked = bool(config.get("use_state_preprocessor")) or not since(settings, "0.7")
    if asked and not since(settings, "0.8.1"):  # the policy and the critics had one each
        features = draw_trunk(NewModel(arrays, settings, prefix="policy_model."), seen)
        draw_trunk(NewModel(arrays, settings, prefix="q_model."), seen)
    elif asked:
        if settings.free_log_std:
            raise ConfigError(
                "free_log_std would replace half of the features with untrained numbers.",
                where="model.free_log_std",
                fix="Remove the key: a deterministic policy has no standard deviations.",
            )
        base = replace(settings, model={**settings.model, "no_final_linear": True})
        features = draw_trunk(NewModel(arrays, base, _FEATURES), seen)
    own = tuple(settings.setting("actor_hiddens"))
    gives = draw_hidden(arrays, "policy_model.action", features, own)
    if Head.of(settings).norm:  # for noise on weights
        for number, width in enumerate(own):
            arrays.norm(f"policy_model.LayerNorm_A_{number}", width)
    arrays.dense("policy_model.action_out._model.0", gives, size)
    for critic in ("q", "twin_q")[: 2 if has_twin(settings) else 1]:
        hiddens = settings.setting("critic_hiddens")
        gives = draw_hidden(arrays, f"{critic}_model.{critic}_hidden", features + size, hiddens)
        arrays.dense(f"{critic}_model.{critic}_out._model.0", gives, 1)


def _torch() -> Iterator[Move]:
    for stack, hidden, out in (
        (POLICY, "policy_model.action_{i}", "policy_model.action_out"),
        (CRITIC, "q_model.q_hidden_{i}", "q_model.q_out"),
        (TWIN, "twin_q_model.twin_q_hidden_{i}", "twin_q_model.twin_q_out"),
    ):
        yield from torch_dense(f"{hidden}._model.0", f"{stack}.hidden.{{i}}")
        yield Move(f"{hidden}._model.1._beta", f"{stack}.hidden.{{i}}.beta")
        yield from torch_dense(f"{out}._model.0", f"{stack}.out")
    # The model before all of them; or one of each (ours, of new networks for Ray 0.5 – 0.8.0).
    for prefix, stack in (
        ("", STATE),
        ("policy_model.", f"{POLICY}_{STATE}"),
        ("q_model.", f"{CRITIC}_{STATE}"),
    ):
        for trunk in (DENSE.tables, COMPLEX_SCHEMES, VISION.tables):
            for move in trunk["torch"]:
                yield replace(move, theirs=prefix + move.theirs, ours=f"{stack}.{move.ours}")
    yield Move("policy_model.LayerNorm_A_{i}.weight", f"{POLICY}.norm.{{i}}.gamma")
    yield Move("policy_model.LayerNorm_A_{i}.bias", f"{POLICY}.norm.{{i}}.beta")


#: torch, ModelV2 (Ray 0.8.5 – 2.x).
TORCH: Table = tuple(_torch())


def read_named(policy: PolicyState, settings: ModelSettings) -> tuple[Named, dict[str, Array]]:
    """Names the arrays of a policy.

    Returns:
        They, and what torch's policies registered of the range of the actions (`LOW`, `RANGE`).

    Raises:
        NotYetError: Arrays belong to no network that is known.
    """
    plain = _plain(policy, settings)
    matches = {name: _CONSTANTS.fullmatch(name) for name in plain}
    constants = {match["name"]: plain[name] for name, match in matches.items() if match}
    rest = {name: array for name, array in plain.items() if not matches[name]}
    scheme, table, unused = _find_table(list(rest))
    if not isinstance(policy.weights, dict):
        scheme = "list"
    of = f"{settings.algorithm} network"
    aliases = second_names(rest) if scheme == "torch" else []
    named = Named.take(policy, settings, rest, scheme, table, of=of, unused=unused, aliases=aliases)
    if f"{CRITIC}.out" not in named:
        raise refusals.unknown_arrays([], plain, of, named.where)
    return named, constants


def _plain(policy: PolicyState, settings: ModelSettings) -> dict[str, Array]:
    """The arrays by name; those of a list get the names that TensorFlow had for them."""
    weights = policy.weights
    if isinstance(weights, dict):
        return plain_names(policy)[0]
    given = _keras_names(
        settings.setting("actor_hiddens"),
        settings.setting("critic_hiddens"),
        twin=has_twin(settings),
    )
    if not isinstance(weights, list) or len(weights) != len(given):
        raise refusals.not_yet(
            f"unnamed arrays of {settings.algorithm} that are not the {len(given)} of a policy and "
            "critics of dense layers",
            where_of(policy),
        )
    return dict(zip(given, map(np.asarray, weights), strict=True))


def has_twin(settings: ModelSettings) -> bool:
    """Whether the config asks for a second critic; TD3's default did."""
    return bool(settings.setting("twin_q"))


def _find_table(names: Sequence[str]) -> tuple[str, Table, list[str]]:
    """The table for some names.

    Returns:
        What kind of names they are (`scoped`, `keras`, `torch`), their table, and the names of
        arrays that no output depends on.
    """
    if any(_SCOPED.fullmatch(name) for name in names):
        table = _with_targets(_scoped(names), names)
        known = {row.theirs for row in table}
        return "scoped", table, [n for n in _matching(_SCOPED_UNUSED, names) if n not in known]
    if any(name.startswith("q_model.") for name in names):
        unused = {*_matching(_TORCH_UNUSED, names), *dead_names(names, heads=False)}
        return "torch", TORCH, [name for name in names if name in unused]
    table, copies = _keras(names)
    return "keras", table, [*_matching(_KERAS_UNUSED, names), *copies]


def _matching(pattern: re.Pattern[str], names: Sequence[str]) -> list[str]:
    return [name for name in names if pattern.fullmatch(name)]


def _scoped(names: Sequence[str]) -> Table:
    """Ray 0.5 – 0.8.0: layers without names of their own, counted within a scope.

    The last is the stack's last. With parameter noise, hidden layers of Ray 0.7 are
    `fully_connected` ones, and the last alone is `dense`.
    """
    matches = [(name, m) for name in names if (m := _SCOPED.fullmatch(name))]
    layers: dict[str, list[tuple[bool, int]]] = {}
    for _, match in matches:
        if not match["state"]:
            layer = (match["kind"] == "dense", int(match["number"] or 0))
            found = layers.setdefault(match["scope"], [])
            found += [] if layer in found else [layer]
    rows = []
    for name, match in matches:
        stack, part = _SCOPES[match["scope"]], _PARTS[match["part"]]
        if match["state"]:
            rows.append(Move(name, f"{stack}_{STATE}.hidden.{int(match['first']) - 1}.{part}"))
            continue
        order = sorted(layers[match["scope"]])
        index = order.index((match["kind"] == "dense", int(match["number"] or 0)))
        if part in ("gamma", "beta"):
            rows.append(Move(name, f"{stack}.norm.{index}.{part}"))
        else:
            layer_name = "out" if index == len(order) - 1 else f"hidden.{index}"
            rows.append(Move(name, f"{stack}.{layer_name}.{part}"))
    return tuple(rows)


def _with_targets(table: Table, names: Sequence[str]) -> Table:
    """The scopes of target networks, beside those that they follow."""
    ours = {row.theirs: row.ours for row in table}
    pairs = (
        (name, ours.get(match["twin"] + match["followed"]))
        for name in names
        if (match := _SCOPED_TARGET.fullmatch(name))
    )
    return (*table, *(Move(name, TARGET_PREFIX + own) for name, own in pairs if own))


def _keras(names: Sequence[str]) -> tuple[Table, list[str]]:
    """Ray 0.8.5 – 2.x on TensorFlow: each name comes twice, counted up; then it is the target's.

    Returns:
        The table, and the names of what comes a third time.
    """
    rows: list[Move] = []
    copies: list[str] = []
    seen: set[str] = set()
    state = [match for name in names if (match := _STATE_LAYER.fullmatch(name))]
    last_state = max((int(match["from_one"] or 0) for match in state), default=0)
    for name in names:
        for pattern, stack in _KERAS:
            if match := pattern.fullmatch(name):
                canonical = f"{stack}.{_layer(match.groupdict(), last_state)}.{match['part']}"
                canonical = TARGET_PREFIX + canonical if canonical in seen else canonical
                if canonical in seen:
                    copies.append(name)
                else:
                    rows.append(Move(name, canonical))
                    seen.add(canonical)
                break
    return tuple(rows), copies


def _layer(found: dict[str, str | None], last_state: int) -> str:
    if "from_one" in found:
        return f"hidden.{int(found['from_one'] or last_state + 1) - 1}"
    if found.get("conv"):
        name = str(found["conv"])
        return name if name == "conv_out" else f"conv.{int(name.removeprefix('conv')) - 1}"
    if found.get("norm"):
        return f"norm.{found['norm']}"
    return f"hidden.{found['i']}" if found.get("i") else "out"


def _keras_names(actor: Sequence[int], critic: Sequence[int], *, twin: bool) -> list[str]:
    """The names of an online network's variables, for arrays that were stored without any."""
    layers = [f"actor_hidden_{i}" for i in range(len(actor))] + ["actor_out"] * bool(actor)
    for name in ("q", "twin_q") if twin else ("q",):
        layers += [f"sequential/{name}_hidden_{i}" for i in range(len(critic))]
        layers += [f"sequential/{name}_out"]
    return [f"{layer}/{part}" for layer in layers for part in ("kernel", "bias")]


MODULE = "rllib_compat.modules:DeterministicModule"

#: The optimizers of DDPG and TD3: one for both critics.
_OPTIMIZERS = (
    Group("actor", f"{POLICY}.", ("policy_model.", "net.pi."), eps=1e-7),
    Group(
        "critic",
        (f"{CRITIC}.", f"{TWIN}."),
        ("q_model.", "twin_q_model.", "net.q.", "net.twin_q."),
        eps=1e-7,
    ),
)


def optimizers_of(arrays: Iterable[str], unused: Iterable[str]) -> tuple[Group, ...]:  # noqa: ARG001 (as in other families)
    """The optimizers of DDPG and TD3."""
    return _OPTIMIZERS


#: What is added to a layer's variance: tf.contrib, keras, torch.
_EPSILON = {"scoped": 1e-12, "keras": 1e-3, "list": 1e-3, "torch": 1e-5}


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the networks of a policy."""
    named, constants = read_named(policy, settings)
    for stack, key in ((POLICY, "actor_hiddens"), (CRITIC, "critic_hiddens")):
        said, found = settings.config.get(key), list(named.sizes(f"{stack}.hidden"))
        if said is not None and list(said) != found:
            raise refusals.other_config(key, found, list(said), named.where)
    named.require_inputs(_inputs(named))
    graph = _graph(named, _range(named, constants))
    arrays, findings = with_targets(named)
    target = own_module(MODULE, graph, arrays)
    network = named.network("deterministic policy", _summary(named), graph, target, arrays)
    network = replace(network, optimizers=_OPTIMIZERS)
    if has_twin(settings) and f"{TWIN}.out" not in named:
        # Ray 0.6 – 0.8.0 forgot the second critic when it saved.
        message = "the twin critic is not in the checkpoint: that Ray did not save it"
        lost = named.note(message, severity=Severity.WARNING, verdict=Verdict.ABSENT)
        return named.reading(network, *findings, lost)
    return named.reading(network, *findings)


def _range(named: Named, constants: Mapping[str, Array]) -> dict[str, Any] | None:
    """What actions are squashed into: the lowest, and the size of the range; None: they are not.

    Raises:
        MissingInformationError: It is neither stored nor determined by the action space.
    """
    space = named.policy.action_space
    stored = {LOW, RANGE} <= constants.keys()
    if stored:
        low, size = np.ravel(constants[LOW]), np.ravel(constants[RANGE])
    elif isinstance(space, Box):
        low = np.ravel(space.low).astype(np.float32)
        size = np.ravel(space.high).astype(np.float32) - low
    else:
        raise refusals.range_needed(space, named.where)
    bounded = np.isfinite(low) & np.isfinite(size)
    if not stored and isinstance(space, Box) and not space.exact:
        raise refusals.range_needed(space, named.where)
    if not bounded.any() and named.scheme != "scoped":
        return None  # since Ray 0.8.6
    if not bounded.all():
        raise refusals.range_needed(space, named.where)
    # Ray 0.5 and 0.6 took the sigmoid itself, later ones that of twice the number (a tanh).
    first = any(row.theirs.startswith("p_func/") for row in named.table)
    first = first or not since(named.settings, "0.7")
    return {
        "low": low.astype(float).tolist(),
        "range": size.astype(float).tolist(),
        "factor": 1.0 if first else 2.0,
    }


def _inputs(named: Named) -> tuple[int, ...]:
    for stack in (STATE, f"{POLICY}_{STATE}"):
        trunk, own = _model_before(named, stack)
        if own.arrays:
            return trunk.inputs(own)
    for first in layers_of_stack(named, POLICY)[:1]:
        return (named.takes(first),)
    # TensorFlow without hidden layers: the observation itself is squashed.
    return (named.takes(layers_of_stack(named, CRITIC)[0]) // 2,)


def _model_before(named: Named, stack: str) -> tuple[Trunk, Named]:
    """What comes before policy or critics, and its arrays as those of a model of its own."""
    prefix = f"{stack}."
    arrays = {k.removeprefix(prefix): v for k, v in named.arrays.items() if k.startswith(prefix)}
    own = replace(named, arrays=arrays)
    if any(name.startswith(("cnn.", "fc.", "logits.")) for name in arrays):
        return COMPLEX, own
    return VISION if any(name.startswith("conv") for name in arrays) else DENSE, own


def _graph(named: Named, squash: Mapping[str, Any] | None) -> Graph:
    build = Builder()
    features = _add_features(build, named, POLICY)
    actions = _add_policy(build, named, features)
    if squash is not None:
        actions = build.add("squash", "squashed", actions, **squash)
    if any(name.startswith(f"{CRITIC}_{STATE}.") for name in named.arrays):
        features = _add_features(build, named, CRITIC)
    activation = str(named.settings.setting("critic_hidden_activation"))
    critics = add_critics(build, named, features, activation, of_actions=True)
    inputs = _inputs(named)
    size = named.gives(f"{POLICY}.out") if f"{POLICY}.out" in named else inputs[0]
    outputs = {"actions": actions, "action_dist_inputs": actions, **critics}
    return Graph({"obs": inputs, "actions": (size,)}, tuple(build.steps), outputs)


def _add_features(build: Builder, named: Named, owner: str) -> str:
    """Adds what a stack takes of an observation: a model of its own, or one for all."""
    for stack in (f"{owner}_{STATE}", STATE):
        (trunk, own), inner = _model_before(named, stack), Builder()
        if not own.arrays:
            continue
        features = trunk.add(inner, own)
        if trunk is COMPLEX:
            features = inner.add("dense", "logits", features)
        build.steps += [step.within(stack) for step in inner.steps]
        return f"{stack}.{features}"
    return "obs"


def _add_policy(build: Builder, named: Named, takes: str) -> str:
    """Adds the policy's layers; with parameter noise, each is normalized."""
    activation = str(named.settings.setting("actor_hidden_activation"))
    if f"{POLICY}.out" not in named:
        return takes
    if f"{POLICY}.norm.0.gamma" not in named.arrays:
        return add_stack(build, named, POLICY, takes, activation)
    # tf.contrib normalized what goes into the activation, the others what comes out of it.
    before = named.scheme == "scoped" or not since(named.settings, "0.8.1")
    epsilon = _EPSILON["scoped" if before else named.scheme]
    for i, layer in enumerate(named.layers(f"{POLICY}.hidden")):
        takes = build.add("dense", layer, takes, activation=None if before else activation)
        takes = build.add("layer_norm", f"{POLICY}.norm.{i}", takes, epsilon=epsilon)
        if before:
            takes = build.add("activate", f"{POLICY}.active.{i}", takes, activation=activation)
    return build.add("dense", f"{POLICY}.out", takes)


def _summary(named: Named) -> str:
    """One line for tables: `ddpg 3-32-16-1, critic 4-24-24-1`."""
    critics = "twin critics" if f"{TWIN}.out" in named else "critic"
    policy = f" {describe_stack(named, POLICY)}" if f"{POLICY}.out" in named else ""
    algorithm = named.settings.algorithm.lower()
    return f"{algorithm}{policy}, {critics} {describe_stack(named, CRITIC)}"
