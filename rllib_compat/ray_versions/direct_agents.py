"""What many agents observe, and what they do, without a dozen connectors between.

Ray's pipelines take each agent's observation out of its episode, through lists and dicts by episode
and agent, into a batch of its module, and what the module says all the way back. Where the pieces
are Ray's own, that is one batch in and one batch out, and takes more of the time in which a small
network samples than all else together (Ray 2.40 - 2.60). What stands here makes the same batches,
and leaves in `shared_data` what Ray leaves there, so that either pipeline may go either way.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from rllib_compat.ray_versions.direct_steps import TIMED, Draw, drawn
from rllib_compat.ray_versions.direct_ways import TO_ENV, TO_MODULE, names_of, same
from rllib_compat.ray_versions.episodes import agents_to_act
from rllib_compat.ray_versions.nested import mapped, stacked

#: The pieces of Ray's own pipelines, for many agents. Until Ray 2.41, there was no second one.
_TO_MODULES = (*TO_MODULE[:3], "AgentToModuleMapping", *TO_MODULE[3:])
_TO_MODULES_AT_FIRST = (_TO_MODULES[0], *_TO_MODULES[2:])
_TO_AGENTS = (*TO_ENV[:3], "ModuleToAgentUnmapping", *TO_ENV[3:])

#: Arrays that become tensors as they are, but for floats of 64 bits, and what those that a module
#: says are in episodes.
_NUMBERS = {
    np.dtype(kind): np.dtype(stored)
    for kind, stored in (
        *((np.float32, np.float32), (np.float64, np.float32)),
        *((np.int32, np.int32), (np.int64, np.int32)),
    )
}


class AgentsDirectly:
    """What an env runner for many agents needs to go past connectors, wherever it can."""

    _env_to_module: Any
    _module_to_env: Any

    def draw_actions(self, distribution: Any, inputs: Any) -> tuple[Any, Any] | None:
        """Draws actions without torch, as `StepsDirectly.draw_actions`."""
        del distribution, inputs
        return None

    def sample(self, **asked: Any) -> list[Any]:
        """Samples, with pipelines that are shorter as long as it takes."""
        rays = self._env_to_module, self._module_to_env
        self._env_to_module, self._module_to_env = _shorter(self, *rays)
        try:
            return super().sample(**asked)  # type: ignore[misc,no-any-return]
        finally:
            self._env_to_module, self._module_to_env = rays


def _shorter(runner: Any, to_modules: Any, to_agents: Any) -> tuple[Any, Any]:
    """What stands in the place of a runner's pipelines: themselves, where nothing is known."""
    # Connectors may be changed at any time.
    found = [to_modules, to_agents, *to_modules.connectors, *to_agents.connectors]
    if not same(runner.__dict__.get("_shorter_of"), found):
        # Ray 2.40 knows no other device.
        there = str(getattr(runner, "_device", "cpu")) == "cpu"
        runner._shorter_of = found
        runner._shorter = (
            ToModules(to_modules) if there and ToModules.knows(to_modules) else to_modules,
            ToAgents(to_agents, runner.draw_actions) if ToAgents.knows(to_agents) else to_agents,
        )
    shorter: tuple[Any, Any] = runner._shorter
    return shorter


class _Shorter:
    """Stands in the place of a pipeline.

    Args:
        rays: The pipeline.
    """

    def __init__(self, rays: Any) -> None:
        # Imported once: code of users may have hooks on imports, which cost each step.
        import torch
        from ray.rllib.core.columns import Columns
        from ray.rllib.utils.numpy import convert_to_numpy
        from ray.rllib.utils.torch_utils import convert_to_torch_tensor

        self._rays, self._calls = rays, Counter[Any]()
        self._columns, self._torch = Columns, torch
        self._rays_array, self._rays_tensor = convert_to_numpy, convert_to_torch_tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rays, name)

    def _is_timed(self, given: Mapping[str, Any]) -> bool:
        """Whether this call goes Ray's way, as some do: its timers have to tell something."""
        name = given.get("metrics_prefix_key")  # resets and ends of episodes have another one
        self._calls[name] += 1
        return self._calls[name] % TIMED == 1

    def _tensor(self, array: Any) -> Any:
        """What Ray makes of an array, in a tenth of the time where it is one of numbers."""
        if array.dtype not in _NUMBERS:
            return self._rays_tensor(array)
        tensor = self._torch.from_numpy(array)
        return tensor.float() if array.dtype == np.float64 else tensor

    def _array(self, value: Any) -> Any:
        """What Ray makes of what a module says, in a tenth of the time where it is a tensor."""
        if not isinstance(value, self._torch.Tensor) or not value.dim():
            return self._rays_array(value)
        array = value.detach().numpy()
        return array.astype(_NUMBERS.get(array.dtype, array.dtype))


class ToModules(_Shorter):
    """Makes the modules' batches of what the agents that act next have observed last."""

    def __init__(self, rays: Any) -> None:
        super().__init__(rays)
        names = names_of(rays.connectors)
        count = names.index(_TO_MODULES[0])
        self._before, self._known = rays.connectors[:count], rays.connectors[count:]

    @staticmethod
    def knows(rays: Any) -> bool:
        """Whether a pipeline ends with Ray's own connectors, whatever stands before them."""
        names = names_of(rays.connectors)
        return any(
            names[-len(known) :] == known and _TO_MODULES[0] not in names[: -len(known)]
            for known in (_TO_MODULES, _TO_MODULES_AT_FIRST)
        )

    def __call__(self, **given: Any) -> Any:
        """What the pipeline does."""
        if self._is_timed(given):
            return self._rays(**given)
        batch = _passed(self._before, {**given, "batch": given.get("batch") or {}})
        if batch:  # a connector of the user's has added to it
            return _passed(self._known, {**given, "batch": batch})
        modules, rows = given["rl_module"], dict[str, list[Any]]()
        for episode in given["episodes"]:
            for agent_id in agents_to_act(episode):
                part = episode.agent_episodes[agent_id]
                rows.setdefault(part.module_id, []).append(part)
        given["shared_data"]["memorized_map_structure"] = {
            module_id: [(part.multi_agent_episode_id, part.agent_id) for part in parts]
            for module_id, parts in rows.items()
        }
        batches = {
            module_id: self._batch(modules[module_id], parts, given["shared_data"])
            for module_id, parts in rows.items()
            if module_id in modules
        }
        return mapped(self._tensor, batches)

    def _batch(self, module: Any, parts: list[Any], shared_data: dict[str, Any]) -> dict[str, Any]:
        columns = self._columns
        seen = [part.observations.data[-1] for part in parts]
        if not module.is_stateful():
            return {columns.OBS: stacked(seen)}
        shared_data["_added_single_ts_time_rank"] = True
        states = [self._state(module, part) for part in parts]
        return {
            columns.OBS: mapped(lambda array: array[:, None], stacked(seen)),
            columns.STATE_IN: stacked(states),
        }

    def _state(self, module: Any, episode: Any) -> Any:
        """What the module's state was after an agent's last step."""
        states = episode.extra_model_outputs.get(self._columns.STATE_OUT)
        begins = episode.t_started == 0 and not len(episode)
        if begins or states is None:
            return mapped(self._array, module.get_initial_state())
        return states.data[-1]


class ToAgents(_Shorter):
    """Gives each agent of each environment its part of what the modules say.

    Args:
        rays: The pipeline.
        draw: Draws actions.
    """

    def __init__(self, rays: Any, draw: Draw) -> None:
        super().__init__(rays)
        self._draw = draw
        self._for_env = _for_env(rays.connectors[_TO_AGENTS.index("NormalizeAndClipActions")])

    @staticmethod
    def knows(rays: Any) -> bool:
        """Whether all connectors of a pipeline are Ray's own."""
        return names_of(rays.connectors) == _TO_AGENTS

    def __call__(self, **given: Any) -> Any:
        """What the pipeline does."""
        if self._is_timed(given):
            return self._rays(**given)
        modules, episodes, columns = given["rl_module"], given["episodes"], self._columns
        for module_id, said in given["batch"].items():
            if columns.ACTIONS not in said and columns.ACTION_DIST_INPUTS in said:
                self._add_actions(said, modules[module_id], explore=given["explore"])
        where = {episode.id_: index for index, episode in enumerate(episodes)}
        made: dict[str, list[dict[Any, Any]]] = {}
        for module_id, said in mapped(self._array, given["batch"]).items():
            stateful = modules[module_id].is_stateful()
            rows = given["shared_data"]["memorized_map_structure"][module_id]
            for column, batch in said.items():
                by_env = made.setdefault(column, [{} for _ in episodes])
                has_time = stateful and column != columns.STATE_OUT
                for row, (episode_id, agent_id) in enumerate(rows):
                    index = where[episode_id]
                    # Ray's own pipeline, which some calls go through, asks for them until Ray 2.5x.
                    if not episodes[index].agent_episodes[agent_id].is_done:
                        place = (row, 0, ...) if has_time else row
                        by_env[index][agent_id] = mapped(_taken(place), batch)
        if self._for_env is not None:
            made[columns.ACTIONS_FOR_ENV] = [
                {agent_id: self._for_env(agent_id, action) for agent_id, action in actions.items()}
                for actions in made.get(columns.ACTIONS, ())
            ]
        return made

    def _add_actions(self, said: dict[str, Any], module: Any, *, explore: bool) -> None:
        """Draws actions from what a module says, in its place."""
        inputs, columns = said[self._columns.ACTION_DIST_INPUTS], self._columns
        actions, logp = drawn(module, inputs, self._array, self._draw, explore=explore)
        said[columns.ACTIONS] = actions
        said.setdefault(columns.ACTION_LOGP, logp)


def _passed(connectors: Iterable[Any], given: dict[str, Any]) -> Any:
    """What connectors make of a batch, one after the other."""
    for connector in connectors:
        given["batch"] = connector(**{**given, "data": given["batch"]})
    return given["batch"]


def _for_env(connector: Any) -> Callable[[Any, Any], Any] | None:
    """What Ray's connector does with the action of an agent; None: nothing."""
    import gymnasium
    import tree
    from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

    if not (connector.normalize_actions or connector.clip_actions):
        return None
    change = unsquash_action if connector.normalize_actions else clip_action
    changed: dict[Any, bool] = {}

    def for_env(agent_id: Any, action: Any) -> Any:
        spaces = connector._action_space_struct[agent_id]
        if agent_id not in changed:
            leaves = tree.flatten(spaces)
            changed[agent_id] = any(isinstance(leaf, gymnasium.spaces.Box) for leaf in leaves)
        return change(copy.deepcopy(action), spaces) if changed[agent_id] else action

    return for_env


def _taken(place: Any) -> Callable[[Any], Any]:
    return lambda array: array[place]
