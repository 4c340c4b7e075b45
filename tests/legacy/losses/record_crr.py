"""Records what CRR's losses of an old Ray computed, on fixed batches with fixed weights.

Usage: `python record_crr.py OUT`, with the Python of an environment that has Ray 2.0.1 and torch,
the first that had CRR (it runs on Python 3.8). It writes `OUT/<case>.npz`;
`tests/unit/algorithms/test_crr.py` compares. A case holds, by name:

    config.*                    the settings that matter
    batch.*                     transitions
    drawn, drawn_next           the actions that the policy drew: `[samples, steps]`, and `[steps]`
    weights.*, targets.*        before, by the old names
    loss.actor, loss.critic
    gradients.*                 of either by what it trains
    after.*, targets_after.*    after one `learn_on_batch` and one `update_target`
"""

from unittest import mock

import gym
import numpy as np
import torch
from ray.rllib.algorithms.crr import CRRConfig
from ray.rllib.algorithms.crr.torch import CRRTorchPolicy
from ray.rllib.policy.sample_batch import SampleBatch
from recording import copied, draw_weights, gradients_of, named, record_all

OBSERVATIONS = gym.spaces.Box(-2.0, 2.0, (4,), np.float32)
DISCRETE = gym.spaces.Discrete(3)
BOX = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)  # of more, this Ray could not learn
STEPS = 9

#: Case → actions, settings.
CASES = {
    "crr-discrete": (DISCRETE, {}),
    "crr-discrete-exp-max": (
        DISCRETE,
        {"weight_type": "exp", "advantage_type": "max", "temperature": 0.5, "max_weight": 2.0},
    ),
    "crr-discrete-expectation": (
        DISCRETE,
        {"weight_type": "exp", "advantage_type": "expectation", "gamma": 0.9},
    ),
    "crr-box": (BOX, {"weight_type": "exp", "n_action_sample": 3, "tau": 0.2}),
}


def record(case):
    """Records one case."""
    actions, settings = CASES[case]
    small = {"actor_hiddens": [8, 6], "critic_hiddens": [7], "actor_hidden_activation": "tanh"}
    config = CRRConfig().to_dict()
    config.update(settings, **small, framework="torch", num_gpus=0, num_workers=0)
    torch.manual_seed(7)
    random = np.random.RandomState(7)
    policy = CRRTorchPolicy(OBSERVATIONS, actions, config)
    target = policy.target_models[policy.model]
    draw_weights(random, policy.model, target)
    kept = ["gamma", "tau", "weight_type", "advantage_type", "temperature", "max_weight"]
    kept += ["n_action_sample", "actor_lr", "critic_lr", *small, "critic_hidden_activation"]
    found = {"config." + name: config[name] for name in kept}
    found.update(named("weights", policy.model.state_dict()))
    found.update(named("targets", target.state_dict()))
    count = config["n_action_sample"]
    batch = {
        "obs": random.uniform(-2, 2, (STEPS, 4)).astype(np.float32),
        "new_obs": random.uniform(-2, 2, (STEPS, 4)).astype(np.float32),
        "rewards": random.uniform(-1, 2, STEPS).astype(np.float32),
        "dones": np.arange(STEPS) % 4 == 0,
    }
    if actions is DISCRETE:
        batch["actions"] = random.randint(3, size=STEPS)
        drawn = random.randint(3, size=(count, STEPS)), random.randint(3, size=STEPS)
    else:
        batch["actions"] = random.uniform(-1, 1, (STEPS, 1)).astype(np.float32)
        drawn = [random.randn(*n, STEPS, 1).astype(np.float32) for n in ((count,), ())]
    found.update(named("batch", batch))
    found["drawn"], found["drawn_next"] = drawn

    def draw(_, shape=None):
        return torch.from_numpy(drawn[0] if shape else drawn[1])

    kinds = torch.distributions.Categorical, torch.distributions.Normal
    with mock.patch.object(kinds[0], "sample", draw), mock.patch.object(kinds[1], "sample", draw):
        lazy = policy._lazy_tensor_dict(SampleBatch(dict(batch)))
        losses = policy.loss(policy.model, policy.dist_class, lazy)
        found["loss.actor"], found["loss.critic"] = (loss.item() for loss in losses)
        for optimizer, loss in zip(policy._optimizers, losses):  # noqa: B905 - Python 3.8
            found.update(gradients_of(loss, policy.model, optimizer.param_groups[0]["params"]))
        policy.learn_on_batch(SampleBatch(copied(batch)))
    policy.update_target()
    found.update(named("after", policy.model.state_dict()))
    found.update(named("targets_after", target.state_dict()))
    return found


if __name__ == "__main__":
    record_all(record, CASES)
