"""A3C with a worker and a schedule."""

import ray
from facts import record
from ray.rllib.agents.a3c import A3CTrainer

ray.init(num_cpus=4)
trainer = A3CTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 1,
        "framework": "torch",
        "rollout_fragment_length": 10,
        "min_iter_time_s": 1,
        "entropy_coeff": 0.02,
        "grad_clip": 20.0,
        "model": {"fcnet_hiddens": [8]},
    },
)
result = trainer.train()
record(
    steps=result["timesteps_total"] > 0,
    config=[trainer.config["entropy_coeff"], trainer.config["grad_clip"]],
)
trainer.stop()
