"""A Ray that is started when one runs already, and one after another."""

import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer

CONFIG = {
    "num_workers": 0,
    "framework": "torch",
    "rollout_fragment_length": 20,
    "train_batch_size": 20,
    "sgd_minibatch_size": 10,
    "num_sgd_iter": 1,
}


def trained():
    trainer = PPOTrainer(env="CartPole-v0", config=CONFIG)
    steps = trainer.train()["timesteps_total"]
    trainer.stop()
    return steps


ray.init(num_cpus=2)
before = trained()
try:
    ray.init(num_cpus=2)
    again = "started"
except RuntimeError as error:
    again = "ignore_reinit_error" in str(error)
ray.init(num_cpus=2, ignore_reinit_error=True)
runs = ray.is_initialized()
ray.shutdown()
stopped = not ray.is_initialized()
ray.init(num_cpus=3)
record(
    steps=[before, trained()],
    again=again,
    runs=runs,
    stopped=stopped,
    cpus=ray.cluster_resources()["CPU"],
)
ray.shutdown()
