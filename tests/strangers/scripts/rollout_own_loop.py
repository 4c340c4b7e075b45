"""A loop of evaluation over several policies, as people took it from the rollout script."""

import collections

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.policy.sample_batch import DEFAULT_POLICY_ID
from ray.tune.registry import register_env


class Roads(MultiAgentEnv):
    def __init__(self, config):
        self.n = 0

    def reset(self):
        self.n = 0
        return {"a": np.zeros(1), "b": np.zeros(1)}

    def step(self, actions):
        self.n += 1
        done = self.n == 4
        obs = {"a": np.full(1, self.n), "b": np.full(1, self.n)}
        return obs, {"a": 1.0, "b": 2.0}, {"a": done, "b": done, "__all__": done}, {}


register_env("roads", lambda c: Roads(c))
box, disc = gym.spaces.Box(0, 9, (1,), np.float64), gym.spaces.Discrete(2)
ray.init()
trainer = PPOTrainer(
    env="roads",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {"x": (None, box, disc, {}), "y": (None, box, disc, {})},
            "policy_mapping_fn": lambda agent, *_, **__: "x" if agent == "a" else "y",
        },
    },
)
trainer.train()
worker = trainer.workers.local_worker()
env = worker.env
policy_map = worker.policy_map
recurrent = {name: bool(policy.get_initial_state()) for name, policy in policy_map.items()}
mapping = collections.defaultdict(lambda: DEFAULT_POLICY_ID)
for agent in ("a", "b"):
    mapping[agent] = trainer.config["multiagent"]["policy_mapping_fn"](agent, None)
totals, steps = collections.Counter(), 0
obs, done = env.reset(), False
while not done:
    actions = {
        agent: trainer.compute_action(value, policy_id=mapping[agent])
        for agent, value in obs.items()
    }
    obs, rewards, dones, _ = env.step(actions)
    totals.update(rewards)
    done = dones["__all__"]
    steps += 1
record(
    totals=dict(totals),
    steps=steps,
    lstm=recurrent,
    policies=sorted(policy_map.keys()),
    env=type(env).__name__,
)
trainer.stop()
