"""The env runner for many agents, whose pipelines are shorter.

Ray's pipelines take each agent's observation out of its episode, through lists and dicts by episode
and agent, into a batch of its module, and what the module says all the way back. Where the pieces
are Ray's own, that is one batch in and one batch out, and takes more of the time in which a small
network samples than all else together (Ray 2.40 - 2.60). This module makes the same batches,
and leaves in `shared_data` what Ray leaves there, so that either pipeline may go either way.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np
import torch
import tree
from gymnasium.spaces import Box
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.utils.numpy import convert_to_numpy
from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action
from ray.rllib.utils.torch_utils import convert_to_torch_tensor

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import sampling
from rllib_compat.ray_versions.env_runners import advance_exploration_timestep
from rllib_compat.ray_versions.episodes import agents_to_act, to_numpy
from rllib_compat.ray_versions.get_actions import rays_to_env
from rllib_compat.ray_versions.legacy_runner import LegacyRunner
from rllib_compat.ray_versions.sampling import map_structure, stack
from rllib_compat.ray_versions.types import ConnectorPipeline, RLModule, SingleAgentEpisode

#: Arrays that become tensors as they are, but for floats of 64 bits, and what those that a module
#: says are in episodes.
_NUMBERS = {
    np.dtype(kind): np.dtype(stored)
    for kind, stored in (
        *((np.float32, np.float32), (np.float64, np.float32)),
        *((np.int32, np.int32), (np.int64, np.int32)),
    )
}
#: The episodes that are not at their end; Ray 2.40 has one.
_ONGOING = ("_ongoing_episodes", "_episodes", "_episode")


@public("rllib_compat.adapters")
class CompatMultiAgentEnvRunner(LegacyRunner, MultiAgentEnvRunner):  # type: ignore[misc]  # Ray has no types
    """Ray's env runner for many agents, which samples faster and answers with its errors."""

    episodes_to_numpy: bool  # of Ray's
    _env_to_module: Any
    _module_to_env: Any
    _known: tuple[list[Any], tuple[Any, Any]] | None = None

    def sample(self, **asked: object) -> list[Any]:
        """Samples; what explores less and less knows of each step that was."""
        rays = self._env_to_module, self._module_to_env
        to_modules, self._module_to_env = self.pipelines()
        self._env_to_module = EndedEpisodeFilter(to_modules)
        try:
            with self._shorter_forward():
                episodes: list[Any] = super().sample(**asked)
        except (AssertionError, KeyError) as error:
            self._check_mapping(error)
            raise
        finally:
            self._env_to_module, self._module_to_env = rays
        advance_exploration_timestep(self, episodes)
        return episodes

    def _sample(self, **asked: object) -> list[Any]:
        """Samples; episodes become arrays at the end, once.

        Ray makes arrays of all that have ended again after each step. Ray 2.60 asks the runner
        whether to; the first that sample so ask the config, which can't be changed.
        """
        if not getattr(self, "episodes_to_numpy", False):
            return super()._sample(**asked)  # type: ignore[no-any-return]
        self.episodes_to_numpy = False
        try:
            episodes: list[Any] = super()._sample(**asked)
        finally:
            self.episodes_to_numpy = True
        return [*map(to_numpy, episodes)]

    @contextmanager
    def _shorter_forward(self) -> Iterator[None]:
        """Goes past the modes of layers, into which Ray puts each module before each step."""
        module: Any = self.module
        name = "_forward_exploration"
        if not (
            self.bypasses_connectors
            and isinstance(module, MultiRLModule)
            and getattr(type(module), name) is getattr(MultiRLModule, name)
        ):
            yield
            return
        pass_of = cache(partial(sampling.forward_of, explore=True))

        def forward(batch: Mapping[str, Any], **kwargs: object) -> dict[str, Any]:
            return {
                key: pass_of(module[key])(part, **kwargs)
                for key, part in batch.items()
                if key in module
            }

        setattr(module, name, forward)
        try:
            yield
        finally:
            delattr(module, name)

    def _check_mapping(self, error: Exception) -> None:
        """Names the policy that isn't there, of which Ray misses only the action.

        Raises:
            LegacyEnvError: An agent was mapped to it.
        """
        policies = sorted(self.module.keys()) if self.module is not None else []
        found: Any = next((here for here in map(vars(self).get, _ONGOING) if here is not None), [])
        for episode in found if isinstance(found, list) else [found]:
            for agent in episode.agent_ids:
                policy = episode.module_for(agent)
                if policy not in policies:
                    raise LegacyEnvError(
                        f"policy_mapping_fn gave agent {agent!r} the policy {policy!r}, which is "
                        f"not among {', '.join(map(repr, policies[:10]))}.",
                        where="$.multiagent.policy_mapping_fn",
                        fix="map the agent to one of these, or add the policy to `policies`",
                    ) from error

    def pipelines(self) -> tuple[Any, Any]:
        """The pipelines to modules and to agents that a sample takes now, maybe shorter ones."""
        rays = self._env_to_module, self._module_to_env
        if not self.bypasses_connectors:
            return rays
        # Connectors may be changed at any time.
        parts = [*rays, *(connector for pipeline in rays for connector in pipeline.connectors)]
        if self._known is None or not sampling.same(self._known[0], parts):
            self._known = parts, self._shorter(*rays)
        return self._known[1]

    def _shorter(self, to_modules: object, to_agents: Any) -> tuple[Any, Any]:
        # Ray 2.40 knows no other device.
        known = EnvToModulePipeline.connectors_before(to_modules)
        if known is not None and str(getattr(self, "_device", "cpu")) == "cpu":
            to_modules = EnvToModulePipeline(to_modules, known)
        if sampling.classes_of(to_agents.connectors) == rays_to_env(multi_agent=True):
            to_agents = ModuleToEnvPipeline(to_agents, in_numpy=self.draws_in_numpy)
        return to_modules, to_agents


class PipelineProxy:
    """Stands in the place of a pipeline, which has all other attributes."""

    def __init__(self, rays: ConnectorPipeline) -> None:
        self._rays = rays

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rays, name)


class EndedEpisodeFilter(PipelineProxy):
    """Takes an episode that has ended once, in one sample.

    Of as many episodes as were asked for, Ray 2.41 - 2.58 pass the last one twice when it has
    ended: once with all that have, and once with all that there are. A connector that writes would
    write what it has written: observations are made flat a second time, which fails, or filtered.
    """

    def __init__(self, rays: ConnectorPipeline) -> None:
        super().__init__(rays)
        self._ended = set[Any]()

    def __call__(self, *, episodes: list[Any], **given: object) -> Any:
        """What the pipeline does with episodes, but for those that it has seen at their end."""
        left = [episode for episode in episodes if episode.id_ not in self._ended]
        self._ended.update(episode.id_ for episode in left if episode.is_done)
        return self._rays(episodes=left, **given) if left or not episodes else {}


class ShorterPipeline(PipelineProxy):
    """Does what a pipeline of Ray's own connectors does, in a fraction of the time."""

    def __init__(self, rays: ConnectorPipeline) -> None:
        super().__init__(rays)
        self._calls = Counter[Any]()

    def _is_timed(self, given: Mapping[str, Any]) -> bool:
        """Whether this call goes Ray's way, as some do: its timers need a value."""
        name = given.get("metrics_prefix_key")  # resets and ends of episodes have another one
        self._calls[name] += 1
        return self._calls[name] % sampling.TIMED == 1


class EnvToModulePipeline(ShorterPipeline):
    """Makes the modules' batches of what the agents that act next have observed last."""

    def __init__(self, rays: Any, before: list[Any]) -> None:
        super().__init__(rays)
        self._before, self._known = before, rays.connectors[len(before) :]

    @staticmethod
    def connectors_before(rays: Any) -> list[Any] | None:
        """The connectors before those of Ray's own; None where it does not end with these."""
        classes = sampling.classes_of(rays.connectors)
        for known in sampling.rays_to_module(multi_agent=True):
            before = classes[: -len(known)]
            if classes[-len(known) :] == known and known[0] not in before:
                return list(rays.connectors[: len(before)])
        return None

    def __call__(self, **given: Any) -> Any:
        """What the pipeline does."""
        if self._is_timed(given):
            return self._rays(**given)
        batch = _call_connectors(self._before, {**given, "batch": given.get("batch") or {}})
        if batch:  # a connector of the user's has added to it
            return _call_connectors(self._known, {**given, "batch": batch})
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
        return map_structure(_tensor, batches)

    def _batch(
        self, module: RLModule, parts: list[Any], shared_data: dict[str, Any]
    ) -> dict[str, Any]:
        seen = [part.observations.data[-1] for part in parts]
        if not module.is_stateful():
            return {Columns.OBS: stack(seen)}
        shared_data["_added_single_ts_time_rank"] = True
        states = [self._state(module, part) for part in parts]
        return {
            Columns.OBS: map_structure(lambda array: array[:, None], stack(seen)),
            Columns.STATE_IN: stack(states),
        }

    def _state(self, module: RLModule, episode: SingleAgentEpisode) -> Any:
        """What the module's state was after an agent's last step."""
        states = episode.extra_model_outputs.get(Columns.STATE_OUT)
        begins = episode.t_started == 0 and not len(episode)
        if begins or states is None:
            return map_structure(_array, module.get_initial_state())
        return states.data[-1]


class ModuleToEnvPipeline(ShorterPipeline):
    """Gives each agent of each environment its part of what the modules say."""

    def __init__(self, rays: Any, *, in_numpy: bool) -> None:
        super().__init__(rays)
        self._in_numpy = in_numpy
        self._for_env = _for_env(sampling.normalizer_of(rays))

    def __call__(self, **given: Any) -> Any:
        """What the pipeline does."""
        if self._is_timed(given):
            return self._rays(**given)
        modules, episodes = given["rl_module"], given["episodes"]
        for module_id, outputs in given["batch"].items():
            if Columns.ACTIONS not in outputs and Columns.ACTION_DIST_INPUTS in outputs:
                self._add_actions(outputs, modules[module_id], explore=given["explore"])
        where = {episode.id_: index for index, episode in enumerate(episodes)}
        made: dict[str, list[dict[Any, Any]]] = {}
        for module_id, outputs in map_structure(_array, given["batch"]).items():
            stateful = modules[module_id].is_stateful()
            rows = given["shared_data"]["memorized_map_structure"][module_id]
            for column, batch in outputs.items():
                by_env = made.setdefault(column, [{} for _ in episodes])
                has_time = stateful and column != Columns.STATE_OUT
                for row, (episode_id, agent_id) in enumerate(rows):
                    index = where[episode_id]
                    # Ray's own pipeline, which some calls go through, asks for them until Ray 2.5x.
                    if not episodes[index].agent_episodes[agent_id].is_done:
                        place = (row, 0, ...) if has_time else row
                        by_env[index][agent_id] = map_structure(_select(place), batch)
        if self._for_env is not None:
            made[Columns.ACTIONS_FOR_ENV] = [
                {agent_id: self._for_env(agent_id, action) for agent_id, action in actions.items()}
                for actions in made.get(Columns.ACTIONS, ())
            ]
        return made

    def _add_actions(self, outputs: dict[str, Any], module: RLModule, *, explore: bool) -> None:
        """Draws actions from what a module says, in its place."""
        inputs = outputs[Columns.ACTION_DIST_INPUTS]
        actions, logp = sampling.act(
            module, inputs, _array, explore=explore, in_numpy=self._in_numpy
        )
        outputs[Columns.ACTIONS] = actions
        outputs.setdefault(Columns.ACTION_LOGP, logp)


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    """What Ray makes of an array, in a tenth of the time where it is one of numbers."""
    if array.dtype not in _NUMBERS:
        return convert_to_torch_tensor(array)
    tensor = torch.from_numpy(array)
    return tensor.float() if array.dtype == np.float64 else tensor


def _array(value: object) -> Any:
    """What Ray makes of what a module says, in a tenth of the time where it is a tensor."""
    if not isinstance(value, torch.Tensor) or not value.dim():
        return convert_to_numpy(value)
    array = value.detach().numpy()
    return array.astype(_NUMBERS.get(array.dtype, array.dtype))


def _call_connectors(connectors: Iterable[Any], given: dict[str, Any]) -> Any:
    """What connectors make of a batch, one after the other."""
    for connector in connectors:
        given["batch"] = connector(**{**given, "data": given["batch"]})
    return given["batch"]


def _for_env(normalizer: Any) -> Callable[[Any, Any], Any] | None:
    """What Ray's connector does with the action of an agent; None: nothing."""
    if not (normalizer.normalize_actions or normalizer.clip_actions):
        return None
    change = unsquash_action if normalizer.normalize_actions else clip_action
    changed: dict[Any, bool] = {}

    def for_env(agent_id: Any, action: object) -> Any:
        spaces = normalizer._action_space_struct[agent_id]
        if agent_id not in changed:
            changed[agent_id] = any(isinstance(leaf, Box) for leaf in tree.flatten(spaces))
        return change(copy.deepcopy(action), spaces) if changed[agent_id] else action

    return for_env


def _select(place: object) -> Callable[[Any], Any]:
    return lambda array: array[place]
