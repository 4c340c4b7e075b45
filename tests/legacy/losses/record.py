"""Records what the losses of an old Ray computed, on fixed batches with fixed weights.

Usage: `python record.py OUT [CASE …]`, with the Python of an environment that has Ray 1.13.0 and
torch (it runs on Python 3.8). It writes `OUT/<case>.npz`, which are compared in
`tests/unit/algorithms/test_losses.py`.

A case holds, by name:

    config.*        the settings that matter, as the old Ray knew them
    chunk.<i>.*     chunks of episodes: obs (with the one after the last step), actions, rewards,
                    and whether the last step was a `done`; of an LSTM state_out_0, state_out_1
    chunk.<i>.advantages, .value_targets    what postprocessing made of it
    weights.*       before, by the old names
    loss.*          total and terms, over all chunks in one batch
    gradients.*     of the total, before any clipping, by the old names
    after.*         the weights after one `learn_on_batch`
"""

import gym
import numpy as np
import torch
from ray.rllib.agents.a3c.a2c import A2C_DEFAULT_CONFIG
from ray.rllib.agents.a3c.a3c_torch_policy import A3CTorchPolicy
from ray.rllib.agents.pg.pg import PGTrainer
from ray.rllib.agents.pg.pg_torch_policy import PGTorchPolicy
from ray.rllib.policy.rnn_sequencing import pad_batch_to_sequences_of_same_size
from ray.rllib.policy.sample_batch import SampleBatch
from record_ppo import LSTM, expected, made_up
from recording import draw_weights, gradients_of, named, record_all, steps_of

DISCRETE = gym.spaces.Discrete(3)
BOX = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
A2C = (A3CTorchPolicy, A2C_DEFAULT_CONFIG, "entropy_coeff grad_clip lambda use_critic use_gae")
PG = (PGTorchPolicy, PGTrainer.get_default_config(), "")

# Without a critic, this Ray could not learn (`stats` wants a tensor where there is a float).
#: Case → policy, actions, settings.
CASES = {
    "a2c-discrete": (A2C, DISCRETE, {"lambda": 0.9, "entropy_coeff": 0.02, "lr": 0.01}),
    "a2c-continuous": (A2C, BOX, {"gamma": 0.9, "grad_clip": 1.5, "vf_loss_coeff": 0.7}),
    "a2c-without-gae": (A2C, DISCRETE, {"use_gae": False, "grad_clip": None}),
    "pg-discrete": (PG, DISCRETE, {"gamma": 0.95}),
    "pg-continuous": (PG, BOX, {"lr": 0.01}),
    "a2c-lstm": (A2C, DISCRETE, {"lambda": 0.9, "entropy_coeff": 0.02, "lr": 0.01}),
    "pg-lstm": (PG, DISCRETE, {"lr": 0.01}),
}

#: The steps of each chunk, and whether its episode ended with it.
CHUNKS = ((7, False), (5, True), (4, False), (1, True))


def record(case):
    """Records one case."""
    (policy_class, defaults, names), actions, settings = CASES[case]
    separate = isinstance(actions, gym.spaces.Box)
    model = {"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh", "vf_share_layers": not separate}
    if case.endswith("lstm"):
        model = LSTM
    config = dict(defaults)
    config.update(settings, framework="torch", num_gpus=0, num_workers=0)
    config["model"] = dict(config["model"], **model)
    torch.manual_seed(7)
    random = np.random.RandomState(7)
    policy = policy_class(gym.spaces.Box(-2.0, 2.0, (4,), np.float32), actions, config)
    draw_weights(random, policy.model)
    kept = ["gamma", "lr", "vf_loss_coeff"] if names else ["gamma", "lr"]
    found = {"config." + name: config[name] for name in kept + names.split()}
    found = {name: value for name, value in found.items() if value is not None}
    found.update(named("weights", policy.get_weights()))
    batches = []
    for index, (steps, done) in enumerate(CHUNKS):
        chunk = made_up(policy, random, actions, steps, done)
        chunk["eps_id"] = chunk["unroll_id"] = np.full(steps, index)
        chunk["agent_index"] = np.zeros(steps, int)
        if not policy.is_recurrent():
            chunk["vf_preds"] = expected(policy, chunk)
        found.update(steps_of(index, chunk, ("state_out_0", "state_out_1")))
        batch = policy.postprocess_trajectory(chunk)
        for name in ("advantages", "value_targets"):
            found[f"chunk.{index}.{name}"] = batch[name]
        batches.append(batch)
    whole = SampleBatch.concat_samples(batches)
    whole.set_training(True)
    padded = whole.copy()
    pad_batch_to_sequences_of_same_size(
        padded, policy.max_seq_len, shuffle=False, view_requirements=policy.view_requirements
    )
    lazy = policy._lazy_tensor_dict(padded)
    loss = policy._loss(policy, policy.model, policy.dist_class, lazy)
    found["loss.total"] = loss.item()
    for name, value in policy.model.tower_stats.items():
        if name in ("entropy", "pi_err", "value_err", "policy_loss"):
            found["loss." + name] = float(value)
    found.update(gradients_of(loss, policy.model))
    policy.learn_on_batch(whole)
    found.update(named("after", policy.get_weights()))
    return found


if __name__ == "__main__":
    record_all(record, CASES)
