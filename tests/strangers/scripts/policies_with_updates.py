"""PPO's torch policy with another loss, and a trainer that has it."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.agents.ppo.ppo_torch_policy import PPOTorchPolicy, ppo_surrogate_loss

calls = []


class Ramp(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(1, np.float32), 1.0, self.n == 5, {}


def doubled(policy, model, dist_class, train_batch):
    calls.append(len(train_batch["obs"]))
    return 2 * ppo_surrogate_loss(policy, model, dist_class, train_batch)


Doubled = PPOTorchPolicy.with_updates(name="Doubled", loss_fn=doubled)
DoubledTrainer = PPOTrainer.with_updates(
    name="DoubledPPO", default_policy=Doubled, get_policy_class=lambda config: Doubled
)
ray.init()
trainer = DoubledTrainer(
    env=Ramp,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 3,
    },
)
calls.clear()
result = trainer.train()
stats = result["info"]["learner"]["default_policy"]
record(
    sizes=set(calls),
    passes=len(calls),
    policy=type(trainer.get_policy()).__name__,
    trainer=DoubledTrainer.__name__,
    stats=sorted(
        set(stats.get("learner_stats", stats)) & {"kl", "entropy", "total_loss", "policy_loss"}
    ),
)
trainer.stop()
