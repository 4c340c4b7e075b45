"""Finds the arrays of a SAC or CQL policy: named, in a list, or in one flat vector."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import Table, to_canonical
from rllib_compat.networks.names import sac as names
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.stacks import CRITIC, POLICY, TWIN
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError, NotYetError

#: `MODEL_DEFAULTS` as SAC overrides them (`DEFAULT_CONFIG` of every Ray).
_DEFAULTS = {
    "fcnet_hiddens": [256, 256],
    "fcnet_activation": "relu",
    "post_fcnet_activation": None,
}

#: Where the models are told, oldest key first.
_MODEL_KEYS = {
    POLICY: ("policy_model", "policy_model_config"),
    CRITIC: ("Q_model", "q_model", "q_model_config"),
}


@dataclass(frozen=True)
class Found:
    """The arrays of a policy, named.

    Attributes:
        arrays: By canonical name.
        table: The names they had.
        scheme: What kind of names that were.
        scalars: The numbers among them.
        unused: The names of arrays that nothing depends on.
        softplus: Whether the policy's outputs are those of Ray 0.7 and 0.8.0.
        old: Whether they are from before Ray 1.3.
    """

    arrays: Mapping[str, Array]
    table: Table
    scheme: str
    scalars: Mapping[str, float]
    unused: tuple[str, ...]
    softplus: bool
    old: bool


def find(policy: PolicyState, settings: ModelSettings, where: str) -> Found:
    """Names the arrays of a policy.

    Raises:
        NotYetError: Arrays belong to no network that is known.
        MissingInformationError: A size has to be given to cut a vector.
        CheckpointError: The config and unnamed arrays contradict each other.
    """
    scheme, weights = "keras", policy.weights
    if isinstance(weights, list):
        scheme, weights = "list", _name_list(weights, settings, where)
    elif not isinstance(weights, dict):
        scheme, weights = "vector", _name_vector(np.asarray(weights), policy, settings, where)
    named = {_strip(policy.old_id, name): np.asarray(a) for name, a in weights.items()}
    unused: list[str] = []
    if any(name.startswith("pi_encoder.") for name in named):
        scheme, table = "rl_module", names.rl_module(named)
        named = {k: v for k, v in named.items() if not k.endswith(names.CONSTANT)}
    elif any(name.startswith("action_model.") for name in named):
        scheme, table = "torch", names.TORCH
        unused = names.unused_torch(named)
    else:
        table, unused = names.keras(list(named))
    unused += [name for name in named if names.is_scalar(name, names.MULTIPLIER)]
    scalars, arrays = take_scalars({k: v for k, v in named.items() if k not in unused})
    arrays, left = to_canonical(table, arrays)
    if left or f"{POLICY}.out.kernel" not in arrays:
        raise NotYetError(
            f"Not yet: {len(left)} of the {len(named)} arrays belong to no fully connected SAC "
            f"network, for example {left[0] if left else 'none'!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    softplus = any("/action_hidden_" in name for name in named)
    old = any("sequential" in name or ".action_" in name for name in named)
    return Found(arrays, table, scheme, scalars, tuple(unused), softplus, old)


def _strip(policy_id: str, name: str) -> str:
    """Takes off TensorFlow's scope and output number (`default_policy/log_alpha:0`)."""
    return name.removeprefix(f"{policy_id}/").removesuffix(":0")


def take_scalars(named: Mapping[str, Array]) -> tuple[dict[str, float], dict[str, Array]]:
    """Splits off the temperature; a second one is a target model's, which nothing used."""
    scalars: dict[str, float] = {}
    rest = {}
    for name, array in named.items():
        for scalar in (names.LOG_ALPHA, names.TARGET_ENTROPY):
            if names.is_scalar(name, scalar):
                scalars.setdefault(scalar, float(array.reshape(())))
                break
        else:
            rest[name] = array
    return scalars, rest


def _name_list(weights: list[Array], settings: ModelSettings, where: str) -> dict[str, Array]:
    """Names the arrays of a TF2 policy (Ray 1.x, `framework="tf2"`); targets are not stored."""
    policy, critic = (hiddens_of(settings, stack) for stack in (POLICY, CRITIC))
    twin = bool(settings.config.get("twin_q", True))
    for models, shared_value in ((True, False), (False, True), (False, False)):
        given = names.keras_names(
            policy, critic, twin=twin, models=models, shared_value=shared_value
        )
        parts = {"kernel": 2, "bias": 1, names.LOG_ALPHA: 0}
        dimensions = [parts[name.rpartition("/")[2]] for name in given]
        if dimensions == [np.ndim(array) for array in weights]:
            return {_numbered(given, i): array for i, array in enumerate(weights)}
    raise CheckpointError(
        f"The {len(weights)} unnamed arrays are no SAC network with hidden layers {list(policy)} "
        f"and {list(critic)}.",
        where=where,
        fix="Check that the config (params.json) belongs to this checkpoint.",
    )


def _numbered(given: list[str], index: int) -> str:
    """A name, counted up as keras does where it comes again (`fc_1`, `fc_1_1`)."""
    layer, _, part = given[index].rpartition("/")
    before = given[:index].count(given[index])
    return f"{layer}_{before}/{part}" if layer and before else given[index]


def _name_vector(
    vector: Array, policy: PolicyState, settings: ModelSettings, where: str
) -> dict[str, Array]:
    """Cuts the flat vector of Ray 0.7: online networks, temperature, and the critics' targets."""
    if policy.observation_space is None or policy.action_space is None:
        raise MissingInformationError(
            f"The weights are one vector of {vector.size} numbers without names; the sizes of "
            "observations and actions are needed to cut it.",
            where=where,
            fix="Give --observation-space 'Box(3,)' and --action-space 'Box(-2, 2, (1,))', or "
            "--env Pendulum-v1 (Python: observation_space=, action_space=, env=).",
        )
    if settings.config.get("use_state_preprocessor"):
        raise NotYetError(
            "Not yet: a vector of a SAC policy with use_state_preprocessor.",
            where=where,
            fix="`--to msgpack` keeps the vector.",
        )
    seen, actions = policy.observation_space.flat_size(), policy.action_space.flat_size()
    sizes = {POLICY: (seen, *hiddens_of(settings, POLICY), actions + actions * (actions + 1) // 2)}
    critics = (CRITIC, TWIN) if settings.config.get("twin_q", True) else (CRITIC,)
    sizes |= {critic: (seen + actions, *hiddens_of(settings, CRITIC), 1) for critic in critics}
    rows: list[tuple[str, tuple[int, ...]]] = []
    for stack in sizes:
        rows += names.vector_rows(stack, sizes[stack], 0)
    rows.append((names.LOG_ALPHA, ()))
    for stack in critics:
        rows += names.vector_rows(stack, sizes[stack], 1)
    total = sum(math.prod(shape) for _, shape in rows)
    if total != vector.size:
        raise CheckpointError(
            f"The vector has {vector.size} numbers, a SAC policy of sizes {sizes[POLICY]} with "
            f"critics of {sizes[CRITIC]} has {total}.",
            where=where,
            fix="Check that the config (params.json) and the spaces belong to this checkpoint.",
        )
    cuts = np.cumsum([math.prod(shape) for _, shape in rows])[:-1]
    pieces = np.split(vector, cuts)
    return {name: a.reshape(shape) for (name, shape), a in zip(rows, pieces, strict=True)}


def hiddens_of(settings: ModelSettings, stack: str) -> tuple[int, ...]:
    """The hidden sizes that the config tells of a stack."""
    hiddens = model_of(settings, stack).hiddens
    assert hiddens is not None  # they have a default
    return hiddens


def model_of(settings: ModelSettings, stack: str) -> ModelSettings:
    """What the config says of the policy's or the critics' own model."""
    model: dict[str, Any] = {}
    for key in _MODEL_KEYS[POLICY if stack == POLICY else CRITIC]:
        given = settings.config.get(key)
        model |= given if isinstance(given, Mapping) else {}
    # Ray 0.7 and 0.8.0 had names of their own; later Rays mark them as gone with -1.
    for old, new in (
        ("hidden_layer_sizes", "fcnet_hiddens"),
        ("hidden_activation", "fcnet_activation"),
    ):
        if model.get(old, -1) != -1:
            model.setdefault(new, model[old])
    return ModelSettings.from_config({"model": {**_DEFAULTS, **model}}, {})
