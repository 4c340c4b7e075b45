"""Checkpoints of any Ray as a path that today's `Algorithm` loads."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rllib_compat import ray_versions
from rllib_compat.neutral import spaces
from rllib_compat.trainer.inference import agent_of

if TYPE_CHECKING:
    from rllib_compat.convert.given import Given
    from rllib_compat.trainer.trainer import Trainer

# Ray's Checkpointable tree has this beside its state; no older layout does.
_TODAYS = "class_and_ctor_args.pkl"
# What a checkpoint's network does not depend on, and may be any object.
_NOT_OF_THE_NETWORK = {"env", "callbacks", "env_config"}


@contextmanager
def as_todays(path: Path, trainer: Trainer) -> Iterator[Path]:
    """The path itself, or that of a conversion which lives as long as the context.

    Args:
        path: A checkpoint of any Ray.
        trainer: Who restores it; as ever, its config counts, not that of the checkpoint.
    """
    on_old_stack = not trainer.algorithm.config.enable_rl_module_and_learner
    if on_old_stack or (path / _TODAYS).exists():
        yield path
        return
    from rllib_compat.convert.pipeline import convert

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "converted"
        convert(path, target, given=_known_to(trainer))
        yield target


def _known_to(trainer: Trainer) -> Given:
    """What the trainer can tell about a checkpoint that was made with its config."""
    from rllib_compat.convert.given import Given

    algorithm = trainer.algorithm
    pipeline = ray_versions.env_to_module(algorithm.env_runner)
    observation, action = pipeline.input_observation_space, pipeline.input_action_space
    by_policy = {"default_policy": (observation, action)}
    if ray_versions.is_multi_agent(algorithm.config):
        agents = {policy: agent_of(algorithm.env_runner, policy) for policy in _policies(trainer)}
        by_policy = {p: (observation[agent], action[agent]) for p, agent in agents.items()}
    records = {
        policy: tuple(spaces.from_object(space) for space in pair)
        for policy, pair in by_policy.items()
    }
    return Given(
        algorithm=trainer.translation.legacy_algorithm,
        config={k: v for k, v in trainer.config.items() if k not in _NOT_OF_THE_NETWORK},
        observation_spaces={p: obs for p, (obs, _) in records.items() if obs is not None},
        action_spaces={p: act for p, (_, act) in records.items() if act is not None},
    )


def _policies(trainer: Trainer) -> list[str]:
    return list(trainer.workers.local_worker().policy_map)
