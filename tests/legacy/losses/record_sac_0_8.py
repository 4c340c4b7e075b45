"""Records updates of SAC as Ray 0.8.5 made them, whose critics' errors counted with their squares.

Usage: `python record_sac_0_8.py OUT`, with the Python of an environment that has Ray 0.8.5 and
torch (it runs on Python 3.7). It writes `OUT/sac-<case>.npz`, which hold what those of
`record_actor_critics.py` hold; `tests/unit/algorithms/test_actor_critics.py` compares.
"""

import sys
from pathlib import Path

import gym
import numpy as np
import torch
from ray.rllib.agents.sac import sac
from ray.rllib.agents.sac.sac_torch_policy import SACTorchPolicy
from ray.rllib.policy.sample_batch import SampleBatch

SEED = 11
SEEN = gym.spaces.Box(-2.0, 2.0, (4,), np.float32)
#: Case → actions, settings.
CASES = {
    "continuous": (gym.spaces.Box(-1.0, 1.0, (2,), np.float32), {"gamma": 0.9}),
    "discrete": (gym.spaces.Discrete(3), {}),
}
RATES = {f"{which}_learning_rate": 0.01 for which in ("actor", "critic", "entropy")}


def record(case, out):
    """Records one case."""
    actions, settings = CASES[case]
    config = dict(sac.DEFAULT_CONFIG, use_pytorch=True, num_gpus=0, num_workers=0)
    config.update(settings, optimization=RATES)
    layers = {"hidden_layer_sizes": [8, 6], "hidden_activation": "tanh"}
    for name in ("policy_model", "Q_model"):
        config[name] = dict(config[name], fcnet_hiddens=[8, 6], fcnet_activation="tanh", **layers)
    policy = SACTorchPolicy(SEEN, actions, config)
    drawn = np.random.RandomState(7)
    networks = {"weights": policy.model, "targets": policy.target_model}
    found = {f"config.{name}": repr(value) for name, value in settings.items()}
    for kind, network in networks.items():
        for name, weight in network.named_parameters():
            if name not in ("log_alpha", "target_entropy"):
                weight.data = torch.from_numpy(drawn.randn(*weight.shape).astype(np.float32) * 0.4)
        found.update(named(kind, network.state_dict()))
    taken = drawn.randint(0, 3, 16)
    if case == "continuous":
        taken = drawn.uniform(-0.9, 0.9, (16, 2)).astype(np.float32)
    columns = {
        "obs": drawn.uniform(-2, 2, (16, 4)).astype(np.float32),
        "new_obs": drawn.uniform(-2, 2, (16, 4)).astype(np.float32),
        "actions": taken,
        "rewards": drawn.uniform(-4, 4, 16).astype(np.float32),
        "dones": drawn.uniform(size=16) < 0.3,
    }
    found.update({f"batch.{name}": column for name, column in columns.items()})
    found["batch.weights"] = np.ones(16, np.float32)
    for number in (1, 2):
        torch.manual_seed(SEED)
        told = policy.learn_on_batch(SampleBatch(columns))["learner_stats"]
        policy.update_target()
        told = {name: np.array(value) for name, value in told.items()}
        found.update({f"told.{number}.{n}": v for n, v in told.items() if np.size(v) == 1})
        for kind, network in networks.items():
            place = "after" if kind == "weights" else "after_targets"
            found.update(named(f"{place}.{number}", network.state_dict()))
    np.savez_compressed(str(Path(out) / f"sac-{case}.npz"), **found)


def named(kind, arrays):
    """Copies of tensors, by their kind and their names."""
    return {f"{kind}.{name}": array.numpy().copy() for name, array in arrays.items()}


if __name__ == "__main__":
    for each in CASES:
        record(each, sys.argv[1])
