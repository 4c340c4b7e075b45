"""gym's own CartPole, changed by a subclass and by its attributes."""

import numpy as np
import ray
from facts import record
from gym.envs.classic_control.cartpole import CartPoleEnv
from ray.rllib.agents.ppo import PPOTrainer


class HeavyPole(CartPoleEnv):
    def __init__(self, config=None):
        super().__init__()
        self.masspole = (config or {}).get("mass", 0.1)
        self.total_mass = self.masspole + self.masscart
        self.count = 0

    def step(self, action):
        self.count += 1
        seen, paid, over, told = super().step(action)
        return seen, paid / 2, over or self.count % 10 == 0, told


ray.init()
config = {
    "num_workers": 0,
    "framework": "torch",
    "env_config": {"mass": 0.4},
    "rollout_fragment_length": 50,
    "train_batch_size": 50,
    "sgd_minibatch_size": 25,
    "num_sgd_iter": 1,
}
trainer = PPOTrainer(env=HeavyPole, config=config)
result = trainer.train()
env = trainer.workers.local_worker().env
env.seed(0)
first = env.reset()
env.state = np.zeros(4)
record(
    steps=result["timesteps_total"],
    halves=result["episode_reward_mean"] * 2 == result["episode_len_mean"],
    most=result["episode_reward_max"] <= 5,
    mass=env.total_mass,
    first=[first.shape, bool(np.abs(first).max() < 0.05)],
    after=env.step(1)[0],
    high=env.observation_space.high[[0, 2]],
    force=env.force_mag,
)
trainer.stop()
