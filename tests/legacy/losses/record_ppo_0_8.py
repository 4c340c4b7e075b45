"""Records iterations of PPO as Ray 0.8.5 made them: the same samples in, which weights out.

Usage: `python record_ppo_0_8.py OUT [CASE …]`, with the Python of an environment that has Ray 0.8.5
and torch. It writes `OUT/ppo-<case>.npz`, in the form of `record_ppo.py`;
`tests/unit/algorithms/test_ppo.py` compares. On torch, policy and value function shared layers.
"""

import random
from types import SimpleNamespace

import gym
import numpy as np
import torch
from ray.rllib.agents.ppo import ppo
from ray.rllib.agents.ppo.ppo_torch_policy import PPOTorchPolicy
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.sgd import do_minibatch_sgd
from recording import draw_weights, named, record_all, steps_of

SEED = 11
SEEN = gym.spaces.Box(-2.0, 2.0, (4,), np.float32)
DISCRETE, BOX = gym.spaces.Discrete(3), gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
LAYERS = {"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh"}
PASSES = {"train_batch_size": 50, "sgd_minibatch_size": 16}
#: Case → actions, settings.
CASES = {
    "discrete": (DISCRETE, {"num_sgd_iter": 3, "lr": 0.01, "kl_target": 0.0001}),
    "continuous": (
        BOX,
        {"num_sgd_iter": 2, "lr": 0.003, "grad_clip": 0.5, "vf_clip_param": 0.2, "lambda": 0.9},
    ),
    "weighed": (
        DISCRETE,
        {"num_sgd_iter": 2, "lr": 0.01, "gamma": 0.9, "vf_loss_coeff": 0.5, "entropy_coeff": 0.02},
    ),
    "schedules": (
        DISCRETE,
        {
            "num_sgd_iter": 2,
            "lr": 0.003,
            "lr_schedule": [[0, 0.01], [100, 0.001]],
            "entropy_coeff_schedule": [[0, 0.1], [100, 0.0]],
        },
    ),
}
#: The steps of each chunk, and whether its episode ended with it.
CHUNKS = ((17, False), (12, True), (20, False), (1, True))
TOLD = (
    *("total_loss", "policy_loss", "vf_loss", "vf_explained_var", "kl", "entropy"),
    *("cur_lr", "entropy_coeff", "cur_kl_coeff"),
)


def record(case):
    """Records one case."""
    actions, settings = CASES[case]
    config = dict(ppo.DEFAULT_CONFIG, use_pytorch=True, num_workers=0, **PASSES)
    config.update(settings)
    config["model"] = dict(config["model"], **LAYERS)
    policy = PPOTorchPolicy(SEEN, actions, config)
    drawn = np.random.RandomState(7)
    draw_weights(drawn, policy.model)
    found = {f"config.{name}": repr(value) for name, value in {**PASSES, **settings}.items()}
    found.update(named("weights", policy.get_weights()))
    found["seed"] = SEED
    chunks = [made_up(drawn, actions, *told) for told in CHUNKS]
    for index, chunk in enumerate(chunks):
        chunk["action_dist_inputs"], chunk["action_logp"], _ = said(policy, chunk)
        found.update(steps_of(index, chunk))
    worker = SimpleNamespace(learn_on_batch=lambda batch: learn(policy, batch))
    for number in (1, 2):
        policy.on_global_var_update({"timestep": 50 * (number - 1)})
        batch = SampleBatch.concat_samples([postprocessed(policy, chunk) for chunk in chunks])
        np.random.seed(SEED)
        random.seed(SEED)
        passes = (config["num_sgd_iter"], config["sgd_minibatch_size"], ["advantages"])
        told = do_minibatch_sgd(batch, {"default_policy": policy}, worker, *passes)
        told = told["default_policy"]
        policy.update_kl(told["kl"])
        found.update(named(f"told.{number}", {name: told[name] for name in TOLD}))
        found.update(named(f"after.{number}", policy.get_weights()))
    return found


def learn(policy, batch):
    return {name: policy.learn_on_batch(part) for name, part in batch.policy_batches.items()}


def made_up(drawn, actions, steps, done):
    obs = drawn.uniform(-2, 2, (steps + 1, 4)).astype(np.float32)
    taken = drawn.randn(steps, 2).astype(np.float32)
    return {
        "obs": obs[:-1],
        "new_obs": obs[1:],
        "actions": taken if actions is BOX else drawn.randint(0, 3, steps),
        "prev_actions": np.zeros_like(taken) if actions is BOX else np.zeros(steps, int),
        "rewards": drawn.uniform(-1, 2, steps).astype(np.float32),
        "prev_rewards": np.zeros(steps, np.float32),
        "dones": np.array([False] * (steps - 1) + [done]),
    }


def said(policy, chunk):
    """What the policy says of each step: its inputs of a distribution, and what it expects."""
    with torch.no_grad():
        logits, _ = policy.model({"obs": torch.from_numpy(chunk["obs"])}, [], None)
        expected = policy.model.value_function().numpy()
        taken = torch.from_numpy(chunk["actions"])
        logp = policy.dist_class(logits, policy.model).logp(taken)
    return logits.numpy(), logp.numpy(), expected


def postprocessed(policy, chunk):
    """The same steps in each iteration, with what the critic expects by now."""
    expected = said(policy, chunk)[2]
    return policy.postprocess_trajectory(SampleBatch({**chunk, "vf_preds": expected}))


if __name__ == "__main__":
    record_all(record, CASES, "ppo-")
