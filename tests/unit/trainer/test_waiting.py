"""What a config asks of Ray is held against what there is, before anything waits for it."""

import logging
import time

import pytest

from rllib_compat import translate
from rllib_compat.trainer import waiting

CONFIG = {"env": "CartPole-v1"}


@pytest.mark.parametrize(
    ("keys", "there", "said"),
    [
        ({"num_workers": 64}, {"CPU": 2.0}, ["64 CPUs", "has 2", "num_workers"]),
        ({"num_gpus": 4, "num_workers": 0}, {"CPU": 8.0}, ["4 GPUs", "has 0", "num_gpus"]),
        ({"num_workers": 2}, {"CPU": 2.0}, None),
        ({"num_workers": 0}, {"CPU": 1.0}, None),
        ({"num_workers": 64}, None, None),
    ],
)
def test_what_is_lacking_is_named_before_and_while_it_waits(keys, there, said, caplog, monkeypatch):
    """`num_gpus: 4` on a machine without any hung without a word."""
    pytest.importorskip("ray")
    config = translate({**CONFIG, **keys}, algorithm="PPO").algorithm_config
    monkeypatch.setattr(waiting, "_there", lambda: there)
    monkeypatch.setattr(waiting, "_EVERY", 0.01)
    with caplog.at_level(logging.WARNING), waiting.tell_of_lacking_resources(config):
        before = [r.message for r in caplog.records if r.message.startswith("The config")]
        time.sleep(0.1)
    repeated = [r.message for r in caplog.records if "Still waiting" in r.message]
    if said is None:
        assert (before, repeated) == ([], [])
    else:
        assert len(before) == 1
        assert len(repeated) > 1
        assert all(part in before[0] for part in said)
