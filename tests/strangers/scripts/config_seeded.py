"""Two trainers with one seed get the same episodes and weights."""

import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer

config = {
    "num_workers": 0,
    "framework": "torch",
    "seed": 7,
    "rollout_fragment_length": 60,
    "train_batch_size": 60,
    "sgd_minibatch_size": 30,
    "num_sgd_iter": 2,
    "model": {"fcnet_hiddens": [8]},
}
ray.init()
found = []
for _ in range(2):
    trainer = PPOTrainer(env="CartPole-v0", config=config)
    result = trainer.train()
    weights = np.concatenate([np.ravel(w) for w in trainer.get_policy().get_weights().values()])
    found.append((result["hist_stats"]["episode_lengths"], weights))
    trainer.stop()
record(
    lengths=found[0][0] == found[1][0],
    weights=bool(np.allclose(found[0][1], found[1][1])),
)
