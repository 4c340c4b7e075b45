"""The first updates have the learning rates that they had in Ray 1.13.0, on both API stacks.

`tests/legacy/losses/record_rates.py` recorded them, with an `lr` that is not the first of the
schedule: torch's policies began with it.
"""

import json
from pathlib import Path

import pytest
import torch
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.fcnet import FullyConnectedNetwork

from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

CPUS = 2
RECORDED = json.loads(Path("tests/legacy/losses/1.13.0/rates.json").read_text())


@pytest.fixture
def used(monkeypatch):
    """The rates of optimizers' steps, and of those that go past the optimizer."""
    found = []
    step, at_once = torch.optim.Adam.step, torch._fused_adam_

    def noting(optimizer, *args, **kwargs):
        found.append(optimizer.param_groups[0]["lr"])
        return step(optimizer, *args, **kwargs)

    def noting_at_once(*tensors, lr, **kwargs):
        found.append(lr)
        return at_once(*tensors, lr=lr, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", noting)
    monkeypatch.setattr(torch, "_fused_adam_", noting_at_once)
    return found


CASES = [(algorithm, stack) for algorithm in RECORDED for stack in ("old", "new")]


@pytest.mark.parametrize(
    ("algorithm", "stack"),
    [
        pytest.param(*case, marks=[] if case == ("A2C", "old") else pytest.mark.nightly)
        for case in CASES
    ],
)
def test_first_updates_have_the_rates_of_ray_1_13(algorithm, stack, used, make):
    recorded = RECORDED[algorithm]
    config = recorded["config"]
    if stack == "old":
        ModelCatalog.register_custom_model("dense", FullyConnectedNetwork)
        config = {**config, "model": {**config["model"], "custom_model": "dense"}}
    trainer = make("Trainer", algorithm=algorithm, config=config, legacy_ray="1.13.0")
    assert trainer.algorithm.config.enable_rl_module_and_learner == (stack == "new")
    for iteration in recorded["iterations"]:
        used.clear()
        told = trainer.train()["info"]["learner"]["default_policy"]["learner_stats"]["cur_lr"]
        assert used == pytest.approx(iteration["used"])
        assert told == pytest.approx(iteration["told"])
