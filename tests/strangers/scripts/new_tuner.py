"""`Tuner` with a config as parameter space, and its results."""

import ray
from facts import record
from ray import air, tune
from ray.rllib.algorithms.pg import PGConfig

ray.init()
config = (
    PGConfig()
    .environment(env="CartPole-v0")
    .framework("torch")
    .rollouts(num_rollout_workers=0, rollout_fragment_length=30)
    .training(lr=tune.grid_search([0.01, 0.02]), train_batch_size=30)
)
best_first = tune.TuneConfig(mode="max", metric="training_iteration")
short = air.RunConfig(verbose=0, stop=dict(training_iteration=2))
space = config.to_dict()
results = tune.Tuner("PG", tune_config=best_first, run_config=short, param_space=space).fit()
best = results.get_best_result()
record(
    count=len(results),
    iterations=sorted(result.metrics["training_iteration"] for result in results),
    lrs=sorted(result.config["lr"] for result in results),
    best=best.metrics["timesteps_total"],
    errors=[str(result.error) for result in results if result.error],
    columns=[c for c in ("config/lr", "episode_reward_mean") if c in results.get_dataframe()],
)
