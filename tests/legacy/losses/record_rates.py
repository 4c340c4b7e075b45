"""Records the learning rates of the first updates in an old Ray, where `lr` and a schedule differ.

Usage: `python record_rates.py OUT.json`, with the Python of an environment that has Ray 1.13.0 and
torch; it starts no Ray. `tests/integration/test_rates.py` compares. By algorithm the `config`, and
by iteration `used`, the optimizer's rate at each of its steps, and `told`, the result's `cur_lr`.
"""

import json
import sys
from pathlib import Path

import torch
from ray.rllib.agents.a3c import A2CTrainer
from ray.rllib.agents.ppo import PPOTrainer

SHARED = {
    "env": "CartPole-v1",
    "framework": "torch",
    "num_workers": 0,
    "lr": 0.1,
    "lr_schedule": [[0, 0.01], [1000, 0.001]],
    "rollout_fragment_length": 20,
    "train_batch_size": 20,
    "timesteps_per_iteration": 20,
    "min_time_s_per_reporting": 0,
    "model": {"fcnet_hiddens": [4]},
}
CASES = {
    "A2C": (A2CTrainer, {}),
    "PPO": (PPOTrainer, {"sgd_minibatch_size": 20, "num_sgd_iter": 1}),
}


def iteration(trainer, used):
    """What one iteration used and told."""
    used.clear()
    stats = trainer.train()["info"]["learner"]["default_policy"]["learner_stats"]
    return {"used": list(used), "told": float(stats["cur_lr"])}


def main(out):
    used = []
    step = torch.optim.Adam.step

    def noting(optimizer, *args, **kwargs):
        used.append(optimizer.param_groups[0]["lr"])
        return step(optimizer, *args, **kwargs)

    torch.optim.Adam.step = noting
    found = {}
    for name, (kind, settings) in CASES.items():
        config = {**SHARED, **settings}
        trainer = kind(config=config)
        iterations = [iteration(trainer, used) for _ in range(3)]
        found[name] = {"config": config, "iterations": iterations}
    Path(out).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
