"""An error in the thread that IMPALA and APPO learn in reaches the one who trains."""

import contextlib
import threading

import pytest

from rllib_compat.adapters import ThreadErrorLearner


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
