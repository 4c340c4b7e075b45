"""A recurrent torch model of one's own, and its states in a loop of one's own."""

import gym
import numpy as np
import ray
import torch.nn as nn
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.preprocessors import get_preprocessor
from ray.rllib.models.torch.recurrent_net import RecurrentNetwork


class Tape(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(2, self.n, np.float32), 1.0, self.n == 6, {}


class Gru(RecurrentNetwork, nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name, cells=7):
        nn.Module.__init__(self)
        super().__init__(obs_space, action_space, num_outputs, model_config, name)
        self.size = get_preprocessor(obs_space)(obs_space).size
        self.cells = cells
        self.gru = nn.GRU(self.size, cells, batch_first=True)
        self.logits = nn.Linear(cells, num_outputs)
        self.values = nn.Linear(cells, 1)
        self.features = None

    def get_initial_state(self):
        return [self.logits.weight.new(1, self.cells).zero_().squeeze(0)]

    def value_function(self):
        assert self.features is not None
        return self.values(self.features).reshape([-1])

    def forward_rnn(self, inputs, state, seq_lens):
        self.features, hidden = self.gru(inputs, state[0].unsqueeze(0))
        return self.logits(self.features), [hidden.squeeze(0)]


ModelCatalog.register_custom_model("gru", Gru)
ray.init()
trainer = PPOTrainer(
    env=Tape,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 30,
        "train_batch_size": 60,
        "sgd_minibatch_size": 30,
        "num_sgd_iter": 1,
        "model": {"custom_model": "gru", "max_seq_len": 4},
    },
)
result = trainer.train()
state = trainer.get_policy().get_initial_state()
shapes = [np.shape(part) for part in state]
first, state, extra = trainer.compute_action(np.zeros(2, np.float32), state)
moved = bool(np.abs(np.asarray(state[0])).max() > 0)
record(
    states=shapes,
    next_states=[np.shape(part) for part in state],
    moved=moved,
    extra="action_logp" in extra and "vf_preds" in extra,
    reward=result["episode_reward_mean"],
    names=sorted(trainer.get_policy().get_weights()),
)
trainer.stop()
