"""Recorded batches in one replay buffer with sampled ones."""

import numpy as np
from ray.rllib.policy.sample_batch import SampleBatch, concat_samples

from rllib_compat.runtime.offline.inputs import like_sampled

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
    like_sampled(recorded, COLUMNS)
    joined = concat_samples([batch(COLUMNS, 2), recorded])
    assert set(joined) == set(COLUMNS)
    assert len(joined["rewards"]) == 5
    assert list(joined["weights"][2:]) == [1.0, 1.0, 1.0]
    assert list(joined["infos"]) == [{}] * 5
