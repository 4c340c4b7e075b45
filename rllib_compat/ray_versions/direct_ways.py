"""Whether an env runner's steps need Ray's connectors, and how they go without.

They do not where the pieces of its pipelines are Ray's own, or change an observation alone, and
where what is observed and done is one array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions.episodes import callback_class, callbacks_of

#: The pieces of Ray's own pipelines, for one agent. Until Ray 2.41, there was no second one.
TO_MODULE = (
    "AddObservationsFromEpisodesToBatch",
    "AddTimeDimToBatchAndZeroPad",
    "AddStatesFromEpisodesToBatch",
    "BatchIndividualItems",
    "NumpyToTensor",
)
_TO_MODULE_AT_FIRST = (TO_MODULE[0], *TO_MODULE[2:])
TO_ENV = (
    "GetActions",
    "TensorToNumpy",
    "UnBatchToIndividualItems",
    "RemoveSingleTsTimeRankFromBatch",
    "NormalizeAndClipActions",
    "ListifyDataForVectorEnv",
)
#: What may stand before them: it changes an episode's last observation, or the module's noise.
_BEFORE = (
    *("LegacyObservations", "FlattenObservations", "FloatSpace", "MeanStdFilter"),
    *("PreviousSteps", "ParameterNoise"),
)
#: Spaces of which a batch is one array.
_ARRAYS = ("Box", "Discrete", "MultiBinary", "MultiDiscrete")


@frozen
class Way:
    """How the steps of an env runner go.

    Attributes:
        before: The connectors that change observations.
        rows: Cuts a batch of observations into rows.
        for_env: What the environment gets for actions that were drawn; None: what the module says,
            or these themselves.
        hears_steps: Whether a callback is called after each step.
    """

    before: tuple[Any, ...]
    rows: Callable[[Any], Any]
    for_env: Callable[[Any], Any] | None
    hears_steps: bool


def way_of(env_runner: Any) -> Way | None:
    """How the steps of an env runner go directly; None where only Ray's pipelines know it."""
    to_module = env_runner._env_to_module.connectors
    to_env = env_runner._module_to_env.connectors
    # Connectors may be changed at any time, modules and environments be made anew.
    found = [*to_module, *to_env, env_runner.module, env_runner.env]
    if not same(env_runner.__dict__.get("_way_of"), found):
        env_runner._way_of, env_runner._way = found, _find_way(env_runner, to_module, to_env)
    way: Way | None = env_runner._way
    return way


def same(known: list[Any] | None, found: list[Any]) -> bool:
    """Whether what was found is what was known: the same objects."""
    return known is not None and [*map(id, known)] == [*map(id, found)]


def _find_way(env_runner: Any, to_module: Any, to_env: Any) -> Way | None:
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from ray.rllib.utils.spaces.space_utils import unbatch

    module, env = env_runner.module, env_runner.env
    names = names_of(to_module)
    count = names.index(TO_MODULE[0]) if TO_MODULE[0] in names else len(names)
    before = tuple(to_module[:count])
    kinds = [type(s).__name__ for s in (env.single_observation_space, env.single_action_space)]
    if not (
        names[count:] in (TO_MODULE, _TO_MODULE_AT_FIRST)
        and set(names[:count]) <= set(_BEFORE)
        and names_of(to_env) == TO_ENV
        and isinstance(module, TorchRLModule)
        and kinds[1] in _ARRAYS
        and type(module.observation_space).__name__ in _ARRAYS
        and str(getattr(env_runner, "_device", "cpu")) == "cpu"  # Ray 2.40 knows no other
        and not env_runner.config.restart_failed_sub_environments
    ):
        return None
    return Way(
        before=before,
        rows=_as_it_is if kinds[0] in _ARRAYS else unbatch,
        for_env=_for_env(env.single_action_space, to_env[TO_ENV.index("NormalizeAndClipActions")]),
        hears_steps=_hears_steps(env_runner),
    )


def names_of(connectors: Any) -> tuple[str, ...]:
    """The connectors' names; what is neither Ray's nor ours may do anything, whatever its name."""
    return tuple(
        type(connector).__name__
        if type(connector).__module__.startswith(("ray.rllib.", "rllib_compat."))
        else "somebody's own"
        for connector in connectors
    )


def _for_env(space: Any, connector: Any) -> Callable[[Any], Any] | None:
    """What Ray's connector does with each action, for a batch of them; None: nothing."""
    from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

    if not (connector.normalize_actions or connector.clip_actions):
        return None
    if type(space).__name__ != "Box":
        return _as_it_is
    change = unsquash_action if connector.normalize_actions else clip_action
    return lambda actions: change(actions.copy(), space)


def _as_it_is(batch: Any) -> Any:
    return batch


def _hears_steps(env_runner: Any) -> bool:
    """Whether a callback of the config does something after each step."""
    base = callback_class().on_episode_step
    return bool(getattr(env_runner.config, "callbacks_on_episode_step", None)) or any(
        type(callback).on_episode_step is not base for callback in callbacks_of(env_runner)
    )
