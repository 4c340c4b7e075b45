"""Records what came of training loops in an old Ray. usage: record_loops.py OUT.json"""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

import gym
import ray
from ray.rllib.agents.trainer import COMMON_CONFIG
from ray.rllib.evaluation.metrics import collect_metrics
from ray.rllib.evaluation.worker_set import WorkerSet
from ray.rllib.policy.policy import Policy
from ray.rllib.policy.sample_batch import SampleBatch
from training_loops import play


def find_optimizer():
    try:
        return importlib.import_module("ray.rllib.optimizers").SyncSamplesOptimizer
    except ImportError:
        return None


OLD = SimpleNamespace(
    COMMON_CONFIG=COMMON_CONFIG,
    Policy=Policy,
    SampleBatch=SampleBatch,
    SyncSamplesOptimizer=find_optimizer(),
    WorkerSet=WorkerSet,
    collect_metrics=collect_metrics,
    make_env=lambda context: gym.make("CartPole-v1"),
    policy_argument="policy" if ray.__version__ == "0.8.5" else "policy_class",
)
ray.get = lambda references, **_: list(references)  # there are no remote workers, and no Ray runs
if ray.__version__ != "0.8.5":
    OLD.WorkerSet = lambda creator, **rest: WorkerSet(env_creator=creator, **rest)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(play(OLD), indent=1, sort_keys=True) + "\n")
