"""`.multi_agent()` with `PolicySpec`s that leave spaces out, and a mapping with three arguments."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.policy.policy import PolicySpec
from ray.tune.registry import register_env


class Team(MultiAgentEnv):
    def __init__(self, config=None):
        super().__init__()
        self.observation_space = gym.spaces.Box(0, 9, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self._agent_ids = {"a", "b"}

    def reset(self):
        self.n = 0
        return {"a": np.zeros(2, np.float32), "b": np.zeros(2, np.float32)}

    def step(self, actions):
        self.n += 1
        done = self.n == 4
        obs = {name: np.full(2, self.n, np.float32) for name in actions}
        return obs, {"a": 1.0, "b": 2.0}, {"a": done, "b": done, "__all__": done}, {}


register_env("team", lambda config: Team(config))
ray.init()
algo = (
    PPOConfig()
    .environment(env="team")
    .framework("torch")
    .rollouts(num_rollout_workers=0, rollout_fragment_length=40)
    .training(train_batch_size=40, sgd_minibatch_size=20, num_sgd_iter=1)
    .multi_agent(
        policies={"one": PolicySpec(), "two": PolicySpec(config={"gamma": 0.8})},
        policy_mapping_fn=lambda agent_id, episode, worker, **kw: (
            "one" if agent_id == "a" else "two"
        ),
        policies_to_train=["one"],
    )
    .build()
)
result = algo.train()
record(
    rewards=result["policy_reward_mean"],
    learned=sorted(result["info"]["learner"]),
    length=result["episode_len_mean"],
    gamma=algo.get_policy("two").config["gamma"],
    steps=[result["num_env_steps_sampled"], result["num_agent_steps_sampled"]],
    action=algo.compute_single_action(np.zeros(2, np.float32), policy_id="two") in (0, 1),
)
algo.stop()
