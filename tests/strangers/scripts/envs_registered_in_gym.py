"""An environment that gym makes by its id, with arguments and a limit of steps."""

import gym
import numpy as np
import ray
from facts import record
from gym.envs.registration import register
from ray.rllib.agents import ppo
from ray.tune.registry import register_env


class Tank(gym.Env):
    metadata = {"render.modes": ["human"]}

    def __init__(self, inflow=1.0):
        self.inflow = inflow
        self.action_space = gym.spaces.Discrete(3)
        self.observation_space = gym.spaces.Box(np.float32(0), np.float32(1e3), (1,))

    def reset(self):
        self.level = 0.0
        return np.array([self.level], dtype=np.float32)

    def step(self, action):
        self.level += self.inflow
        return np.array([self.level], dtype=np.float32), self.inflow, False, {"level": self.level}


register(id="Tank-v0", entry_point=Tank, max_episode_steps=12, kwargs={"inflow": 0.5})
register_env("tank", lambda config: gym.make("Tank-v0", **config))

ray.init()
config = ppo.DEFAULT_CONFIG.copy()
config["num_workers"] = 0
config["framework"] = "torch"
config["train_batch_size"] = 60
config["rollout_fragment_length"] = 60
config["sgd_minibatch_size"] = 30
config["num_sgd_iter"] = 1
config["env_config"] = {"inflow": 0.25}
trainer = ppo.PPOTrainer(config=config, env="tank")
result = trainer.train()
env = gym.make("Tank-v0")
env.reset()
steps, done = 0, False
while not done:
    _, _, done, info = env.step(0)
    steps += 1
record(
    reward=result["episode_reward_mean"],
    length=result["episode_len_mean"],
    episodes=result["episodes_this_iter"],
    own_steps=steps,
    truncated=info.get("TimeLimit.truncated"),
    limit=env.spec.max_episode_steps,
    inside=type(env.unwrapped).__name__,
)
trainer.stop()
