"""DQN with soft Q exploration, then an epsilon schedule of its own and a worker's own value."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.dqn import DQNTrainer
from ray.rllib.utils.schedules import PiecewiseSchedule


class Line(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 50, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(1, self.n, np.float32), 1.0, self.n == 5, {}


ray.init()
base = {
    "framework": "torch",
    "num_workers": 0,
    "learning_starts": 10,
    "rollout_fragment_length": 4,
    "train_batch_size": 8,
    "timesteps_per_iteration": 40,
    "buffer_size": 100,
    "hiddens": [8],
    "model": {"fcnet_hiddens": [8]},
    "min_iter_time_s": 0,
}
soft = DQNTrainer(
    env=Line, config=dict(base, exploration_config={"type": "SoftQ", "temperature": 0.5})
)
first = soft.train()
info = (
    soft.get_policy().get_exploration_info()
    if hasattr(soft.get_policy(), "get_exploration_info")
    else soft.get_policy().get_exploration_state()
)
epsilon = DQNTrainer(
    env=Line,
    config=dict(
        base,
        exploration_config={
            "type": "EpsilonGreedy",
            "epsilon_schedule": PiecewiseSchedule(
                endpoints=[(0, 1.0), (40, 0.5), (80, 0.0)], outside_value=0.0, framework="torch"
            ),
        },
    ),
)
values = []
for _ in range(3):
    epsilon.train()
    state = epsilon.get_policy().get_exploration_state()
    values.append(state["cur_epsilon"])
record(
    type=[type(t.get_policy().exploration).__name__ for t in (soft, epsilon)],
    soft=sorted(info),
    values=[round(float(v), 1) for v in values],
    steps=first["timesteps_total"],
    config=soft.config["exploration_config"],
    length=first["episode_len_mean"],
)
soft.stop()
epsilon.stop()
