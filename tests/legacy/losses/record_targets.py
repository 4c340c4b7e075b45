"""Records when an old Ray learned and when targets followed, round by round.

Usage: `python record_targets.py OUT`, with the Python of an environment that has Ray 1.13.0 or
0.8.5 (DQN alone), and torch. It writes `OUT/targets.json`; `tests/unit/algorithms/test_targets.py`
compares. It starts no Ray.

By case: the config; `learned`, how many steps were sampled at each update; and `followed`, at each
update of the targets how many steps were sampled and how many updates made.
"""

import json
import sys
from pathlib import Path

import gym
import numpy as np
import ray

OLD = ray.__version__ < "1"
if OLD:
    from ray.rllib.agents.registry import get_agent_class as get_trainer_class
else:
    from ray.rllib.agents.registry import get_trainer_class

#: As many steps are sampled of each.
STEPS = 60
ROUND = {"num_workers": 0, "num_gpus": 0, "timesteps_per_iteration": 0, "train_batch_size": 8}
if OLD:
    ROUND.update(use_pytorch=True, min_iter_time_s=0)
else:
    ROUND.update(framework="torch", min_time_s_per_reporting=0)
    ROUND["min_sample_timesteps_per_reporting"] = 0
FOUR = {"rollout_fragment_length": 4, "learning_starts": 10}
ONE = {"rollout_fragment_length": 1, "learning_starts": 7}
#: Case → algorithm, settings.
CASES = {
    "dqn-10": ("DQN", {**FOUR, "target_network_update_freq": 10}),
    "dqn-24": ("DQN", {**FOUR, "target_network_update_freq": 24}),
    "dqn-1": ("DQN", {**ONE, "target_network_update_freq": 1}),
    "sac-0": ("SAC", {**ONE, "target_network_update_freq": 0}),
    "sac-5": ("SAC", {**ONE, "target_network_update_freq": 5}),
    "ddpg-0": ("DDPG", {**ONE, "target_network_update_freq": 0}),
    "ddpg-5": ("DDPG", {**ONE, "target_network_update_freq": 5}),
    "td3-0": ("TD3", {**ONE, "target_network_update_freq": 0}),
    "td3-6": ("TD3", {**FOUR, "target_network_update_freq": 6}),
}


class Walk(gym.Env):
    """An episode has seven steps."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (2,), np.float32)

    def __init__(self, config):
        box = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(3) if config["discrete"] else box

    def reset(self):
        self.at = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.at += 1
        return np.full(2, self.at, np.float32), 1.0, self.at == 7, {}


def record(algorithm, settings):
    """Trains until enough was sampled; what happened after how many steps."""
    own = {"env": Walk, "env_config": {"discrete": algorithm == "DQN"}}
    trainer = get_trainer_class(algorithm)(config={**ROUND, **settings, **own})
    worker = trainer.workers.local_worker()
    policy = worker.get_policy()
    sampled, learned, followed = [0], [], []
    sample, follow, learn = worker.sample, policy.update_target, policy.learn_on_batch

    def see_sample():
        batch = sample()
        sampled[0] += batch.count
        return batch

    def see_follow(*told):
        followed.append([sampled[0], len(learned)])
        return follow(*told)

    def see_learn(batch):
        learned.append(sampled[0])
        return learn(batch)

    worker.sample, policy.update_target = see_sample, see_follow
    policy.learn_on_batch = see_learn  # what `learn_on_loaded_batch` calls on a CPU
    while sampled[0] < STEPS:
        trainer.train()
    trainer.stop()
    return {"algorithm": algorithm, "config": settings, "learned": learned, "followed": followed}


def main(out):
    cases = {case: told for case, told in CASES.items() if told[0] == "DQN" or not OLD}
    found = {case: record(*told) for case, told in cases.items()}
    rows = ",\n".join(f"{json.dumps(case)}: {json.dumps(told)}" for case, told in found.items())
    Path(out, "targets.json").write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1])
