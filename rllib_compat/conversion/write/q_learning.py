"""How far DQN, SimpleQ, DDPG and TD3 were: steps, exploration, and when learning starts again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat import ray_versions
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.report import Finding, Severity, Verdict

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

#: How far the schedule may be from the stored epsilon before the report warns.
_NEAR = 0.02


def delay_learning(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Lets the empty replay buffer fill before learning goes on.

    Ray up to 1.13 waited until the *buffer* had `learning_starts` steps, also after a restore.
    Today's waits until that many were ever sampled, which is long past.
    """
    steps = checkpoint.counters.env_steps
    if not steps:
        return []
    starts = config.num_steps_sampled_before_learning_starts
    config.training(num_steps_sampled_before_learning_starts=steps + starts)
    message = (
        f"the replay buffer starts empty; learning starts again after {starts} new steps "
        f"(num_steps_sampled_before_learning_starts={steps + starts})"
    )
    return [Finding("learning-starts", Severity.INFO, Verdict.DERIVED, "counters", message)]


def set_progress(
    algorithm: Algorithm, config: AlgorithmConfig, checkpoint: LegacyCheckpoint
) -> list[Finding]:
    """Lets exploration go on where it was: its schedule looks at the steps sampled so far.

    Args:
        algorithm: The algorithm that is saved.
        config: The config that is saved, with its remote env runners.
        checkpoint: The neutral state.
    """
    steps = checkpoint.counters.env_steps or 0
    ray_versions.set_steps_of_env_runner(algorithm, steps, config.num_env_runners or 0)
    message = (
        "Ray keeps in no checkpoint when a target network was last updated: the first training "
        "step updates it"
    )
    reset = Finding("target-updates", Severity.INFO, Verdict.RESET, "counters", message)
    if hasattr(config, "exploration_noise"):
        return [_noise(config, checkpoint, steps), reset]
    return [*_epsilons(config, checkpoint, steps), reset]


def _noise(config: Any, checkpoint: LegacyCheckpoint, steps: int) -> Finding:
    from rllib_compat.networks.modules import noise

    kind, told = noise.check(config.exploration_noise)
    message = f"{kind} goes on by the config's schedule, after {steps} steps"
    if told:
        message += f": its scale is {noise.scale(told, steps):.4g}"
    states = (policy.exploration for policy in checkpoint.policies.values())
    stored = [s["cur_scale"] for s in states if isinstance(s, Mapping) and "cur_scale" in s]
    if stored:
        message += f" (stored: {float(stored[0]):.4g})"
    return Finding("noise", Severity.INFO, Verdict.DERIVED, "policies.*.exploration", message)


def _epsilons(config: Any, checkpoint: LegacyCheckpoint, steps: int) -> Iterator[Finding]:
    now = _at(config.epsilon, steps)
    for policy_id, policy in checkpoint.policies.items():
        path = f"policies.{policy_id}.exploration"
        then = _stored_epsilon(policy)
        if then is None:
            message = f"epsilon follows from the steps sampled: {now:.4g}"
            yield Finding("epsilon", Severity.INFO, Verdict.DERIVED, path, message)
        elif abs(then - now) <= _NEAR:
            message = f"epsilon goes on at {now:.4g} (stored: {then:.4g})"
            yield Finding("epsilon", Severity.INFO, Verdict.EXACT, path, message)
        else:
            message = f"epsilon was {then:.4g}; by the config's schedule it is {now:.4g} now"
            hint = "set config.training(epsilon=…) to another schedule before training goes on"
            yield Finding("epsilon", Severity.WARNING, Verdict.DERIVED, path, message, hint)


def _at(epsilon: Any, step: int) -> float:
    """The value of a fixed number, or of a schedule `[[step, value], …]`, at a step."""
    if isinstance(epsilon, (int, float)):
        return float(epsilon)
    steps, values = zip(*epsilon, strict=True)
    return float(np.interp(step, steps, values))


def _stored_epsilon(policy: PolicyState) -> float | None:
    """`cur_epsilon`: in a dict (Ray 1.4 on), or behind the weights (up to 0.8.0)."""
    state = policy.exploration
    if isinstance(state, list) and len(state) == 1:
        state = {"cur_epsilon": state[0]}
    found = state.get("cur_epsilon") if isinstance(state, dict) else None
    return float(found) if isinstance(found, (int, float, np.number)) else None
