"""Records what R2D2's loss of an old Ray computed, on fixed sequences with fixed weights.

Usage: `python record_r2d2.py OUT`, with the Python of an environment that has Ray 1.13.0 and torch
(it runs on Python 3.8). It writes `OUT/<case>.npz`; `tests/unit/algorithms/test_r2d2.py` compares.
A case holds, by name:

    config.*            the settings that matter, as the old Ray knew them, as text
    batch.*             sequences as they came out of a replay buffer, `[B, T, …]`, padded with
                        zeros: obs, actions, rewards, dones, weights; `state_in_0` and `state_in_1`
                        `[B, …]` (of an attention net the memories of its units, of `Remembering`
                        one), and `seq_lens` `[B]`
    weights.*, targets.*    before, by the old names
    loss.*              total_loss, mean_q, min_q, max_q, mean_td_error
    td_errors           one a sequence
    gradients.*         before any clipping, by the old names
    after.*             the weights after one `learn_on_batch`
    loss.as_it_was      total_loss, with `h_inverse` computed with float32 (see `exact_inverse`)
    replay.*            an episode (obs, actions, rewards, dones, states) and, `[B, T, …]`, what
                        `_add_to_underlying_buffer` of `MultiAgentReplayBuffer` cut it into
"""

from unittest import mock

import gym
import numpy as np
import torch
from ray.rllib.agents.dqn import r2d2_torch_policy
from ray.rllib.agents.dqn.r2d2 import R2D2_DEFAULT_CONFIG
from ray.rllib.agents.dqn.r2d2_torch_policy import R2D2TorchPolicy, r2d2_loss
from ray.rllib.policy.rnn_sequencing import timeslice_along_seq_lens_with_overlap
from ray.rllib.policy.sample_batch import SampleBatch
from recording import draw_weights, flat, gradients_of, named, pad, record_all
from remembering import Remembering

SEEN, ACTIONS, CELLS, STEPS = 4, 3, 5, 6

#: Case → settings. A Q-head without layers is what today's default module has behind its LSTM.
CASES = {
    "plain": {"hiddens": [], "dueling": False, "n_step": 3, "grad_clip": 0.5, "lr": 0.01},
    "burn-in": {"burn_in": 2, "double_q": False, "dueling": False, "h_function_epsilon": 0.1},
    "dueling": {"hiddens": [7], "gamma": 0.9, "lr": 0.01, "adam_epsilon": 1e-5},
    "without-h": {"use_h_function": False, "burn_in": 1, "grad_clip": None},
    "attention": {"burn_in": 1, "lr": 0.01},
    "own-model": {"burn_in": 1, "lr": 0.01},
}
#: What is in the place of an LSTM.
MODELS = {
    "attention": {
        "use_attention": True,
        "attention_num_transformer_units": 2,
        "attention_dim": 4,
        "attention_num_heads": 2,
        "attention_head_dim": 3,
        "attention_position_wise_mlp_dim": 5,
        "attention_memory_inference": 3,
        "attention_memory_training": 7,
    },
    "own-model": {"custom_model": Remembering},
}
#: The shapes of states.
STATES = {"attention": [[3, 4]] * 2, "own-model": [[6]]}
LSTM = {"use_lstm": True, "lstm_cell_size": CELLS}
KEPT = (
    "adam_epsilon burn_in double_q dueling gamma grad_clip h_function_epsilon hiddens lr n_step "
    "use_h_function"
)

#: The steps of each sequence, and whether its episode ended with it.
SEQUENCES = ((6, False), (6, True), (4, True), (3, False), (1, True))


def record(case):
    """Records one case."""
    config = dict(R2D2_DEFAULT_CONFIG, hiddens=[6])
    config.update(CASES[case], framework="torch", num_gpus=0, num_workers=0)
    config["model"] = dict(
        config["model"],
        fcnet_hiddens=[5],
        fcnet_activation="tanh",
        max_seq_len=STEPS - config["burn_in"],
        **MODELS.get(case, LSTM),
    )
    torch.manual_seed(7)
    random = np.random.RandomState(7)
    space = gym.spaces.Box(-2.0, 2.0, (SEEN,), np.float32)
    policy = R2D2TorchPolicy(space, gym.spaces.Discrete(ACTIONS), config)
    target = policy.target_models[policy.model]
    draw_weights(random, policy.model, target, scale=0.5)
    found = {"config." + name: np.asarray(str(config[name])) for name in KEPT.split()}
    found.update(named("weights", policy.get_weights()))
    found.update(named("targets", target.state_dict()))
    batch = made_up(random, STATES.get(case, [[CELLS]] * 2))
    found.update(named("batch", batch))
    found.update(learned(policy, batch))
    found.update(replayed(random, config))
    return found


def made_up(random, states):
    """Sequences, padded, with states of some shapes."""
    count = len(SEQUENCES)
    batch = {
        "obs": random.uniform(-2, 2, (count, STEPS, SEEN)).astype(np.float32),
        "actions": random.randint(0, ACTIONS, (count, STEPS)),
        "rewards": random.uniform(-3, 6, (count, STEPS)).astype(np.float32),
        "dones": np.zeros((count, STEPS), bool),
        "weights": random.uniform(0.2, 1, (count, 1)).repeat(STEPS, 1).astype(np.float32),
        **{
            f"state_in_{i}": random.uniform(-1, 1, [count, *shape]).astype(np.float32)
            for i, shape in enumerate(states)
        },
    }
    return pad(batch, SEQUENCES)


def learned(policy, batch):
    """What the loss of a batch is, and what one update makes of the weights."""
    lazy = policy._lazy_tensor_dict(flat(batch))
    found = {"loss.as_it_was": r2d2_loss(policy, policy.model, None, lazy).item()}
    with mock.patch.object(r2d2_torch_policy, "h_inverse", exact_inverse):
        return learned_exactly(policy, batch, found)


THEIRS = r2d2_torch_policy.h_inverse


def exact_inverse(value, epsilon):
    """That Ray's own formula, with float64.

    It takes the difference of two near numbers and divides by `epsilon ** 2`. With float32, that
    leaves two digits, and what they are depends on the last bit of each Q-value.
    """
    return THEIRS(value.double(), epsilon).float()


def learned_exactly(policy, batch, found):
    """The same, without rounding errors."""
    loss = r2d2_loss(policy, policy.model, None, policy._lazy_tensor_dict(flat(batch)))
    told = policy.model.tower_stats
    for name in ("total_loss", "mean_q", "min_q", "max_q", "mean_td_error"):
        found["loss." + name] = told[name].item()
    found["td_errors"] = told["td_error"].detach().numpy().copy()
    found.update(gradients_of(loss, policy.model))
    policy.learn_on_batch(flat(batch))
    found.update(named("after", policy.get_weights()))
    return found


def replayed(random, config):
    """An episode, and the sequences that the replay buffer made of it."""
    steps, longest = 8, 3
    episode = {
        "obs": random.uniform(-2, 2, (steps, SEEN)).astype(np.float32),
        "actions": random.randint(0, ACTIONS, steps),
        "rewards": random.uniform(-3, 6, steps).astype(np.float32),
        "dones": np.arange(steps) == steps - 1,
        "state_out_0": random.uniform(-1, 1, (steps, CELLS)).astype(np.float32),
    }
    episode["state_in_0"] = np.concatenate(
        [np.zeros((1, CELLS), np.float32), episode["state_out_0"][:-1]]
    )
    found = named("replay.episode", episode)
    batch = SampleBatch(dict(episode, eps_id=np.zeros(steps, int)), seq_lens=[3, 3, 2])
    # Without a burn-in, this Ray had no state for the first sequence where it did not begin with 0.
    for zero in (True, False) if config["burn_in"] else (True,):
        cut = timeslice_along_seq_lens_with_overlap(
            batch.copy(),
            zero_pad_max_seq_len=longest + config["burn_in"],
            pre_overlap=config["burn_in"],
            zero_init_states=zero,
        )
        kind = "replay.zeros" if zero else "replay.stored"
        for name in ("obs", "actions", "rewards", "dones", "state_in_0"):
            found[kind + "." + name] = np.stack([part[name] for part in cut])
        found[kind + ".seq_lens"] = np.array([part["seq_lens"][0] for part in cut])
    return found


if __name__ == "__main__":
    record_all(record, CASES)
