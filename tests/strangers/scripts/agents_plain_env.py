"""Two policies, agents that end at different steps."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env


class Convoy(MultiAgentEnv):
    def __init__(self, config):
        self.trucks = ["truck_%d" % i for i in range(3)]

    def reset(self):
        self.n = 0
        self.gone = set()
        return {name: np.zeros(2, np.float32) for name in self.trucks}

    def step(self, action_dict):
        self.n += 1
        left = [name for name in self.trucks if name not in self.gone]
        assert set(action_dict) == set(left), (action_dict, left)
        done = {name: self.n >= 3 + 2 * i for i, name in enumerate(self.trucks) if name in left}
        self.gone |= {name for name, ended in done.items() if ended}
        done["__all__"] = len(self.gone) == 3
        return (
            {name: np.full(2, self.n, np.float32) for name in left},
            {name: 1.0 for name in left},
            done,
            {name: {"n": self.n} for name in left},
        )


register_env("convoy", lambda config: Convoy(config))
obs_space = gym.spaces.Box(0, 10, (2,), np.float32)
act_space = gym.spaces.Discrete(2)
ray.init()
trainer = PPOTrainer(
    env="convoy",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 70,
        "train_batch_size": 70,
        "sgd_minibatch_size": 35,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {
                "first": (None, obs_space, act_space, {}),
                "others": (None, obs_space, act_space, {"gamma": 0.9}),
            },
            "policy_mapping_fn": lambda agent_id, *_, **__: (
                "first" if agent_id == "truck_0" else "others"
            ),
        },
    },
)
result = trainer.train()
record(
    reward=result["episode_reward_mean"],
    length=result["episode_len_mean"],
    rewards=result["policy_reward_mean"],
    episodes=result["episodes_total"],
    steps=result["timesteps_total"],
    gammas=[trainer.get_policy(p).config["gamma"] for p in ("first", "others")],
    action=trainer.compute_action(np.zeros(2, np.float32), policy_id="first") in (0, 1),
)
trainer.stop()
