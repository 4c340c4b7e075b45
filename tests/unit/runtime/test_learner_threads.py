"""An error in the thread that IMPALA and APPO learn in reaches the one who trains."""

import contextlib
import threading

import pytest
import torch
from ray.rllib.core.columns import Columns

from rllib_compat.adapters import ThreadErrorLearner
from rllib_compat.algorithms.vtrace import sequences


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

    def _learn(self, batch):
        with contextlib.suppress(KeyError):  # which ends the thread
            self._update(batch)
            self._agg_event.set()


class Telling(ThreadErrorLearner, InThread):
    """The same, with errors."""


def test_the_error_is_raised_at_once_and_whenever_it_is_asked_to_learn():
    learner = Telling()
    learner.update({"rewards": [1.0]})
    for _ in range(2):
        with pytest.raises(KeyError, match="rewards"):
            learner.update({})


def test_sequences_keep_what_they_have_once():
    columns = {
        Columns.LOSS_MASK: torch.tensor([[True, True, False], [True, False, False]]),
        Columns.OBS: torch.ones(2, 3, 4),
        Columns.STATE_IN: {"h": torch.ones(2, 5)},
        Columns.SEQ_LENS: torch.tensor([2, 1]),
    }
    made = sequences(dict(columns))
    assert made[Columns.OBS].shape == (2, 2, 4)
    assert made[Columns.OBS][1, 1].sum() == 0
    assert made[Columns.SEQ_LENS] is not None
    assert made[Columns.STATE_IN]["h"].shape == (2, 5)
