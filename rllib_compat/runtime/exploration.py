"""How old policies explored and today's do not: noise on weights, and any action of a space."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import tree
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.utils.exploration.random import Random

from rllib_compat.networks.families.q_head import EXPLORING, exploring
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import connectors, modules

if TYPE_CHECKING:
    from collections.abc import Callable

    import gymnasium
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    from rllib_compat.ray_versions.types import RLModule


PARAMETER_NOISE = EXPLORING[-1]


@public("rllib_compat.adapters")
class ParameterNoise(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Gives modules other noise at the beginning of each episode, larger or smaller than before.

    It is in the env-to-module pipeline, behind what changes observations. All episodes of an
    env runner have the noise of the one that began last, as they had. The deviations of several
    env runners are averaged where Ray merges what connectors know; old workers kept their own.
    Modules say in their `model_config` with what `initial_stddev` they begin.
    """

    needs_no_batch = True

    def __init__(
        self,
        input_observation_space: gymnasium.Space[Any] | None = None,
        input_action_space: gymnasium.Space[Any] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(input_observation_space, input_action_space, **kwargs)
        #: Policy → the deviation of its next noise; "" where there is one for all.
        self._deviations: dict[str, float] = {}
        #: Episodes of agents that have ended before their environment's.
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
        """Looks which episodes have ended, and which begin."""
        if explore:
            found = list(
                self.single_agent_episode_iterator(episodes, agents_that_stepped_only=False)
            )
            for episode in found:
                if episode.id_ not in self._ended:
                    self._look_at(episode, rl_module)
            self._ended = {episode.id_ for episode in found if episode.is_done}
        return batch

    def _look_at(self, episode: Any, rl_module: Any) -> None:
        name = episode.module_id or ""
        module = rl_module[name] if name and name in rl_module else rl_module
        settings = module.model_config.get(PARAMETER_NOISE)
        if not settings:
            return
        deviation = self._deviations.setdefault(name, settings["initial_stddev"])
        if episode.is_done and len(episode) and module.weight_noise is not None:
            seen = np.asarray(episode.get_observations(slice(0, len(episode))))
            batch = {Columns.OBS: torch.from_numpy(seen)}
            self._deviations[name] = module.adapted(deviation, batch)
        elif not episode.t or module.weight_noise is None:
            module.renew_weight_noise(deviation)

    def get_state(self, *_: object, **__: object) -> dict[str, Any]:
        """The deviations."""
        return {"deviations": dict(self._deviations)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Goes on with other deviations."""
        self._deviations = dict(state.get("deviations", {}))

    def merge_states(self, states: list[Mapping[str, Any]]) -> dict[str, Any]:
        """The averages of several env runners' deviations; of a policy that none knows, its own."""
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
    """Makes the connectors between environment and module, that of the noise last.

    Args:
        inner: The config's own `env_to_module_connector`, if any.
        env: The env runner's environment, or None.
        spaces: Its spaces, where the environment lives elsewhere. Ray 2.40 does not pass any.
        device: Where the module computes.
    """
    own = connectors.make_connectors(inner, env, spaces, device)
    return [*own, ParameterNoise()]


def use_legacy_exploration(config: AlgorithmConfig) -> None:
    """Gives a config of DQN the modules, and the connector, that its model config asks for."""
    asked = {key for told in exploration_settings(config).values() for key in told}
    if not asked or getattr(config, "default_module_class", None) is not None:
        return  # modules of algorithms that have their own explore so themselves
    from rllib_compat.networks.modules.q import ExploringQModule

    modules.set_module_class(config, ExploringQModule)
    if PARAMETER_NOISE in asked:
        change_weight_noise(config)


def change_weight_noise(config: AlgorithmConfig) -> None:
    """Puts the connector behind those of a config, once."""
    made = connectors.env_to_module_factory(config)
    if not (isinstance(made, partial) and made.func is with_parameter_noise):
        config.env_runners(env_to_module_connector=partial(with_parameter_noise, made))


def exploration_settings(config: AlgorithmConfig) -> dict[str, dict[str, Any]]:
    """What a config tells modules of how they explore, beside epsilon.

    Returns:
        By policy, and by "" what it tells all of them.
    """
    told = modules.told_model_configs(config)
    return {policy: exploring(one) for policy, one in told.items()}


@public("rllib_compat.adapters")
class RandomActions(Random):  # type: ignore[misc]  # Ray has no types
    """Draws actions from the action space, whatever it is made of, on the old API stack.

    Ray's own does it on torch where an action is one array; on TensorFlow, which old configs meant
    by default, a Tuple or Dict of them was as good.
    """

    def get_torch_exploration_action(self, action_dist: Any, explore: bool) -> Any:
        """Draws an action for each row of the batch; what is likeliest where nothing is explored.

        Returns:
            The actions, and zeros in the place of log-probabilities.
        """
        actions = action_dist.deterministic_sample()
        count = len(tree.flatten(actions)[0])
        if explore:
            drawn = [self.action_space.sample() for _ in range(count)]
            actions = tree.map_structure(self._on_device, *drawn)
        return actions, torch.zeros(count, device=self.device)

    def _on_device(self, *rows: np.ndarray[Any, Any]) -> torch.Tensor:
        return torch.as_tensor(np.stack(rows), device=self.device)
