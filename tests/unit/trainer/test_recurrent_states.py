"""Recurrent states that no policy has are named, on both API stacks."""

import numpy as np
import pytest

from rllib_compat.errors import CompatError
from tests.marks import OTHERS_WARNINGS
from tests.unit.trainer.test_policies_without_ray import trainer_of

pytestmark = OTHERS_WARNINGS

#: What callers pass for a state of two arrays `[5]`.
WRONG_STATES = [
    [np.zeros(5)],
    [np.zeros(5), np.zeros(4)],
    [np.zeros(5), "a"],
    [[0.0, [1.0]], np.zeros(5)],
    {"h": np.zeros(5), "c": np.zeros(5)},
    np.zeros(10),
    "state",
    7,
]


@pytest.mark.parametrize("more", [{}, {"exploration_config": {"type": "SoftQ", "temperature": 1}}])
def test_a_state_that_no_policy_has_is_named(more):
    with trainer_of("ppo-lstm", "1.13.0", **more) as trainer:
        policy = trainer.get_policy()
        seen = np.zeros(4, np.float32)
        state = np.stack([np.asarray(part) for part in policy.get_initial_state()])
        for given in (state, list(state)):
            assert len(trainer.compute_single_action(seen, given)) == 3
        calls = [trainer.compute_single_action]
        if not more:
            calls += [
                policy.compute_single_action,
                lambda obs, state: trainer.compute_actions({0: obs}, {0: state}),
                lambda obs, state: policy.compute_actions([obs], state),
            ]
        for call in calls:
            for wrong in WRONG_STATES:
                with pytest.raises(CompatError, match="recurrent state must be a list of arrays"):
                    call(seen, wrong)
