"""Evaluations in results."""

import numpy as np

from tests.marks import OTHERS_WARNINGS
from tests.unit.trainer.test_policies_without_ray import trainer_of

pytestmark = OTHERS_WARNINGS


def test_a_result_has_the_latest_evaluation_where_the_config_says_so():
    config = {
        "evaluation_interval": 2,
        "evaluation_num_episodes": 1,
        "always_attach_evaluation_results": True,
    }
    with trainer_of("ppo", "1.13.0", **config) as trainer:
        rewards = [trainer.train()["evaluation"]["episode_reward_mean"] for _ in range(3)]
        assert np.isnan(rewards[0])
        latest = trainer.evaluation_metrics["evaluation"]["episode_reward_mean"]
        assert rewards[1] == rewards[2] == latest
