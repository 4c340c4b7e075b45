"""Which network a policy's weights are: by the algorithm, then by the weights' names.

Where weights have no names (flat vectors, lists), the config and the observation space tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.networks import custom, own
from rllib_compat.networks.custom import CustomModel
from rllib_compat.networks.heads import (
    asynchronous,
    complex_input,
    ddpg,
    evolution,
    fully_connected,
    imitation,
    q,
    sac,
    vision,
)
from rllib_compat.networks.heads.policy_gradient import read_vector
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.network import Network
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.complex import is_complex
from rllib_compat.networks.trunks.images import scaling_findings
from rllib_compat.networks.wrappers import attention
from rllib_compat.networks.wrappers import lstm as recurrent
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import NotYetError
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box

Reader: TypeAlias = Callable[[PolicyState, ModelSettings], tuple[Network, list[Finding]]]

ATTENTION = "attention (GTrXL)"
LSTM = "LSTM"
VISION = "vision (convolutions)"
COMPLEX = "complex input"
FULLY_CONNECTED = "fully connected"

#: Words in weight names, and the base models or wrappers that they give away.
_SIGNS = (
    (re.compile(r"gtrxl|attention", re.I), ATTENTION),
    (re.compile(r"lstm|rnn", re.I), LSTM),
    (re.compile(r"(^|[/._])_?conv|\.cnn\.", re.I), VISION),
)


#: Policies with an action distribution and (most of them) a value function, by what they are made
#: of. A kind without a reader is refused by name.
ACTOR_CRITIC: dict[str, Reader] = {
    FULLY_CONNECTED: fully_connected.read,
    VISION: vision.read,
    COMPLEX: complex_input.read,
    LSTM: recurrent.read,
    ATTENTION: attention.read,
}


def identify(
    policy: PolicyState, settings: ModelSettings, model: CustomModel | None = None
) -> tuple[Network, list[Finding]]:
    """Finds the network of a policy.

    Args:
        policy: The policy.
        settings: What the config says of it.
        model: What the user gives for a custom model.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A size, or the module of a custom model, has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    if own.is_own(policy):
        return own.read(policy, settings)
    if custom.is_custom(policy, settings):
        if model is None:
            raise custom.refusal(policy, settings)
        return custom.read(policy, settings, model)
    known = registry.ALGORITHMS.get(settings.algorithm)
    if known is None or not known.reader:
        raise NotYetError(
            f"Not yet: the algorithm {settings.algorithm}.",
            where=f"policies.{policy.policy_id}",
            fix="`--to msgpack` keeps all weights by name.",
        )
    network, findings = READERS[known.reader](policy, settings)
    if _preprocessed(network, settings):
        findings = [*findings, *scaling_findings(policy, settings)]
    return network, findings


def _preprocessed(network: Network, settings: ModelSettings) -> bool:
    """Whether rollout workers with preprocessors fed it: RLModules had them until Ray 2.10."""
    early = settings.ray is not None and Version(settings.ray) < Version("2.11")
    return early or not network.scheme.startswith("rl_module")


def read_actor_critic(
    policy: PolicyState, settings: ModelSettings
) -> tuple[Network, list[Finding]]:
    """Reads the policy of an actor-critic algorithm, whatever it is made of."""
    kind = kind_of(policy, settings)
    if settings.algorithm == "PG" and kind == FULLY_CONNECTED and is_vector(policy):
        return read_vector(policy, settings)
    if kind == VISION and is_vector(policy):
        return vision.read_vector(policy, settings)
    if kind not in ACTOR_CRITIC:
        raise NotYetError(
            f"Not yet: the {kind} network.",
            where=f"policies.{policy.policy_id}.weights",
            fix="`--to msgpack` keeps all weights.",
        )
    network, findings = ACTOR_CRITIC[kind](policy, settings)
    if settings.wrapper is not None and kind not in (LSTM, ATTENTION):
        findings.append(_ignored(settings.wrapper, policy.policy_id))
    return network, findings


def _ignored(wrapper: str, policy_id: str) -> Finding:
    """Ray 0.8.5 made no LSTM on TensorFlow, and said nothing."""
    return Finding(
        "network",
        Severity.INFO,
        Verdict.NOTE,
        f"policies.{policy_id}.weights",
        f"the config asks for an {wrapper}, the weights were made without (that Ray ignored the "
        "key); the weights are followed",
    )


def kind_of(policy: PolicyState, settings: ModelSettings) -> str:
    """What a policy's network is made of, in a word or two."""
    if isinstance(policy.weights, dict):
        names = plain_names(policy)[0]
        signs = (kind for sign, kind in _SIGNS if any(sign.search(name) for name in names))
        kind = next(signs, FULLY_CONNECTED)
        several = is_complex(policy, names) or "logits/kernel" in names
        return COMPLEX if several and kind in (VISION, FULLY_CONNECTED) else kind
    space = policy.observation_space
    image = isinstance(space, Box) and len(space.shape) == 3
    return settings.wrapper or (VISION if image else FULLY_CONNECTED)


def is_vector(policy: PolicyState) -> bool:
    """Whether the weights are one vector (TensorFlow of Ray 0.5 – 0.7; ES and ARS of any Ray)."""
    return not isinstance(policy.weights, (dict, list))


def read_appo(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the policy of APPO, and its target network."""
    if is_vector(policy) and kind_of(policy, settings) != FULLY_CONNECTED:
        return read_actor_critic(policy, settings)
    return asynchronous.read(policy, settings, read_actor_critic)


def read_marwil(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the policy of MARWIL."""
    return read_actor_critic(imitation.without_moving_average(policy), settings)


def read_bc(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the policy of BC; in today's default module where that can compute it."""
    if network := imitation.read_today(policy, settings):
        return network, []
    network, findings = read_marwil(policy, settings)
    default = network.target.module is None
    return imitation.without_value(network) if default else network, findings


#: The readers that `registry` names.
READERS: dict[str, Reader] = {
    "actor_critic": read_actor_critic,
    "appo": read_appo,
    "bc": read_bc,
    "ddpg": ddpg.read,
    "evolution": evolution.read,
    "marwil": read_marwil,
    "q": q.read,
    "sac": sac.read,
}
