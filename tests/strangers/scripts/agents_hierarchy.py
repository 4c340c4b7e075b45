"""A high-level agent sets goals, each for a low-level agent that is new."""

import numpy as np
import ray
from facts import record
from gym.spaces import Box, Discrete, Tuple
from ray import tune
from ray.rllib.env import MultiAgentEnv

HERE = Box(-9, 9, (2,), np.float32)


class Maze(MultiAgentEnv):
    def __init__(self, config):
        super().__init__()
        self._skip_env_checking = True

    def reset(self):
        self.low, self.goal, self.steps = 0, 0, 0
        return {"high": self.here()}

    def here(self):
        return np.array([self.low, self.steps], np.float32)

    def step(self, actions):
        assert len(actions) == 1, actions
        if "high" in actions:
            self.low, self.goal, self.steps = self.low + 1, int(actions["high"]), 0
            name = "low_{}".format(self.low)
            return {name: (self.here(), self.goal)}, {name: 0}, {"__all__": False}, {}
        self.steps += 1
        name = "low_{}".format(self.low)
        obs, rewards, dones = {name: (self.here(), self.goal)}, {name: 0.5}, {"__all__": False}
        if self.steps == 3:
            dones[name] = True
            obs["high"], rewards["high"] = self.here(), float(self.low)
            dones["__all__"] = self.low == 3
        return obs, rewards, dones, {}


def policy_mapping_fn(agent_id, episode, worker, **kwargs):
    return "low" if agent_id.startswith("low_") else "high"


tune.register_env("maze", lambda config: Maze(config))
ray.init()
config = {
    "env": "maze",
    "num_workers": 0,
    "framework": "torch",
    "train_batch_size": 36,
    "rollout_fragment_length": 12,
    "sgd_minibatch_size": 9,
    "num_sgd_iter": 1,
    "multiagent": {
        "policies": {
            "high": (None, HERE, Discrete(4), {"gamma": 0.9}),
            "low": (None, Tuple([HERE, Discrete(4)]), Discrete(2), {"gamma": 0.0}),
        },
        "policy_mapping_fn": policy_mapping_fn,
    },
}
analysis = tune.run("PPO", stop={"training_iteration": 1}, config=config, verbose=0)
result = analysis.trials[0].last_result
record(
    total=result["episode_reward_mean"],
    means=result["policy_reward_mean"],
    most=result["policy_reward_max"],
    length=result["episode_len_mean"],
    learned=sorted(result["info"]["learner"]),
)
