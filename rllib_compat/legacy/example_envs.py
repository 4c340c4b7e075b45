"""Environments of `ray.rllib.examples.env` that the installed Ray lacks, or has as another game.

Rewards, observations, configs and the API are those of Ray 1.13.0 (`RockPaperScissors`: 1.2.0).
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Tuple
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from rllib_compat import gym
from rllib_compat.legacy.rllib_api import TaskSettableEnv
from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.ray_versions.types import AlgorithmConfig
from rllib_compat.runtime import gym_api
from rllib_compat.runtime.envs import find_creator

__all__ = [
    "CorrelatedActionsEnv",
    "CurriculumCapableEnv",
    "IteratedBoS",
    "IteratedChicken",
    "IteratedPrisonersDilemma",
    "IteratedStagHunt",
    "MultiAgentCartPole",
    "MultiAgentMountainCar",
    "MultiAgentPendulum",
    "MultiAgentStatelessCartPole",
    "RockPaperScissors",
    "SimpleCorridor",
    "make_multiagent",
]

Step = tuple[Any, Any, Any, dict[Any, Any]]
_PAIRS = ("CC", "CD", "DC", "DD")


def make_multi_agent(env_name_or_creator: str | Callable[[Any], Any]) -> type:
    """Makes a class of environments in which several copies of one run side by side.

    Args:
        env_name_or_creator: An environment's name, or a function that makes one from a config.

    Returns:
        A class that takes a config with `num_agents`, 1 by default; if you gave a
        function, it gets the rest. Its agents are the numbers from 0 on; its API is the old one.

    Raises:
        LegacyEnvError: No environment has this name.
    """
    creator = find_creator(env_name_or_creator)
    if creator is None:
        raise LegacyEnvError(
            f"There is no environment {env_name_or_creator!r}.",
            where="make_multi_agent(env_name_or_creator)",
            fix="give a name that gymnasium or ray.tune.register_env knows, or a function",
        )
    by_name = isinstance(env_name_or_creator, str)
    make = (lambda _: creator({})) if by_name else creator
    return type("MultiEnv", (_SideBySide,), {"make": staticmethod(make)})


class _SideBySide(MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
    """One environment for each agent.

    Attributes:
        envs: The environments; an agent is its place among them.
        dones: The agents whose episodes have ended.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        own: Any = {} if config is None else copy.copy(config)  # an env context stays one
        agents = range(own.pop("num_agents", 1))
        self.envs = [self.make(own) for _ in agents]
        self.agents, self.possible_agents = list(agents), list(agents)
        one = self.envs[0]  # they are alike
        self.observation_space, self.action_space = one.observation_space, one.action_space
        self.dones: set[int] = set()

    @staticmethod
    def make(config: AlgorithmConfig) -> Any:
        """Makes one of the environments; each class has its own."""
        raise NotImplementedError

    def reset(self) -> dict[int, Any]:
        """Starts an episode of each."""
        self.dones.clear()
        return {
            agent: gym_api.reset(self.envs[agent], None, None)[0] for agent in self.possible_agents
        }

    def step(self, action_dict: Mapping[int, Any]) -> tuple[dict[Any, Any], ...]:
        """Takes a step in each that has an action: observations, rewards, dones, infos."""
        taken = {a: gym_api.step(self.envs[a], action) for a, action in action_dict.items()}
        # The old API has one `done` for terminated and truncated.
        four = {
            agent: (obs, reward, ended or cut, info)
            for agent, (obs, reward, ended, cut, info) in taken.items()
        }
        obs, rewards, dones, infos = (
            {a: values[i] for a, values in four.items()} for i in range(4)
        )
        self.dones.update(agent for agent in dones if dones[agent])
        return obs, rewards, {**dones, "__all__": len(self.dones) == len(self.envs)}, infos

    def render(self, mode: str | None = None) -> Any:
        """Draws the first."""
        return self.envs[0].render() if mode is None else self.envs[0].render(mode)


class SimpleCorridor(gym.Env):
    """A corridor from 0 to its end, where the only reward is 1.

    Args:
        config: `corridor_length`, 10 unless it says otherwise.
    """

    observation_space = Box(0.0, 999.0, (1,), np.float32)
    action_space = Discrete(2)

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.end_pos = (config or {}).get("corridor_length", 10)
        self.cur_pos = 0.0

    def set_corridor_length(self, length: float) -> None:
        """Moves the end."""
        self.end_pos = length

    def reset(self) -> list[float]:  # type: ignore[override]
        """Starts at 0."""
        self.cur_pos = 0.0
        return self._seen()

    def step(self, action: int) -> Step:  # type: ignore[override]
        """Moves one step: back (0), but not below 0, or forward (1)."""
        assert action in (0, 1), action
        self.cur_pos = max(self.cur_pos + (1.0 if action else -1.0), 0.0)
        arrived = self.cur_pos >= self.end_pos
        return self._seen(), int(arrived), arrived, {}

    def _seen(self) -> list[float]:
        return [self.cur_pos]


class CorrelatedActionsEnv(gym.Env):
    """Rewards 5 if the first action is the observation, and 5 if the second is the first.

    Observations are 0 or 1, drawn by Python's `random`; an episode has 21 steps.
    """

    observation_space = Discrete(2)
    action_space = Tuple([Discrete(2), Discrete(2)])

    def __init__(self, _: object) -> None:
        self.last_observation: int | None = None
        self.t = 0

    def reset(self) -> int:  # type: ignore[override]
        """Draws the first observation."""
        self.t = 0
        return self._draw()

    def step(self, action: tuple[int, int]) -> Step:  # type: ignore[override]
        """Rewards the pair, and draws the next observation."""
        first, second = action
        reward = 5 * (int(first == self.last_observation) + int(first == second))
        self.t += 1
        return self._draw(), reward, self.t > 20, {}

    def _draw(self) -> int:
        self.last_observation = random.choice((0, 1))  # noqa: S311 - a game
        return self.last_observation


class RockPaperScissors(MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
    """Ten rounds between `player1` and `player2`, who see each other's last move.

    Args:
        config: `sheldon_cooper` adds the moves lizard and Spock.
    """

    is_old_api = True
    ROCK, PAPER, SCISSORS, LIZARD, SPOCK = range(5)
    #: The moves that each move beats.
    _BEATS = (
        (SCISSORS, LIZARD),
        (ROCK, SPOCK),
        (PAPER, LIZARD),
        (PAPER, SPOCK),
        (ROCK, SCISSORS),
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.player1, self.player2 = "player1", "player2"
        self.agents = self.possible_agents = [self.player1, self.player2]
        self.sheldon_cooper = config.get("sheldon_cooper", False)
        self.observation_space: Any = Discrete(5 if self.sheldon_cooper else 3)
        self.action_space: Any = Discrete(5 if self.sheldon_cooper else 3)
        self.last_move: tuple[int, int] | None = None
        self.num_moves = self.player1_score = self.player2_score = 0

    def reset(self) -> dict[str, int]:
        """Starts a match, as if both had shown a rock."""
        self.num_moves = 0
        return self._shown(self.ROCK, self.ROCK)

    def step(self, action_dict: Mapping[str, int]) -> Step:
        """Plays one round: 1 for who wins it, -1 for who loses it."""
        first, second = action_dict[self.player1], action_dict[self.player2]
        assert self.action_space.contains(first), first
        assert self.action_space.contains(second), second
        won, lost = second in self._BEATS[first], first in self._BEATS[second]
        self.player1_score += won
        self.player2_score += lost
        self.num_moves += 1
        rewards = {self.player1: int(won) - lost, self.player2: int(lost) - won}
        return self._shown(first, second), rewards, {"__all__": self.num_moves >= 10}, {}

    def _shown(self, first: int, second: int) -> dict[str, int]:
        self.last_move = first, second
        return {self.player1: second, self.player2: first}


class CurriculumCapableEnv(TaskSettableEnv):
    """A frozen lake of 6 × 7 fields that does not slip; its task is a level from 1 on.

    Each level multiplies the reward of the goal by 10.

    Args:
        config: `start_level` (1), `max_timesteps` of an episode (18).
    """

    is_old_api = True
    #: Of each level: the goal (row, column), and the columns of the holes in each row.
    _LEVELS = (
        ((3, 6), ("", "", "", "01", "", "")),
        ((4, 6), ("", "3", "", "012", "", "")),
        ((5, 6), ("", "23", "", "0123", "", "")),
        ((5, 5), ("", "123", "", "01234", "", "")),
        ((5, 3), ("", "34", "1", "012345", "25", "")),
    )

    _TASKS = (1, 10)

    def __init__(self, config: Mapping[str, Any]) -> None:
        settings = {"start_level": 1, "max_timesteps": 18, **config}
        self.cur_level, self.max_timesteps = settings["start_level"], settings["max_timesteps"]
        self.switch_env, self._timesteps = False, 0
        lake = self._make_lake()
        self.observation_space, self.action_space = lake.observation_space, lake.action_space

    def reset(self) -> Any:  # type: ignore[override]
        """Starts an episode, of the task that was set."""
        if self.switch_env:
            self._make_lake()
        self.switch_env, self._timesteps = False, 0
        return self.frozen_lake.reset()

    def step(self, action: int) -> Step:  # type: ignore[override]
        """Takes one step on the lake."""
        self._timesteps += 1
        observation, reward, done, info = self.frozen_lake.step(action)
        over = done or self._timesteps >= self.max_timesteps
        return observation, reward * 10 ** (self.cur_level - 1), over, info

    def sample_tasks(self, n_tasks: int) -> list[int]:
        """That many levels, drawn from 1 to 10."""
        return [random.randint(*self._TASKS) for _ in range(n_tasks)]  # noqa: S311 - a game

    def get_task(self) -> int:
        """The level."""
        return self.cur_level  # type: ignore[no-any-return]

    def set_task(self, task: int) -> None:
        """Sets the level, which the next reset goes to."""
        self.cur_level, self.switch_env = task, True

    def _make_lake(self) -> Any:
        goal, holes = self._LEVELS[self.cur_level - 1]
        fields = {(row, int(column)): "H" for row, of in enumerate(holes) for column in of}
        fields |= {(0, 0): "S", goal: "G"}
        lake = ["".join(fields.get((row, at), "F") for at in range(7)) for row in range(6)]
        self.frozen_lake = gym.make("FrozenLake-v1", desc=lake, is_slippery=False)
        return self.frozen_lake


class _MatrixGame(MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
    """Two players choose one of two actions at once, again and again.

    Each observes both actions of the step before, its own first; at the start it observes 4.
    What was chosen how often is in both players' infos of the last step, under CC, CD, DC and DD.

    Args:
        config: `players_ids` (`player_row`, `player_col`), `max_steps` of an episode (20),
            `output_additional_info` (true) for those infos.
    """

    is_old_api = True
    NUM_AGENTS = NUM_ACTIONS = 2
    NUM_STATES = 5
    ACTION_SPACE: Any = Discrete(NUM_ACTIONS)
    OBSERVATION_SPACE: Any = Discrete(NUM_STATES)
    _DEFAULTS = {  # noqa: RUF012 - it is constant
        "players_ids": ("player_row", "player_col"),
        "max_steps": 20,
        "output_additional_info": True,
    }
    NAME: str
    #: Rewards of both players, by the row player's action and then by that of the other.
    PAYOUT_MATRIX: Any

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        settings = {**self._DEFAULTS, **(config or {})}
        assert "reward_randomness" not in settings, config
        self.player_row_id, self.player_col_id = settings["players_ids"]
        self.players_ids = [self.player_row_id, self.player_col_id]
        self.agents = self.possible_agents = self.players_ids
        self.max_steps = settings["max_steps"]
        self.output_additional_info = settings["output_additional_info"]
        self._chosen: list[str] = []

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Nothing is random here."""
        return [seed]

    def reset(self) -> dict[Any, int]:
        """Starts an episode."""
        self._chosen = []
        return dict.fromkeys(self.players_ids, self.NUM_STATES - 1)

    def step(self, actions: Mapping[Any, int]) -> Step:
        """Takes both players' actions."""
        row, column = (actions[player] for player in self.players_ids)
        self._chosen.append("CD"[row] + "CD"[column])
        over = len(self._chosen) >= self.max_steps
        seen = 2 * row + column, 2 * column + row
        infos = {}
        if over and self.output_additional_info:
            shares = {p: self._chosen.count(p) / len(self._chosen) for p in _PAIRS}
            infos = dict.fromkeys(self.players_ids, shares)
        return (
            dict(zip(self.players_ids, seen, strict=True)),
            dict(zip(self.players_ids, self.PAYOUT_MATRIX[row][column], strict=True)),
            dict.fromkeys((*self.players_ids, "__all__"), over),
            infos,
        )

    def __str__(self) -> str:
        return self.NAME


class IteratedPrisonersDilemma(_MatrixGame):
    """The prisoner's dilemma, in years."""

    NAME = "IPD"
    PAYOUT_MATRIX = np.array([[(-1, -1), (-3, 0)], [(0, -3), (-2, -2)]])


class IteratedStagHunt(_MatrixGame):
    """The stag hunt."""

    NAME = "IteratedStagHunt"
    PAYOUT_MATRIX = np.array([[(3, 3), (0, 2)], [(2, 0), (1, 1)]])


class IteratedChicken(_MatrixGame):
    """The game of chicken."""

    NAME = "IteratedChicken"
    PAYOUT_MATRIX = np.array([[(0.0, 0.0), (-1.0, 1.0)], [(1.0, -1.0), (-10.0, -10.0)]])


class IteratedBoS(_MatrixGame):
    """Bach or Stravinsky."""

    NAME = "IteratedBoS"
    PAYOUT_MATRIX = np.array([[(3.0, 2.0), (0.0, 0.0)], [(0.0, 0.0), (2.0, 3.0)]])


make_multiagent = make_multi_agent
MultiAgentPendulum = make_multi_agent("Pendulum-v1")
MultiAgentMountainCar = make_multi_agent("MountainCarContinuous-v0")
MultiAgentCartPole = make_multi_agent("CartPole-v0")


@make_multi_agent
def MultiAgentStatelessCartPole(config: AlgorithmConfig) -> Any:  # noqa: N802 - becomes a class
    """CartPole without its velocities."""
    from ray.rllib.examples.envs.classes.stateless_cartpole import StatelessCartPole

    return StatelessCartPole(config)
