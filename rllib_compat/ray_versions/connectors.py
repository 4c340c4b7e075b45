"""Connector pipelines: of a runner, of a config, the spaces they remember, their filters' state.

Neither runners nor configs have public names for their pipelines (Ray 2.40 – 2.60).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from rllib_compat.ray_versions.types import AlgorithmConfig, ConnectorPipeline, EnvRunner


def env_to_module(env_runner: EnvRunner) -> Any:
    """A runner's pipeline from the environment's observations to the module's batch."""
    return env_runner._env_to_module


def module_to_env(env_runner: EnvRunner) -> Any:
    """A runner's pipeline from the module's outputs to the environment's actions."""
    return env_runner._module_to_env


def env_to_module_factory(config: AlgorithmConfig) -> Callable[..., Any] | None:
    """The function of a config that makes the user's env-to-module connectors."""
    return config._env_to_module_connector  # type: ignore[no-any-return]  # Ray has no types


def module_to_env_factory(config: AlgorithmConfig) -> Callable[..., Any] | None:
    """The function of a config that makes the user's module-to-env connectors."""
    return config._module_to_env_connector  # type: ignore[no-any-return]  # Ray has no types


def flatten_observations() -> type:
    """The class of the connector that makes flat vectors.

    In releases after 2.40 its name is the class with an argument: learners have it, too.
    """
    from ray.rllib.connectors import env_to_module

    found: Any = env_to_module.FlattenObservations
    return getattr(found, "func", found)  # type: ignore[no-any-return]  # Ray has no types


def needs_no_batch(connector: object) -> bool:
    """Whether a connector changes an episode's last observation, or modules, and no batch.

    Ours say so by an attribute of their class. A subclass of one may do anything.
    """
    from ray.rllib.connectors.env_to_module import MeanStdFilter

    kind = type(connector)
    return "needs_no_batch" in vars(kind) or kind in (flatten_observations(), MeanStdFilter)


def replaces_observations(connector: object) -> bool:
    """Whether a connector puts something else in the place of the environment's observation."""
    from ray.rllib.connectors.env_to_module import MeanStdFilter

    of_ray = isinstance(connector, (flatten_observations(), MeanStdFilter))
    return of_ray or getattr(connector, "replaces_observations", False)


def has_learner_connectors(config: AlgorithmConfig) -> bool:
    """Whether a user's connectors are between episodes and learners."""
    own = config._learner_connector is not None
    return own or not config.add_default_connectors_to_learner_pipeline


#: Ray's connectors that make batches of episodes, and nothing else.
_MAKERS = {
    "AddOneTsToEpisodesAndTruncate",
    "AddObservationsFromEpisodesToBatch",
    "AddColumnsFromEpisodesToTrainBatch",
    "AddTimeDimToBatchAndZeroPad",
    "AddStatesFromEpisodesToBatch",
    "BatchIndividualItems",
    "NumpyToTensor",
}


def only_makes_batches(pipeline: ConnectorPipeline, last: type) -> bool:
    """Whether a learner's pipeline is Ray's own for one agent, with a `last` connector behind."""
    *pieces, end = map(type, pipeline.connectors)
    rays = {kind.__name__ for kind in pieces if kind.__module__.startswith("ray.rllib.connectors.")}
    return end is last and len(rays) == len(pieces) and rays <= _MAKERS


def device_of_tensors(pipeline: ConnectorPipeline) -> Any:
    """The device that a learner's pipeline makes tensors on; None: the host."""
    from ray.rllib.connectors.common import NumpyToTensor

    return next(p._device for p in pipeline.connectors if isinstance(p, NumpyToTensor))


def make_tensors_on_host(pipeline: ConnectorPipeline) -> None:
    """Lets a learner's pipeline leave its batches on the host, whatever the learner computes on."""
    from ray.rllib.connectors.common import NumpyToTensor

    for piece in pipeline.connectors:
        if isinstance(piece, NumpyToTensor):
            piece._device = None


def make_connectors(factory: Callable[..., Any] | None, *arguments: object) -> list[Any]:
    """The connectors that a user's factory makes, as a list; none without a factory.

    Factories of Ray 2.40 take the environment only; later ones also the spaces, and those of the
    env-to-module pipeline the device. The signature decides, so that a factory runs once.
    """
    if factory is None:
        return []
    made = factory(*arguments) if _takes(factory, len(arguments)) else factory(arguments[0])
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function takes that many positional arguments."""
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return (
        inspect.Parameter.VAR_POSITIONAL in kinds
        or sum(kind in positional for kind in kinds) >= count
    )


# Where connectors keep the spaces of all agents, since they are made (Ray 2.40 – 2.60).
_TABLES = {"_action_space_struct": "action", "_input_obs_base_struct": "observation"}


def set_agent_spaces(env_runner: EnvRunner, tables: Mapping[str, Any], spaces: Any) -> None:
    """Makes a runner's connectors take agents' spaces from tables that may change.

    Args:
        env_runner: The runner.
        tables: The spaces by agent without their outer classes, as connectors want them, below
            "action" and "observation".
        spaces: The observation spaces themselves by agent. The first connector of Ray 2.60 asks
            for them.
    """
    import gymnasium

    for pipeline in (env_runner._env_to_module, env_runner._module_to_env):
        for connector in pipeline.connectors:
            for name, table in _TABLES.items():
                if isinstance(getattr(connector, name, None), dict):
                    setattr(connector, name, tables[table])
    first = env_runner._env_to_module.connectors[0]
    known = first._input_observation_space
    if isinstance(known, gymnasium.spaces.Dict) and known.spaces is not spaces:
        live = gymnasium.spaces.Dict(spaces)
        live.spaces = spaces
        first._input_observation_space = live


def observation_filter(env_runner: EnvRunner) -> Any:
    """The filter itself in a runner's pipeline, of one agent; None where it has none.

    The connector makes it when it is first used (Ray 2.40 – 2.60).
    """
    return observation_filters(env_runner).get(None)


def observation_filters(env_runner: EnvRunner) -> dict[Any, Any]:
    """The filters in a runner's pipeline, by what they are kept by: None for one agent."""
    connector = filter_connector(env_runner)
    if connector is None:
        return {}
    if connector._filters is None:
        connector._init_new_filters()
    for found in connector._filters.values():
        found.rs = found.running_stats  # its name until Ray 2.0
    return dict(connector._filters)


def filter_connector(env_runner: EnvRunner) -> Any:
    """The connector that filters observations in a runner's pipeline; None: there is none."""
    from ray.rllib.connectors.env_to_module import MeanStdFilter

    found = (c for c in env_runner._env_to_module.connectors if isinstance(c, MeanStdFilter))
    return next(found, None)


def merge_states_by_class() -> None:
    """Lets pipelines merge the states of each connector with its own.

    Ray's (2.40 – 2.60) count those that have a state, and give the first state to the first
    connector of all: a filter behind one that flattens was never merged.
    """
    from ray.rllib.connectors.connector_pipeline_v2 import ConnectorPipelineV2

    ConnectorPipelineV2.merge_states = _merge_states


def _merge_states(pipeline: ConnectorPipeline, states: list[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for state in states:
        for name, part in state.items():
            found.setdefault(name, []).append(part)
    by_class = {type(connector).__name__: connector for connector in pipeline.connectors}
    return {name: by_class[name].merge_states(parts) for name, parts in found.items()}


def filter_report(observed: Any) -> dict[str, list[dict[str, Any]]]:
    """All that a filter has seen since its `reset_buffer`, part by part, by a name of that time."""
    import tree

    parts = tree.flatten(observed.buffer)
    if not hasattr(parts[0], "report"):
        parts[0].report = uuid4().hex
    return {parts[0].report: [part.to_state() for part in parts]}


def count_report(
    observed: Any, report: Mapping[str, list[Any]], counted: dict[str, list[Any]]
) -> None:
    """Adds to a filter what another's `filter_report` has more than those counted by each name."""
    import tree
    from ray.rllib.utils.filter import RunningStat

    for name, states in report.items():
        parts = [RunningStat.from_state(state) for state in states]
        before = counted.get(name, [])
        if before and parts[0].num_pushes <= before[0].num_pushes:
            continue  # it was on its way when a newer one was asked for
        mine = tree.flatten(observed.running_stats)
        for own, other in zip(mine, parts, strict=True):
            _add(own, other, 1)
        for own, other in zip(mine, before, strict=False):
            _add(own, other, -1)
        counted[name] = parts


def _add(mine: Any, other: Any, sign: int) -> None:
    """Adds one running statistic to another, or takes it out again."""
    count, sums = sign * other.num_pushes, _name_of_sums(mine)
    both = mine.num_pushes + count
    if not (count and both):
        return
    apart, share = other.mean_array - mine.mean_array, count / both
    added = sign * getattr(other, sums) + apart**2 * mine.num_pushes * share
    setattr(mine, sums, (getattr(mine, sums) + added).clip(0.0))
    mine.mean_array = mine.mean_array + apart * share
    mine.num_pushes = both


def _name_of_sums(stat: object) -> str:
    """What a running statistic calls its sum of squared deviations.

    It was `std_array` until Ray 2.48 gave it its name.
    """
    return "sum_sq_diff_array" if hasattr(stat, "sum_sq_diff_array") else "std_array"


@contextmanager
def frozen_statistics(pipeline: ConnectorPipeline) -> Iterator[None]:
    """Keeps the filters of a pipeline from counting what passes in the block."""
    filters = [c for c in pipeline.connectors if getattr(c, "_update_stats", False)]
    for connector in filters:
        connector._update_stats = False
    try:
        yield
    finally:
        for connector in filters:
            connector._update_stats = True


def running_stat_state(count: int, mean: Any, m2: object) -> dict[str, Any]:
    """The state of a running statistic as the connector takes it, with summed squared deviations.

    Since Ray 2.48 it has what was seen since the last synchronisation, too: nothing here.
    """
    from ray.rllib.utils.filter import RunningStat

    stat = RunningStat(mean.shape)
    stat.num_pushes = count
    stat.mean_array[...] = mean
    getattr(stat, _name_of_sums(stat))[...] = m2
    state: dict[str, Any] = stat.to_state()
    return state
