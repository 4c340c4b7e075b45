"""A function for Tune that makes a trainer itself and reports what it likes."""

import ray
from facts import record
from ray import tune
from ray.rllib.agents.pg import PGTrainer


def train(config, reporter):
    trainer = PGTrainer(
        env="CartPole-v0",
        config={
            "num_workers": 0,
            "framework": "torch",
            "lr": config["lr"],
            "rollout_fragment_length": 30,
            "train_batch_size": 30,
        },
    )
    for i in range(2):
        result = trainer.train()
        reporter(steps=result["timesteps_total"], round=i, lr_seen=trainer.config["lr"])
    trainer.stop()


ray.init()
analysis = tune.run(train, config={"lr": tune.grid_search([0.1, 0.2])}, verbose=0)
last = [trial.last_result for trial in analysis.trials]
record(
    steps=[row["steps"] for row in last],
    rounds=[row["round"] for row in last],
    lrs=sorted(row["lr_seen"] for row in last),
    best=analysis.get_best_config(metric="lr_seen", mode="max"),
)
