"""`tune.run` with a grid, a stop, checkpoints, what the analysis says, and a trainer of the best."""

import json
import os

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.rllib.agents.pg import PGTrainer


class Pit(gym.Env):
    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.pay = config["pay"]

    def reset(self):
        self.n = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.n += 1
        return np.ones(1, np.float32), self.pay, self.n == 5, {}


ray.init()
tune.register_env("pit", lambda config: Pit(config))
analysis = tune.run(
    PGTrainer,
    name="pits",
    stop={"training_iteration": 2},
    checkpoint_at_end=True,
    verbose=0,
    config={
        "env": "pit",
        "num_workers": 0,
        "framework": "torch",
        "env_config": {"pay": tune.grid_search([1.0, 2.0])},
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "lr": 0.001,
    },
)
best = analysis.get_best_trial(metric="episode_reward_mean", mode="max")
config = analysis.get_best_config(metric="episode_reward_mean", mode="max")
frame = analysis.dataframe()
logdir = analysis.get_best_logdir(metric="episode_reward_mean", mode="max")
checkpoints = analysis.get_trial_checkpoints_paths(best, metric="training_iteration")
best_checkpoint = analysis.get_best_checkpoint(best, metric="training_iteration", mode="max")
above = os.path.dirname(os.path.dirname(str(best_checkpoint)))
with open(os.path.join(above, "params.json")) as file:
    params = json.load(file)
trainer = PGTrainer(config=params)
saved = trainer.save(logdir)
record(
    trials=len(analysis.trials),
    statuses=[trial.status for trial in analysis.trials],
    rewards=sorted(trial.last_result["episode_reward_mean"] for trial in analysis.trials),
    best=config["env_config"]["pay"],
    rows=len(frame),
    columns=[c for c in ("config/lr", "episode_reward_mean", "training_iteration") if c in frame],
    files=[f for f in ("params.json", "progress.csv", "result.json") if f in os.listdir(logdir)],
    checkpoints=[number for _, number in checkpoints],
    paths=[str(path) == str(best_checkpoint) for path, _ in checkpoints],
    value=best.checkpoint.value == str(best_checkpoint),
    above=os.path.samefile(above, logdir),
    saved=os.path.relpath(os.path.dirname(saved), logdir),
    name=os.path.basename(os.path.dirname(logdir)),
    steps=best.last_result["timesteps_total"],
)
trainer.stop()
