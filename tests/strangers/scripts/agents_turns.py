"""A game of turns: one agent observes at a time, and a policy that is not trained."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env import MultiAgentEnv
from ray.tune import register_env


class Countdown(MultiAgentEnv):
    """Players take one or two of nine matches in turn; the last one loses."""

    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def look(self):
        return {"p%d" % self.turn: np.array([self.left], np.float32)}

    def reset(self):
        self.left, self.turn = 9, 0
        return self.look()

    def step(self, action_dict):
        ((player, action),) = action_dict.items()
        assert player == "p%d" % self.turn
        self.left = max(self.left - 1, 0)
        self.turn = 1 - self.turn
        over = self.left == 0
        if over:
            obs = {p: np.zeros(1, np.float32) for p in ("p0", "p1")}
            return obs, {player: -1.0, "p%d" % self.turn: 1.0}, {"__all__": True}, {}
        return self.look(), {"p%d" % self.turn: 0.0}, {"__all__": False}, {}


register_env("countdown", Countdown)
env = Countdown()
ray.init()
policy = (None, env.observation_space, env.action_space, {})
config = {
    "num_workers": 0,
    "framework": "torch",
    "rollout_fragment_length": 90,
    "train_batch_size": 90,
    "sgd_minibatch_size": 45,
    "num_sgd_iter": 3,
    "lr": 0.01,
    "multiagent": {
        "policies": {"learner": policy, "frozen": policy},
        "policy_mapping_fn": lambda a, *_, **__: "learner" if a == "p0" else "frozen",
        "policies_to_train": ["learner"],
    },
}
trainer = PPOTrainer(env="countdown", config=config)
before = {
    p: {n: np.array(w) for n, w in trainer.get_policy(p).get_weights().items()}
    for p in ("learner", "frozen")
}
result = trainer.train()
after = {p: trainer.get_policy(p).get_weights() for p in ("learner", "frozen")}
record(
    changed={
        p: any(not np.allclose(before[p][name], after[p][name]) for name in before[p])
        for p in before
    },
    rewards=result["policy_reward_mean"],
    length=result["episode_len_mean"],
    episodes=result["episodes_total"],
    learned=sorted(result["info"]["learner"]),
)
trainer.stop()
