"""Exploration that Ray's modules lack: parameter noise, and random actions of any space.

And the exploration objects of old policies, whose settings the modules take.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import tree
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.utils.exploration.random import Random

from rllib_compat.networks.families.q_head import EXPLORING, exploring
from rllib_compat.neutral.errors import GoneError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import connectors, modules, schedules

if TYPE_CHECKING:
    from collections.abc import Callable

    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    from rllib_compat.ray_versions.types import RLModule


PARAMETER_NOISE = EXPLORING[-1]


@public("rllib_compat.adapters")
class ParameterNoise(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Draws new parameter noise at the start of each episode, and adapts its deviation.

    It is in the env-to-module pipeline, after the connectors that change observations. As in old
    Rays, all episodes of an env runner have the noise of the one that started last. Where Ray
    merges the states of connectors, the deviations of env runners are averaged; old workers kept
    their own. The `model_config` of a module has the `initial_stddev`.
    """

    needs_no_batch = True

    def __init__(self, *spaces: object, **kwargs: object) -> None:
        super().__init__(*spaces, **kwargs)
        #: Policy → the deviation of its next noise; "" for the only policy.
        self._deviations: dict[str, float] = {}
        #: Ids of single-agent episodes that have ended before their environment's.
        self._ended: set[str] = set()

    def __call__(
        self,
        *,
        rl_module: RLModule,
        batch: Mapping[str, Any],
        episodes: list[Any],
        explore: object = None,
        **_: object,
    ) -> Any:
        """Adapts the deviation where an episode has ended, and draws noise where one starts."""
        if explore:
            found = list(
                self.single_agent_episode_iterator(episodes, agents_that_stepped_only=False)
            )
            for episode in found:
                if episode.id_ not in self._ended:
                    self._update_noise(episode, rl_module)
            self._ended = {episode.id_ for episode in found if episode.is_done}
        return batch

    def _update_noise(self, episode: Any, rl_module: Any) -> None:
        name = episode.module_id or ""
        module = rl_module[name] if name and name in rl_module else rl_module
        settings = module.model_config.get(PARAMETER_NOISE)
        if not settings:
            return
        deviation = self._deviations.setdefault(name, settings["initial_stddev"])
        if episode.is_done and len(episode) and module.weight_noise is not None:
            seen = np.asarray(episode.get_observations(slice(0, len(episode))))
            device = next(module.parameters()).device
            batch = {Columns.OBS: torch.as_tensor(seen, device=device)}
            self._deviations[name] = module.adapted(deviation, batch)
        elif not episode.t or module.weight_noise is None:
            module.renew_weight_noise(deviation)

    def get_state(self, *_: object, **__: object) -> dict[str, Any]:
        """Returns the deviation of each policy."""
        return {"deviations": dict(self._deviations)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Sets the deviation of each policy."""
        self._deviations = dict(state.get("deviations", {}))

    def merge_states(self, states: list[Mapping[str, Any]]) -> dict[str, Any]:
        """Averages env runners' deviations; a policy in none of the states keeps its own."""
        found: dict[str, list[float]] = {}
        for state in states:
            for name, deviation in state["deviations"].items():
                found.setdefault(name, []).append(deviation)
        averages = {name: sum(all_) / len(all_) for name, all_ in found.items()}
        return {"deviations": {**self._deviations, **averages}}


@public("rllib_compat.adapters")
def with_parameter_noise(
    inner: Callable[..., Any] | None,
    env: object = None,
    spaces: object = None,
    device: object = None,
) -> list[Any]:
    """Creates the env-to-module connectors, with `ParameterNoise` as the last."""
    own = connectors.make_connectors(inner, env, spaces, device)
    return [*own, ParameterNoise()]


def use_legacy_exploration(config: AlgorithmConfig) -> None:
    """Sets the module class and the connector that a DQN config's exploration settings need."""
    asked = {key for settings in exploration_settings(config).values() for key in settings}
    if not asked or getattr(config, "default_module_class", None) is not None:
        return  # the algorithm's own modules explore like this themselves
    from rllib_compat.networks.modules.q import ExploringQModule

    modules.set_module_class(config, ExploringQModule)
    if PARAMETER_NOISE in asked:
        change_weight_noise(config)


def change_weight_noise(config: AlgorithmConfig) -> None:
    """Adds `ParameterNoise` to a config's env-to-module connectors, unless it is there."""
    made = connectors.env_to_module_factory(config)
    if not (isinstance(made, partial) and made.func is with_parameter_noise):
        config.env_runners(env_to_module_connector=partial(with_parameter_noise, made))


def exploration_settings(config: AlgorithmConfig) -> dict[str, dict[str, Any]]:
    """Returns a config's exploration settings for modules, other than epsilon.

    Returns:
        The settings by policy; those for all policies by "".
    """
    return {p: exploring(model) for p, model in modules.model_configs_by_policy(config).items()}


@public("rllib_compat.adapters")
class RandomActions(Random):  # type: ignore[misc]  # Ray has no types
    """Draws random actions from any action space, also a Tuple or Dict, on the old API stack.

    On torch, Ray's own class needs an action that is one array. On TensorFlow, the default
    framework of old configs, it took a Tuple or Dict, too.
    """

    def get_torch_exploration_action(self, action_dist: Any, explore: bool) -> Any:
        """Draws an action for each row of the batch, or takes the likeliest without exploration.

        Returns:
            The actions, and zeros as their log-probabilities.
        """
        actions = action_dist.deterministic_sample()
        count = len(tree.flatten(actions)[0])
        if explore:
            drawn = [self.action_space.sample() for _ in range(count)]
            actions = tree.map_structure(self._on_device, *drawn)
        return actions, torch.zeros(count, device=self.device)

    def _on_device(self, *rows: np.ndarray[Any, Any]) -> torch.Tensor:
        return torch.as_tensor(np.stack(rows), device=self.device)


#: What decides how the old exploration objects explore.
_SETTINGS = {
    *("epsilon_schedule", "scale_schedule", "random_timesteps", "random_exploration"),
    *("stddev", "temperature", "ou_theta", "ou_sigma", "ou_base_scale", "sub_exploration"),
}


class _Connected:
    """A mixin for an old exploration object, whose settings are those of a module."""

    _module: Any

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SETTINGS and not (name in vars(self) and _set(self._module, name, value)):
            raise _no_effect(name)
        super().__setattr__(name, value)

    def set_state(self, *_: object, **__: object) -> None:
        """Raises an error: the module's schedule follows the steps that were sampled."""
        raise _no_effect("set_state()")


def connected(exploration: Any, module: RLModule, *, counts: bool = True) -> Any:
    """Returns an old exploration object with a module's settings; setting one sets the module's.

    Where steps are not counted (`counts`), epsilon is what it is now.
    """
    found = vars(exploration)
    found.update({n: value for n, value in _options(module).items() if n in found})
    scheduler = getattr(module, "epsilon_schedule", None)
    if scheduler is not None and "epsilon_schedule" in found:
        now = float(scheduler.get_current_value())
        known = schedules.schedule_of(scheduler) if counts else schedules.schedule(now)
        found["epsilon_schedule"] = known
    found["_module"] = module
    kind: Any = type(exploration)
    exploration.__class__ = _class_around(kind)
    return exploration


@cache
def _class_around(kind: type) -> type:
    return type(kind.__name__, (_Connected, kind), {})


def _set(module: RLModule, name: str, value: Any) -> bool:
    """Sets how a module explores; whether it can."""
    scheduler = getattr(module, "epsilon_schedule", None)
    if name == "epsilon_schedule" and scheduler is not None:
        schedules.follow(scheduler, value)
    elif name in (options := _options(module)):
        options[name] = value
    else:
        return False
    return True


def _options(module: RLModule) -> dict[str, Any]:
    """The numbers of a module's noise on actions."""
    noise = getattr(module, "action_noise", None)
    return {} if noise is None else noise.options


def _no_effect(name: str) -> GoneError:
    return GoneError(
        f"policy.exploration.{name} has no effect: the modules of env runners explore by the "
        "config's settings.",
        where=f"policy.exploration.{name}",
        fix="set exploration_config in the trainer's config, or pass api_stack='old'",
    )
