"""Records value targets of several agents as an old Ray made them.

Usage: `python record_agents.py OUT.json`, with the Python of an environment that has Ray 1.13.0 and
torch; it starts no Ray. `tests/unit/algorithms/test_several_agents.py` compares. By case, the
sorted `rewards` and `targets` of each policy in a sample. `weights` are those of all cases.
"""

import json
import sys
from pathlib import Path

import agents
import gym
import numpy as np
from agents import CASES, CONFIG, policy_of
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv

SPACES = (gym.spaces.Box(-1.0, 1.0, (3,), np.float32), gym.spaces.Discrete(2))


def record(case, found):
    """Records one case."""
    name, told, more = CASES[case]
    played = getattr(agents, name)

    class Env(played, MultiAgentEnv):
        def __init__(self, config):
            MultiAgentEnv.__init__(self)
            played.__init__(self, config)
            self.observation_space, self.action_space = SPACES
            self._agent_ids = {0, 1, 2}

    policy = (None, *SPACES, {})
    several = {"policies": {"first": policy, "others": policy}}
    several["policy_mapping_fn"] = lambda agent, *_, **__: policy_of(agent)
    config = dict(CONFIG, env=Env, env_config=told, multiagent=several, **more)
    worker = PPOTrainer(config=config).workers.local_worker()
    drawn = np.random.RandomState(7)
    for name in ("first", "others"):
        weights = worker.policy_map[name].get_weights()
        made = {key: drawn.randn(*array.shape).round(3) for key, array in sorted(weights.items())}
        worker.policy_map[name].set_weights(made)
        found["weights"][name] = {key: array.tolist() for key, array in made.items()}
    found[case] = {
        name: {
            "rewards": sorted(batch["rewards"].tolist()),
            "targets": sorted(batch["value_targets"].round(5).tolist()),
        }
        for name, batch in worker.sample().policy_batches.items()
    }


if __name__ == "__main__":
    recorded = {"weights": {}}
    for each in CASES:
        record(each, recorded)
    Path(sys.argv[1]).write_text(json.dumps(recorded) + "\n", "utf-8")
