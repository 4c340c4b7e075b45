"""Reads the policies of actor-critic algorithms, whatever they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from rllib_compat.networks import compare
from rllib_compat.networks.families import dense, rl_module, vision, wrapped
from rllib_compat.networks.families.outputs import actor_critic, own_actor_critic
from rllib_compat.networks.families.policy import read_vector as read_policy_vector
from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.names.actor_critic import (
    ATTENTION,
    COMPLEX_SCHEMES,
    LSTM,
    trunk_of,
    wrapper_of,
)
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.network import Reading
from rllib_compat.networks.refusals import not_yet
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import COMPLEX, dead_names, second_names
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box

Reader: TypeAlias = Callable[[PolicyState, ModelSettings], Reading]


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of a policy.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A size has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    kind = kind_of(policy, settings)
    if is_vector(policy):
        if kind == DENSE.kind and settings.algorithm == "PG":
            return read_policy_vector(policy, settings)
        if kind == VISION.kind:
            return _read_vision_vector(policy, settings)
    module = isinstance(policy.weights, dict) and rl_module.is_meant(policy.weights)
    reading = (rl_module.read if module else READERS[kind])(policy, settings)
    if settings.wrapper is not None and kind not in (LSTM, ATTENTION):
        return reading.noting(_ignored(settings.wrapper, policy))
    return reading


def kind_of(policy: PolicyState, settings: ModelSettings) -> str:
    """What a policy's network is made of: by its names, or by the config and the observations."""
    if not isinstance(policy.weights, dict):
        space = policy.observation_space
        image = isinstance(space, Box) and len(space.shape) == 3
        return settings.wrapper or (VISION.kind if image else DENSE.kind)
    names = plain_names(policy)[0]
    several = "logits/kernel" in names
    trunk = COMPLEX if several else trunk_of(names, policy)
    return wrapper_of(names) or trunk.kind


def is_vector(policy: PolicyState) -> bool:
    """Whether the weights are one vector (TensorFlow of Ray 0.5 – 0.7; ES and ARS of any Ray)."""
    return not isinstance(policy.weights, (dict, list))


def _read_vision_vector(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the flat vector of a policy with images.

    Ray 0.7.5 and 0.7.6 gave images a fully connected network, since they counted the axes wrong
    (`models/catalog.py`, `_get_v2_model`); a vector does not tell its Ray, so its size has to.
    """
    try:
        return vision.read(policy, settings)
    except CheckpointError as error:
        try:
            return dense.read(policy, settings)
        except CheckpointError:
            raise error from None


def _read_complex(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads a network for observations of several parts (`complex_input_net.py`, 1.2 – 2.x)."""
    if not isinstance(policy.weights, dict):
        what = "weights without names of a network for observations of several parts"
        raise not_yet(what, where_of(policy))
    plain, state = plain_names(policy)
    scheme = "torch" if "logits_layer._model.0.weight" in plain else "keras"
    named = Named.take(
        policy,
        settings,
        plain,
        scheme,
        COMPLEX_SCHEMES[scheme],
        of="network for complex observations",
        unused=dead_names(plain, heads=True),
        state=state,
        aliases=second_names(plain),
    )
    build = Builder()
    features = COMPLEX.add(build, named)
    logits, value = (build.add("dense", head, features) for head in ("logits", "value"))
    outputs = actor_critic(build, logits, value)
    graph = Graph({"obs": COMPLEX.inputs(named)}, tuple(build.steps), outputs)
    compare.require_outputs(named, named.gives("logits"))
    cuts = [step for step in graph.steps if step.op == "cut"]
    images = sum(len(step.settings["shape"]) == 3 for step in cuts)
    summary = (
        f"{graph.inputs['obs'][0]} inputs in {len(cuts)} parts, {images} of them images, "
        f"{named.gives('logits')} outputs"
    )
    target = own_actor_critic(graph, named.arrays)
    return named.reading(named.network(COMPLEX.kind, summary, graph, target))


def _ignored(wrapper: str, policy: PolicyState) -> Finding:
    """Ray 0.8.5 made no LSTM on TensorFlow, and said nothing."""
    what = "an LSTM" if wrapper == LSTM else wrapper
    return Finding(
        "network",
        Severity.INFO,
        Verdict.NOTE,
        where_of(policy),
        f"the config asks for {what}, the weights were made without it (that Ray ignored the key); "
        "the weights are followed",
    )


#: By what a network is made of.
READERS: Mapping[str, Reader] = {
    DENSE.kind: dense.read,
    VISION.kind: vision.read,
    COMPLEX.kind: _read_complex,
    LSTM: wrapped.read_lstm,
    ATTENTION: wrapped.read_attention,
}
