"""Hooks of policies that templates build are called as in the old Rays."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

pytest.importorskip("ray")

import torch

from rllib_compat import gym
from rllib_compat.config import default_config
from rllib_compat.legacy import lookup
from tests.legacy.api import running_loops, template_hooks
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

RECORDED = sorted((Path(__file__).parents[2] / "legacy" / "api" / "hooks").glob("*.json"))
#: Models of Ray 1.0 told numbers of their own, among those of the policy.
NO_MORE = {"model"}


def templates(ray, hooks):
    """What a policy is made of here, as in an old Ray."""

    def old(module, name):
        return lookup(f"ray.rllib.{module}", name)

    def build_policy(**parts):
        if ray < "1.3":
            return old("policy.torch_policy_template", "build_torch_policy")(**parts)
        return old("policy.policy_template", "build_policy_class")(framework="torch", **parts)

    return SimpleNamespace(
        MODEL_DEFAULTS=old("models.catalog", "MODEL_DEFAULTS"),
        SampleBatch=old("policy.sample_batch", "SampleBatch"),
        build_policy=build_policy,
        default_config=lambda name: default_config(name, ray),
        make_env=running_loops.make_env(gym),
        numpy=numpy,
        policy_hooks=hooks,
        settings={"framework": "torch"} if ray > "1" else {"use_pytorch": True},
        torch=torch,
    )


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_a_policy_calls_its_hooks(recorded):
    told = json.loads(recorded.read_text())["policy_hooks"]
    found = template_hooks.policy_hooks(templates(recorded.stem, told["given"]))
    assert {"get_default_config", "after_init", "loss_fn"} <= set(told["given"])
    made, told_of_made = found.pop("made"), told["made"]
    assert made[: len(told_of_made)] == told_of_made
    # Since Ray 1.1, a policy tries its loss when it is made.
    assert {call[0] for call in made[len(told_of_made) :]} <= {
        call[0] for part in ("acted", "learned") for call in told[part]
    }
    assert found.pop("stats") == sorted(set(told["stats"]) - NO_MORE)
    assert found == {name: told[name] for name in found}
