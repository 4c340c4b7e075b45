"""Records how many steps iterations of A2C had in an old Ray, by the keys that said the least.

Usage: `python record_iterations.py OUT.json`, with the Python of an environment that has Ray 1.13.0
and torch; it starts no Ray. `tests/unit/config/test_iterations.py` compares. A train batch has 200
steps.
"""

import json
import sys
from pathlib import Path

from ray.rllib.agents.a3c import A2CTrainer

CASES = {
    "new key": {"min_sample_timesteps_per_reporting": 400},
    "old key": {"timesteps_per_iteration": 400},
    "both": {"min_sample_timesteps_per_reporting": 600, "timesteps_per_iteration": 400},
    "neither": {},
}
SHARED = {"env": "CartPole-v1", "num_workers": 0, "framework": "torch"}


def main(out):
    found = {}
    for case, told in CASES.items():
        trainer = A2CTrainer(config={**SHARED, "min_time_s_per_reporting": 0, **told})
        found[case] = {"config": told, "steps": trainer.train()["timesteps_total"]}
    Path(out).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
