"""`gym.utils.env_checker` until 0.21: does an environment give what its spaces say?"""

from __future__ import annotations

from typing import Any

from gymnasium.utils import passive_env_checker

from rllib_compat.gym.core import AsTodays

__all__ = ["check_env"]


def check_env(env: Any, warn: bool = True, skip_render_check: bool = True) -> None:  # noqa: ARG001
    """Checks the spaces of an environment, and what one `reset` and one `step` return.

    Raises:
        AssertionError: Something is not as gym's API has it.
    """
    for name in ("observation_space", "action_space"):
        assert hasattr(env, name), f"The environment has no {name}."
    todays: Any = passive_env_checker
    todays.check_action_space(env.action_space)
    todays.check_observation_space(env.observation_space)
    checked = AsTodays(env)
    todays.check_obs(checked.reset()[0], env.observation_space, "reset")
    todays.env_step_passive_checker(checked, env.action_space.sample())
