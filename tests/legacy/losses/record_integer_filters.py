"""Records what an observation filter of an old Ray made of observations that are integers.

Usage: `python record_integer_filters.py OUT`, with the Python of an environment that has Ray 0.8.5,
1.0.1 or 1.13.0, and torch. It writes `OUT/integer_filters.npz`;
`tests/unit/runtime/test_old_filters.py` compares.

    <case>              what a policy saw at each step of a fragment
    <case>.count, .mean, .std      the filter's statistics after it
    <case>.observed, .filtered     what it makes of observations then, learning nothing from them
"""

import gym
import numpy as np
from ray.rllib.agents.ppo import PPOTrainer, ppo
from ray.rllib.agents.ppo.ppo_torch_policy import PPOTorchPolicy
from ray.rllib.evaluation.rollout_worker import RolloutWorker
from recording import save

STEPS = 24
FILTERS = {"conv_filters": [[4, [6, 6], 1]]}
#: Case → observations, and the model that takes them.
CASES = {
    "int64": (gym.spaces.Box(-100, 100, (3,), np.int64), {}),
    "uint8": (gym.spaces.Box(0, 255, (3,), np.uint8), {}),
    "image": (gym.spaces.Box(0, 255, (6, 6, 3), np.uint8), FILTERS),
    "bits": (gym.spaces.MultiBinary(3), {}),
}


class Waves(gym.Env):
    """Observations go up and down, so that there are some on both sides of each mean."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, space):
        self.observation_space = space

    def seen(self):
        space = self.observation_space
        most = 2 if isinstance(space, gym.spaces.MultiBinary) else 101
        count = int(np.prod(space.shape))
        numbers = (np.arange(count) + 1) * (self.at * self.at + 3) % most
        return numbers.reshape(space.shape).astype(space.dtype)

    def reset(self):
        self.at = 0
        return self.seen()

    def step(self, action):
        self.at += 1
        return self.seen(), 1.0, self.at >= 10, {}


def record(case):
    space, model = CASES[case]
    config = getattr(ppo, "DEFAULT_CONFIG", None) or PPOTrainer.get_default_config()
    config = dict(config, framework="torch", use_pytorch=True, num_gpus=0, num_workers=0)
    config["model"] = dict(config["model"], **model)
    told = {"env_creator": lambda _: Waves(space), "policy_config": config}
    told.update(rollout_fragment_length=STEPS, observation_filter="MeanStdFilter")
    try:
        worker = RolloutWorker(policy_spec=PPOTorchPolicy, **told)
    except TypeError:  # it was called so until Ray 1.2
        worker = RolloutWorker(policy=PPOTorchPolicy, **told)
    found = {case: np.array(worker.sample()["obs"])}
    told = worker.filters["default_policy"]
    env = Waves(space)
    observed = [env.reset()] + [env.step(0)[0] for _ in range(9)]
    filtered = [told(one, update=False) for one in observed]
    found.update({f"{case}.observed": np.array(observed), f"{case}.filtered": np.array(filtered)})
    for name, value in (("count", told.rs.n), ("mean", told.rs.mean), ("std", told.rs.std)):
        found[f"{case}.{name}"] = np.array(value)
    return found


if __name__ == "__main__":
    found = {name: array for case in CASES for name, array in record(case).items()}
    save("integer_filters", found)
