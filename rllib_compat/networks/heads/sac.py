"""Reads the networks of SAC, and of CQL, which has the same.

What they are (`agents/sac/*_model.py`, 0.7 – 1.x; `algorithms/sac/*_model.py`, 2.x): a policy, a
critic of observation and actions, mostly a twin of it, and for each critic a target that follows
it. With discrete actions, a critic takes the observation alone and gives a number for each action.

Today's default module has critics of another shape (one network for observations, one for
actions, and one that fuses them), so all of these go into `networks.modules.sac`,
which today's learners of SAC and CQL train.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rllib_compat.networks import stacks
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads.sac_models import Models, has_models, read_models
from rllib_compat.networks.names import sac as names
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.names.sac_arrays import (
    Found,
    find,
    hiddens_of,
    model_of,
    take_scalars,
)
from rllib_compat.networks.network import TARGET_PREFIX, Network, Reading, own_module
from rllib_compat.networks.optimizers.groups import soft_actor_critic
from rllib_compat.networks.settings import ModelSettings, require_inputs
from rllib_compat.networks.stacks import CRITIC, POLICY, STATE, TWIN
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box

_MODULES = {"SAC": "SACModule", "CQL": "CQLModule"}

#: Ray 0.7 and 0.8.0 (`SCALE_DIAG_MIN_MAX`, and tensorflow-probability's `FillScaleTriL`).
_SOFTPLUS = {"low": -20.0, "high": 2.0, "shift": 1e-5}

#: The least log standard deviation (`MIN_LOG_NN_OUTPUT`), until Ray 1.2 and later.
_LEAST_LOG_STD = {True: -20.0, False: -5.0}


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the networks of a SAC or CQL policy.

    Returns:
        The network with its arrays, and what was noticed on the way. The temperature is part of
        the state: `log_alpha` and `target_entropy`.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A size has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    where = f"policies.{policy.policy_id}.weights"
    if has_models(policy):
        models = read_models(policy, settings)
        found = _of_models(policy, models)
        graph, summary, lost = models.graph, models.summary, models.lost
    else:
        found = find(policy, settings, where)
        _compare(found, policy, settings, where)
        graph, summary, lost = _graph(found, settings), _summary(found, settings), ""
    arrays, findings = _with_targets(found.arrays, where)
    if names.LOG_ALPHA not in found.scalars:
        findings.append(_no_temperature(where))
    if lost:
        findings.append(_no_critics(lost, where))
    network = Network(
        kind="soft actor-critic",
        summary=summary,
        scheme=found.scheme,
        graph=graph,
        arrays=arrays,
        target=own_module(
            f"rllib_compat.modules:{_MODULES[settings.algorithm]}",
            graph,
            arrays,
            twin_q="twin_q_values" in graph.outputs,
            num_actions=int(settings.config.get("num_actions") or 10),
            distribution=_distribution(found, graph, policy, settings, where),
        ),
        names=found.table,
        unused=found.unused,
        optimizers=soft_actor_critic(arrays, found.unused),
    )
    return Reading(network, tuple(findings), found.scalars)


def _of_models(policy: PolicyState, models: Models) -> Found:
    scalars, _ = take_scalars(plain_names(policy)[0])
    scheme = "torch" if any("_convs." in name for name in policy.weights) else "keras"
    return Found(models.arrays, models.table, scheme, scalars, models.unused, False, False)


def _summary(found: Found, settings: ModelSettings) -> str:
    """One line for tables: `sac 3-32-24-2 relu, twin critics 4-32-24-1 relu`."""
    critics = "twin critics" if f"{TWIN}.out.kernel" in found.arrays else "critic"
    shown = [
        f"{stacks.describe(found.arrays, stack)} {model_of(settings, stack).activation}"
        for stack in (POLICY, CRITIC)
    ]
    return f"sac {shown[0]}, {critics} {shown[1]}"


def _with_targets(
    arrays: Mapping[str, Array], where: str
) -> tuple[dict[str, Array], list[Finding]]:
    """Completes the target networks: torch stored none."""
    followed = [k for k in arrays if k.split(".")[0] in (CRITIC, TWIN, STATE)]
    missing = [k for k in followed if TARGET_PREFIX + k not in arrays]
    if not missing:
        return dict(arrays), []
    copies = {TARGET_PREFIX + name: arrays[name] for name in missing}
    message = "the target critics are not stored; they start as copies of the critics"
    return {**arrays, **copies}, [
        Finding("network", Severity.INFO, Verdict.DERIVED, where, message),
    ]


def _no_temperature(where: str) -> Finding:
    return Finding(
        "temperature",
        Severity.WARNING,
        Verdict.ABSENT,
        where,
        "the temperature alpha is not stored; it starts from initial_alpha",
        "the first updates may explore more or less than the last ones did",
    )


def _no_critics(lost: str, where: str) -> Finding:
    message = f"the policy alone goes over: its critics can't be told from the checkpoint. {lost}"
    return Finding("network", Severity.WARNING, Verdict.ABSENT, where, message)


def _compare(found: Found, policy: PolicyState, settings: ModelSettings, where: str) -> None:
    """Holds the arrays against the config and the spaces.

    Raises:
        CheckpointError: They contradict each other.
    """
    for stack in (POLICY, CRITIC):
        have, told = stacks.sizes(found.arrays, stack), hiddens_of(settings, stack)
        if found.scheme != "rl_module" and have != told:
            raise CheckpointError(
                f"The weights of {stack} have hidden layers {list(have)}, the config says "
                f"{list(told)}: the config is not this checkpoint's.",
                where=where,
                fix="Give the right config with --config, or check --policy names.",
            )
    taken = stacks.inputs(found.arrays, STATE if stacks.sizes(found.arrays, STATE) else POLICY)
    require_inputs(policy.observation_space, taken, where)


def _graph(found: Found, settings: ModelSettings) -> Graph:
    arrays, build, takes = found.arrays, Builder(), "obs"
    seen = stacks.inputs(arrays, POLICY)
    inputs = {"obs": (seen,)}
    if stacks.sizes(arrays, STATE):
        # No optimizer of SAC had the shared model's layers: they stay as they were made.
        inputs["obs"] = (stacks.inputs(arrays, STATE),)
        takes = stacks.add_hidden(build, arrays, STATE, "obs", settings.activation, trained=False)
    actions = stacks.inputs(arrays, CRITIC) - seen
    if actions:
        inputs["actions"] = (actions,)
    hidden = stacks.add_hidden(build, arrays, POLICY, takes, _activations(found, settings, POLICY))
    logits = build.add("dense", f"{POLICY}.out", hidden)
    if found.softplus:
        logits = build.add("softplus_log_std", "log_std", logits, **_SOFTPLUS)
    outputs = {"action_dist_inputs": logits}
    activations = _activations(found, settings, CRITIC)
    outputs |= stacks.add_critics(build, arrays, takes, activations, of_actions=actions > 0)
    return Graph(inputs, tuple(build.steps), outputs)


def _activations(found: Found, settings: ModelSettings, stack: str) -> list[str]:
    """The activation of each hidden layer of the policy or of the critics."""
    layers = len(stacks.sizes(found.arrays, stack))
    if found.scheme != "rl_module":
        return [model_of(settings, stack).activation] * layers
    # A head's hidden layers follow the encoder's, and had keys of their own.
    model = settings.model
    module = "pi" if stack == POLICY else "qf"
    head = sum(row.theirs.startswith(f"{module}.net.") for row in found.table) // 2 - 1
    encoder = str(model.get("fcnet_activation", "tanh"))
    behind = model.get("head_fcnet_activation", model.get("post_fcnet_activation", "relu"))
    return [encoder] * (layers - head) + [str(behind)] * head


def _distribution(
    found: Found, graph: Graph, policy: PolicyState, settings: ModelSettings, where: str
) -> dict[str, Any]:
    """What the policy's outputs mean: the distribution of actions, for the module.

    Raises:
        NotYetError: It is none that is known.
        MissingInformationError: The range of the actions has to be given.
    """
    if "actions" not in graph.inputs:
        return {"kind": "categorical"}
    (actions,) = graph.inputs["actions"]
    zeros = {name: np.zeros((1, *shape)) for name, shape in graph.inputs.items()}
    outputs = graph.evaluate(found.arrays, zeros)["action_dist_inputs"].shape[-1]
    if settings.config.get("_use_beta_distribution") or outputs != 2 * actions:
        odd = "Beta" if outputs == 2 * actions else f"{outputs} numbers for {actions} actions"
        raise NotYetError(
            f"Not yet: the action distribution ({odd}).",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    if found.softplus:
        # Ray 0.7 and 0.8.0 squashed into the environment's range, twice, and did not normalize.
        space = policy.action_space
        if not isinstance(space, Box) or not np.isfinite([space.low, space.high]).all():
            raise MissingInformationError(
                "The range of the actions is needed: the policy squashed them into it.",
                where=where,
                fix="Give --action-space 'Box(-2, 2, (1,))' or --env (Python: action_space=).",
            )
        low, high = (np.ravel(x).astype(float).tolist() for x in (space.low, space.high))
        return {
            "kind": "squashed",
            "low": low,
            "high": high,
            "least_log_std": _LEAST_LOG_STD[True],
            "squashes": 2,
        }
    if not settings.config.get("normalize_actions", True):
        return {"kind": "normal"}
    return {
        "kind": "squashed",
        "low": -1.0,
        "high": 1.0,
        "least_log_std": _LEAST_LOG_STD[found.old],
    }
