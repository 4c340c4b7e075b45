"""One agent learns by PPO and the other by DQN, in two trainers that give each other weights."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.dqn import DQNTorchPolicy, DQNTrainer
from ray.rllib.agents.ppo import PPOTorchPolicy, PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env


class Market(MultiAgentEnv):
    """A buyer and a seller, who see the price."""

    def __init__(self, config):
        super().__init__()
        self._agent_ids = {"buyer", "seller"}
        self.day = 0

    def prices(self):
        return {name: np.full(2, self.day, np.float32) for name in ("buyer", "seller")}

    def reset(self):
        self.day = 0
        return self.prices()

    def step(self, action_dict):
        self.day += 1
        rewards = {"buyer": 1.0, "seller": 2.0}
        return self.prices(), rewards, {"__all__": self.day == 8}, {}


register_env("market", lambda config: Market(config))
sees, does = gym.spaces.Box(0, 9, (2,), np.float32), gym.spaces.Discrete(2)
agents = {
    "policies": {
        "buyer": (PPOTorchPolicy, sees, does, {}),
        "seller": (DQNTorchPolicy, sees, does, {}),
    },
    "policy_mapping_fn": lambda agent_id, *args, **kwargs: agent_id,
}
model = {"fcnet_hiddens": [6], "vf_share_layers": True}
common = {"num_workers": 0, "framework": "torch", "num_gpus": 0, "model": model}

ray.init()
ppo = PPOTrainer(
    env="market",
    config={
        **common,
        "multiagent": {**agents, "policies_to_train": ["buyer"]},
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
    },
)
dqn = DQNTrainer(
    env="market",
    config={
        **common,
        "multiagent": {**agents, "policies_to_train": ["seller"]},
        "learning_starts": 8,
        "timesteps_per_iteration": 40,
        "train_batch_size": 16,
        "rollout_fragment_length": 8,
    },
)


def equal(name):
    one, other = (trainer.get_policy(name).get_weights() for trainer in (ppo, dqn))
    return one.keys() == other.keys() and all(np.allclose(one[k], other[k]) for k in one)


apart = {name: equal(name) for name in ("buyer", "seller")}
results = {"dqn": dqn.train(), "ppo": ppo.train()}
dqn.set_weights(ppo.get_weights(["buyer"]))
ppo.set_weights(dqn.get_weights(["seller"]))
try:
    ppo.set_weights({"buyer": {"no_such_layer": np.zeros(2)}})
    refused = False
except Exception:
    refused = True
record(
    apart=apart,
    swapped={name: equal(name) for name in ("buyer", "seller")},
    refused=refused,
    rewards={name: result["policy_reward_mean"] for name, result in results.items()},
    learned={name: sorted(result["info"]["learner"]) for name, result in results.items()},
    lengths={name: result["episode_len_mean"] for name, result in results.items()},
    again=ppo.train()["training_iteration"],
)
for trainer in (ppo, dqn):
    trainer.stop()
