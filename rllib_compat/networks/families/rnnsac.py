"""Reads the networks of RNNSAC (`agents/sac/rnnsac_*`, Ray 1.5 – 1.13; `algorithms/sac`, 2.x).

A policy, and one critic or two, each of dense layers and an LSTM of its own; with Discrete actions
a critic gives a number for each, and Box actions are one of its inputs. They become
`networks.modules.rnnsac`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.families.rl_module import encoder_activation, lstm_encoder_names
from rllib_compat.networks.families.sac import optimizers_of
from rllib_compat.networks.families.sac_names import hiddens_of, model_of
from rllib_compat.networks.graph import CRITIC, POLICY, TWIN, Builder, Graph
from rllib_compat.networks.mapping import Move, Table, torch_dense, torch_lstm
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.network import (
    ALPHA,
    OWN_PREFIX,
    OWN_TARGET_PREFIX,
    TARGET_PREFIX,
    Reading,
    Target,
)
from rllib_compat.networks.previous_steps import Previous, previous, requested_steps
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import OUTPUTS, add_layers, with_targets
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.neutral.spaces import Box, Discrete, box

MODULE = "rllib_compat.modules:RNNSACModule"
TARGET_ENTROPY = "target_entropy"
#: What the old model calls each stack.
_STACKS = {POLICY: "action_model", CRITIC: "q_net", TWIN: "twin_q_net"}
#: The least log standard deviation (`MIN_LOG_NN_OUTPUT`) of all Rays that had it, and ours.
_LEAST_LOG_STD = -5.0
#: The options of the critics, if they differ from those of the policy.
CRITICS = "critics"


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the networks of a policy."""
    where, space = where_of(policy), policy.action_space
    assert isinstance(policy.weights, dict)
    if space is None:
        raise refusals.needed(
            "The action space is needed: it decides the critics' inputs.", "action", where
        )
    if not isinstance(space, (Box, Discrete)):
        raise refusals.not_yet(f"RNNSAC with the actions {space}", where)
    if isinstance(space, Box) and not settings.config.get("normalize_actions", True):
        raise refusals.not_yet("RNNSAC with normalize_actions=False", where)
    plain = dict(policy.weights)
    state = {n: float(plain.pop(n).reshape(())) for n in (ALPHA, TARGET_ENTROPY) if n in plain}
    unused = [name for name in plain if "._value_branch." in name]
    names = _names({stack: _activation(policy, settings, stack) for stack in _STACKS})
    table = names if policy.is_module else _OLD
    named = Named.take(
        policy, settings, plain, "torch", table, of="RNNSAC network", unused=unused, state=state
    )
    _require_whole(named)
    graph = _graph(named)
    arrays, findings = with_targets(named, f"{CRITIC}.", f"{TWIN}.")
    if ALPHA not in state:
        message = "the temperature alpha is not stored; it starts from initial_alpha"
        findings.append(
            named.note(
                message, code="temperature", severity=Severity.WARNING, verdict=Verdict.ABSENT
            )
        )
    target = Target(MODULE, _told(named), (*names, Move(ALPHA, ALPHA)))
    network = named.network("recurrent soft actor-critic", _summary(named), graph, target, arrays)
    before, space = _previous(named, POLICY), None
    if before.size:  # the module takes them behind the observation
        space = box(-np.inf, np.inf, (_seen(named) + before.size,))
    network = replace(
        network,
        space=space,
        optimizers=optimizers_of(arrays, unused),
        besides={ALPHA: np.array([state.get(ALPHA, 0.0)])},
    )
    return named.reading(network, *findings)


_OLD: Table = tuple(
    move
    for stack, name in _STACKS.items()
    for move in (
        *torch_dense(f"{name}._hidden_layers.{{i}}._model.0", f"{stack}.hidden.{{i}}"),
        *torch_lstm(f"{name}.lstm", f"{stack}.lstm"),
        *torch_dense(f"{name}._logits_branch._model.0", f"{stack}.out"),
    )
)


def _names(activations: dict[str, str]) -> Table:
    return tuple(
        move
        for ours, theirs in (("", OWN_PREFIX), (TARGET_PREFIX, OWN_TARGET_PREFIX))
        for stack, activation in activations.items()
        for move in (
            *lstm_encoder_names(
                f"{theirs}{stack}.encoder", f"{ours}{stack}.", linear=activation == "linear"
            ),
            *torch_dense(f"{theirs}{stack}.head.0", f"{ours}{stack}.out"),
        )
    )


def _activation(policy: PolicyState, settings: ModelSettings, stack: str) -> str:
    """The activation of a stack's dense layers."""
    if not policy.is_module:
        return model_of(settings, stack).activation.lower()
    options = policy.extra.get("module_config", {})
    options = {**options, **(options.get(CRITICS, {}) if stack != POLICY else {})}
    return encoder_activation(options)


def _require_whole(named: Named) -> None:
    """Holds the stacks against config and spaces.

    Raises:
        NotYetError: They have parts that are not known.
        CheckpointError: They lack arrays, or contradict config or spaces.
    """
    policy, settings = named.policy, named.settings
    stacks = [stack for stack in _STACKS if f"{stack}.out" in named or stack != TWIN]
    for stack in stacks:
        parts = ("kernel", "recurrent_kernel", "bias", "recurrent_bias")
        named.require(*(f"{stack}.lstm.{part}" for part in parts), f"{stack}.out.kernel")
        if not named.layers(f"{stack}.hidden"):
            raise refusals.not_yet("RNNSAC without dense layers before its LSTM", named.where)
        if not policy.is_module:
            said = hiddens_of(settings, stack)
            named.require_hiddens(named.sizes(f"{stack}.hidden"), said, of=stack)
    if len({(p.actions, p.rewards) for p in (_previous(named, stack) for stack in stacks)}) > 1:
        raise refusals.not_yet("RNNSAC whose critics see other steps than its policy", named.where)
    named.require_inputs((_seen(named),))
    named.require_outputs(named.gives(f"{POLICY}.out"))


def _seen(named: Named) -> int:
    return named.takes(f"{POLICY}.hidden.0")


def _cells(named: Named, stack: str) -> int:
    return len(named.arrays[f"{stack}.lstm.recurrent_kernel"])


def _previous(named: Named, stack: str) -> Previous:
    """What a stack sees of the step before."""
    asked = requested_steps(named.policy, model_of(named.settings, stack).model)
    size = len(named.arrays[f"{stack}.lstm.kernel"]) - named.sizes(f"{stack}.hidden")[-1]
    return previous(named, *asked, size, raw_first=False)


def _graph(named: Named) -> Graph:
    build, space = Builder(), named.policy.action_space
    before = _previous(named, POLICY)
    inputs = {"obs": (_seen(named),), **before.inputs()}
    both = "obs"
    if isinstance(space, Box):
        inputs["actions"] = (space.flat_size(),)
        both = build.add("concat", "q_inputs", "obs", "actions")
    outputs, states = dict[str, str](), dict[str, str]()
    for stack, output in OUTPUTS.items():
        if f"{stack}.out" not in named:
            continue
        activation = _activation(named.policy, named.settings, stack)
        layers, takes = named.layers(f"{stack}.hidden"), "obs" if stack == POLICY else both
        features = add_layers(build, named.arrays, layers, takes, activation)
        own = {f"{stack}_{part}": f"{stack}.lstm.{part}" for part in "hc"}
        inputs |= dict.fromkeys(own, (_cells(named, stack),))
        states |= own
        features = before.add(build, features, f"{stack}.")
        core = build.add("lstm", f"{stack}.lstm", features, *own)
        outputs[output] = build.add("dense", f"{stack}.out", core)
        if stack != POLICY and isinstance(space, Box):
            outputs[output] = build.add("scalar", output, outputs[output])
    return Graph(inputs, tuple(build.steps), outputs, states)


def _told(named: Named) -> dict[str, Any]:
    """The module's options."""
    config, policy, before = named.settings.config, named.policy, _previous(named, POLICY)
    options = {**config, **policy.extra.get("module_config", {})}
    shapes = {
        stack: {
            "fcnet_hiddens": list(named.sizes(f"{stack}.hidden")),
            "fcnet_activation": _activation(policy, named.settings, stack),
            "lstm_cell_size": _cells(named, stack),
        }
        for stack in (POLICY, CRITIC)
    }
    other = {k: v for k, v in shapes[CRITIC].items() if v != shapes[POLICY][k]}
    squashed = {"kind": "squashed", "low": -1.0, "high": 1.0, "least_log_std": _LEAST_LOG_STD}
    discrete = isinstance(policy.action_space, Discrete)
    return {
        **shapes[POLICY],
        **({CRITICS: other} if other else {}),
        "use_lstm": True,
        "lstm_use_prev_action": bool(before.actions),
        "lstm_use_prev_reward": bool(before.rewards),
        "head_fcnet_hiddens": [],
        "twin_q": f"{TWIN}.out" in named,
        "initial_alpha": float(np.exp(named.state.get(ALPHA, 0.0))),
        "zero_init_states": _begins_with_zeros(options),
        "distribution": {"kind": "categorical"} if discrete else squashed,
    }


def _begins_with_zeros(options: Mapping[str, Any]) -> bool:
    """Whether sequences are learned from the state zero; Ray 2.0 asked the buffer's config."""
    buffer = options.get("replay_buffer_config")
    places = [options, buffer] if isinstance(buffer, Mapping) else [options]
    keys = ("zero_init_states", "replay_zero_init_states")
    said = [place[key] for place in places for key in keys if isinstance(place.get(key), bool)]
    return said[-1] if said else True


def _summary(named: Named) -> str:
    """One line for tables: `rnnsac 5-7-lstm 5-3, twin critics 5-7-lstm 5-3`."""
    described = []
    for stack in (POLICY, CRITIC):
        sizes = (named.takes(f"{stack}.hidden.0"), *named.sizes(f"{stack}.hidden"))
        last = named.gives(f"{stack}.out")
        described.append(f"{'-'.join(map(str, sizes))}-lstm {_cells(named, stack)}-{last}")
    critics = "twin critics" if f"{TWIN}.out" in named else "critic"
    return f"rnnsac {described[0]}, {critics} {described[1]}"
