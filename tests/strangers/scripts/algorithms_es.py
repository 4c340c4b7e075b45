"""Evolution strategies, a few episodes."""

import numpy as np
import ray
from facts import record
from ray.rllib.agents.es import ESTrainer

ray.init(num_cpus=4)
trainer = ESTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 1,
        "framework": "torch",
        "episodes_per_batch": 4,
        "train_batch_size": 20,
        "noise_size": 100000,
        "model": {"fcnet_hiddens": [4]},
        "observation_filter": "NoFilter",
    },
)
result = trainer.train()
action = trainer.compute_action(np.array([0.0, 0.1, 0.0, 0.1]))
record(
    info=sorted(
        set(result["info"]) & {"weights_norm", "grad_norm", "update_ratio", "episodes_so_far"}
    ),
    action=int(action[0] if hasattr(action, "__len__") else action) in (0, 1),
)
trainer.stop()
