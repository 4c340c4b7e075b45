"""A policy without a network that keeps a state, reads infos, and returns more than actions."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.trainer_template import build_trainer
from ray.rllib.policy.policy import Policy


class Tank(gym.Env):
    """Says in its infos how full it is; its observation says nothing."""

    def __init__(self, config):
        self.observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(9)
        self.litres, self.acted = 0, []

    def reset(self):
        self.litres, self.acted = 0, []
        return np.zeros(1, np.float32)

    def step(self, action):
        self.acted.append(int(action))
        self.litres += 2
        done = len(self.acted) == 4
        return np.zeros(1, np.float32), float(action), done, {"litres": self.litres}


class Keeper(Policy):
    """Its action is how often it has acted; what it saw in infos is among the extras."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.infos = []

    def get_initial_state(self):
        return [np.zeros(1, np.float32)]

    def compute_actions(
        self,
        obs_batch,
        state_batches=None,
        prev_action_batch=None,
        prev_reward_batch=None,
        info_batch=None,
        episodes=None,
        **kwargs,
    ):
        if info_batch is not None:
            self.infos += [info.get("litres", 0) for info in info_batch if isinstance(info, dict)]
        counts = [np.asarray(row) + 1 for row in state_batches[0]]
        actions = np.array([int(count[0]) - 1 for count in counts])
        return actions, [counts], {"counted": np.array([count[0] for count in counts])}

    def learn_on_batch(self, samples):
        self.learned = {
            "count": samples.count,
            "counted": sorted(set(np.asarray(samples["counted"]).tolist())),
        }
        return {}

    def get_weights(self):
        return {}

    def set_weights(self, weights):
        pass


KeeperTrainer = build_trainer(name="Keeper", default_policy=Keeper)
ray.init()
trainer = KeeperTrainer(
    env=Tank,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 8,
        "train_batch_size": 8,
    },
)
result = trainer.train()
policy = trainer.get_policy()
record(
    reward=result["episode_reward_mean"],
    infos=sorted(set(policy.infos)),
    learned=policy.learned,
    state=policy.get_initial_state(),
)
trainer.stop()
