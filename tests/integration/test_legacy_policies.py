"""Policies and models answer what those of real old Rays answered, with the same weights."""

import functools

import pytest
import torch
from ray.rllib.policy.sample_batch import SampleBatch

import rllib_compat as compat
from rllib_compat import gym
from rllib_compat.registry.legacy_api import GONE
from tests.legacy.policies import calls, compare
from tests.marks import TRAINERS

pytestmark = TRAINERS

#: How many of an old Ray's calls may give something else, for no reason that a row says.
CALLS = 0.05
#: Ray 0.8.5 had another SAC: distributions with an entropy, and critics without a state.
CALLS_OF = {("0.8.5", "sac"): 0.08}

#: How many of its names may be answered by a sentence: policies of DQN and SAC had more of them.
NAMES = {"dqn": 0.12, "sac": 0.2, "ppo-lstm": 0.06}

CASES = [
    pytest.param(ray, case, marks=[] if (ray, case) == ("1.13.0", "ppo") else pytest.mark.nightly)
    for ray in compare.RAYS
    for case in calls.CASES
    if compare.recorded(ray, case)
]


def trainer_of(case, ray):
    algorithm, config = calls.config_of(case)
    env = calls.make_env(gym)
    return compat.Trainer(
        {**config, "framework": "torch"}, env=env, algorithm=algorithm, legacy_ray=ray
    )


@pytest.mark.parametrize(("ray", "case"), CASES)
def test_policies_answer_as_in_the_old_ray(ray, case, tmp_path):
    folder, old = compare.recorded(ray, case)
    trainer = trainer_of(case, ray)
    trainer.restore(next(folder.glob("checkpoint-*[0-9]")))
    torch.manual_seed(0)
    new = calls.ask(trainer.get_policy(), SampleBatch, functools.partial(_folder, tmp_path))
    trainer.stop()
    bare = [call for call, answer in new["calls"] if _is_bare(call, answer, old)]
    assert bare == []
    different, lost = compare.differences(ray, case, old, new), compare.lost_names(old, new)
    assert compare.unexplained_names(lost, GONE) == []
    names = sum(map(len, old["names"].values()))
    assert len(different) <= CALLS_OF.get((ray, case), CALLS) * len(old["calls"]), different
    assert len(lost) <= NAMES.get(case, 0.055) * names, lost


def _is_bare(call, answer, old):
    """Whether a call dies of an attribute that the old object had."""
    theirs = dict(map(tuple, old["calls"]))[call]
    return _error_of(answer) == "AttributeError" and not _error_of(theirs)


def _error_of(answer):
    return answer.get("raises") if isinstance(answer, dict) else None


def _folder(place, name):
    made = place / name
    made.mkdir()
    return str(made)
