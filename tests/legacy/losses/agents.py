"""Environments of several agents whose observations and rewards depend on the step alone.

Old Rays (Python 3.8) and tests read it.
"""

import numpy as np

#: Case → environment, its config, what the trainer's config says.
CASES = {
    "together": ("Together", {}, {}),
    "together-complete": ("Together", {}, {"batch_mode": "complete_episodes"}),
    "together-horizon": ("Together", {}, {"horizon": 7}),
    "together-soft-horizon": ("Together", {}, {"horizon": 7, "soft_horizon": True}),
    "together-no-done": ("Together", {}, {"no_done_at_end": True}),
    "turns": ("Turns", {"to_all": True}, {}),
    "turns-complete": ("Turns", {"to_all": True}, {"batch_mode": "complete_episodes"}),
    "turns-horizon": ("Turns", {"to_all": False}, {"horizon": 7}),
}
#: What the trainer's config says in all cases.
CONFIG = {
    "num_workers": 0,
    "framework": "torch",
    "rollout_fragment_length": 25,
    "train_batch_size": 25,
    "sgd_minibatch_size": 25,
    "num_sgd_iter": 1,
    "gamma": 0.9,
    "lambda": 0.95,
    "model": {"fcnet_hiddens": [8], "vf_share_layers": False},
}


def policy_of(agent):
    return "first" if agent == 0 else "others"


class Together:
    """Two agents act at each of ten steps, a third at every second one; it leaves after six."""

    def __init__(self, config):
        self.to_all = config.get("to_all", False)

    def seen(self, agents):
        return {agent: np.array([agent / 3, self.at / 10, 1.0], np.float32) for agent in agents}

    def reset(self):
        self.at = 0
        return self.seen((0, 1, 2))

    def step(self, _):
        self.at += 1
        third = self.at <= 6 and self.at % 2 == 0
        leaves = {2: True} if self.at == 6 else {}
        return self.after((0, 1, 2) if third else (0, 1), leaves)

    def after(self, observing, dones):
        rewarded = (0, 1, 2) if self.to_all else observing
        rewards = {agent: float(agent + 1 + self.at) for agent in rewarded}
        return self.seen(observing), rewards, dict(dones, __all__=self.at >= 10), {}


class Turns(Together):
    """Three agents take turns; rewards go to those who act next, or to all."""

    def reset(self):
        self.at = 0
        return self.seen((0,))

    def step(self, _):
        self.at += 1
        return self.after((self.at % 3,), {})
