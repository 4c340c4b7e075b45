"""Names for the arrays of SAC's networks that were stored without any.

Ray 0.7 stored one flat vector, Ray 1.x a TF2 policy as a list. Both are in the order in which the
variables were made, and get the names that TensorFlow had for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array
from rllib_compat.networks.named import where_of
from rllib_compat.networks.names.stacks import CRITIC, POLICY, TWIN
from rllib_compat.networks.names.unnamed import Rows, cut, dense_rows, total
from rllib_compat.networks.optimizers.groups import ALPHA
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState

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
            model[new] = model[old]  # beside it may stand the default of a later Ray
    return ModelSettings.from_config({"model": {**_DEFAULTS, **model}}, {})


def hiddens_of(settings: ModelSettings, stack: str) -> tuple[int, ...]:
    """The hidden sizes that the config tells of a stack."""
    hiddens = model_of(settings, stack).hiddens
    assert hiddens is not None  # they have a default
    return hiddens


def name_arrays(policy: PolicyState, settings: ModelSettings) -> tuple[str, dict[str, Array]]:
    """Names the arrays of a policy.

    Returns:
        `list` or `vector`, and the arrays.

    Raises:
        NotYetError: Their order is not known.
        MissingInformationError: A space has to be given.
        CheckpointError: They do not fit the config.
    """
    if isinstance(policy.weights, list):
        return "list", _name_list(policy.weights, settings, where_of(policy))
    return "vector", _name_vector(policy, settings)


def _name_list(weights: list[Array], settings: ModelSettings, where: str) -> dict[str, Array]:
    """Names the arrays of a TF2 policy (Ray 1.x, `framework="tf2"`); targets are not stored."""
    dimensions = {"kernel": 2, "bias": 1, ALPHA: 0}
    for models, shared_value in ((True, False), (False, True), (False, False)):
        given = _keras_names(settings, models=models, shared_value=shared_value)
        wanted = [dimensions[name.rpartition("/")[2]] for name in given]
        if wanted == [np.ndim(array) for array in weights]:
            return {_numbered(given, i): np.asarray(a) for i, a in enumerate(weights)}
    policy, critic = (list(hiddens_of(settings, stack)) for stack in (POLICY, CRITIC))
    network = f"SAC network with hidden layers {policy} and {critic}"
    raise refusals.no_fit(f"The list of {len(weights)} arrays", network, where)


def _keras_names(settings: ModelSettings, *, models: bool, shared_value: bool) -> list[str]:
    """The names of an online network's variables.

    Args:
        settings: What the config says.
        models: Whether each stack is a model of the catalog (Ray 1.3 and later).
        shared_value: Whether the shared model has a value function (Ray 0.8.5 – 1.2).
    """
    names = ["value_out"] if shared_value else []
    for stack in (POLICY, *_critics(settings)):
        count = len(hiddens_of(settings, stack))
        if models:
            names += [*(f"fc_{i + 1}" for i in range(count)), "fc_out", "value_out"]
        elif stack == POLICY:
            names += [
                *(f"sequential/action_{i + 1}" for i in range(count)),
                "sequential/action_out",
            ]
        else:
            names += [*layers_of(stack, count, 0)]
    return [f"{name}/{part}" for name in names for part in ("kernel", "bias")] + [ALPHA]


def _critics(settings: ModelSettings) -> tuple[str, ...]:
    return (CRITIC, TWIN) if settings.config.get("twin_q", True) else (CRITIC,)


def layers_of(stack: str, count: int, copy: int) -> list[str]:
    """The layers of a stack of Ray 0.7: the online network's (`copy` 0) or its target's (1)."""
    name = "action" if stack == POLICY else stack
    scope = f"sequential_{copy}" if copy else "sequential"
    hidden = [f"{scope}/{name}_hidden_{i}" for i in range(count)]
    return [*hidden, f"{scope}/{name}_out"]


def _numbered(given: Sequence[str], index: int) -> str:
    """A name, counted up as keras does where it comes again (`fc_1`, `fc_1_1`)."""
    layer, _, part = given[index].rpartition("/")
    before = list(given[:index]).count(given[index])
    return f"{layer}_{before}/{part}" if layer and before else given[index]


def _name_vector(policy: PolicyState, settings: ModelSettings) -> dict[str, Array]:
    """Cuts the flat vector of Ray 0.7: online networks, temperature, and the critics' targets."""
    vector, where = np.asarray(policy.weights), where_of(policy)
    if policy.observation_space is None or policy.action_space is None:
        raise refusals.needed(
            f"The weights are one vector of {vector.size} numbers without names; the sizes of "
            "observations and actions are needed to cut it.",
            "both",
            where,
        )
    if settings.config.get("use_state_preprocessor"):
        raise refusals.not_yet("a vector of a SAC policy with use_state_preprocessor", where)
    seen, actions = policy.observation_space.flat_size(), policy.action_space.flat_size()
    # The policy gave means, and a triangle of deviations of which the diagonal counts.
    outputs = actions + actions * (actions + 1) // 2
    sizes = {POLICY: (seen, *hiddens_of(settings, POLICY), outputs)}
    critics = _critics(settings)
    sizes |= {critic: (seen + actions, *hiddens_of(settings, CRITIC), 1) for critic in critics}
    rows: Rows = []
    for stack, copy in [*((stack, 0) for stack in sizes), *((critic, 1) for critic in critics)]:
        if copy and stack == CRITIC:
            rows.append((ALPHA, ()))
        names = layers_of(stack, len(sizes[stack]) - 2, copy)
        rows += [(name.replace(".", "/"), shape) for name, shape in dense_rows(names, sizes[stack])]
    if total(rows) != vector.size:
        raise refusals.no_fit(
            f"The vector of {vector.size} numbers",
            f"SAC policy of sizes {sizes[POLICY]} with critics of {sizes[CRITIC]}, which has "
            f"{total(rows)}",
            where,
        )
    return cut(vector, rows)
