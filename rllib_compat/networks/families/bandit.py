"""Reads the linear bandits: LinUCB and LinTS (`contrib/bandits` of Ray 0.8 – 1.x, `bandit` since).

Their network is a posterior: for each arm (or for all items together) a linear regression with the
precision of its weights. It becomes `networks.modules.bandit`, which learns on from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import Move
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.network import Reading, Target
from rllib_compat.networks.observations import original_space
from rllib_compat.networks.refusals import (
    contradiction,
    missing,
    needed,
    not_yet,
    other_config,
    other_space,
    unknown_arrays,
)
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.neutral.report import Verdict
from rllib_compat.neutral.spaces import Box, DictSpace, Discrete, Space

ARMS = "arms"
PARTS = ("precision", "covariance", "f", "theta")
#: The names in the new module, which has the same arrays.
TABLE = tuple(Move(part, f"{ARMS}.{part}") for part in PARTS)

#: `arms` of `DiscreteLinearModel`, `arm` of `ParametricLinearModel`.
_TORCH = re.compile(rf"(?:arms\.(?P<arm>\d+)|arm)\.(?P<part>{'|'.join(PARTS)})")
#: The order in which `tf.Module` lists its variables: by the attributes' names. That of the mean is
#: met first in the attribute `dist`.
_TENSORFLOW = ("covariance", "theta", "f", "precision")


def posterior(policy: PolicyState) -> dict[str, Array]:
    """The arrays of a policy by canonical name.

    Raises:
        NotYetError: They are of another network.
        CheckpointError: Some are missing, or of different shapes.
    """
    if isinstance(policy.weights, dict):
        if policy.weights.keys() == set(PARTS):  # of a module
            stacks = {part: list(np.atleast_1d(policy.weights[part])) for part in PARTS}
        else:
            stacks = _of_names(policy, policy.weights)
    else:
        stacks = _of_list(policy, policy.weights)
    shapes = {part: {array.shape for array in stacks[part]} for part in PARTS}
    for part, found in shapes.items():
        if len(found) > 1:
            listed = " and ".join(map(str, sorted(found)))
            raise contradiction(f"The arms have a {part} of the shapes {listed}.", where_of(policy))
    return {f"{ARMS}.{part}": np.stack(stacks[part]) for part in PARTS}


def _of_names(policy: PolicyState, arrays: Mapping[str, Array]) -> dict[str, list[Array]]:
    matches = {name: match for name in arrays if (match := _TORCH.fullmatch(name))}
    found = {(m["part"], int(m["arm"] or 0)): arrays[name] for name, m in matches.items()}
    if left := [name for name in arrays if name not in matches]:
        raise unknown_arrays(left, arrays, "linear bandit", where_of(policy))
    arms = range(1 + max(arm for _, arm in found))
    if len(found) != len(arms) * len(PARTS):
        lacking = [f"{part} of arm {arm}" for part, arm in _first_lacking(found)]
        raise missing(lacking, where_of(policy))
    return {part: [found[part, arm] for arm in arms] for part in PARTS}


def _first_lacking(found: Mapping[tuple[str, int], Array]) -> list[tuple[str, int]]:
    """What the first arm lacks that is not whole; numbers of arms in a file may be anything."""
    for arm in range(len(found) + 1):
        if lacking := [(part, arm) for part in PARTS if (part, arm) not in found]:
            return lacking
    return []


def _of_list(policy: PolicyState, arrays: Sequence[Array] | Array) -> dict[str, list[Array]]:
    if isinstance(arrays, np.ndarray) or not arrays or len(arrays) % len(PARTS):
        raise contradiction(
            f"{len(arrays)} arrays without names are not {len(PARTS)} of each arm.",
            where_of(policy),
        )
    step = len(PARTS)
    return {part: list(arrays[index::step]) for index, part in enumerate(_TENSORFLOW)}


MODULE = "rllib_compat.modules:LinearBanditModule"
#: The part of an observation that has a row for each item.
ITEM = "item"
#: How much of the bonus counts: of arms, and of items.
BONUS = (1.0, 0.3)
#: What Ray's TensorFlow policy did (`scores += scores + ucbs`).
_TWICE = (
    "that Ray's TensorFlow policy counted twice what it expected, beside its bonus; so does the "
    "module"
)
#: How far float32 may leave what was inverted from its inverse, by the sizes of both.
_NEAR = 1e-3
#: How near the config's number has to be to that of the posterior, relative to it.
_NEAR_ALPHA = 0.01


#: Ways to explore that are no bandit's, with which arms were chosen by what is expected alone.
BY_EXPECTATION = ("Random", "SoftQ", "EpsilonGreedy", "StochasticSampling")
#: What a module is given for them.
_EXPECTING = ("epsilon", "soft_q_temperature")


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the posterior of a policy.

    Raises:
        NotYetError: It is an old policy that explored in another way than a bandit's.
    """
    asked = settings.config.get("exploration_config")
    kind = asked.get("type") if isinstance(asked, Mapping) else None
    if not policy.is_module and isinstance(kind, str) and kind.split(".")[-1] in BY_EXPECTATION:
        raise not_yet(f"a bandit that explored by {kind}", where_of(policy))
    expecting = _expecting(policy)
    arrays = posterior(policy)
    named = Named(policy, settings, arrays, "posterior", TABLE)
    alpha = _alpha(named)
    items = _table(named)
    named_arrays = isinstance(policy.weights, dict)
    if items is None and named_arrays and "arm.theta" in policy.weights:  # it chose items
        raise needed(
            f"It chooses items of a table. The observation space is needed: a Dict with {ITEM!r}.",
            "parts",
            named.where,
        )
    sampling = settings.algorithm == "BanditLinTS"
    times = _times(policy, plain=sampling or items is not None)
    bonus = 0.0 if sampling or expecting else BONUS[items is not None]
    graph = _graph(named, items, times, bonus)
    options = {"alpha": alpha, "lambda_": settings.model.get("lambda_"), "sampling": sampling}
    options |= expecting
    options |= {} if times == 1.0 else {"times": times}
    if sampling:
        options["drawn_from"] = _drawn_from(policy)
    count, size = arrays[f"{ARMS}.theta"].shape
    what = f"{count} arms" if items is None else f"{items[0].shape[0]} items"
    summary = f"{what} of {size} numbers, {'Thompson sampling' if sampling else 'LinUCB'}"
    network = named.network("linear bandit", summary, graph, Target(MODULE, options, TABLE))
    if items is not None:
        network = replace(network, space=original_space(policy.observation_space))
    notes = [] if times == 1.0 else [named.note(_TWICE)]
    regret = named.note(
        "checkpoints do not hold the cumulative regret: it starts from zero",
        code="regret",
        verdict=Verdict.RESET,
    )
    return named.reading(network, regret, *notes)


def _times(policy: PolicyState, *, plain: bool) -> float:
    """How often what is expected counts beside the bonus; once, where it is plain."""
    if policy.is_module:
        return float(policy.extra.get("module_config", {}).get("times", 1.0))
    return 1.0 if plain or isinstance(policy.weights, dict) else 2.0


def _expecting(policy: PolicyState) -> dict[str, Any]:
    """What a module explores with in the place of a bandit's own way, if anything."""
    config = policy.extra.get("module_config", {})
    return {name: config[name] for name in _EXPECTING if config.get(name) is not None}


def _drawn_from(policy: PolicyState) -> str:
    """Whose covariance weights are drawn with: in every Ray the prior's, which it made once."""
    if policy.is_module:
        return str(policy.extra.get("module_config", {}).get("drawn_from", "posterior"))
    return "prior"


def _table(named: Named) -> tuple[Box, int] | None:
    """The table of items in an observation, and where it begins; None: arms see all of it.

    Raises:
        NotYetError: There are parts beside it that are no numbers.
    """
    space = original_space(named.policy.observation_space)
    if not isinstance(space, DictSpace) or ITEM not in space.spaces:
        return None
    if odd := [name for name, part in space.spaces.items() if not isinstance(part, Box)]:
        raise not_yet(f"a bandit that chooses items and observes {odd[0]!r}, too", named.where)
    start = 0
    for name, part in space.spaces.items():
        if name == ITEM:
            break
        start += part.flat_size()
    table = space.spaces[ITEM]
    assert isinstance(table, Box)
    if len(table.shape) != 2:
        raise contradiction(f"{ITEM!r} is no table: {table}.", named.where)
    return table, start


def _graph(named: Named, items: tuple[Box, int] | None, times: float, bonus: float) -> Graph:
    count, size = named.arrays[f"{ARMS}.theta"].shape
    build = Builder()
    actions: Space | None = named.policy.action_space
    if items is None:
        named.require_inputs((size,))
        if isinstance(actions, Discrete) and actions.n != count:
            raise other_space("action", actions, count, actions.n, named.where)
        takes, inputs = "obs", (size,)
    else:
        table, start = items
        rows, width = table.shape
        if (count, width) != (1, size):
            raise contradiction(
                f"The posterior is of {count} times {size} numbers, an item has {width}.",
                named.where,
            )
        stop = start + rows * width
        takes = build.add("cut", "items", "obs", start=start, stop=stop, shape=[rows, width])
        space = original_space(named.policy.observation_space)
        assert space is not None
        inputs = (space.flat_size(),)
    options = {"bonus": bonus, "times": times, "items": items is not None}
    build.add("linear_bandit", ARMS, takes, **options)
    return Graph({"obs": inputs}, tuple(build.steps), {"q_values": ARMS})


def _alpha(named: Named) -> float:
    """By what covariances are multiplied: what the config says, if the posterior says the same.

    Raises:
        CheckpointError: It is no posterior, or the config says another number.
    """
    found = _require_posterior(named)
    config, extra = named.settings.config, named.policy.extra.get("module_config", {})
    places = (named.settings.model, config, extra)
    said = next((place["alpha"] for place in places if place.get("alpha") is not None), None)
    if said is None:
        return 1.0 if abs(found - 1.0) <= _NEAR_ALPHA else found
    if not isinstance(said, (int, float)) or abs(said - found) > _NEAR_ALPHA * found:
        raise other_config("model.alpha", round(found, 4), said, named.where)
    return float(said)


def _require_posterior(named: Named) -> float:
    """Makes sure that the parts belong together; gives by what covariances were multiplied.

    Raises:
        CorruptCheckpointError: They do not.
    """
    parts = {name.removeprefix(f"{ARMS}."): array for name, array in named.arrays.items()}
    precision, covariance, f, theta = (parts[name].astype(float) for name in PARTS)
    shape = precision.shape
    square = len(shape) == 3 and shape[1] == shape[2] and covariance.shape == shape
    if not square or not (f.shape == theta.shape == shape[:2]):
        shapes = ", ".join(f"{name} {array.shape[1:]}" for name, array in parts.items())
        raise _damaged(f"the parts of an arm have the shapes {shapes}", named.where)
    for name, array in parts.items():
        if not np.isfinite(array).all():
            raise _damaged(f"{name} has numbers that are not finite", named.where)
    if not np.allclose(precision, precision.swapaxes(1, 2), rtol=_NEAR, atol=_NEAR):
        raise _damaged("a precision is not symmetric", named.where)
    if (np.linalg.eigvalsh(precision) <= 0).any():
        raise _damaged("a precision is not positive", named.where)
    unit = covariance @ precision
    alpha = float(np.median(np.diagonal(unit, axis1=1, axis2=2)))
    sizes = _size(covariance) * _size(precision)
    if alpha <= 0 or (_size(unit - alpha * np.eye(shape[1])) > _NEAR * sizes).any():
        raise _damaged("a covariance is not the inverse of its precision", named.where)
    mean, seen = theta[..., None], f[..., None]
    allowed = _NEAR * (_size(precision) * _size(mean) + _size(seen))
    if (_size(precision @ mean - seen) > allowed).any():
        raise _damaged("a mean is not what its precision makes of what was learned", named.where)
    return alpha


def _size(matrices: Array) -> Array:
    return np.asarray(np.abs(matrices).max((1, 2)))


def _damaged(what: str, where: str) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        f"The posterior is damaged: {what}.", where=where, fix="Try another checkpoint."
    )
