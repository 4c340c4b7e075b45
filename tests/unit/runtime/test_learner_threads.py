"""An error in the thread that IMPALA and APPO learn in reaches the one who trains."""

import contextlib
import threading

import pytest
from ray.rllib.algorithms.ppo import PPOConfig

from rllib_compat.adapters import ThreadErrorLearner
from rllib_compat.ray_versions import algorithms, startup


class InThread:
    """Learns as Ray's learner does: in a thread, for which it waits."""

    def __init__(self):
        self._agg_event = threading.Event()

    def _update(self, batch):
        return batch["rewards"]

    def update(self, batch):
        thread = threading.Thread(target=self._learn, args=[batch])
        thread.start()
        assert self._agg_event.wait(timeout=20)

    update_from_episodes = update

    def _learn(self, batch):
        with contextlib.suppress(KeyError):  # which ends the thread
            self._update(batch)
            self._agg_event.set()


class Telling(ThreadErrorLearner, InThread):
    """The same, with errors."""


@pytest.mark.parametrize("update", ["update", "update_from_episodes"])
def test_the_error_is_raised_at_once_and_whenever_it_is_asked_to_learn(update):
    learn = getattr(Telling(), update)
    learn({"rewards": [1.0]})
    for _ in range(2):
        with pytest.raises(KeyError, match="rewards"):
            learn({})


def test_learners_end_with_their_algorithm():
    """Ray 2.40 leaves them to the garbage collector, with their CPUs and GPUs."""
    config = PPOConfig().environment("CartPole-v1")
    with startup.without_cluster(), algorithms.small_algorithm(config) as algorithm:
        assert not algorithm.learner_group._is_shut_down
    assert algorithm.learner_group._is_shut_down
