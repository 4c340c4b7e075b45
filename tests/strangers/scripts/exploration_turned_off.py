"""Exploration that a policy's config turns off: from the start for one agent, later for others."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.env.multi_agent_env import MultiAgentEnv

NOW = np.zeros(3, np.float32)
SPACES = (gym.spaces.Box(-1, 1, (3,), np.float32), gym.spaces.Box(-1, 1, (1,), np.float32))
NAMES = "calm", "curious"


class Pair(MultiAgentEnv):
    def __init__(self, config):
        super().__init__()
        self.observation_space, self.action_space = SPACES
        self._agent_ids = set(NAMES)
        self.taken = {name: set() for name in NAMES}

    def reset(self):
        self.steps = 0
        return {name: NOW for name in NAMES}

    def step(self, actions):
        self.steps += 1
        for name, action in actions.items():
            self.taken[name].add(round(float(action[0]), 5))
        of_all = {name: 1.0 for name in actions}
        return {name: NOW for name in actions}, of_all, {"__all__": self.steps == 10}, {}


def acts(policy):
    """How many actions a trainer and its policy choose for one observation, of five each."""
    by_trainer = {float(trainer.compute_action(NOW, policy_id=policy)[0]) for _ in range(5)}
    own = trainer.get_policy(policy)
    by_policy = {float(own.compute_single_action(NOW)[0][0]) for _ in range(5)}
    return [len(by_trainer), len(by_policy)]


ray.init()
trainer = PPOTrainer(
    env=Pair,
    config={
        "num_workers": 0,
        "framework": "torch",
        "model": {"fcnet_hiddens": [4]},
        "rollout_fragment_length": 20,
        "train_batch_size": 20,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "multiagent": {
            "policies": {
                "calm": (None, *SPACES, {"explore": False}),
                "curious": (None, *SPACES, {}),
            },
            "policy_mapping_fn": lambda agent, *args, **kwargs: agent,
        },
    },
)
taken = trainer.workers.local_worker().env.taken


def varied():
    """Whether an agent takes more than one action while the trainer trains."""
    for actions in taken.values():
        actions.clear()
    trainer.train()
    return {name: len(actions) > 1 for name, actions in taken.items()}


first = varied()
before = [acts("calm"), min(acts("curious")) > 1]
asked = {float(trainer.compute_action(NOW, policy_id="calm", explore=True)[0]) for _ in range(5)}
trainer.get_policy("curious").config["explore"] = False
after = acts("curious")
record(
    first=first,
    before=before,
    asked=len(asked) > 1,
    after=after,
    later=varied(),
)
trainer.stop()
