"""Reads the networks of CRR (`algorithms/crr/torch`, Ray 2.0 – 2.10).

An actor, and one critic or two, each a stack of dense layers; with Discrete actions, a critic gives
a number for each. They become `CriticRegularizedModule`.
"""

from __future__ import annotations

from dataclasses import replace

from packaging.version import Version

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import Arrays, draw_hidden
from rllib_compat.networks.graph import CRITIC, POLICY, TWIN, Builder, Graph
from rllib_compat.networks.mapping import Table, torch_dense
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.network import Group, Reading, Target
from rllib_compat.networks.observations import original_space
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import (
    OUTPUTS,
    add_critics,
    add_stack,
    describe_stack,
    layers_of_stack,
    module_names,
    module_names_in,
    with_targets,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.spaces import Box, Discrete, Space

MODULE = "rllib_compat.modules:CriticRegularizedModule"
#: Both optimizers, with the epsilon that they had and have.
_ACTOR = Group("actor", f"{POLICY}.", ("actor_model.", "net.actor."))
_CRITICS = Group(
    "critic", (f"{CRITIC}.", f"{TWIN}."), ("q_model.", "twin_q_model.", "net.q.", "net.twin_q.")
)
#: The first Ray whose critics' squared errors were added up over the batch, not averaged.
_SUMMED = Version("2.1")
#: How every Ray before that one laid out its checkpoints.
_LAYOUT_OF_2_0 = "0.1"
#: What the old model and today's module call each stack.
_STACKS = {POLICY: "actor", CRITIC: "q", TWIN: "twin_q"}
_TEMPERATURE = "categorical_distribution_temperature"


def draw(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a policy and its critics.

    Raises:
        ConfigError: Actions are neither Discrete nor a Box.
    """
    if not isinstance(actions, (Box, Discrete)):
        raise ConfigError(
            f"CRR needs Discrete or Box actions; these are {actions}.",
            where="action_space",
            fix="Wrap the environment, so that its actions are Discrete or Box.",
        )
    discrete = isinstance(actions, Discrete)
    observed, size = (original_space(seen) or seen).flat_size(), actions.flat_size()
    stacks = {
        "actor": (settings.setting("actor_hiddens"), observed, size if discrete else 2 * size)
    }
    takes, gives = (observed, size) if discrete else (observed + size, 1)
    for critic in ("q", "twin_q") if settings.setting("twin_q") else ("q",):
        stacks[critic] = (settings.setting("critic_hiddens"), takes, gives)
    for name, (hiddens, takes, gives) in stacks.items():
        last = draw_hidden(arrays, f"{name}_model.{name}_hidden", takes, hiddens)
        arrays.dense(f"{name}_model.{name}_out._model.0", last, gives)


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the networks of a policy."""
    where = where_of(policy)
    assert isinstance(policy.weights, dict)
    if policy.action_space is None:
        raise refusals.needed(
            "The action space is needed: it decides the critics' inputs.", "action", where
        )
    table = module_names_in(_STACKS, policy.weights) if policy.is_module else _OLD
    named = Named.take(policy, settings, policy.weights, "torch", table, of="CRR network")
    named.require(*(f"{stack}.out.{p}" for stack in (POLICY, CRITIC) for p in ("kernel", "bias")))
    _compare(named)
    graph = _graph(named)
    arrays, findings = with_targets(named)
    hiddens = {stack: len(named.layers(f"{stack}.hidden")) for stack in _STACKS}
    own = module_names(_STACKS, hiddens)
    target = Target(MODULE, _told(named), own)
    network = named.network("critic-regularized", _summary(named), graph, target, arrays)
    critics = replace(_CRITICS, scale=_scale(named))
    return named.reading(replace(network, optimizers=(_ACTOR, critics)), *findings)


_OLD: Table = tuple(
    move
    for stack, name in _STACKS.items()
    for move in (
        *torch_dense(f"{name}_model.{name}_hidden_{{i}}._model.0", f"{stack}.hidden.{{i}}"),
        *torch_dense(f"{name}_model.{name}_out._model.0", f"{stack}.out"),
    )
)


def _scale(named: Named) -> float:
    """What gradients of today's critics are of those of their Ray.

    Today's loss is half the mean of all squared errors. In Ray 2.0, it was half their sum over both
    critics; from 2.1 on half the sum over the whole batch, too (`l2_loss`), unless it was Huber's.
    """
    settings, critics = named.settings, 2 if f"{TWIN}.out" in named else 1
    if named.policy.is_module:
        return 1.0
    if _is_of_ray_2_0(settings):
        return 1.0 / critics
    if settings.config.get("td_error_loss_fn", "mse") != "mse":
        return 1.0
    batch = settings.setting("train_batch_size")
    if not isinstance(batch, int) or batch < 1:
        raise refusals.contradiction(f"train_batch_size is {batch!r}.", named.where)
    return 1.0 / (critics * batch)


def _is_of_ray_2_0(settings: ModelSettings) -> bool:
    """Whether the first Ray with CRR wrote it.

    If `.tune_metadata` or `rllib_checkpoint.json`, which name the Ray, is lost, the layout says
    it: Ray 2.1 brought a new one.
    """
    if settings.ray is None:
        return settings.layout == _LAYOUT_OF_2_0
    return Version(settings.ray) < _SUMMED


def _summary(named: Named) -> str:
    """One line for tables: `crr 4-8-6-2, twin critics 5-7-1`."""
    critics = "twin critics" if f"{TWIN}.out" in named else "critic"
    policy, critic = (describe_stack(named, stack) for stack in (POLICY, CRITIC))
    return f"crr {policy}, {critics} {critic}"


def _compare(named: Named) -> None:
    """Holds the stacks against config and spaces.

    Raises:
        CheckpointError: They contradict each other.
    """
    for stack, key in ((POLICY, "actor_hiddens"), (CRITIC, "critic_hiddens")):
        said, found = named.settings.config.get(key), list(named.sizes(f"{stack}.hidden"))
        if said is not None and list(said) != found:
            raise refusals.other_config(key, found, list(said), named.where)
    if f"{TWIN}.out" in named and named.sizes(f"{TWIN}.hidden") != named.sizes(f"{CRITIC}.hidden"):
        raise refusals.contradiction("Both critics have different layers.", named.where)
    named.require_inputs((_seen(named),))
    named.require_outputs(named.gives(f"{POLICY}.out"))


def _seen(named: Named) -> int:
    return named.takes(layers_of_stack(named, POLICY)[0])


def _graph(named: Named) -> Graph:
    build, seen, space = Builder(), _seen(named), named.policy.action_space
    inputs = {"obs": (seen,)}
    if not isinstance(space, (Box, Discrete)):
        raise refusals.not_yet(f"CRR with the actions {space}", named.where)
    discrete = isinstance(space, Discrete)
    if not discrete:
        inputs["actions"] = (space.flat_size(),)
    activations = [_activation(named, stack) for stack in ("actor", "critic")]
    logits = add_stack(build, named, POLICY, "obs", activations[0])
    if discrete and (by := _temperature(named)) != 1.0:
        logits = build.add("divide", "logits", logits, by=by)
    critics = add_critics(build, named, "obs", activations[1], of_actions=not discrete)
    return Graph(inputs, tuple(build.steps), {OUTPUTS[POLICY]: logits, **critics})


def _activation(named: Named, part: str) -> str:
    return str(_settings(named).get(f"{part}_hidden_activation", "relu"))


def _temperature(named: Named) -> float:
    given = _settings(named).get(_TEMPERATURE, 1.0)
    if not isinstance(given, (int, float)) or not given > 0:
        raise refusals.contradiction(f"{_TEMPERATURE} is {given!r}, no temperature.", named.where)
    return float(given)


def _settings(named: Named) -> dict[str, object]:
    return {**named.settings.config, **named.policy.extra.get("module_config", {})}


def _told(named: Named) -> dict[str, object]:
    """The module's options."""
    return {
        "actor_hiddens": list(named.sizes(f"{POLICY}.hidden")),
        "actor_hidden_activation": _activation(named, "actor"),
        "critic_hiddens": list(named.sizes(f"{CRITIC}.hidden")),
        "critic_hidden_activation": _activation(named, "critic"),
        "twin_q": f"{TWIN}.out" in named,
        _TEMPERATURE: _temperature(named),
    }
