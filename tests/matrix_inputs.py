"""What algorithms of the matrix learn from, beside an environment of one agent.

Recordings are of the form that old Rays wrote: observations as preprocessors made them (which left
arrays as they are), an action of several parts as one vector.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import tree
from packaging.version import Version
from ray.rllib.env.multi_agent_env import MultiAgentEnv

import rllib_compat as compat
from tests.legacy.new_networks import cases

OFFLINE = ("MARWIL", "BC", "CQL", "CRR")
#: Whose agents are one group, and whose have a policy each.
GROUPED, SEVERAL = ("QMIX",), ("MADDPG",)
AGENTS = ("p0", "p1")
LENGTH = 10


def observation(space: gym.Space[Any]) -> Any:
    """Something of a space; images are dark.

    Networks take bytes as they are, and some configs come to NaN of bright ones, in old Rays, too.
    """

    def dark(part: Any) -> Any:
        return part // 64 if part.dtype == np.uint8 else part

    return tree.map_structure(dark, space.sample())


class Agents(MultiAgentEnv):
    """Two agents, each of which sees and does what its spaces hold, in episodes of ten steps."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.observation_space = cases.space(config["seen"], gym.spaces)
        self.action_space = cases.space(config["acts"], gym.spaces)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        self.steps = 0
        return self._seen(), {}

    def step(self, actions: Mapping[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        self.steps += 1
        ended = {"__all__": self.steps == LENGTH}
        return self._seen(), dict.fromkeys(AGENTS, 0.5), ended, {"__all__": False}, {}

    def _seen(self) -> dict[str, Any]:
        return {agent: observation(self.observation_space) for agent in AGENTS}


def _group(config: Mapping[str, Any]) -> Any:
    env = Agents(config)
    both = [gym.spaces.Tuple([s] * 2) for s in (env.observation_space, env.action_space)]
    return env.with_agent_groups({"both": list(AGENTS)}, obs_space=both[0], act_space=both[1])


def said_by(algorithm: str, seen: str, acts: str, ray: str | None) -> dict[str, Any]:
    """What a config says of where its algorithm learns; nothing of an environment of one agent.

    Args:
        algorithm: Its name.
        seen: What it sees.
        acts: What it gives.
        ray: The Ray that a recording is of; None: the last one that wrote it in this form.
    """
    if algorithm in OFFLINE:
        return {"input": recorded(seen, acts, one_hot=ray is None or Version(ray) >= _ONE_HOT)}
    if algorithm in GROUPED:
        compat.tune.register_env("grouped", _group)
        return {"env": "grouped"}
    if algorithm in SEVERAL:
        policies = {p: (None, None, None, {"agent_id": i}) for i, p in enumerate(AGENTS)}
        several = {"policies": policies, "policy_mapping_fn": lambda agent: agent}
        return {"env": Agents, "multiagent": several}
    return {}


def whole(algorithm: str, space: gym.Space[Any]) -> gym.Space[Any]:
    """What a config says of a space: that of all agents of a group."""
    return gym.spaces.Tuple([space] * len(AGENTS)) if algorithm in GROUPED else space


def observed(algorithm: str, seen: str) -> tuple[str, Any]:
    """A policy of an algorithm, and something that it sees."""
    space = cases.space(seen, gym.spaces)
    if algorithm in GROUPED:
        return "default_policy", tuple(observation(space) for _ in AGENTS)
    return AGENTS[0] if algorithm in SEVERAL else "default_policy", observation(space)


def acted(algorithm: str, acts: str, *, grouped: bool) -> gym.Space[Any]:
    """What a policy of an algorithm gives; of one whose agents are groups, for all of them."""
    space = cases.space(acts, gym.spaces)
    if grouped and algorithm in GROUPED:
        return gym.spaces.Tuple([space] * len(AGENTS))
    if algorithm in SEVERAL:  # a point of a simplex, whatever the space
        return gym.spaces.Box(0.0, 1.0, (gym.spaces.flatdim(space),))
    return space


#: From this Ray on, preprocessors made a MultiDiscrete one-hot; before, they left it.
_ONE_HOT = Version("1.2")


@cache
def recorded(seen: str, acts: str, *, one_hot: bool = True) -> str:
    """A folder with a recording of both spaces, which is there until the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="matrix_")
    _FOLDERS.append(folder)
    steps = 6 * LENGTH
    spaces = cases.space(seen, gym.spaces), cases.space(acts, gym.spaces)
    views = [_preprocessed(spaces[0], one_hot) for _ in range(steps + 1)]
    line = {
        "type": "SampleBatch",
        "t": [step % LENGTH for step in range(steps)],
        "eps_id": [step // LENGTH for step in range(steps)],
        "obs": views[:-1],
        "new_obs": views[1:],
        "actions": [_flattened(spaces[1].sample()) for _ in range(steps)],
        "rewards": np.random.rand(steps).tolist(),
        "dones": [(step + 1) % LENGTH == 0 for step in range(steps)],
    }
    Path(folder.name, "steps.json").write_text(json.dumps(line) + "\n", "utf-8")
    return folder.name


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def _preprocessed(space: gym.Space[Any], one_hot: bool) -> Any:
    seen = observation(space)
    if not one_hot:
        space = _with_numbers(space)
    if isinstance(space, (gym.spaces.Box, gym.spaces.MultiBinary)):
        return seen.tolist()
    return np.asarray(gym.spaces.flatten(space, seen), float).tolist()


def _with_numbers(space: gym.Space[Any]) -> gym.Space[Any]:
    """A space with a Box in the place of each MultiDiscrete."""
    if isinstance(space, gym.spaces.MultiDiscrete):
        return gym.spaces.Box(0.0, float(space.nvec.max()), space.shape)
    if isinstance(space, gym.spaces.Tuple):
        return gym.spaces.Tuple(map(_with_numbers, space))
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({key: _with_numbers(part) for key, part in space.items()})
    return space


def _flattened(action: Any) -> Any:
    if isinstance(action, dict):
        action = tuple(action[key] for key in sorted(action))
    if isinstance(action, tuple):
        return np.concatenate([np.ravel(part) for part in action]).tolist()
    return np.asarray(action).tolist()
