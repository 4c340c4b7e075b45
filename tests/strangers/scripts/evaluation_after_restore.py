"""A checkpoint is restored with evaluation workers that its training didn't have."""

import os
import pickle
import tempfile

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.rllib.agents import ppo
from ray.rllib.evaluation.metrics import collect_episodes, summarize_episodes
from ray.tune.registry import register_env

seen = {}


class Line(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 50, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.reward = config.get("reward", 1.0)

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(1, self.n, np.float32), self.reward, self.n == 4, {}


def sample_three_times(trainer, eval_workers):
    remote = eval_workers.remote_workers()
    seen.update(workers=len(remote), iteration=trainer.iteration)
    for _ in range(3):
        started = [worker.sample.remote() for worker in remote]
        ray.get(started)
    found = collect_episodes(remote_workers=remote, timeout_seconds=600)[0]
    return {**summarize_episodes(found), "foo": 1}


ray.init()
register_env("line", lambda config: Line(config))
folder = tempfile.mkdtemp()
analysis = tune.run(
    "PPO",
    config={
        "env": "line",
        "framework": "tf",
        "num_workers": 0,
        "train_batch_size": 40,
        "rollout_fragment_length": 20,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
    },
    stop={"training_iteration": 2},
    checkpoint_freq=1,
    local_dir=folder,
    verbose=0,
)
trial = analysis.trials[0]
checkpoint_path = trial.checkpoint.value
base = os.path.dirname(os.path.dirname(checkpoint_path.rstrip("/")))
if not os.path.exists(os.path.join(base, "params.pkl")):
    base = os.path.dirname(checkpoint_path.rstrip("/"))
with open(os.path.join(base, "params.pkl"), "rb") as f:
    config = pickle.load(f)
config["num_workers"] = 0
config["evaluation_num_workers"] = 2
config["evaluation_interval"] = 1
config["evaluation_num_episodes"] = 4
config["evaluation_config"] = {"env_config": {"reward": 3.0}}
config["custom_eval_function"] = sample_three_times
agent = ppo.PPOTrainer(config=config, env="line")
agent.restore(checkpoint_path)
metrics = agent.evaluate()
record(
    seen=seen,
    foo=metrics["evaluation"]["foo"],
    reward=metrics["evaluation"]["episode_reward_mean"],
    episodes=metrics["evaluation"]["episodes_this_iter"],
    keys=sorted(k for k in metrics["evaluation"] if k.startswith("ep")),
    iteration=agent.iteration,
)
agent.stop()
