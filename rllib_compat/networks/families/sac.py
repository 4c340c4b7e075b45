"""Reads the networks of SAC, and of CQL, which has the same.

What they are (`agents/sac/*_model.py`, 0.7 – 1.x; `algorithms/sac/*_model.py`, 2.x): a policy, a
critic of observation and actions, mostly a twin of it, and for each critic a target that follows
it. With discrete actions, a critic takes the observation alone and gives a number for each action.

Today's default module has critics of another shape (one network for observations, one for
actions, and one that fuses them), so all of these go into `networks.modules.sac`,
which today's learners of SAC and CQL train.

A new one (`agents/sac/sac_torch_model.py`, Ray 1.3 – 1.13; `algorithms/sac` of 2.x) is a model of
the catalog for the policy, and one for each critic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import Arrays, NewModel, is_image, since
from rllib_compat.networks.families import vision
from rllib_compat.networks.families.dense import draw_trunk
from rllib_compat.networks.families.sac_names import (
    MULTIPLIER,
    Trunks,
    hiddens_of,
    model_of,
    read_named,
)
from rllib_compat.networks.graph import CRITIC, POLICY, STATE, TWIN, Builder, Graph
from rllib_compat.networks.named import Named
from rllib_compat.networks.network import ALPHA, TARGET_PREFIX, Group, Reading, own_module
from rllib_compat.networks.observations import original_space, parts_of, require_image
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import COMPLEX
from rllib_compat.networks.trunks.dense import (
    DENSE,
    OUTPUTS,
    Trunk,
    add_critics,
    add_layers,
    add_stack,
    describe_stack,
    layers_of_stack,
    with_targets,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import ConfigError, NotConvertibleError
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box, Discrete, Space, TupleSpace, box

#: How the names of the layers of each stack began in torch.
_NAMES = {POLICY: "action_model.", CRITIC: "q_net.", TWIN: "twin_q_net."}


def draw(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a policy and its critics.

    Raises:
        ConfigError: Actions are neither discrete nor a vector.
    """
    if not isinstance(actions, (Box, Discrete)):
        raise ConfigError(
            f"{settings.algorithm} needs Discrete actions or vectors (Box); these are {actions}.",
            where="action_space",
            fix="Train PPO, which supports all action spaces.",
        )
    space = original_space(seen) or seen
    critics: Space = seen
    if isinstance(actions, Box):
        vector = isinstance(space, Box) and len(space.shape) == 1
        size = space.flat_size() + actions.flat_size()
        critics = box(-1.0, 1.0, (size,)) if vector else TupleSpace((space, actions))
    outputs = 2 * actions.flat_size() if isinstance(actions, Box) else actions.n
    given = {POLICY: (seen, outputs), CRITIC: (critics, 1 if isinstance(actions, Box) else outputs)}
    if settings.config.get("twin_q", True):
        given[TWIN] = given[CRITIC]
    for stack, (observed, gives) in given.items():
        # Before Ray 1.3, what looked at images was in no optimizer; that is not repeated.
        images = any(is_image(part.space) for part in parts_of(original_space(observed)))
        ray = settings.ray if since(settings, "1.3") or not images else None
        own = replace(model_of(settings, stack), ray=ray)
        # Since then, no preprocessor flattened what critics of continuous actions saw, an
        # observation and an action, and each part had layers of its own.
        flattened = observed is seen or isinstance(observed, Box) or not since(own, "1.3")
        draw_trunk(NewModel(arrays, own, gives, _NAMES[stack]), observed, flattened=flattened)


#: The epsilon of the optimizers, then (torch) and now (`sac_torch_learner.py`).
_EPS = 1e-7


def read_catalog_models(named: Named, trunks: Trunks) -> tuple[Named, Graph, str]:
    """Makes one graph of all stacks.

    Where some layers of the critics were never saved (Ray 1.10 – 2.2 on torch), the policy is read
    alone.

    Returns:
        The arrays that are used, the graph, and why there are no critics (empty where they are).

    Raises:
        NotConvertibleError: Layers of the policy were never saved.
        CheckpointError: The weights and the config contradict each other.
    """
    models: dict[str, Graph] = {}
    lost = ""
    present = {name.partition(".")[0] for name in named.arrays}
    for stack in (stack for stack in OUTPUTS if stack in present):
        try:
            models[stack] = _model(_of_stack(named, stack), trunks[stack])
        except NotConvertibleError as error:
            if stack == POLICY:
                raise
            lost = error.found
    stacks = ((row, row.ours.removeprefix(TARGET_PREFIX).partition(".")[0]) for row in named.table)
    kept = [row for row, stack in stacks if stack in models]
    dropped = [row.theirs for row in named.table if row not in kept]
    arrays = {row.ours: named.arrays[row.ours] for row in kept}
    unused = (*named.unused, *dropped)
    return (
        replace(named, arrays=arrays, table=tuple(kept), unused=unused),
        _graph_of_models(named, models),
        lost,
    )


def _of_stack(named: Named, stack: str) -> Named:
    """A stack as a policy of its own, in its algorithm's config; a critic sees actions, too."""
    policy, settings = named.policy, named.settings
    seen, actions = policy.observation_space, policy.action_space
    if stack != POLICY and isinstance(actions, Box) and (observed := original_space(seen)):
        seen = TupleSpace((observed, actions))
    own = replace(
        model_of(settings, stack),
        config=settings.config,
        algorithm=settings.algorithm,
        ray=settings.ray,
    )
    prefix = f"{stack}."
    arrays = {k.removeprefix(prefix): v for k, v in named.arrays.items() if k.startswith(prefix)}
    return replace(
        named, policy=replace(policy, observation_space=seen), settings=own, arrays=arrays
    )


def _model(named: Named, trunk: Trunk) -> Graph:
    """What a model computes, without its value function."""
    build = Builder()
    inputs: tuple[int, ...]
    if trunk is DENSE:
        layers = named.layers("hidden")
        inputs = (named.takes([*layers, "out"][0]),)
        hidden = add_layers(build, named.arrays, layers, "obs", named.settings.activation)
        logits = build.add("dense", "out", hidden)
    elif trunk is COMPLEX:
        inputs = COMPLEX.inputs(named)
        logits = build.add("dense", "logits", COMPLEX.add(build, named))
    else:
        inputs = require_image(named.policy, named.settings)
        heads = vision.Heads(named, build)
        heads.add_policy()
        logits = heads.logits
    graph = Graph({"obs": inputs}, tuple(build.steps), {"outputs": logits})
    return replace(graph, steps=graph.needed(["outputs"]))


def _graph_of_models(named: Named, models: Mapping[str, Graph]) -> Graph:
    """One graph of all models, each step with its stack's name before its own."""
    actions = named.policy.action_space
    inputs = {"obs": models[POLICY].inputs["obs"]}
    build = Builder()
    both = "obs"
    if isinstance(actions, Box):
        inputs["actions"] = (actions.flat_size(),)
        flat = build.add("flatten", "q_obs", "obs") if len(inputs["obs"]) == 3 else "obs"
        both = build.add("concat", "q_inputs", flat, "actions")
    outputs = {}
    for stack, model in models.items():
        taken = "obs" if stack == POLICY else both
        build.steps += [step.within(stack, taken) for step in model.steps]
        outputs[OUTPUTS[stack]] = f"{stack}.{model.outputs['outputs']}"
        if stack != POLICY and isinstance(actions, Box):
            made = build.add("scalar", OUTPUTS[stack], outputs[OUTPUTS[stack]])
            outputs[OUTPUTS[stack]] = made
    return Graph(inputs, tuple(build.steps), outputs)


_MODULES = {"SAC": "SACModule", "CQL": "CQLModule"}

#: Ray 0.7 and 0.8.0 (`SCALE_DIAG_MIN_MAX`, and tensorflow-probability's `FillScaleTriL`).
_SOFTPLUS = {"low": -20.0, "high": 2.0, "shift": 1e-5}

#: The least log standard deviation (`MIN_LOG_NN_OUTPUT`), until Ray 1.3 and later.
_LEAST_LOG_STD = {True: -20.0, False: -5.0}


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the networks of a SAC or CQL policy."""
    named, trunks = read_named(policy, settings)
    lost = ""
    if trunks[POLICY] is trunks[CRITIC] is DENSE:
        _compare(named)
        graph = _graph(named)
        summary = _summary(named)
    else:
        named, graph, lost = read_catalog_models(named, trunks)
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
        hint = "pass --env or --action-space; with the environment, its own bounds count"
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
    network = replace(network, optimizers=optimizers_of(arrays, named.unused))
    return named.reading(network, *findings)


def _absent(named: Named, code: str, message: str, hint: str = "") -> Finding:
    return named.note(message, hint, code=code, severity=Severity.WARNING, verdict=Verdict.ABSENT)


def _summary(named: Named) -> str:
    """One line for tables: `sac 3-32-24-2 relu, twin critics 4-32-24-1 relu`."""
    critics = "twin critics" if f"{TWIN}.out" in named else "critic"
    policy, critic = (
        f"{describe_stack(named, stack)} {model_of(named.settings, stack).activation}"
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
            named.require_hiddens(sizes, said, of=stack)
    named.require_inputs((_takes(named),))


def _takes(named: Named) -> int:
    first = STATE if f"{STATE}.hidden.0" in named else POLICY
    return named.takes(layers_of_stack(named, first)[0])


def _graph(named: Named) -> Graph:
    """What stacks of dense layers compute."""
    build, takes = Builder(), "obs"
    inputs = {"obs": (_takes(named),)}
    if state := named.layers(f"{STATE}.hidden"):
        # No optimizer of SAC had the shared model's layers: they stay as they were made.
        activation = named.settings.activation
        takes = add_layers(build, named.arrays, state, takes, activation, trained=False)
    first = (layers_of_stack(named, stack)[0] for stack in (POLICY, CRITIC))
    seen, both = (named.takes(layer) for layer in first)
    if both > seen:
        inputs["actions"] = (both - seen,)
    logits = add_stack(build, named, POLICY, takes, _activations(named, POLICY))
    if _softplus(named):
        logits = build.add("softplus_log_std", "log_std", logits, **_SOFTPLUS)
    outputs = {OUTPUTS[POLICY]: logits}
    critics = _activations(named, CRITIC)
    outputs |= add_critics(build, named, takes, critics, of_actions=both > seen)
    return Graph(inputs, tuple(build.steps), outputs)


def _activations(named: Named, stack: str) -> list[str]:
    """The activation of each hidden layer of the policy or of the critics."""
    layers = len(named.layers(f"{stack}.hidden"))
    if named.scheme != "rl_module":
        return [model_of(named.settings, stack).activation] * layers
    # A head's hidden layers follow the encoder's, and had keys of their own.
    module = "pi" if stack == POLICY else "qf"
    head = sum(row.theirs.startswith(f"{module}.net.") for row in named.table) // 2 - 1
    encoder = str(named.activation("fcnet_activation"))
    behind = named.activation("head_fcnet_activation", "post_fcnet_activation")
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
    outputs = graph.evaluate(named.arrays, graph.zeros())["action_dist_inputs"].shape[-1]
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
    old = old or not since(named.settings, "1.4")
    return {"kind": "squashed", "low": -1.0, "high": 1.0, "least_log_std": _LEAST_LOG_STD[old]}


def optimizers_of(arrays: Iterable[str], unused: Iterable[str]) -> tuple[Group, ...]:
    """The optimizers of SAC and CQL, in the order of the old policies' lists."""
    groups = [
        Group("policy", f"{POLICY}.", ("action_model.", "pi_encoder.", "pi.", "net.pi."), _EPS),
        Group("qf", f"{CRITIC}.", ("q_net.", "qf_encoder.", "qf.", "net.q."), _EPS),
    ]
    if any(name.startswith(f"{TWIN}.") for name in arrays):
        modules = ("twin_q_net.", "qf_twin_encoder.", "qf_twin.", "net.twin_q.")
        groups.append(Group("qf_twin", f"{TWIN}.", modules, _EPS))
    groups.append(Group("alpha", ALPHA, eps=_EPS))
    if any(name.startswith(MULTIPLIER) for name in unused):
        groups.append(Group(None, MULTIPLIER, eps=_EPS))
    return tuple(groups)
