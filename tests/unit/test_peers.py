"""The guide's page about speed shows what `benchmarks/peers.py` has recorded."""

import importlib
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("peers")


def test_the_page_shows_what_was_recorded(peers):
    begin = importlib.import_module("guide_tables").begin("peers")
    recorded = peers.RESULTS.exists()
    shown = peers.page(json.loads(peers.RESULTS.read_text("utf-8"))) if recorded else "\n"
    assert begin + shown in peers.PAGE.read_text("utf-8"), "run benchmarks/peers.py --write"


def test_a_row_says_how_many_times_the_peers_speed_ours_is(peers):
    def runs(*speeds):
        return [{"cpu": speed, "memory": 100.0 + speed} for speed in speeds]

    limit = [{"env": 0.0002, "arithmetic": 0.0003}]
    sides = {"ours": runs(900, 1100, 1000), "sb3": runs(500), "limit": limit}
    line = peers.table({"DQN, CartPole": sides}).splitlines()[-1]
    assert line == "| DQN, CartPole | 1,000 | – | – | 2.00 | 2.0 | 1,100 | – | – | 600 |"


def test_the_limit_is_env_steps_and_the_networks_arithmetic(peers):
    import torch

    found = peers.measure("DQN, CartPole", "limit", 0, torch.get_num_threads())
    assert found.keys() == {"env", "arithmetic"}
    assert all(0 < seconds < 0.1 for seconds in found.values())
