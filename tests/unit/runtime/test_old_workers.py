"""Workers of the old API stack take policies and filters as they were written for Ray 0.8 – 1.x."""

import gymnasium
import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.policy.policy import Policy
from ray.rllib.policy.view_requirement import ViewRequirement
from ray.rllib.utils.filter import NoFilter

from rllib_compat.adapters import CompatRolloutWorker


class Counting(Policy):
    """Keeps a state without saying `is_recurrent`, as policies did until Ray 1.13."""

    def __init__(self, *args):
        super().__init__(*args)
        self.exploration = self._create_exploration()
        space = gymnasium.spaces.Box(0, 100, (), np.int32)
        self.view_requirements["state_in_0"] = ViewRequirement("state_out_0", space, -1)

    def get_initial_state(self):
        return [7]

    def compute_actions(self, obs_batch, state_batches=None, *args, **kwargs):
        self.seen = np.array(obs_batch), list(state_batches[0])
        return [0] * len(obs_batch), [state_batches[0] + 1], {}

    def get_weights(self):
        return {}


class Halving(NoFilter):
    """A filter of one's own."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def __call__(self, x, update=True):
        return np.full(np.shape(x), 0.5, np.float32)


def test_a_policy_with_a_state_and_a_function_as_filter_sample():
    config = PPOConfig().api_stack(
        enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False
    )
    config.environment("CartPole-v1").env_runners(
        num_env_runners=0, rollout_fragment_length=3, observation_filter=Halving
    )
    worker = CompatRolloutWorker(
        env_creator=lambda _: gymnasium.make("CartPole-v1"),
        config=config,
        default_policy_class=Counting,
    )
    worker.sample()
    observations, states = worker.get_policy().seen
    assert (observations == 0.5).all()
    assert states == [10]  # 7, and one more after each of three steps
    assert worker.filters["default_policy"].shape == (4,)
    assert worker.get_policy().config["observation_filter"] is Halving
    worker.stop()
