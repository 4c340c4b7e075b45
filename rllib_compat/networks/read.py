"""Which network a policy's weights are: by the algorithm, then by the weights' names.

Where weights have no names (flat vectors, lists), the config and the observation space decide. The
modules of this package, which an earlier conversion wrote, hold the graph of their network: of
those there is nothing to find out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from packaging.version import Version

from rllib_compat import registry
from rllib_compat.networks import custom, refusals
from rllib_compat.networks.custom import CustomModel
from rllib_compat.networks.drawing import Arrays
from rllib_compat.networks.graph import Graph
from rllib_compat.networks.mapping import Move
from rllib_compat.networks.named import where_of
from rllib_compat.networks.network import (
    OWN_PREFIX,
    OWN_TARGET_PREFIX,
    TARGET_PREFIX,
    WHOLE,
    Group,
    Network,
    Reading,
    own_module,
    own_name,
)
from rllib_compat.networks.observations import scaling_findings
from rllib_compat.networks.ops.in_numpy import OPS
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, CorruptCheckpointError
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Box, Space

_PACKAGE = "rllib_compat.modules"

#: Reads a policy; see `families`.
Reader: TypeAlias = Callable[[PolicyState, ModelSettings], Reading]
#: Draws the arrays of a new policy, for observations and actions.
Drawer: TypeAlias = Callable[[Arrays, ModelSettings, Space, Space], None]

#: The modules that keep their network as `net.<array>`, and the family that knows which optimizers
#: trained it; where none does, it was one.
_MODULES = {
    "ActorModule": "",
    "ActorCriticModule": "",
    "AsynchronousModule": "",
    "CQLModule": "sac",
    "DeterministicModule": "ddpg",
    "PolicyModule": "",
    "QModule": "",
    "R2D2GraphModule": "",
    "SACModule": "sac",
}


def is_own(policy: PolicyState) -> bool:
    """Whether a policy is a module of this package."""
    module, _, cls = (policy.policy_class or "").rpartition(".")
    return cls in _MODULES and module == _PACKAGE


def read_own(policy: PolicyState) -> Reading:
    """Reads the network of a module of ours.

    Raises:
        CheckpointError: Its graph is damaged, or has operations that this version does not know.
    """
    where = f"policies.{policy.policy_id}"
    model = policy.extra.get("module_config", {})
    cls = str(policy.policy_class).rpartition(".")[2]
    if "graph" not in model and cls == "DeterministicModule":
        model = {**model, **_of_new_ddpg(policy, model)}
    try:
        graph = Graph.from_plain(model["graph"])
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptCheckpointError(
            f"The module's graph is damaged ({error!r}).", where=where
        ) from error
    if "obs" not in graph.inputs:
        raise CorruptCheckpointError(
            "The module's graph has no input for observations.", where=where
        )
    if unknown := {step.op for step in graph.steps} - OPS.keys():
        raise CheckpointError(
            f"The module has unknown operations: {', '.join(sorted(unknown))}.",
            where=where,
            fix="Use the version of rllib-compat that wrote it, or a newer one.",
        )
    assert isinstance(policy.weights, dict)
    arrays = {_canonical(k): np.asarray(v) for k, v in policy.weights.items() if _is_net(k)}
    rest = {k: v for k, v in model.items() if k not in ("graph", "shapes")}
    unused = tuple(name for name in policy.weights if not _is_net(name))
    optimizers: tuple[Group, ...] = WHOLE
    if family := _MODULES[cls]:
        optimizers = _family(family).optimizers_of(arrays, unused)
    network = Network(
        kind="converted",
        summary=f"converted before: {len(graph.steps)} steps, {len(arrays)} arrays",
        scheme="own",
        graph=graph,
        arrays=arrays,
        target=own_module(f"{_PACKAGE}:{cls}", graph, arrays, **rest),
        names=tuple(Move(own_name(name), name) for name in arrays),
        unused=unused,
        optimizers=optimizers,
    )
    return Reading(network)


def _of_new_ddpg(policy: PolicyState, model: Mapping[str, Any]) -> Mapping[str, Any]:
    """The graph of a new module of DDPG, which is given only the sizes of its layers.

    Raises:
        CheckpointError: They are not there, or no network has them.
    """
    where = f"policies.{policy.policy_id}"
    seen, actions = policy.observation_space, policy.action_space
    if seen is None or not isinstance(actions, Box):
        raise CorruptCheckpointError("The module's spaces are not those of DDPG.", where=where)
    try:
        settings = ModelSettings.of_module(model, "DDPG")
        new = draw_network(settings, seen, actions, np.random.default_rng(0))
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptCheckpointError(
            f"The module's settings are damaged ({error!r}).", where=where
        ) from error
    return new.target.model_config


def _is_net(name: str) -> bool:
    return name.startswith((OWN_PREFIX, OWN_TARGET_PREFIX))


def _canonical(name: str) -> str:
    if name.startswith(OWN_TARGET_PREFIX):
        return TARGET_PREFIX + name.removeprefix(OWN_TARGET_PREFIX)
    return name.removeprefix(OWN_PREFIX)


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

#: The readers that `registry` names, where they are not `read` of the family's own file.
_ELSEWHERE = {
    "appo": "actor_critic:read_appo",
    "bc": "actor_critic:read_bc",
    "marwil": "actor_critic:read",
}


def read(policy: PolicyState, settings: ModelSettings, model: CustomModel | None = None) -> Reading:
    """Finds the network of a policy; neither policy nor config is changed.

    Returns:
        The network with its arrays, what was noticed on the way, and what the weights held of the
        policy's state.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        NotConvertibleError: The Ray never saved some layers of the policy.
        MissingInformationError: A size, or the module of a custom model, has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    try:
        return _read(policy, settings, model)
    except _CONTRADICTIONS as error:
        raise refusals.contradictory(error, where_of(policy)) from error


def _read(policy: PolicyState, settings: ModelSettings, model: CustomModel | None) -> Reading:
    if is_own(policy):
        return read_own(policy)
    known = registry.ALGORITHMS.get(settings.algorithm)
    if custom.is_custom(policy, settings) or (model is not None and model.everywhere):
        old = _without_its_model(policy, settings) if known and known.reader == "ddpg" else None
        return custom.read(policy, settings, model) if model or old is None else old
    if known is None or not known.reader:
        where = f"policies.{policy.policy_id}"
        raise refusals.not_yet(f"the algorithm {settings.algorithm}", where)
    reading = reader(known.reader)(policy, settings)
    if isinstance(reading.network, Network) and _preprocessed(reading.network, settings):
        reading = reading.noting(*scaling_findings(policy, settings))
    return reading


def reader(name: str) -> Reader:
    """What reads policies of an algorithm, by the name that its row in `registry` has for it."""
    family, _, function = _ELSEWHERE.get(name, f"{name}:read").partition(":")
    found: Reader = getattr(_family(family), function)
    return found


def drawer(algorithm: str) -> Drawer | None:
    """What draws the arrays of an algorithm's new policies, in its family; None: nothing does."""
    name = registry.of(algorithm).reader
    family = _ELSEWHERE.get(name, name).partition(":")[0]
    return getattr(_family(family), "draw", None) if family else None


def draw_policy(
    settings: ModelSettings, observations: Space, actions: Space, rng: np.random.Generator
) -> PolicyState:
    """A new policy, as that Ray's torch policy was: its arrays by the names and shapes they had.

    Flattened observations have their `original_space`.

    Raises:
        ConfigError: The old Ray refused to build the network, too.
    """
    arrays, draw = Arrays(rng), drawer(settings.algorithm)
    assert draw is not None, f"no new networks of {settings.algorithm}"
    draw(arrays, settings, observations, actions)
    return PolicyState(
        "new", dict(arrays.drawn), observation_space=observations, action_space=actions
    )


def draw_network(
    settings: ModelSettings, observations: Space, actions: Space, rng: np.random.Generator
) -> Network:
    """The network of a new policy, read as one from a checkpoint is; see `draw_policy`."""
    return read(draw_policy(settings, observations, actions, rng), settings).known


def _family(name: str) -> Any:
    """A file of `families`, imported when it is needed: one checkpoint has not all of them."""
    return importlib.import_module(f"rllib_compat.networks.families.{name}")


def _without_its_model(policy: PolicyState, settings: ModelSettings) -> Reading | None:
    """Reads a policy of DDPG whose config names a custom model that it did not use.

    RLlib asked the catalog for a model of the observations alone; without `use_state_preprocessor`
    or layers of such a model, policy and critics were DDPG's own. None: the model may have counted.
    """
    try:
        reading = reader("ddpg")(policy, replace(settings, custom_model=None))
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
    return reading.noting(Finding.warning("custom-model", Verdict.NOTE, where, note, hint))


def _preprocessed(network: Network, settings: ModelSettings) -> bool:
    """Whether rollout workers with preprocessors fed it: RLModules had them until Ray 2.10."""
    early = settings.ray is not None and Version(settings.ray) < Version("2.11")
    return early or not network.scheme.startswith("rl_module")
