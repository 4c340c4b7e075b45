"""SAC with a policy network of one's own, and Q networks by their own config."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.sac import SACTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from torch import nn


class Push(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(-9, 9, (3,), np.float32)
        self.action_space = gym.spaces.Box(-2, 2, (2,), np.float32)

    def reset(self):
        self.n = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        assert self.action_space.contains(action), action
        self.n += 1
        return np.full(3, self.n, np.float32), float(self.n), self.n == 5, {}


class Body(TorchModelV2, nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name, units=4):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        seen = int(np.prod(obs_space.shape))
        self.layers = nn.Sequential(
            nn.Linear(seen, units), nn.Tanh(), nn.Linear(units, num_outputs)
        )

    def forward(self, input_dict, state, seq_lens):
        return self.layers(input_dict["obs_flat"].float()), state


ray.init()
ModelCatalog.register_custom_model("body", Body)
trainer = SACTrainer(
    env=Push,
    config={
        "num_workers": 0,
        "framework": "torch",
        "policy_model": {"custom_model": "body", "custom_model_config": {"units": 5}},
        "Q_model": {"fcnet_hiddens": [6], "fcnet_activation": "tanh"},
        "twin_q": True,
        "tau": 0.01,
        "target_entropy": -1.0,
        "initial_alpha": 0.5,
        "learning_starts": 8,
        "train_batch_size": 8,
        "timesteps_per_iteration": 20,
        "rollout_fragment_length": 1,
        "prioritized_replay": True,
    },
)
result = trainer.train()
stats = result["info"]["learner"]["default_policy"]["learner_stats"]
record(
    reward=result["episode_reward_mean"],
    shapes=sorted(list(np.shape(v)) for v in trainer.get_policy().get_weights().values()),
    action=np.shape(trainer.compute_single_action(np.zeros(3), explore=False)),
    stats=sorted(k for k in stats if k in ("actor_loss", "critic_loss", "alpha_loss", "mean_q")),
)
trainer.stop()
