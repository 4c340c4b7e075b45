"""Population-based training whose explored `lambda` leaves its range; what each trial uses then."""

import gym
import numpy as np
import ray
from facts import record
from ray import tune
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.tune.schedulers import PopulationBasedTraining


class Vein(gym.Env):
    """Pays what it was made with, so that one trial is better than the other."""

    def __init__(self, config):
        self.observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.ore = config["ore"]
        self.depth = 0

    def reset(self):
        self.depth = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.depth += 1
        return np.full(1, self.depth, np.float32), self.ore, self.depth == 4, {}


class Used(DefaultCallbacks):
    """Notes what the policy computes with."""

    def on_train_result(self, *, trainer, result, **kwargs):
        policy = trainer.get_policy()
        result["used"] = [policy.config[key] for key in ("lambda", "clip_param", "gamma")]
        result["lr_used"] = result["info"]["learner"]["default_policy"]["learner_stats"]["cur_lr"]


def beyond(config):
    """The next values: a fifth more, whatever the range is."""
    for key in ("lambda", "lr"):
        config[key] *= 1.2
    return config


better = {"time_attr": "training_iteration", "metric": "episode_reward_mean", "mode": "max"}
ray.init(num_cpus=4)
tune.register_env("vein", lambda config: Vein(config))
analysis = tune.run(
    "PPO",
    name="veins",
    num_samples=1,
    stop={"training_iteration": 4},
    verbose=0,
    scheduler=PopulationBasedTraining(
        custom_explore_fn=beyond,
        hyperparam_mutations={"lr": [1e-3, 1e-4], "lambda": [0.9, 0.95, 1.0]},
        synch=True,
        quantile_fraction=0.5,
        perturbation_interval=2,
        resample_probability=0,
        **better,
    ),
    config={
        "env": "vein",
        "env_config": {"ore": tune.grid_search([1.0, 3.0])},
        "callbacks": Used,
        "num_workers": 0,
        "framework": "torch",
        "lambda": 0.95,
        "lr": 1e-4,
        "train_batch_size": 16,
        "rollout_fragment_length": 16,
        "sgd_minibatch_size": 8,
        "num_sgd_iter": 1,
    },
)
rows = [trial.last_result for trial in analysis.trials]
record(
    statuses=[trial.status for trial in analysis.trials],
    iterations=[row["training_iteration"] for row in rows],
    rewards=[row["episode_reward_mean"] for row in rows],
    ores=[trial.config["env_config"]["ore"] for trial in analysis.trials],
    above_one=[trial.config["lambda"] > 1 for trial in analysis.trials],
    used=[[value > 1 for value in row["used"]] for row in rows],
    clip=[row["used"][1] for row in rows],
    lr_changed=[row["lr_used"] != 1e-4 for row in rows],
)
