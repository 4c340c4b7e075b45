"""A function as stop, `sample_from` and `choice` in a config, a number of samples."""

import ray
from facts import record
from ray import tune


def stop(trial_id, result):
    return result["timesteps_total"] >= 60


GAMMAS = [0.5, 0.6]


def rate(trial):
    return trial.config.gamma / 100


ray.init()
drawn = {"lr": tune.sample_from(rate), "gamma": tune.choice(GAMMAS)}
fixed = {"num_workers": 0, "framework": "torch", "env": "CartPole-v0"}
steps = dict.fromkeys(("rollout_fragment_length", "train_batch_size"), 20)
analysis = tune.run("PG", config={**drawn, **fixed, **steps}, stop=stop, num_samples=2, verbose=0)
configs = [trial.config for trial in analysis.trials]
record(
    trials=len(configs),
    related=all(abs(c["lr"] * 100 - c["gamma"]) < 1e-9 for c in configs),
    inside=all(c["gamma"] in GAMMAS for c in configs),
    steps=[trial.last_result["timesteps_total"] for trial in analysis.trials],
)
