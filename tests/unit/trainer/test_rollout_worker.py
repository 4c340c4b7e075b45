"""Workers that old code makes itself."""

import pickle

import gymnasium
import numpy as np
from ray.rllib.policy.policy import Policy

from rllib_compat.legacy import lookup
from rllib_compat.trainer import RolloutWorker


class Still(Policy):
    """Does nothing, and has one weight."""

    def __init__(self, *args):
        super().__init__(*args)
        self.weight = 1.0

    def compute_actions(self, obs_batch, *args, **kwargs):
        return np.zeros(len(obs_batch), int), [], {}

    def get_weights(self):
        return {"weight": self.weight}

    def set_weights(self, weights):
        self.weight = weights["weight"]


def test_a_worker_of_ones_own_samples_as_it_did():
    worker = RolloutWorker(
        env_creator=lambda _: gymnasium.make("CartPole-v1"),
        policy=Still,
        rollout_fragment_length=40,
    )
    batch_class = lookup("ray.rllib.policy.sample_batch", "SampleBatch")
    batch = batch_class.concat_samples([worker.sample(), worker.sample()])
    assert isinstance(batch, batch_class)
    assert pickle.loads(pickle.dumps(batch_class)) is batch_class  # in worker processes, too
    assert sum(batch["rewards"]) == 80
    worker.set_weights({"default_policy": {"weight": 3.0}})
    assert worker.for_policy(lambda policy: policy.weight) == 3.0
    metrics = lookup("ray.rllib.evaluation.metrics", "collect_metrics")(worker)
    assert metrics["episodes_this_iter"] > 1
    assert 5 < metrics["episode_reward_mean"] < 20  # to push to one side only
    worker.stop()


def test_user_code_gets_it():
    assert lookup("ray.rllib.evaluation", "RolloutWorker") is RolloutWorker
