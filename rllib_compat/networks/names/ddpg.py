"""What DDPG's and TD3's arrays were called, by every RLlib.

The canonical names are those of `names.stacks`. Before Ray 0.8 the policy and the critic each
had a model of its own for observations (`pi_state`, `q_state`), later they shared one (`state`).
Target networks were stored by TensorFlow alone. The state of exploration noise and value functions,
which nothing trained, are not carried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import Move, Table, torch_dense
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.names.stacks import CRITIC, POLICY, STATE, TWIN
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState

#: `actor_hiddens` and `critic_hiddens` (`DEFAULT_CONFIG`): 64 and 64 until Ray 0.6, then these.
_HIDDENS = (400, 300)

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

_TORCH_UNUSED = re.compile(r"_value_branch(_separate)?\..+")


def _torch() -> Iterator[Move]:
    for stack, hidden, out in (
        (POLICY, "policy_model.action_{i}", "policy_model.action_out"),
        (CRITIC, "q_model.q_hidden_{i}", "q_model.q_out"),
        (TWIN, "twin_q_model.twin_q_hidden_{i}", "twin_q_model.twin_q_out"),
        (STATE, "_hidden_layers.{i}", ""),
    ):
        yield from torch_dense(f"{hidden}._model.0", f"{stack}.hidden.{{i}}")
        yield Move(f"{hidden}._model.1._beta", f"{stack}.hidden.{{i}}.beta")
        if out:
            yield from torch_dense(f"{out}._model.0", f"{stack}.out")
    # Convolutions (the shared model of observations that are images).
    for move in VISION.tables["torch"]:
        yield replace(move, ours=f"{STATE}.{move.ours}")
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
    named = Named.take(policy, settings, rest, scheme, table, of=of, unused=unused)
    if f"{CRITIC}.out" not in named:
        raise refusals.unknown_arrays([], plain, of, named.where)
    return named, constants


def _plain(policy: PolicyState, settings: ModelSettings) -> dict[str, Array]:
    """The arrays by name; those of a list get the names that TensorFlow had for them."""
    weights = policy.weights
    if isinstance(weights, dict):
        return plain_names(policy)[0]
    config = settings.config
    given = _keras_names(
        config.get("actor_hiddens", _HIDDENS),
        config.get("critic_hiddens", _HIDDENS),
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
    return bool(settings.config.get("twin_q", settings.algorithm == "TD3"))


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
        return "torch", TORCH, _matching(_TORCH_UNUSED, names)
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
    """The names of an online network's variables, for arrays that were stored without any.

    Args:
        actor: The policy's hidden sizes.
        critic: The critics' hidden sizes.
        twin: Whether there are two critics.
    """
    layers = [f"actor_hidden_{i}" for i in range(len(actor))] + ["actor_out"] * bool(actor)
    for name in ("q", "twin_q") if twin else ("q",):
        layers += [f"sequential/{name}_hidden_{i}" for i in range(len(critic))]
        layers += [f"sequential/{name}_out"]
    return [f"{layer}/{part}" for layer in layers for part in ("kernel", "bias")]
