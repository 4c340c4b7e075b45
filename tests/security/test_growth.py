"""What a reader costs grows no faster than its file, whose dimensions are made larger one by one.

Calls of functions are counted, not seconds: a busy machine changes nothing, and a list that is
searched once for each of its elements shows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rllib_compat import convert, inspect
from rllib_compat.config import translate
from rllib_compat.conversion import find_jobs
from rllib_compat.trials import read_trial
from tests.security import payloads
from tests.security.payloads import dumps

#: How much larger each dimension becomes, and how many times the calls may then be.
TIMES, MOST = 4, 5
_FEW = 60


def checkpoint(folder: Path, policies) -> Path:
    """A checkpoint of version 0.1 with the weights of these policies."""
    path = payloads.v0_1(folder / "old")
    path.write_bytes(dumps({"worker": dumps({"state": policies})}))
    return path


def weights(count):
    return {f"x{i}/y": np.zeros(2, np.float32) for i in range(count)}


def unknown_keys(folder, count):
    config = {f"odd_{i}_key": i for i in range(count)}
    return lambda: translate(config, algorithm="PPO", on_unknown="pass")


def policies_of_unknown_networks(folder, count):
    path = checkpoint(folder, {f"p{i}": weights(1) for i in range(count)})
    return lambda: (inspect(path), convert(path, folder / "new", to="msgpack", prove=False))


def arrays(folder, count):
    path = checkpoint(folder, {"default_policy": weights(count)})
    return lambda: (inspect(path), convert(path, folder / "new", to="msgpack", prove=False))


def length_of_a_list(folder, count):
    schedule = [[i, 0.1] for i in range(count)]
    config = {"model": {"fcnet_hiddens": [8] * count}, "lr_schedule": schedule}
    return lambda: translate(config, algorithm="PPO", on_unknown="pass")


def iterations(folder, count):
    rows = (
        {"training_iteration": i, "timesteps_total": i, "episode_reward_mean": 1.0}
        for i in range(count)
    )
    (folder / "result.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return lambda: read_trial(folder / "result.json")


def checkpoints(folder, count):
    for number in range(count):
        (folder / f"{number}").mkdir()
        (folder / f"{number}" / "checkpoint-1").touch()
    return lambda: find_jobs(folder, folder / "out")


DIMENSIONS = [
    unknown_keys,
    policies_of_unknown_networks,
    arrays,
    length_of_a_list,
    iterations,
    checkpoints,
]


def calls(work) -> int:
    """How many functions were called, of Python and of C."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("dimension", DIMENSIONS, ids=lambda d: d.__name__)
def test_cost_grows_with_the_file(dimension, tmp_path):
    counted = []
    for name, count in (("warm", 2), ("few", _FEW), ("many", TIMES * _FEW)):
        (tmp_path / name).mkdir()
        counted.append(calls(dimension(tmp_path / name, count)))
    grown = counted[2] / counted[1]
    print(dimension.__name__, counted, f"{grown:.2f} times")
    assert grown < MOST
