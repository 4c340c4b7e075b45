"""Records what an observation filter of an old Ray made of observations, fragment by fragment.

Usage: `python record_filters.py OUT`, with the Python of an environment that has Ray 1.13.0 and
torch (it runs on Python 3.8). It writes `OUT/filters.npz`;
`tests/unit/runtime/test_old_filters.py` compares.

    <i>.obs                     what the policy saw at each step of fragment i of one worker
    <i>.count, .mean, .std      the filter's statistics after it
    merged.<i>.*                those that two workers have after round i, in which each has sampled
                                a fragment and told the trainer's process what it saw
"""

import gym
import numpy as np
from ray.rllib.agents.ppo.ppo import PPOTrainer
from ray.rllib.agents.ppo.ppo_torch_policy import PPOTorchPolicy
from ray.rllib.evaluation.rollout_worker import RolloutWorker
from recording import save

POLICY = "default_policy"


class Walk(gym.Env):
    """Observations depend on the step and on where episodes begin; they have 20 steps."""

    observation_space = gym.spaces.Box(-100.0, 100.0, (3,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, first):
        self.first = first

    def seen(self):
        return np.array([self.at + self.first, self.at % 3, 5.0], np.float32)

    def reset(self):
        self.at = 0
        return self.seen()

    def step(self, action):
        self.at += 1
        return self.seen(), 1.0, self.at >= 20, {}


def worker_of(first):
    config = dict(PPOTrainer.get_default_config(), framework="torch", num_gpus=0, num_workers=0)
    return RolloutWorker(
        env_creator=lambda _: Walk(first),
        policy_spec=PPOTorchPolicy,
        policy_config=config,
        rollout_fragment_length=30,
        observation_filter="MeanStdFilter",
    )


def statistics(told):
    return {"count": told.rs.n, "mean": told.rs.mean, "std": told.rs.std}


def record():
    found = {}
    worker = worker_of(0.0)
    for number in range(3):
        found[f"{number}.obs"] = np.array(worker.sample()["obs"])
        for name, value in statistics(worker.filters[POLICY]).items():
            found[f"{number}.{name}"] = np.array(value)
    local, workers = worker_of(0.0), [worker_of(0.0), worker_of(7.0)]
    for number in range(3):  # what `FilterManager.synchronize` does
        for each in workers:
            each.sample()
        for each in workers:
            told = each.get_filters(flush_after=True)[POLICY]
            local.filters[POLICY].apply_changes(told, with_buffer=False)
        for each in workers:
            each.sync_filters({POLICY: local.filters[POLICY].as_serializable()})
        for name, value in statistics(workers[0].filters[POLICY]).items():
            found[f"merged.{number}.{name}"] = np.array(value)
    return found


if __name__ == "__main__":
    save("filters", record())
