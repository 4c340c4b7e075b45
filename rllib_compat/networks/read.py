"""Which network a policy's weights are: by the algorithm, then by the weights' names.

Where weights have no names (flat vectors, lists), the config and the observation space tell.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.networks import custom, own, refusals
from rllib_compat.networks.custom import CustomModel
from rllib_compat.networks.named import where_of
from rllib_compat.networks.network import Network, Reading
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.images import scaling_findings
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: What a reader meets where arrays of a damaged or odd file are not there, or have other shapes,
#: than those beside them let expect.
_CONTRADICTIONS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)

#: The readers that `registry` names → the file of `families` that reads. It is imported when it is
#: needed: to see what is in one checkpoint, nobody has to wait for all kinds of networks.
READERS = {
    "actor_critic": "actor_critic",
    "appo": "appo",
    "bandit": "bandit",
    "bc": "imitation",
    "crr": "crr",
    "ddpg": "ddpg",
    "evolution": "evolution",
    "maddpg": "maddpg",
    "marwil": "actor_critic",
    "q": "q",
    "qmix": "qmix",
    "rnnsac": "rnnsac",
    "sac": "sac",
}


def read(policy: PolicyState, settings: ModelSettings, model: CustomModel | None = None) -> Reading:
    """Finds the network of a policy; neither policy nor config is changed.

    Args:
        policy: The policy.
        settings: What the config says of it.
        model: What the user gives for a custom model.

    Returns:
        The network with its arrays, what was noticed on the way, and what the weights held of the
        policy's state.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A size, or the module of a custom model, has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    try:
        return _read(policy, settings, model)
    except _CONTRADICTIONS as error:
        raise refusals.contradictory(error, where_of(policy)) from error


def _read(policy: PolicyState, settings: ModelSettings, model: CustomModel | None) -> Reading:
    if own.is_own(policy):
        return own.read(policy)
    known = registry.ALGORITHMS.get(settings.algorithm)
    if custom.is_custom(policy, settings) or (model is not None and model.everywhere):
        old = _without_its_model(policy, settings) if known and known.reader == "ddpg" else None
        return custom.read(policy, settings, model) if model or old is None else old
    if known is None or not known.reader:
        where = f"policies.{policy.policy_id}"
        raise refusals.not_yet(f"the algorithm {settings.algorithm}", where)
    reading = _reader(known.reader)(policy, settings)
    if isinstance(reading.network, Network) and _preprocessed(reading.network, settings):
        reading = reading.noting(*scaling_findings(policy, settings))
    return reading


def _reader(name: str) -> Callable[[PolicyState, ModelSettings], Reading]:
    head = importlib.import_module(f"rllib_compat.networks.families.{READERS[name]}")
    read: Callable[[PolicyState, ModelSettings], Reading] = head.read
    return read


def _without_its_model(policy: PolicyState, settings: ModelSettings) -> Reading | None:
    """Reads a policy of DDPG whose config names a custom model that it did not use.

    RLlib asked the catalog for a model of the observations alone; without `use_state_preprocessor`
    or layers of such a model, policy and critics were DDPG's own. None: the model may have counted.
    """
    try:
        reading = _reader("ddpg")(policy, replace(settings, custom_model=None))
    except CheckpointError:
        return None
    if any("state" in name for name in reading.network.arrays):
        return None
    note = (
        f"the config names the custom model {settings.custom_model}; all weights are of "
        f"{settings.algorithm}'s own layers, and they are followed"
    )
    where = where_of(policy)
    hint = "compare the actions on a few observations yourself"
    return reading.noting(
        Finding("custom-model", Severity.WARNING, Verdict.NOTE, where, note, hint)
    )


def _preprocessed(network: Network, settings: ModelSettings) -> bool:
    """Whether rollout workers with preprocessors fed it: RLModules had them until Ray 2.10."""
    early = settings.ray is not None and Version(settings.ray) < Version("2.11")
    return early or not network.scheme.startswith("rl_module")
