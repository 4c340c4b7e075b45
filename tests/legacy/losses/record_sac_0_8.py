"""Records updates of SAC as Ray 0.8.5 made them, whose critics' errors counted with their squares.

Usage: `python record_sac_0_8.py OUT`, with the Python of an environment that has Ray 0.8.5 and
torch (it runs on Python 3.7). It writes `OUT/sac-<case>.npz`, which hold what those of
`record_actor_critics.py` hold; `tests/unit/algorithms/test_actor_critics.py` compares.
"""

import gym
import numpy as np
import torch
from ray.rllib.agents.sac import sac
from ray.rllib.agents.sac.sac_torch_policy import SACTorchPolicy
from ray.rllib.policy.sample_batch import SampleBatch
from recording import draw_weights, named, record_all

SEED = 11
SEEN = gym.spaces.Box(-2.0, 2.0, (4,), np.float32)
#: Case → actions, settings.
CASES = {
    "continuous": (gym.spaces.Box(-1.0, 1.0, (2,), np.float32), {"gamma": 0.9}),
    "discrete": (gym.spaces.Discrete(3), {}),
}
RATES = {f"{which}_learning_rate": 0.01 for which in ("actor", "critic", "entropy")}


def record(case):
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
        draw_weights(drawn, network)
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
    found.update(named("batch", dict(columns, weights=np.ones(16, np.float32))))
    for number in (1, 2):
        torch.manual_seed(SEED)
        told = policy.learn_on_batch(SampleBatch(columns))["learner_stats"]
        policy.update_target()
        told = {n: np.array(v) for n, v in told.items() if np.size(v) == 1}
        found.update(named(f"told.{number}", told))
        for kind, network in networks.items():
            place = "after" if kind == "weights" else "after_targets"
            found.update(named(f"{place}.{number}", network.state_dict()))
    return found


if __name__ == "__main__":
    record_all(record, CASES, "sac-")
