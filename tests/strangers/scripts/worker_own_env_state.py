"""State of simulators kept by workers: read by `foreach_env`, sent by an actor, closed at the end."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


@ray.remote
class Board:
    def __init__(self):
        self.lines = []

    def write(self, line):
        self.lines.append(line)

    def read(self):
        return self.lines


class Silo(gym.Env):
    def __init__(self, config):
        self.board = ray.get_actor(config["board"])
        self.index = config.worker_index
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.fills = 0

    def reset(self):
        self.n = 0
        self.fills += 1
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        if self.n == 5:
            ray.get(self.board.write.remote(self.index))
        return np.ones(1, np.float32), 1.0, self.n == 5, {}


ray.init(num_cpus=4)
board = Board.options(name="board").remote()
trainer = PPOTrainer(
    env=Silo,
    config={
        "num_workers": 1,
        "framework": "torch",
        "env_config": {"board": "board"},
        "rollout_fragment_length": 25,
        "train_batch_size": 25,
        "sgd_minibatch_size": 25,
        "num_sgd_iter": 1,
    },
)
result = trainer.train()
lines = ray.get(board.read.remote())
fills = trainer.workers.foreach_worker(lambda w: w.foreach_env(lambda env: env.fills))
record(
    indices=set(lines),
    lines=len(lines),
    fills=[row for row in fills if row][-1],
    episodes=result["episodes_this_iter"],
)
trainer.stop()
