"""Records what environments, models and policies of `ray.rllib.examples` of an old Ray do.

Usage: `python record.py OUT ROCK_PAPER_SCISSORS`, with the Python of an environment that has Ray
1.13.0 and torch, and the file `rock_paper_scissors.py` out of a wheel of Ray 1.2.0, the last that
had it. `tests/unit/legacy/test_examples.py` runs this file as old code, and compares.
"""

import json
import random
import sys
from pathlib import Path

import gym
import numpy as np
import torch
from ray.rllib.agents.trainer import COMMON_CONFIG
from ray.rllib.examples.env.correlated_actions_env import CorrelatedActionsEnv
from ray.rllib.examples.env.curriculum_capable_env import CurriculumCapableEnv
from ray.rllib.examples.env.debug_counter_env import DebugCounterEnv, MultiAgentDebugCounterEnv
from ray.rllib.examples.env.matrix_sequential_social_dilemma import (
    IteratedBoS,
    IteratedChicken,
    IteratedPrisonersDilemma,
    IteratedStagHunt,
)
from ray.rllib.examples.env.mock_env import MockEnv, MockEnv2, MockVectorEnv, VectorizedMockEnv
from ray.rllib.examples.env.multi_agent import MultiAgentCartPole, MultiAgentStatelessCartPole
from ray.rllib.examples.env.parametric_actions_cartpole import (
    ParametricActionsCartPole,
    ParametricActionsCartPoleNoEmbeddings,
)
from ray.rllib.examples.env.simple_corridor import SimpleCorridor
from ray.rllib.examples.env.stateless_cartpole import StatelessCartPole
from ray.rllib.examples.env.two_step_game import TwoStepGame, TwoStepGameWithGroupedAgents
from ray.rllib.examples.env.windy_maze_env import HierarchicalWindyMazeEnv, WindyMazeEnv
from ray.rllib.examples.models.batch_norm_model import TorchBatchNormModel
from ray.rllib.examples.models.rnn_model import TorchRNNModel
from ray.rllib.examples.models.trajectory_view_utilizing_models import (
    TorchFrameStackingCartPoleModel,
)
from ray.rllib.examples.policy.rock_paper_scissors_dummies import (
    AlwaysSameHeuristic,
    BeatLastHeuristic,
)
from ray.rllib.models.catalog import MODEL_DEFAULTS

PLAYERS = ("player1", "player2")
ROWS = ("player_row", "player_col")


def pairs(agents, moves):
    return [dict(zip(agents, pair)) for pair in moves]  # noqa: B905 - it runs on Python 3.8


def all_pairs(agents, number):
    return pairs(agents, [(a, b) for a in range(number) for b in range(number)])


def environments(rock_paper_scissors):
    """Name → the environment and the actions; before each episode, `random` has the seed 0."""
    two_steps = [{0: a, 1: b} for first in (0, 1) for b in (0, 1) for a in (first, b)]
    game = [{"agents": (a[0], a[1])} for a in two_steps]
    one_hot = {"one_hot_state_encoding": True}
    state = {"one_hot_state_encoding": True, "separate_state_space": True}
    return {
        "corridor": (SimpleCorridor({"corridor_length": 3}), [0, 1, 0, 1, 1, 1, 1]),
        "corridor without config": (SimpleCorridor(), [1] * 10),
        "correlated": (CorrelatedActionsEnv({}), [(0, 0), (0, 1), (1, 1), (1, 0)] * 6),
        "three moves": (rock_paper_scissors({}), all_pairs(PLAYERS, 3)),
        "five moves": (rock_paper_scissors({"sheldon_cooper": True}), all_pairs(PLAYERS, 5)),
        "prisoners": (IteratedPrisonersDilemma({"max_steps": 4}), all_pairs(ROWS, 2)),
        "stags": (IteratedStagHunt({"max_steps": 3}), all_pairs(ROWS, 2)),
        "chicken": (IteratedChicken(), all_pairs(ROWS, 2) * 5 + all_pairs(ROWS, 2)),
        "both": (
            IteratedBoS({"players_ids": ["a", "b"], "output_additional_info": False}),
            all_pairs("ab", 2) * 6,
        ),
        "lake 1": (CurriculumCapableEnv({}), [1, 1, 2, 2, 2, 2, 2, 2, 1] + [2] * 12),
        "lake 3": (CurriculumCapableEnv({"start_level": 3}), [1] * 3 + [2] * 6 + [1] * 5),
        "lake 5": (
            CurriculumCapableEnv({"start_level": 5, "max_timesteps": 9}),
            [2] * 6 + [1] * 5 + [0] * 3 + [3] * 3,
        ),
        "counter": (DebugCounterEnv({"start_at_t": 2}), [0] * 16),
        "counters": (
            MultiAgentDebugCounterEnv({"num_agents": 2, "base_episode_len": 3}),
            [{0: [1.0, 2.0], 1: [3.0, 4.0]}] * 4,
        ),
        "mock": (MockEnv(3), [0] * 4),
        "mock 2": (MockEnv2(3), [0] * 4),
        "two steps": (TwoStepGame({}), two_steps),
        "two steps, one-hot": (TwoStepGame(dict(one_hot)), two_steps),
        "two steps, state": (TwoStepGame(dict(state)), two_steps),
        "two steps, grouped": (TwoStepGameWithGroupedAgents(dict(state)), game),
        "maze": (WindyMazeEnv({}), [0, 1, 2, 3, 1, 1, 2, 2] * 4),
        "hierarchical maze": (
            HierarchicalWindyMazeEnv({}),
            [{"high_level_agent": 1}] + [{"low_level_0": move} for move in (1, 1, 2, 0, 1)],
        ),
        "stateless": (StatelessCartPole(), [0, 1, 1, 1] * 6),
        "cartpoles": (MultiAgentCartPole({"num_agents": 2}), [{0: 0, 1: 1}] * 9),
        "stateless cartpoles": (MultiAgentStatelessCartPole({"num_agents": 1}), [{0: 1}] * 5),
    }


def space_of(space):
    """A space as plain data."""
    if space is None:
        return None
    kind = type(space).__name__
    if isinstance(space, gym.spaces.Discrete):
        return [kind, int(space.n)]
    if isinstance(space, gym.spaces.Box):
        bounds = np.clip([space.low.min(), space.high.max()], -1e9, 1e9)
        return [kind, list(space.shape), *bounds.tolist()]
    if isinstance(space, gym.spaces.MultiDiscrete):
        return [kind, plain(space.nvec)]
    if isinstance(space, gym.spaces.Tuple):
        return [kind, [space_of(part) for part in space.spaces]]
    return [kind, {str(key): space_of(part) for key, part in space.spaces.items()}]


def plain(value):
    """A value as JSON has it, with numbers of six digits."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(part) for part in value]
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return plain(value.tolist())
    return value if isinstance(value, (str, type(None))) else round(float(value), 6)


def start_anew(env):
    """An episode whose first state no library draws."""
    random.seed(0)
    np.random.seed(0)
    observation = env.reset()
    inside = getattr(env, "envs", None) or getattr(env, "agents", None) or [env]
    carts = [cart.unwrapped for cart in inside if hasattr(cart, "unwrapped")]
    for cart in carts:
        if hasattr(cart, "theta_threshold_radians"):
            cart.state = (0.01, -0.02, 0.03, 0.04)
            observation = None
    return observation


def play(env, actions):
    steps = [plain(start_anew(env))]
    for action in actions:
        observation, reward, done, info = env.step(action)
        steps.append(plain([observation, reward, done, info]))
        if done["__all__"] if isinstance(done, dict) else done:
            steps.append(plain(start_anew(env)))
    return steps


def played(rock_paper_scissors):
    return {
        name: {
            "observation_space": space_of(env.observation_space),
            "action_space": space_of(env.action_space),
            "steps": play(env, actions),
        }
        for name, (env, actions) in environments(rock_paper_scissors).items()
    }


def vectors():
    """Environments that are stepped several at once."""
    found = {}
    for name, env in {
        "mocks": VectorizedMockEnv(2, 2),
        "cartpoles": MockVectorEnv(2, 2),
    }.items():
        first = np.shape(env.vector_reset())
        results = [env.vector_step([0, 1]) for _ in range(2)]
        rest = [[rewards, dones] for _, rewards, dones, _ in results]
        found[name] = plain([first, np.shape(env.reset_at(1)), rest])
    return found


def longest(cls, *args):
    """After how many steps an episode ends that nothing else ends."""
    env = cls(*args)
    env.reset()
    for length in range(1, 600):
        env.wrapped.unwrapped.state = (0.0, 0.0, 0.0, 0.0)
        if env.step(env.left_idx)[2]:
            return length
    return None


def model_of(cls, inputs, state=(), lengths=None, **settings):
    """Names and shapes of weights, and what comes out where these are a sine."""
    observations, actions = gym.spaces.Box(-1.0, 1.0, (4,)), gym.spaces.Discrete(2)
    model = cls(observations, actions, 2, dict(MODEL_DEFAULTS), "model", **settings)
    weights = {}
    for name, weight in model.state_dict().items():
        values = torch.sin(torch.arange(weight.numel(), dtype=torch.float32)) / 4 + 0.3
        weights[name] = values.reshape(weight.shape).to(weight.dtype)
    model.load_state_dict(weights)
    outputs, after = model(inputs, list(state), lengths)
    return {
        "weights": [[name, list(weight.shape)] for name, weight in model.state_dict().items()],
        "outputs": plain(outputs),
        "values": plain(model.value_function()),
        "state": plain(after),
        "initial": plain([part.shape for part in model.get_initial_state()]),
        "views": {
            name: [view.data_col, str(view.shift)]
            for name, view in model.view_requirements.items()
            if name.startswith("prev_n_")
        },
    }


def models():
    steps = torch.sin(torch.arange(24.0)).reshape(6, 4)
    frames = {
        "prev_n_obs": torch.sin(torch.arange(24.0)).reshape(2, 3, 4),
        "prev_n_actions": torch.tensor([[0, 1, 1], [1, 0, 1]]),
        "prev_n_rewards": torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]),
    }
    frames["obs"] = frames["prev_n_obs"][:, -1]
    state = [torch.full((2, 8), 0.1), torch.full((2, 8), 0.2)]
    lengths = torch.tensor([3, 3])
    sizes = {"fc_size": 5, "lstm_state_size": 8}
    flat = {"obs": steps, "obs_flat": steps}
    return {
        "rnn": model_of(TorchRNNModel, flat, state, lengths, **sizes),
        "normed": model_of(TorchBatchNormModel, {"obs": steps, "is_training": False}),
        "normed, training": model_of(TorchBatchNormModel, {"obs": steps, "is_training": True}),
        "frames": model_of(TorchFrameStackingCartPoleModel, frames, num_frames=3),
    }


def policies():
    config = {**COMMON_CONFIG, "framework": "torch"}
    move, one_hot = gym.spaces.Discrete(3), gym.spaces.Box(0.0, 1.0, (3,))
    same = AlwaysSameHeuristic(move, move, config)
    beats = BeatLastHeuristic(move, move, config)
    flat = BeatLastHeuristic(one_hot, move, config)
    return {
        "same": plain(same.compute_actions([0, 1], [[2, 1]])[0]),
        "drawn": sorted({same.get_initial_state()[0] for _ in range(100)}),
        "beats": plain(beats.compute_actions([0, 1, 2])[0]),
        "one-hot": plain(flat.compute_actions(np.eye(3))[0]),
    }


def record(rock_paper_scissors):
    return {
        "environments": played(rock_paper_scissors),
        "vectors": vectors(),
        "lengths": {
            "parametric": longest(ParametricActionsCartPole, 4),
            "parametric, ids": longest(ParametricActionsCartPoleNoEmbeddings, 4),
        },
        "models": models(),
        "policies": policies(),
    }


if __name__ == "__main__":
    there = {}
    exec(Path(sys.argv[2]).read_text(), there)
    told = json.dumps(record(there["RockPaperScissors"]), separators=(",", ":"), sort_keys=True)
    Path(sys.argv[1]).write_text(told + "\n")
