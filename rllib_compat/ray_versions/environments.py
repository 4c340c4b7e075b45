"""Environments: those of an env runner, and external ones."""

from __future__ import annotations

from threading import Condition
from typing import Any

from rllib_compat.ray_versions.types import EnvRunner

# `ExternalEnv` from its other end (`ray/rllib/env/external_env.py`; Ray 2.40 – 2.60).


def ongoing_episodes(env: Any) -> dict[Any, Any]:
    """The episodes that the simulator's thread has started, by id; the dict itself."""
    return env._episodes  # type: ignore[no-any-return]  # Ray has no types


def news(env: Any) -> Condition:
    """What is notified when an episode has something to say."""
    return env._results_avail_condition  # type: ignore[no-any-return]  # Ray has no types


def sub_environments(env: object) -> list[Any]:
    """The environments in a runner's `env`; Ray 2.40 has one multi-agent environment, bare."""
    return list(env.envs) if hasattr(env, "envs") else [env] if env is not None else []


def environments_of(env_runner: EnvRunner) -> list[Any]:
    """The environments of an env runner, of either API stack."""
    if hasattr(env_runner, "async_env"):  # the old API stack
        base = env_runner.async_env
        return [] if base is None else list(base.get_sub_environments() or [base])
    return sub_environments(getattr(env_runner.env, "unwrapped", env_runner.env))


def resets_at_the_next_step() -> dict[str, Any]:
    """The metadata of a vector environment that resets one step after an episode's end.

    The gymnasium of later releases asks for it; that of Ray 2.40 (1.0) knows no other way.
    """
    from gymnasium import vector

    mode = getattr(vector, "AutoresetMode", None)
    return {} if mode is None else {"autoreset_mode": mode.NEXT_STEP}
