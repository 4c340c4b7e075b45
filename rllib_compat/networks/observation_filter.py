"""A network with its observation filter in front.

If the installed Ray has no algorithm that trains a module further, no connector can hold the
filter either. The module then takes observations as the environment gives them, and computes the
same actions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.networks.families.dense import ACTOR_CRITIC
from rllib_compat.networks.families.q_head import MODULE as Q_MODULE
from rllib_compat.networks.families.q_head import SETTINGS as Q_SETTINGS
from rllib_compat.networks.graph import Graph, Step
from rllib_compat.networks.network import TARGET_PREFIX, Network, own_module
from rllib_compat.neutral.checkpoint import ObservationFilter

STEP = "filter"


def can_hold(network: Network, observation_filter: ObservationFilter | None) -> bool:
    """Whether the filter changes anything, and is one mean and one deviation for the whole."""
    stats = observation_filter.stats if observation_filter else []
    return len(stats) == 1 and stats[0].mean.size == int(np.prod(network.inputs))


def with_filter(network: Network, observation_filter: ObservationFilter) -> Network:
    """The network on observations that are not filtered yet: the statistics become constants."""
    (stat,) = observation_filter.stats
    steps = [Step("normalize", STEP, ("obs",), filter_settings(observation_filter))]
    for step in network.graph.steps:
        steps.append(replace(step, takes=tuple(STEP if t == "obs" else t for t in step.takes)))
    graph: Graph = replace(network.graph, steps=tuple(steps))
    arrays = {
        f"{STEP}.mean": np.asarray(stat.mean, np.float64).reshape(network.inputs),
        f"{STEP}.std": np.asarray(stat.std, np.float64).reshape(network.inputs),
        **network.arrays,
    }
    module, rest = _own(network)
    if module == Q_MODULE or any(name.startswith(TARGET_PREFIX) for name in arrays):
        # A target network takes observations as its own network does.
        both = {name: array for name, array in arrays.items() if name.startswith(f"{STEP}.")}
        arrays |= {TARGET_PREFIX + name: array for name, array in both.items()}
    return replace(
        network,
        summary=f"{network.summary}, observation filter",
        graph=graph,
        arrays=arrays,
        target=own_module(module, graph, arrays, **rest),
    )


def filter_settings(observation_filter: ObservationFilter) -> dict[str, Any]:
    """The settings of the operation `normalize` for a filter."""
    kind = observation_filter.integers
    return {
        "demean": observation_filter.demean,
        "destd": observation_filter.destd,
        "clip": observation_filter.clip,
        "epsilon": observation_filter.epsilon,
        "trained": False,
        **({} if kind is None else {"integers": kind}),
    }


def _own(network: Network) -> tuple[str, dict[str, Any]]:
    """The module of ours that takes a network, and its other options."""
    target = network.target
    if target.module is not None:
        return target.module, {
            k: v for k, v in target.model_config.items() if k not in ("graph", "shapes")
        }
    if "q_values" in network.graph.outputs:
        return Q_MODULE, {k: target.model_config[k] for k in Q_SETTINGS}
    return ACTOR_CRITIC, {}
