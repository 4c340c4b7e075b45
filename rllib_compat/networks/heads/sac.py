"""Reads the networks of SAC, and of CQL, which has the same.

What they are (`agents/sac/*_model.py`, 0.7 – 1.x; `algorithms/sac/*_model.py`, 2.x): a policy, a
critic of observation and actions, mostly a twin of it, and for each critic a target that follows
it. With discrete actions, a critic takes the observation alone and gives a number for each action.

Today's default module has critics of another shape (one network for observations, one for
actions, and one that fuses them), so all of these go into `networks.modules.sac`,
which today's learners of SAC and CQL train.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.networks import compare, refusals
from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.heads import sac_models, stacks
from rllib_compat.networks.heads.targets import with_targets
from rllib_compat.networks.named import Named
from rllib_compat.networks.names.sac import read_named
from rllib_compat.networks.names.sac_unnamed import hiddens_of, model_of
from rllib_compat.networks.names.stacks import CRITIC, POLICY, STATE, TWIN
from rllib_compat.networks.network import Reading, own_module
from rllib_compat.networks.optimizers.groups import ALPHA, soft_actor_critic
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import DENSE, add_layers
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box

_MODULES = {"SAC": "SACModule", "CQL": "CQLModule"}

#: Ray 0.7 and 0.8.0 (`SCALE_DIAG_MIN_MAX`, and tensorflow-probability's `FillScaleTriL`).
_SOFTPLUS = {"low": -20.0, "high": 2.0, "shift": 1e-5}

#: The least log standard deviation (`MIN_LOG_NN_OUTPUT`), until Ray 1.2 and later.
_LEAST_LOG_STD = {True: -20.0, False: -5.0}


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the networks of a SAC or CQL policy.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        NotConvertibleError: Layers of the policy were never saved.
        MissingInformationError: A size has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    named, trunks = read_named(policy, settings)
    lost = ""
    if trunks[POLICY] is DENSE:
        _compare(named)
        graph = _graph(named)
        summary = _summary(named)
    else:
        named, graph, lost = sac_models.read(named, trunks)
        critics = "no critics" if lost else f"critics of {trunks[CRITIC].kind}"
        summary = f"sac, policy of {trunks[POLICY].kind}, {critics}"
    arrays, findings = with_targets(named, *(f"{stack}." for stack in (CRITIC, TWIN, STATE)))
    if lost:
        message = f"only the policy goes over, without its critics. {lost}"
        findings.append(_absent(named, "network", message))
    if ALPHA not in named.state:
        message = "the temperature alpha is not stored; it starts from initial_alpha"
        hint = "the first updates may explore more or less than the last ones did"
        findings.append(_absent(named, "temperature", message, hint))
    space = policy.action_space
    if isinstance(space, Box) and not space.exact and not _softplus(named):
        if not space.bounded:
            raise refusals.range_needed(space, named.where)
        message = f"the bounds of {space} are as old gym printed them; actions are scaled into them"
        hint = "give --env or --action-space; with the environment, its own bounds count"
        findings.append(named.note(message, hint, code="bounds", severity=Severity.WARNING))
    target = own_module(
        f"rllib_compat.modules:{_MODULES[settings.algorithm]}",
        graph,
        arrays,
        twin_q="twin_q_values" in graph.outputs,
        num_actions=int(settings.config.get("num_actions") or 10),
        distribution=_distribution(named, graph),
    )
    network = named.network("soft actor-critic", summary, graph, target, arrays)
    network = replace(network, optimizers=soft_actor_critic(arrays, named.unused))
    return named.reading(network, *findings)


def _absent(named: Named, code: str, message: str, hint: str = "") -> Finding:
    return named.note(message, hint, code=code, severity=Severity.WARNING, verdict=Verdict.ABSENT)


def _summary(named: Named) -> str:
    """One line for tables: `sac 3-32-24-2 relu, twin critics 4-32-24-1 relu`."""
    critics = "twin critics" if f"{TWIN}.out" in named else "critic"
    policy, critic = (
        f"{stacks.describe(named, stack)} {model_of(named.settings, stack).activation}"
        for stack in (POLICY, CRITIC)
    )
    return f"sac {policy}, {critics} {critic}"


def _compare(named: Named) -> None:
    """Holds stacks of dense layers against the config and the observation space.

    Raises:
        CheckpointError: They contradict each other.
    """
    if named.scheme != "rl_module":
        for stack in (POLICY, CRITIC):
            sizes, said = named.sizes(f"{stack}.hidden"), hiddens_of(named.settings, stack)
            compare.require_hiddens(named, sizes, said, of=stack)
    compare.require_inputs(named, (_takes(named),))


def _takes(named: Named) -> int:
    first = STATE if f"{STATE}.hidden.0" in named else POLICY
    return named.takes(stacks.layers_of(named, first)[0])


def _graph(named: Named) -> Graph:
    """What stacks of dense layers compute."""
    build, takes = Builder(), "obs"
    inputs = {"obs": (_takes(named),)}
    if state := named.layers(f"{STATE}.hidden"):
        # No optimizer of SAC had the shared model's layers: they stay as they were made.
        activation = named.settings.activation
        takes = add_layers(build, named.arrays, state, takes, activation, trained=False)
    first = (stacks.layers_of(named, stack)[0] for stack in (POLICY, CRITIC))
    seen, both = (named.takes(layer) for layer in first)
    if both > seen:
        inputs["actions"] = (both - seen,)
    logits = stacks.add_stack(build, named, POLICY, takes, _activations(named, POLICY))
    if _softplus(named):
        logits = build.add("softplus_log_std", "log_std", logits, **_SOFTPLUS)
    outputs = {stacks.OUTPUTS[POLICY]: logits}
    critics = _activations(named, CRITIC)
    outputs |= stacks.add_critics(build, named, takes, critics, of_actions=both > seen)
    return Graph(inputs, tuple(build.steps), outputs)


def _activations(named: Named, stack: str) -> list[str]:
    """The activation of each hidden layer of the policy or of the critics."""
    layers = len(named.layers(f"{stack}.hidden"))
    if named.scheme != "rl_module":
        return [model_of(named.settings, stack).activation] * layers
    # A head's hidden layers follow the encoder's, and had keys of their own.
    model = named.settings.model
    module = "pi" if stack == POLICY else "qf"
    head = sum(row.theirs.startswith(f"{module}.net.") for row in named.table) // 2 - 1
    encoder = str(model.get("fcnet_activation", "tanh"))
    behind = model.get("head_fcnet_activation", model.get("post_fcnet_activation", "relu"))
    return [encoder] * (layers - head) + [str(behind)] * head


def _softplus(named: Named) -> bool:
    """Whether the policy's outputs are those of Ray 0.7 and 0.8.0."""
    return any("/action_hidden_" in row.theirs for row in named.table)


def _distribution(named: Named, graph: Graph) -> dict[str, Any]:
    """What the policy's outputs mean: the distribution of actions, for the module.

    Raises:
        NotYetError: It is none that is known.
        MissingInformationError: The range of the actions has to be given.
    """
    if "actions" not in graph.inputs:
        return {"kind": "categorical"}
    (actions,) = graph.inputs["actions"]
    zeros = {name: np.zeros((1, *shape)) for name, shape in graph.inputs.items()}
    outputs = graph.evaluate(named.arrays, zeros)["action_dist_inputs"].shape[-1]
    config = named.settings.config
    if config.get("_use_beta_distribution") or outputs != 2 * actions:
        odd = "Beta" if outputs == 2 * actions else f"{outputs} numbers for {actions} actions"
        raise refusals.not_yet(f"the action distribution ({odd})", named.where)
    if _softplus(named):
        # Ray 0.7 and 0.8.0 squashed into the environment's range, twice, and did not normalize.
        space = named.policy.action_space
        if not isinstance(space, Box) or not space.exact or not space.bounded:
            raise refusals.range_needed(space, named.where)
        low, high = (np.ravel(x).astype(float).tolist() for x in (space.low, space.high))
        squashed = {"low": low, "high": high, "least_log_std": _LEAST_LOG_STD[True]}
        return {"kind": "squashed", **squashed, "squashes": 2}
    if not config.get("normalize_actions", True):
        return {"kind": "normal"}
    old = any("sequential" in row.theirs or ".action_" in row.theirs for row in named.table)
    return {"kind": "squashed", "low": -1.0, "high": 1.0, "least_log_std": _LEAST_LOG_STD[old]}
