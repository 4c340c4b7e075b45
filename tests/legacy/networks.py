"""A case's networks as the converter reads them, and what the original ones took and gave."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from rllib_compat.convert import complete as resolve
from rllib_compat.convert.given import Given
from rllib_compat.formats import layouts
from rllib_compat.networks import ModelSettings, Network
from rllib_compat.networks import read as read_policy
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.space_text import parse_repr
from tests.legacy.cases import Case

#: What the cases call each output of a network.
OUTPUTS = {
    "action_dist_inputs": ("out/action_dist_inputs", "action_dist_inputs", "logits"),
    "vf_preds": ("out/vf_preds", "vf_preds"),
    "q_values": (
        "noisefree/out/q_values",  # of noisy nets
        "out/q_values",
        "q_values",
        "extra/get_q_values",
        "out/q/value",
    ),
    "twin_q_values": ("out/twin_q_values", "twin_q_values", "extra/get_twin_q_values"),
    "actions": ("action",),
}
#: What they call each input, where it is not the input's own name.
INPUTS = {
    "obs": ("net_in", "obs_in", "obs_pre", "obs", "obs_raw"),
    "actions": ("q_actions", "extra/q_actions"),
}
#: What modules of the new API stack call the states of their two LSTMs.
_STATES = {
    f"{ours}{state}": f"state_in/{theirs}/{state}"
    for ours, theirs in (("", "actor"), ("critic_", "critic"))
    for state in "hc"
}
#: What only critics take: a case that did not record it has no outputs of theirs.
OPTIONAL = ("actions",)


def given_of(case: Case) -> Given:
    """The spaces that a user would give for a checkpoint that has none."""
    about = case.about
    spaces: dict[str, dict] = {"observation_space": {}, "action_space": {}}
    for kind, by_policy in spaces.items():
        for policy_id in case.policies:
            told = about.get(kind) or {}
            text = told.get(policy_id) or about["policies"][policy_id].get(kind)
            if isinstance(text, str) and parse_repr(text) is not None:
                by_policy[policy_id] = parse_repr(text)
    return Given(
        algorithm=case.algorithm,
        observation_spaces=spaces["observation_space"],
        action_spaces=spaces["action_space"],
    )


def given_if_asked(case: Case) -> Given:
    """The same, where the checkpoint itself has no spaces; a user would only be asked then."""
    known = any(p.action_space for p in layouts.read(case.checkpoint).policies.values())
    return Given(algorithm=case.algorithm) if known else given_of(case)


def read(case: Case) -> tuple[LegacyCheckpoint, dict[str, Network]]:
    """A case's checkpoint, and the network of each policy under its id in the checkpoint."""
    checkpoint = layouts.read(case.checkpoint)
    given = given_if_asked(case)
    checkpoint = resolve.complete(checkpoint, given)
    resolve.require_config(checkpoint, given)
    networks = {
        policy_id: read_policy(policy, ModelSettings.of(checkpoint, policy)).known
        for policy_id, policy in checkpoint.policies.items()
    }
    return checkpoint, networks


def recorded(
    case: Case, policy_id: str, network: Network
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None:
    """What a policy's original network took and gave, as its graph takes and gives it.

    None where the case did not record everything that the network takes.
    """
    known_as = policy_id if policy_id in case.policies else "default"  # the id of Ray 0.5
    arrays = case.expected(known_as).arrays
    inputs = _inputs(arrays, network)
    if inputs is None:
        return None
    shapes = {name: out.shape for name, out in network.forward(inputs).items()}
    outputs = {}
    for name, theirs in OUTPUTS.items():
        found = next((arrays[n] for n in theirs if n in arrays), None)
        if found is not None and name in shapes and not _unknown(network, name, arrays):
            outputs[name] = found.reshape(shapes[name])
    return (inputs, outputs) if outputs else None


def greedy(
    case: Case, policy_id: str, network: Network
) -> tuple[dict[str, np.ndarray], np.ndarray] | None:
    """What a Q-network took and which actions it chose, where only those were recorded."""
    arrays = case.expected(policy_id).arrays
    inputs = _inputs(arrays, network)
    known = "q_values" in network.graph.outputs and "out/actions" in arrays
    return (inputs, arrays["out/actions"]) if inputs is not None and known else None


def _unknown(network: Network, output: str, arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether an output depends on an input that was not recorded."""
    taken = {name for step in network.graph.needed([output]) for name in step.takes}
    return any(name in taken and not any(n in arrays for n in INPUTS[name]) for name in OPTIONAL)


def _inputs(arrays: Mapping[str, np.ndarray], network: Network) -> dict[str, np.ndarray] | None:
    graph, inputs = network.graph, {}
    states = [_STATES.get(name, name) for name in graph.states]
    if not set(states) <= arrays.keys():
        states = sorted(n for n in arrays if re.fullmatch(r"state_in_\d+", n))
    if len(states) != len(graph.states):
        return None
    for name, shape in graph.inputs.items():
        if name in graph.states:
            found = arrays[states[list(graph.states).index(name)]]
        else:
            found = next((arrays[n] for n in INPUTS.get(name, (name,)) if n in arrays), None)
        if found is None and name in OPTIONAL:
            found = np.zeros((len(inputs["obs"]), *shape))
        if found is None:
            return None
        time = (1,) if graph.recurrent and name not in graph.states else ()
        inputs[name] = found.reshape(len(found), *time, *shape)
    return inputs
