"""A policy made of functions: loss, postprocessing, statistics, actions of the model."""

import gym
import numpy as np
import ray
import torch
from facts import record
from ray.rllib.agents.trainer_template import build_trainer
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.policy.torch_policy_template import build_torch_policy


class Ramp(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(1, np.float32), 1.0, self.n == 3, {}


returns = []


def with_returns(policy, batch, other_agent_batches=None, episode=None):
    total, found = 0.0, []
    for reward in batch[SampleBatch.REWARDS][::-1]:
        total = reward + policy.config["gamma"] * total
        found.append(total)
    batch["returns"] = np.array(found[::-1], np.float32)
    returns.append(batch["returns"].copy())
    return batch


def loss(policy, model, dist_class, train_batch):
    logits, _ = model.from_batch(train_batch)
    dist = dist_class(logits, model)
    policy.told = -torch.mean(dist.logp(train_batch["actions"]) * train_batch["returns"])
    return policy.told


Reinforce = build_torch_policy(
    name="Reinforce",
    loss_fn=loss,
    postprocess_fn=with_returns,
    stats_fn=lambda policy, batch: {"told": float(policy.told.detach())},
    get_default_config=lambda: dict(
        __import__("ray.rllib.agents.trainer", fromlist=["x"]).COMMON_CONFIG, lr=0.01
    ),
)
Trainer = build_trainer(name="ReinforceTrainer", default_policy=Reinforce)
ray.init()
trainer = Trainer(
    env=Ramp,
    config={
        "num_workers": 0,
        "framework": "torch",
        "gamma": 0.5,
        "rollout_fragment_length": 12,
        "train_batch_size": 12,
    },
)
result = trainer.train()
stats = result["info"]["learner"]["default_policy"]
record(
    returns=returns[-1],
    told="told" in stats.get("learner_stats", stats),
    reward=result["episode_reward_mean"],
    name=type(trainer.get_policy()).__name__,
)
trainer.stop()
