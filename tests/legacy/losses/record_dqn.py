"""Records what the losses of DQN and SimpleQ of an old Ray computed, on fixed transitions.

Usage: `python record_dqn.py OUT`, with the Python of an environment that has Ray 1.13.0 and torch
(it runs on Python 3.8). It writes `OUT/<case>.npz`; `tests/unit/algorithms/test_dqn_losses.py`
compares. A case holds, by name:

    config.*                the settings that matter, as the old Ray knew them, as text
    batch.*                 obs, actions, rewards, new_obs, dones, weights, `[B, …]`
    weights.*, targets.*    before, by the old names
    loss                    the loss
    td_errors               one a transition
    gradients.*             before any clipping, by the old names
    after.*                 the weights after one `learn_on_batch`
"""

import sys
from pathlib import Path

import gym
import numpy as np
import torch
from ray.rllib.agents.dqn import dqn, simple_q
from ray.rllib.agents.dqn.dqn_torch_policy import DQNTorchPolicy
from ray.rllib.agents.dqn.dqn_torch_policy import build_q_losses as dqn_loss
from ray.rllib.agents.dqn.simple_q_torch_policy import SimpleQTorchPolicy
from ray.rllib.agents.dqn.simple_q_torch_policy import build_q_losses as simple_q_loss
from ray.rllib.policy.sample_batch import SampleBatch
from record import named

SEEN, ACTIONS, ROWS = 4, 3, 16
SIMPLE = (SimpleQTorchPolicy, simple_q.DEFAULT_CONFIG, simple_q_loss)
DQN = (DQNTorchPolicy, dqn.DEFAULT_CONFIG, dqn_loss)

#: Case → policy, its defaults and its loss; settings.
CASES = {
    "simple-q": (SIMPLE, {"lr": 0.01}),
    "simple-q-discounted": (SIMPLE, {"gamma": 0.7}),
    "dqn": (DQN, {"lr": 0.01, "hiddens": [7]}),
    "dqn-plain": (DQN, {"hiddens": [], "dueling": False, "double_q": False, "n_step": 3}),
}
KEPT = ("adam_epsilon", "gamma", "lr", "hiddens", "dueling", "double_q", "n_step", "grad_clip")


def record(case, out):
    """Records one case."""
    (policy_class, defaults, loss_of), settings = CASES[case]
    config = dict(defaults)
    config.update(settings, framework="torch", num_gpus=0, num_workers=0)
    config["model"] = dict(config["model"], fcnet_hiddens=[5], fcnet_activation="tanh")
    torch.manual_seed(7)
    random = np.random.RandomState(7)
    space = gym.spaces.Box(-2.0, 2.0, (SEEN,), np.float32)
    policy = policy_class(space, gym.spaces.Discrete(ACTIONS), config)
    target = policy.target_models[policy.model]
    for model in (policy.model, target):
        for weight in model.parameters():
            made = random.randn(*weight.shape).astype(np.float32) * 0.5
            weight.data = torch.from_numpy(made)
    found = {"config." + n: np.asarray(str(config[n])) for n in KEPT if n in config}
    found.update(named("weights", policy.get_weights()))
    found.update(named("targets", {n: w.numpy() for n, w in target.state_dict().items()}))
    batch = {
        "obs": random.uniform(-2, 2, (ROWS, SEEN)).astype(np.float32),
        "actions": random.randint(0, ACTIONS, ROWS),
        "rewards": random.uniform(-3, 3, ROWS).astype(np.float32),
        "new_obs": random.uniform(-2, 2, (ROWS, SEEN)).astype(np.float32),
        "dones": random.uniform(size=ROWS) < 0.25,
        "weights": random.uniform(0.2, 1, ROWS).astype(np.float32),
    }
    found.update(named("batch", batch))
    lazy = policy._lazy_tensor_dict(SampleBatch({n: a.copy() for n, a in batch.items()}))
    loss = loss_of(policy, policy.model, None, lazy)
    found["loss"] = loss.item()
    told = policy.model.tower_stats
    found["td_errors"] = told["td_error"].detach().numpy().copy()
    names, weights = zip(*policy.model.named_parameters())  # noqa: B905 - Python 3.8
    gradients = torch.autograd.grad(loss, weights, allow_unused=True)
    found.update(
        named("gradients", {n: g for n, g in zip(names, gradients) if g is not None})  # noqa: B905
    )
    policy.learn_on_batch(SampleBatch({n: a.copy() for n, a in batch.items()}))
    found.update(named("after", policy.get_weights()))
    np.savez_compressed(str(Path(out) / (case + ".npz")), **found)


if __name__ == "__main__":
    for each in CASES:
        record(each, sys.argv[1])
