"""Actions masked by the observation: an invalid action is never taken."""

import gym
import numpy as np
import ray
import torch
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.fcnet import FullyConnectedNetwork
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.utils.torch_ops import FLOAT_MIN


class Shop(gym.Env):
    def __init__(self, config):
        self.action_space = gym.spaces.Discrete(4)
        self.observation_space = gym.spaces.Dict(
            {
                "action_mask": gym.spaces.Box(0, 1, (4,)),
                "stock": gym.spaces.Box(0, 9, (2,)),
            }
        )
        self.taken = []

    def look(self):
        mask = np.zeros(4)
        mask[self.n % 4] = mask[(self.n + 1) % 4] = 1
        return {"action_mask": mask, "stock": np.array([self.n, 1])}

    def reset(self):
        self.n = 0
        return self.look()

    def step(self, action):
        assert self.look()["action_mask"][action] == 1, "masked"
        self.taken.append(int(action))
        self.n += 1
        return self.look(), 1.0, self.n == 8, {}


class Masked(TorchModelV2, torch.nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        torch.nn.Module.__init__(self)
        self.inner = FullyConnectedNetwork(
            gym.spaces.Box(0, 9, (2,)), action_space, num_outputs, model_config, name + "_inner"
        )

    def forward(self, input_dict, state, seq_lens):
        logits, _ = self.inner({"obs": input_dict["obs"]["stock"]})
        mask = input_dict["obs"]["action_mask"]
        return logits + torch.clamp(torch.log(mask), FLOAT_MIN, 1e38), state

    def value_function(self):
        return self.inner.value_function()


ModelCatalog.register_custom_model("masked", Masked)
ray.init()
trainer = PPOTrainer(
    env=Shop,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 80,
        "train_batch_size": 80,
        "sgd_minibatch_size": 40,
        "num_sgd_iter": 2,
        "model": {"custom_model": "masked", "fcnet_hiddens": [16], "vf_share_layers": True},
    },
)
result = trainer.train()
env = trainer.workers.local_worker().env
mask = np.array([0, 0, 1, 0])
own = {trainer.compute_action({"action_mask": mask, "stock": np.zeros(2)}) for _ in range(5)}
record(enough=len(env.taken) >= 80, own=own, reward=result["episode_reward_mean"])
trainer.stop()
