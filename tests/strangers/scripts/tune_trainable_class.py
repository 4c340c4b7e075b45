"""A `Trainable` of one's own around a trainer, with the methods of its time."""

import os

import ray
from facts import record
from ray import tune
from ray.rllib.agents.pg import PGTrainer


class Around(tune.Trainable):
    def setup(self, config):
        self.trainer = PGTrainer(
            env="CartPole-v0",
            config={
                "num_workers": 0,
                "framework": "torch",
                "lr": config["rate"],
                "rollout_fragment_length": 20,
                "train_batch_size": 20,
            },
        )

    def step(self):
        result = self.trainer.train()
        return {"inner": result["training_iteration"], "steps": result["timesteps_total"]}

    def save_checkpoint(self, folder):
        path = os.path.join(folder, "count")
        with open(path, "w") as file:
            file.write(str(self.trainer.iteration))
        return path

    def load_checkpoint(self, path):
        pass

    def cleanup(self):
        self.trainer.stop()


ray.init()
analysis = tune.run(
    Around,
    config={"rate": 0.02},
    stop={"training_iteration": 2},
    checkpoint_at_end=True,
    verbose=0,
)
(trial,) = analysis.trials
record(
    inner=trial.last_result["inner"],
    steps=trial.last_result["steps"],
    config=trial.config["rate"],
    status=trial.status,
)
