"""A league that grows: policies added in a callback, with another mapping."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.policy.policy import PolicySpec
from ray.tune.registry import register_env


class Match(MultiAgentEnv):
    def __init__(self, config):
        super().__init__()
        self._agent_ids = {0, 1}
        self.observation_space = gym.spaces.Box(0, 9, (2,), np.float64)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.n = 0
        return {0: np.zeros(2), 1: np.ones(2)}

    def step(self, actions):
        self.n += 1
        done = self.n == 5
        obs = {0: np.zeros(2) + self.n, 1: np.ones(2) * self.n}
        return obs, {0: 1.0, 1: -1.0}, {"__all__": done}, {}


class League(DefaultCallbacks):
    def __init__(self):
        super().__init__()
        self.opponents = 0

    def on_train_result(self, *, trainer, result, **kwargs):
        self.opponents += 1
        name = "main_v%d" % self.opponents

        def mapping(agent_id, episode, worker, **kw):
            return "main" if agent_id == 0 else name

        main = trainer.get_policy("main")
        told = {"policy_mapping_fn": mapping, "policy_cls": type(main)}
        trainer.add_policy(name, **told).set_weights(main.get_weights())
        trainer.workers.sync_weights()
        result["league"] = self.opponents


register_env("match", lambda c: Match(c))
ray.init()
trainer = PPOTrainer(
    env="match",
    config={
        "num_workers": 0,
        "framework": "torch",
        "callbacks": League,
        "rollout_fragment_length": 50,
        "train_batch_size": 50,
        "sgd_minibatch_size": 25,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {"main": PolicySpec()},
            "policies_to_train": ["main"],
            "policy_mapping_fn": lambda agent_id, episode, **kw: "main",
        },
    },
)
results = [trainer.train() for _ in range(2)]
main, first = (trainer.get_policy(p).get_weights() for p in ("main", "main_v2"))
record(
    league=[result["league"] for result in results],
    policies=sorted(trainer.workers.local_worker().policy_map.keys()),
    equal=all(np.allclose(a, b) for a, b in zip(main.values(), first.values())),
    learned=sorted(results[1]["info"]["learner"]),
)
trainer.stop()
