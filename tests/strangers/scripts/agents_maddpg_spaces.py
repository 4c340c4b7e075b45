"""MADDPG as its authors' project runs it: each policy says its number, and all agents' spaces."""

import numpy as np
import ray
from facts import record
from gym.spaces import Box, Discrete
from ray.rllib.contrib.maddpg.maddpg import MADDPGTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env


class Tag(MultiAgentEnv):
    def __init__(self):
        super().__init__()
        self._skip_env_checking = True
        self.observation_space_dict = {i: Box(-9, 9, (3 - i,), np.float32) for i in (0, 1)}
        self.action_space_dict = {0: Discrete(2), 1: Discrete(3)}

    def look(self):
        spaces = self.observation_space_dict
        return {i: np.full(space.shape, self.n, np.float32) for i, space in spaces.items()}

    def reset(self):
        self.n = 0
        return self.look()

    def step(self, actions):
        self.n += 1
        done = self.n == 5
        rewards = {0: 1.0, 1: -float(self.n)}
        return self.look(), rewards, {0: done, 1: done, "__all__": done}, {0: {}, 1: {}}


env = Tag()
register_env("tag", lambda _: Tag())
ray.init()


def gen_policy(i):
    own = {
        "agent_id": i,
        "use_local_critic": False,
        "obs_space_dict": env.observation_space_dict,
        "act_space_dict": env.action_space_dict,
    }
    return (None, env.observation_space_dict[i], env.action_space_dict[i], own)


trainer = MADDPGTrainer(
    env="tag",
    config={
        "num_workers": 0,
        "actor_hiddens": [8],
        "critic_hiddens": [8],
        "rollout_fragment_length": 10,
        "train_batch_size": 20,
        "learning_starts": 20,
        "buffer_size": 200,
        "timesteps_per_iteration": 40,
        "multiagent": {
            "policies": {"policy_%d" % i: gen_policy(i) for i in (0, 1)},
            "policy_mapping_fn": lambda agent_id, **kwargs: "policy_%d" % agent_id,
        },
    },
)
trainer.train()
result = trainer.train()
first = env.reset()
record(
    means=result["policy_reward_mean"],
    total=result["episode_reward_mean"],
    length=result["episode_len_mean"],
    actions=[
        np.shape(trainer.compute_single_action(first[i], policy_id="policy_%d" % i)) for i in (0, 1)
    ],
)
trainer.stop()
