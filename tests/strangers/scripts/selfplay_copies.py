"""Self-play by copying weights into an opponent in `on_train_result`."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env


class Match(MultiAgentEnv):
    def __init__(self, config):
        pass

    def reset(self):
        self.n = 0
        return {"left": np.zeros(2), "right": np.ones(2)}

    def step(self, actions):
        self.n += 1
        done = self.n == 5
        obs = {"left": np.zeros(2) + self.n, "right": np.ones(2) * self.n}
        return obs, {"left": 1.0, "right": -1.0}, {"__all__": done}, {}


class Copies(DefaultCallbacks):
    def on_train_result(self, *, trainer, result, **kwargs):
        if result["policy_reward_mean"]["main"] > 0.5:
            trainer.set_weights({"old": trainer.get_weights(["main"])["main"]})
            result["copied"] = result["training_iteration"]


def equal(trainer):
    main, old = (trainer.get_policy(p).get_weights() for p in ("main", "old"))
    return all(np.allclose(a, b) for a, b in zip(main.values(), old.values()))


register_env("match", lambda c: Match(c))
box, disc = gym.spaces.Box(0, 9, (2,), np.float64), gym.spaces.Discrete(2)
ray.init()
trainer = PPOTrainer(
    env="match",
    config={
        "num_workers": 0,
        "framework": "torch",
        "callbacks": Copies,
        "rollout_fragment_length": 50,
        "train_batch_size": 50,
        "sgd_minibatch_size": 25,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {"main": (None, box, disc, {}), "old": (None, box, disc, {})},
            "policies_to_train": ["main"],
            "policy_mapping_fn": lambda a, *_, **__: "main" if a == "left" else "old",
        },
    },
)
first = equal(trainer)
result = trainer.train()
record(
    first=first,
    after=equal(trainer),
    copied=result["copied"],
    on_worker=trainer.workers.foreach_worker(lambda w: sorted(w.policy_map)),
)
trainer.stop()
