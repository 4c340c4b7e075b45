"""An action distribution of one's own, by its name in the config."""

import gym
import numpy as np
import ray

from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.torch_action_dist import TorchCategorical, TorchDistributionWrapper


class Never0(TorchDistributionWrapper):
    @staticmethod
    def required_model_output_shape(action_space, model_config):
        return action_space.n - 1

    def __init__(self, inputs, model):
        super().__init__(inputs, model)
        self.inner = TorchCategorical(self.inputs, model)

    def sample(self):
        self.last_sample = self.inner.sample() + 1
        return self.last_sample

    def deterministic_sample(self):
        self.last_sample = self.inner.deterministic_sample() + 1
        return self.last_sample

    def logp(self, actions):
        return self.inner.logp((actions - 1).clamp(min=0))

    def sampled_action_logp(self):
        return self.logp(self.last_sample)

    def entropy(self):
        return self.inner.entropy()

    def kl(self, other):
        return self.inner.kl(other.inner)


class Gate(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self.seen = set()

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.seen.add(int(action))
        self.n += 1
        return np.ones(2, np.float32), 1.0, self.n == 5, {}


ModelCatalog.register_custom_action_dist("never0", Never0)
ray.init()
trainer = PPOTrainer(
    env=Gate,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 60,
        "train_batch_size": 60,
        "sgd_minibatch_size": 30,
        "num_sgd_iter": 1,
        "model": {"custom_action_dist": "never0", "fcnet_hiddens": [8]},
    },
)
result = trainer.train()
record(
    seen=trainer.workers.local_worker().env.seen,
    outputs=trainer.get_policy().model.num_outputs,
    reward=result["episode_reward_mean"],
)
trainer.stop()
