"""Episodes of the old API stack, with what they told until Ray 1.x (Ray 2.40 – 2.60).

Since Ray 2.1, an episode is an `EpisodeV2`, which has the same steps in its agents' collectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_ONLY_AGENT = "agent0"


_telling: dict[type, type] = {}


def tell_as_of_old(episode: Any) -> None:
    """Gives an episode of the old API stack the methods that it has lost; it stays the same one."""
    cls = type(episode)
    if not issubclass(cls, _Tells):
        if cls not in _telling:
            _telling[cls] = type(cls.__name__, (_Tells, cls), {})
        episode.__class__ = _telling[cls]


class _Tells:
    """What an episode knew of its agents' last steps."""

    policy_map: Any
    _agent_collectors: dict[Any, Any]

    def last_observation_for(self, agent_id: Any = _ONLY_AGENT) -> Any:
        """What the policy saw last, or None."""
        return self._last("obs", agent_id)

    def last_raw_obs_for(self, agent_id: Any = _ONLY_AGENT) -> Any:
        """What the environment gave last, or None; images are as the policy saw them."""
        obs = self._last("obs", agent_id)
        original = getattr(self._policy(agent_id).observation_space, "original_space", None)
        if original is None or obs is None or np.shape(obs) == (original.shape or ()):
            return obs
        from gymnasium.spaces.utils import flatdim, unflatten

        return unflatten(original, obs) if flatdim(original) == np.size(obs) else obs

    def last_action_for(self, agent_id: Any = _ONLY_AGENT) -> Any:
        """The last action; zeros before the first."""
        return self._action(agent_id, 1)

    def prev_action_for(self, agent_id: Any = _ONLY_AGENT) -> Any:
        """The action before the last; zeros before the second."""
        return self._action(agent_id, 2)

    def last_reward_for(self, agent_id: Any = _ONLY_AGENT) -> float:
        """The last reward; 0 before the first."""
        return float(self._last("rewards", agent_id) or 0.0)

    def prev_reward_for(self, agent_id: Any = _ONLY_AGENT) -> float:
        """The reward before the last; 0 before the second."""
        return float(self._last("rewards", agent_id, 2) or 0.0)

    def last_done_for(self, agent_id: Any = _ONLY_AGENT) -> bool:
        """Whether the agent has come to its end."""
        done: bool = self.is_done(agent_id)  # type: ignore[attr-defined]
        return done

    def last_pi_info_for(self, agent_id: Any = _ONLY_AGENT) -> dict[str, Any]:
        """What the policy computed beside its last action."""
        names = ("action_prob", "action_logp", "action_dist_inputs", "vf_preds", "q_values")
        found = {name: self._last(name, agent_id) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def rnn_state_for(self, agent_id: Any = _ONLY_AGENT) -> list[Any]:
        """The state after the last step, or the one that the policy begins with."""
        states = []
        for index, initial in enumerate(self._policy(agent_id).get_initial_state()):
            state = self._last(f"state_out_{index}", agent_id)
            states.append(initial if state is None else state)
        return states

    def _policy(self, agent_id: Any) -> Any:
        return self.policy_map[self.policy_for(agent_id)]  # type: ignore[attr-defined]

    def _action(self, agent_id: Any, back: int) -> Any:
        action = self._last("actions", agent_id, back)
        if action is not None:
            return action
        from ray.rllib.utils.spaces.space_utils import flatten_to_single_ndarray

        like = self._policy(agent_id).action_space.sample()
        return np.zeros_like(flatten_to_single_ndarray(like))

    def _last(self, column: str, agent_id: Any, back: int = 1) -> Any:
        """A value of a column, so many steps ago, or None."""
        import tree

        collector = self._agent_collectors.get(agent_id)
        if collector is None or not (parts := collector.buffers.get(column)):
            return None
        # What the policy is still to compute has a place already.
        back += int(column in collector.data_cols_with_dummy_values)
        if len(parts[0]) < back:
            return None
        values = [part[-back] for part in parts]
        struct = collector.buffer_structs.get(column)
        if struct is None or len(values) == 1:
            return values[0]
        return tree.unflatten_as(struct, values)
