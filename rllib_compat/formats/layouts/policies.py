"""A policy's state, as all single-file and folder layouts hold it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.formats.array_text import decode_array
from rllib_compat.formats.layouts.configs import config_dict
from rllib_compat.formats.layouts.folder import as_mapping, with_text_keys
from rllib_compat.formats.spaces import from_ray_dict
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import (
    Array,
    ObservationFilter,
    PolicyState,
    RunningStat,
    Weights,
)
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.neutral.policy_id import PolicyId, PolicyIds
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.report import Finding
from rllib_compat.neutral.spaces import INTEGERS, Space

_PRINTED_CLASS = re.compile(r"<class '([\w.<>]{1,300})'>")

#: What QMIX's state has in any case.
_NETWORKS = {"model", "target_model"}

#: Connectors that keep an observation filter.
_FILTER_CONNECTORS = {
    "MeanStdObservationFilterAgentConnector",
    "ConcurrentMeanStdObservationFilterAgentConnector",
}

#: `PolicySpec` was a named tuple at first (Ray 1.4), in this order.
_SPEC_FIELDS = ("policy_class", "observation_space", "action_space", "config")


def read_policy_state(
    policy_id: PolicyId, state: object, where: str, findings: list[Finding]
) -> PolicyState:
    """Reads what `Policy.get_state()` returned, in any era's form.

    The forms: a flat vector (TensorFlow, 0.5 – 0.7); a list of weights and exploration values (the
    DQN family up to 0.8.0); a list of arrays (TF2); a dict of weights, with the optimizer's
    variables among them (0.8 – 1.3); a dict with the key `weights` (1.4 on); a dict of networks,
    each a dict of weights (QMIX). A policy without weights has None in any of these places.
    What is noticed goes to `findings`.

    Raises:
        CorruptCheckpointError: It is none of these.
    """
    if isinstance(state, np.ndarray):
        return PolicyState(policy_id, state)
    if state is None:  # a policy without weights: a heuristic, or a model that is kept elsewhere
        return PolicyState(policy_id, {})
    if isinstance(state, (list, tuple)) and state:
        # A list with a scalar among its arrays is of TF2 (SAC's temperature); one array and
        # numbers are the weights and the exploration of DQN.
        arrays = sum(isinstance(part, np.ndarray) for part in state)
        if arrays == len(state) or (arrays > 1 and _all_arrays(state)):
            return PolicyState(policy_id, [np.asarray(part) for part in state])
        inner = read_policy_state(policy_id, state[0], where, findings)
        return replace(inner, exploration=list(state[1:]))
    if not isinstance(state, Mapping):
        raise CorruptCheckpointError(
            f"A policy's state is {type(state).__name__}, not weights.", where=where
        )
    rest = with_text_keys(state)
    optimizer = rest.pop("_optimizer_variables", None)
    if rest.keys() >= _NETWORKS:
        return _read_networks(policy_id, rest, where)
    if "weights" not in rest:
        return PolicyState(policy_id, _read_weights(rest, where), optimizer=optimizer)
    spec = rest.pop("policy_spec", None)
    policy = PolicyState(
        policy_id,
        _read_weights(rest.pop("weights"), where),
        optimizer=optimizer,
        exploration=rest.pop("_exploration_state", None),
        kl_coeff=number(rest.pop("current_kl_coeff", None)),
        global_timestep=integer(rest.pop("global_timestep", None)),
        extra=rest,
    )
    return with_spec(policy, spec, where, findings)


def _read_networks(policy_id: PolicyId, state: Mapping[str, Any], where: str) -> PolicyState:
    """QMIX's networks; each weight is called `<network>.<name>`. It stored no optimizer."""
    networks = {name: part for name, part in state.items() if isinstance(part, Mapping)}
    weights = {
        f"{network}.{name}": array
        for network, part in networks.items()
        for name, array in named_arrays(part, f"{where} → {network}").items()
    }
    rest = {name: part for name, part in state.items() if name not in networks}
    return PolicyState(policy_id, weights, extra=rest)


def _read_weights(weights: object, where: str) -> Weights:
    if isinstance(weights, np.ndarray):
        return weights
    if weights is None:  # as above
        return {}
    if isinstance(weights, Mapping):
        named = with_text_keys(weights)
        inner = named.get("_state") if len(named) == 1 else None  # MADDPG's
        return named_arrays(named, where) if inner is None else _read_weights(inner, where)
    if isinstance(weights, (list, tuple)) and _all_arrays(weights):
        return [np.asarray(a) for a in weights]
    raise CorruptCheckpointError(f"Weights are {type(weights).__name__}.", where=where)


def _all_arrays(parts: Sequence[Any]) -> bool:
    """Whether all parts are arrays; a 0-d variable was stored as a number."""
    return all(isinstance(part, (np.ndarray, np.generic, int, float)) for part in parts)


def named_arrays(weights: Mapping[Any, Any], where: str) -> dict[str, Array]:
    """Weights by name.

    Raises:
        CorruptCheckpointError: One of them is no array.
    """
    named = with_text_keys(weights)
    for name, array in named.items():
        # A 0-d variable was stored as a numpy scalar.
        if not isinstance(array, (np.ndarray, np.generic, int, float)):
            raise CorruptCheckpointError(
                f"The weight {name[:100]!r} is {type(array).__name__}, not an array.", where=where
            )
        named[name] = np.asarray(array)
    return named


def with_spec(
    policy: PolicyState, spec: object, where: str, findings: list[Finding]
) -> PolicyState:
    """A policy with spaces, class and config of its `PolicySpec`, in any era's form."""
    fields = _read_spec(spec)
    return replace(
        policy,
        observation_space=_read_space(fields.get("observation_space")) or policy.observation_space,
        action_space=_read_space(fields.get("action_space")) or policy.action_space,
        policy_class=class_name(fields.get("policy_class")) or policy.policy_class,
        config=config_dict(fields.get("config"), where, findings) or policy.config,
    )


def _read_spec(spec: object) -> Mapping[str, Any]:
    if isinstance(spec, Mapping):
        return spec
    if isinstance(spec, StandIn):
        state = spec.state[1] if isinstance(spec.state, tuple) else spec.state
        if isinstance(state, Mapping):
            return state
        return dict(zip(_SPEC_FIELDS, spec.args, strict=False)) | spec.kwargs
    if isinstance(spec, (list, tuple)):
        return dict(zip(_SPEC_FIELDS, spec, strict=False))
    return {}


def _read_space(space: object) -> Space | None:
    # The space that the user's env had, if a preprocessor flattened it.
    space = getattr(space, "original_space", None) or space
    if isinstance(space, Mapping):
        return from_ray_dict(space)
    return space if isinstance(space, Space) else None


def class_name(value: object) -> str | None:
    """The dotted name of a class, in whatever form a file has it."""
    if isinstance(value, GlobalRef):
        return value.qualified
    if isinstance(value, StandIn):  # TensorFlow policies were made at run time, and stored by value
        return value.class_name or value.qualified
    if not isinstance(value, str):
        return None
    printed = _PRINTED_CLASS.fullmatch(value)  # in params.json
    return printed[1] if printed else value


def network_class(module: object, catalog: object) -> str | None:
    """The class that says what an RLModule's layers are: somebody's own catalog, or the module's.

    Either may be stored by its name, or by value where a program's main module defined it.
    """
    own = class_name(catalog)
    is_rays = own is None or own.startswith(("ray.rllib.", "rllib_compat."))
    return class_name(module) if is_rays else own


def text(value: object) -> str | None:
    """Text, or None of anything else."""
    return value if isinstance(value, str) else None


def number(value: object) -> float | None:
    """A real number, or None where it is none, or one that no honest file has."""
    if isinstance(value, (float, np.floating)):
        return float(value)
    count = integer(value)
    return None if count is None else float(count)


def integer(value: object) -> int | None:
    """A whole number, or None where it is none, or one that no honest file has."""
    if isinstance(value, (int, np.integer)) and -_MOST < value < _MOST:
        return int(value)
    return None


_MOST = 1 << 63


def with_filters(
    policies: Mapping[str, PolicyState], ids: PolicyIds, filters: object
) -> dict[str, PolicyState]:
    """The policies with their observation filters."""
    made = dict(policies)
    for found, observation_filter in as_mapping(filters).items():
        policy = made.get(ids.get(found) or "")
        if policy is not None and isinstance(observation_filter, ObservationFilter):
            made[policy.policy_id] = replace(policy, observation_filter=observation_filter)
    return made


def read_filter(
    state: Mapping[str, Any], budget: Budget, where: str, fix: str
) -> ObservationFilter:
    """A filter of the state of its connector, in the words of either API stack.

    Raises:
        CorruptCheckpointError: The state is damaged.
    """
    try:
        stats = tuple(
            RunningStat(
                int(stat["num_pushes"]),
                decode_array(stat["mean_array"], budget),
                # What Ray 2.40 called the sum of squared deviations is `std_array` elsewhere.
                decode_array(stat.get("sum_sq_diff_array", stat.get("std_array")), budget),
            )
            for stat in state.get("running_stats") or ()
        )
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CorruptCheckpointError(
            f"A filter's statistics are damaged: {error}.", where=where, fix=fix
        ) from error
    return ObservationFilter(
        "MeanStdFilter",
        bool(state.get("de_mean_to_zero", state.get("demean", True))),
        bool(state.get("de_std_to_one", state.get("destd", True))),
        number(state.get("clip_by_value", state.get("clip"))),
        stats,
        # Of our filters alone; another's files may say anything.
        integers=kind if (kind := state.get("integers")) in INTEGERS else None,
    )


def with_connector_filter(policy: PolicyState, budget: Budget, where: str) -> PolicyState:
    """A policy with the observation filter that its own file has among its connectors (Ray 2.3 on).

    Raises:
        CorruptCheckpointError: The filter's state is damaged.
    """
    match as_mapping(policy.extra.get("connector_configs")).get("agent"):
        case (_, (*_,) as connectors):
            pass
        case _:
            return policy
    for connector in connectors:
        match connector:
            case (str(name), dict(state)) if name in _FILTER_CONNECTORS:
                where, fix = f"{where} → connector_configs", "Copy the policy's folder again."
                return replace(policy, observation_filter=read_filter(state, budget, where, fix))
    return policy
