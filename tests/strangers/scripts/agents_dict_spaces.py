"""Agents whose spaces are in one Dict of the environment, with a space of its own for each."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.multi_agent_env import MultiAgentEnv


class Crossing(MultiAgentEnv):
    """A car and a tram, which see and do different things."""

    def __init__(self, config):
        super().__init__()
        self._agent_ids = {"car", "tram"}
        self._spaces_in_preferred_format = True
        self.observation_space = gym.spaces.Dict(
            {
                "car": gym.spaces.Box(-1, 50, (3,), np.float32),
                "tram": gym.spaces.Dict(
                    {"stop": gym.spaces.Discrete(4), "load": gym.spaces.Box(0, 9, (1,), np.float32)}
                ),
            }
        )
        self.action_space = gym.spaces.Dict(
            {"car": gym.spaces.Box(-1, 1, (1,), np.float32), "tram": gym.spaces.Discrete(3)}
        )
        self.seconds = 0

    def look(self):
        load = np.array([self.seconds % 9], np.float32)
        return {
            "car": np.full(3, self.seconds, np.float32),
            "tram": {"stop": self.seconds % 4, "load": load},
        }

    def reset(self):
        self.seconds = 0
        return self.look()

    def step(self, action_dict):
        assert self.action_space["car"].shape == np.shape(action_dict["car"])
        assert int(action_dict["tram"]) in range(3)
        self.seconds += 1
        over = self.seconds == 10
        return self.look(), {"car": 1.0, "tram": -0.5}, {"__all__": over}, {}


ray.init(num_cpus=4)
algorithm = (
    PPOConfig()
    .environment(env=Crossing)
    .framework("torch")
    .rollouts(num_rollout_workers=0, rollout_fragment_length=40)
    .training(train_batch_size=40, sgd_minibatch_size=20, num_sgd_iter=1)
    .multi_agent(
        policies={"car", "tram"}, policy_mapping_fn=lambda agent_id, *args, **kwargs: agent_id
    )
    .build()
)
result = algorithm.train()
record(
    reward=result["episode_reward_mean"],
    policies=result["policy_reward_mean"],
    length=result["episode_len_mean"],
    agent_steps=result["num_agent_steps_trained"],
    learned=sorted(result["info"]["learner"]),
)
algorithm.stop()
