"""Any action space is explored at random on the old API stack, as TensorFlow's policies did."""

import gymnasium
import numpy as np
import pytest
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.ppo_torch_policy import PPOTorchPolicy

from rllib_compat import translate
from rllib_compat.adapters import RandomActions
from tests.legacy.new_networks import cases
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS


@pytest.mark.parametrize("acts", ["discrete", "continuous", "several", "dict_of_actions"])
def test_actions_are_drawn_from_any_space(acts):
    space = cases.space(acts, gymnasium.spaces)
    config = PPOConfig().api_stack(
        enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False
    )
    config.env_runners(exploration_config={"type": RandomActions})
    seen = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
    policy = PPOTorchPolicy(seen, space, config.to_dict())
    observations = np.zeros((50, 4), np.float32)
    actions, _, extras = policy.compute_actions(observations)
    rows = (
        [{key: part[i] for key, part in actions.items()} for i in range(50)]
        if (isinstance(actions, dict))
        else list(actions)
    )
    assert all(space.contains(row) for row in rows)
    assert len({str(row) for row in rows}) > 1
    assert (extras["action_logp"] == 0).all()
    always, *_ = policy.compute_actions(observations, explore=False)
    assert len({str(row) for row in always}) == 1 or isinstance(always, dict)


def test_a_config_that_explores_at_random_does_so_with_any_actions():
    translation = translate({"env": "CartPole-v1", "exploration_config": {"type": "Random"}})
    assert translation.algorithm_config.exploration_config["type"] is RandomActions
    assert "RandomActions" in translation.to_python()
