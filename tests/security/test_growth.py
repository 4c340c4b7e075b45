"""What a reader costs grows no faster than its file, whose dimensions are made larger one by one.

Calls of functions are counted, not seconds: a busy machine changes nothing, and a list that is
searched once for each of its elements shows.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from rllib_compat import artifacts, convert, inspect, translate
from rllib_compat.adapters import as_parquet
from rllib_compat.conversion import find_jobs
from rllib_compat.episode_data import read_episodes
from rllib_compat.trials import read_trial
from rllib_compat.upgrade import Target, upgrade
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


def policies_in_the_config(folder, count):
    policies = {f"p{i}": [None, "Box(4,)", "Discrete(2)", {}] for i in range(count)}
    path = checkpoint(folder, {name: weights(1) for name in policies})
    params = {"env": "x", "multiagent": {"policies": policies}}
    (path.parent / "params.json").write_text(json.dumps(params))
    return lambda: (inspect(path), convert(path, folder / "new", to="msgpack", prove=False))


def depth(folder, count):
    value = [1]
    for _ in range(count // 8):
        value = {"x": value}
    config = {"env_config": value}
    return lambda: translate(config, algorithm="PPO", on_unknown="pass")


def a_size(folder, count):
    config = {"model": {"fcnet_hiddens": [64 * count] * 2}, "num_sgd_iter": 64 * count}
    path = checkpoint(folder, {"default_policy": weights(2)})
    (path.parent / "params.json").write_text(json.dumps(config))
    return lambda: inspect(path)


def rows_of_a_table(folder, count):
    row = "{0},{0},1.0,1.0,1.0\n"
    head = "training_iteration,timesteps_total," + ",".join(
        f"episode_reward_{part}" for part in ("mean", "min", "max")
    )
    rows = "".join(row.format(i) for i in range(count))
    (folder / "progress.csv").write_text(head + "\n" + rows)
    return lambda: read_trial(folder / "progress.csv")


def lines_of_a_program(folder, count):
    part = "from ray.rllib.agents.ppo import PPOTrainer\nx = PPOTrainer(config={'lr': 1})\n"
    source = (part * (count // 4)).encode()
    return lambda: upgrade(source, Target.COMPAT)


def recorded_episodes(folder, count):
    data = {"running": {"x": {"mean": 1}}, "final": {"y": 2}, "media": {}}
    lines = (json.dumps({"iteration": i, **data}) + "\n" for i in range(count))
    (folder / "train-00000001.jsonl").write_text("".join(lines))
    return lambda: list(read_episodes(folder))


def recorded_steps(folder, count):
    step = {"type": "SampleBatch", "obs": [[0.5]], "actions": [1], "rewards": [1.0]}
    (folder / "output-1.json").write_text((json.dumps({**step, "dones": [True]}) + "\n") * count)
    return lambda: as_parquet(str(folder))


def files_of_simulators(folder, count):
    place = folder / "artifacts" / "files" / "runner-1" / "env-0"
    place.mkdir(parents=True)
    row = {"size": 0, "sha256": sha256().hexdigest(), "mtime": 1.0, "changed": False}
    for number in range(count):
        (place / f"{number}").touch()
    files = [{"path": f"{i}", "iteration": None, **row} for i in range(count)]
    told = {"runner": 1, "evaluation": False, "env": 0, "node": "n", "folder": "x", "files": files}
    manifest = {"version": 1, "time": 1.0, "iteration": 1, "folders": [told]}
    (folder / "artifacts" / "manifest.json").write_text(json.dumps(manifest))
    return lambda: (artifacts.verify(folder), artifacts.extract(folder, Path(f"{folder}-new")))


DIMENSIONS = [
    unknown_keys,
    policies_of_unknown_networks,
    arrays,
    length_of_a_list,
    iterations,
    checkpoints,
    policies_in_the_config,
    depth,
    a_size,
    rows_of_a_table,
    lines_of_a_program,
    recorded_episodes,
    recorded_steps,
    files_of_simulators,
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
