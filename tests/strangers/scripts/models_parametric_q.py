"""DQN whose model scores the actions that an observation offers, and masks the others."""

import gym
import numpy as np
import ray
import torch
from facts import record
from ray.rllib.agents.dqn import DQNTrainer
from ray.rllib.agents.dqn.dqn_torch_model import DQNTorchModel
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.fcnet import FullyConnectedNetwork
from ray.rllib.utils.torch_utils import FLOAT_MIN

DOORS = 4


class Doors(gym.Env):
    def __init__(self, config):
        self.action_space = gym.spaces.Discrete(DOORS)
        self.observation_space = gym.spaces.Dict(
            {
                "open": gym.spaces.Box(0, 1, (DOORS,)),
                "doors": gym.spaces.Box(-1, 1, (DOORS, 2)),
                "room": gym.spaces.Box(0, 9, (3,)),
            }
        )

    def look(self):
        places = np.linspace(-1, 1, DOORS, dtype=np.float32)
        return {
            "open": np.eye(DOORS, dtype=np.float32)[self.n % DOORS],
            "doors": np.stack([places, -places], 1),
            "room": np.full(3, self.n, np.float32),
        }

    def reset(self):
        self.n = 0
        return self.look()

    def step(self, action):
        reward = 1.0 if action == self.n % DOORS else -1.0
        self.n += 1
        return self.look(), reward, self.n == 5, {}


class Scores(DQNTorchModel):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name, **kwargs):
        DQNTorchModel.__init__(
            self, obs_space, action_space, num_outputs, model_config, name, **kwargs
        )
        room = gym.spaces.Box(0, 9, (3,))
        self.intent = FullyConnectedNetwork(room, action_space, 2, model_config, name + "_intent")

    def forward(self, input_dict, state, seq_lens):
        seen = input_dict["obs"]
        intent, _ = self.intent({"obs": seen["room"]})
        scores = (seen["doors"] * intent[:, None]).sum(2)
        return scores + torch.clamp(torch.log(seen["open"]), min=FLOAT_MIN), state


ray.init()
ModelCatalog.register_custom_model("scores", Scores)
trainer = DQNTrainer(
    env=Doors,
    config={
        "num_workers": 0,
        "framework": "torch",
        "hiddens": [],
        "dueling": False,
        "model": {"custom_model": "scores", "fcnet_hiddens": [8]},
        "learning_starts": 10,
        "buffer_size": 100,
        "train_batch_size": 8,
        "timesteps_per_iteration": 50,
        "rollout_fragment_length": 5,
        "exploration_config": {"epsilon_timesteps": 10, "final_epsilon": 0.0},
    },
)
result = trainer.train()
env = Doors({})
observation, done, total = env.reset(), False, 0.0
while not done:
    action = trainer.compute_action(observation, explore=False)
    observation, reward, done, _ = env.step(action)
    total += reward
record(total=total, greatest=result["episode_reward_max"])
trainer.stop()
