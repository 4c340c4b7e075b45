"""Recorded batches in one replay buffer with sampled ones."""

import numpy as np
from gymnasium.spaces import Box
from ray.rllib.policy.sample_batch import SampleBatch, concat_samples
from ray.rllib.policy.view_requirement import ViewRequirement

from rllib_compat.runtime.offline.inputs import match_sampled_columns

# Those of DQN's policy on the old API stack of Ray 2.60.
COLUMNS = (
    *("obs", "new_obs", "actions", "rewards", "terminateds", "truncateds", "infos"),
    *("t", "eps_id", "unroll_id", "agent_index", "weights"),
)


def batch(columns, number):
    made = {name: np.zeros(number) for name in columns}
    made["infos"] = np.array([{} for _ in range(number)], dtype=object)
    return SampleBatch(made)


def test_batches_of_other_columns_can_be_joined_with_a_policys_own():
    steps = ("obs", "new_obs", "actions", "rewards", "terminateds", "truncateds")
    recorded = batch((*steps, "action_logp", "weights_seq_no", "vf_preds"), 3)
    del recorded["infos"]
    match_sampled_columns(recorded, {name: ViewRequirement() for name in COLUMNS})
    joined = concat_samples([batch(COLUMNS, 2), recorded])
    assert set(joined) == set(COLUMNS)
    assert len(joined["rewards"]) == 5
    assert list(joined["weights"][2:]) == [1.0, 1.0, 1.0]
    assert list(joined["infos"]) == [{}] * 5


def test_recorded_batches_can_be_joined_before_a_policys_loss_was_computed_once():
    """Until then its samples have all that it could need."""
    columns = {name: ViewRequirement() for name in (*COLUMNS, "prev_actions", "prev_rewards")}
    columns["q_values"] = ViewRequirement(space=Box(-1.0, 1.0, (2,), np.float32))
    columns["state_in_0"] = ViewRequirement(used_for_training=False)
    sampled = batch([name for name in columns if name != "state_in_0"], 2)
    sampled["q_values"] = np.ones((2, 2), np.float32)
    recorded = batch(COLUMNS, 4)
    recorded["actions"] = np.array([1, 2, 3, 4])
    recorded["t"] = np.array([7, 8, 0, 1])
    match_sampled_columns(recorded, columns)
    joined = concat_samples([sampled, recorded])
    assert set(joined) == set(sampled)
    assert list(joined["prev_actions"][2:]) == [0, 1, 0, 3]
    assert joined["q_values"].shape == (6, 2)
