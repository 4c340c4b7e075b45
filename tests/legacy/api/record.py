"""Records what an old Ray's objects answered. usage: record.py OUT.json

With the Python of an environment that has the Ray; `tests/integration/test_legacy_api.py` compares.
"""

import json
import logging
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

import ray
from calls import play
from ray import tune
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.ppo import PPOTrainer

TORCH = {"use_pytorch": True} if ray.__version__ == "0.8.5" else {"framework": "torch"}


def run(config):
    return tune.run(
        "PPO",
        config=dict(config, **TORCH),
        stop={"training_iteration": 2},
        checkpoint_freq=1,
        local_dir=tempfile.mkdtemp(),
        verbose=0,
    )


def as_text(recorded):
    """JSON with an answer a line."""
    parts = []
    for kind, answers in sorted(recorded.items()):
        lines = [
            f"  {json.dumps(asked)}: {json.dumps(told, sort_keys=True)}"
            for asked, told in sorted(answers.items())
        ]
        parts.append(f" {json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    ray.init(num_cpus=2, include_webui=False) if ray.__version__ < "1" else ray.init(
        num_cpus=2, include_dashboard=False
    )
    old = SimpleNamespace(
        trainer=lambda config: PPOTrainer(config=dict(config, **TORCH)),
        callbacks=DefaultCallbacks,
        run=run,
    )
    Path(sys.argv[1]).write_text(as_text(play(old)))
