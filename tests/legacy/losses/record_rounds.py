"""Records what old Rays sampled before they learned, and how they replayed it.

Usage: `python record_rounds.py OUT.json`, with the Python of an environment that has Ray 0.8.5,
1.13.0 or 2.0.1, and torch (0.8.5: TensorFlow, too). `tests/unit/config/test_rounds.py` and
`tests/unit/algorithms/test_rounds_of_rays.py` compare.

`batches`: the settings of a PPO, and how many steps its first iteration learned from. `whole`: the
lengths of the episodes in each sample of whole episodes, of three environments whose episodes have
2, 5 and 11 steps. `replay` (Ray 0.8.5): with a policy optimizer, beta at each update of DQN, and
whether new steps had the greatest priority of all.
"""

import json
import sys
from pathlib import Path

import gym
import numpy as np
import ray

OLD = ray.__version__ < "1"
if OLD:
    from ray.rllib.agents.registry import get_agent_class as get_class
elif ray.__version__ < "2":
    from ray.rllib.agents.registry import get_trainer_class as get_class
else:
    from ray.rllib.algorithms.registry import get_algorithm_class as get_class

SHARED = {"num_gpus": 0, "sgd_minibatch_size": 8, "num_sgd_iter": 1, "num_workers": 0}
TORCH = {"use_pytorch": True} if OLD else {"framework": "torch"}
#: Fragments that make a batch, and some that do not.
BATCHES = [
    {"num_envs_per_worker": 2, "rollout_fragment_length": 10, "train_batch_size": 40},
    {"num_envs_per_worker": 3, "rollout_fragment_length": 6, "train_batch_size": 40},
    {"num_envs_per_worker": 3, "rollout_fragment_length": 12, "train_batch_size": 40},
    {"num_envs_per_worker": 1, "rollout_fragment_length": 25, "train_batch_size": 40},
    {"num_envs_per_worker": 4, "rollout_fragment_length": 20, "train_batch_size": 40},
    {"num_envs_per_worker": 7, "rollout_fragment_length": 4, "train_batch_size": 40},
]
#: The same for workers, which policy optimizers asked one by one.
WORKERS = [
    {"num_workers": 3, "rollout_fragment_length": 10, "train_batch_size": 40},
    {"num_workers": 2, "rollout_fragment_length": 15, "train_batch_size": 40},
    {"num_workers": 2, "rollout_fragment_length": 30, "train_batch_size": 40},
]
LENGTHS = (2, 5, 11)
SAMPLES = 12


class Walk(gym.Env):
    """Episodes have as many steps as `LENGTHS` says for the environment, or seven."""

    observation_space = gym.spaces.Box(-100.0, 100.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def __init__(self, config):
        own = config.get("lengths")
        self.steps = own[config.vector_index] if own else 7

    def reset(self):
        self.at = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.at += 1
        return np.full(2, self.at, np.float32), 1.0, self.at == self.steps, {}


def batch_of(settings, **more):
    """How many steps the first iteration of a PPO learned from."""
    trainer = get_class("PPO")(config={"env": Walk, **SHARED, **settings, **more})
    steps = trainer.train()["timesteps_total"]
    trainer.stop()
    return {"config": settings, "steps": steps}


def whole_episodes():
    """The lengths of the episodes of each sample."""
    config = {
        "num_envs_per_worker": len(LENGTHS),
        "rollout_fragment_length": 4,
        "train_batch_size": 48,  # of whole rounds, which Rays change no fragment for
        "batch_mode": "complete_episodes",
        "env_config": {"lengths": LENGTHS},
    }
    trainer = get_class("PPO")(config={"env": Walk, **SHARED, **TORCH, **config})
    worker = trainer.workers.local_worker()
    sampled = [worker.sample() for _ in range(SAMPLES)]
    trainer.stop()
    return [[len(part["rewards"]) for part in batch.split_by_episode()] for batch in sampled]


def replay():
    """Betas, and whether the newest step had the greatest priority, update by update."""
    told = {
        "rollout_fragment_length": 4,
        "train_batch_size": 8,
        "learning_starts": 8,
        "timesteps_per_iteration": 4,
        "prioritized_replay_beta": 0.4,
        "final_prioritized_replay_beta": 1.0,
        "prioritized_replay_beta_annealing_timesteps": 60,
        "num_workers": 0,
    }
    own = {"use_exec_api": False, "buffer_size": 1000}
    trainer = get_class("DQN")(config={"env": Walk, **TORCH, **told, **own})
    optimizer, betas, greatest = trainer.optimizer, [], []
    learn = optimizer._optimize

    def see():
        betas.append(float(optimizer.prioritized_replay_beta.value(optimizer.num_steps_trained)))
        buffer = optimizer.replay_buffers["default_policy"]
        newest = buffer._it_sum[len(buffer._storage) - 1]
        greatest.append(bool(np.isclose(newest, buffer._max_priority**buffer._alpha)))
        learn()

    optimizer._optimize = see
    while len(betas) < SAMPLES:
        optimizer.step()
    trainer.stop()
    return {"config": told, "betas": betas, "greatest": greatest}


def main(out):
    ray.init(num_cpus=4, include_webui=False) if OLD else ray.init(num_cpus=4)
    framework = {"use_pytorch": False} if OLD else TORCH
    found = {
        "batches": [batch_of(told, **framework) for told in BATCHES + WORKERS],
        "whole": whole_episodes(),
    }
    if OLD:
        found["replay"] = replay()
    parts = (f"{json.dumps(name)}: {json.dumps(told)}" for name, told in found.items())
    Path(out).write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
