"""Defaults of old Rays: the table of keys has what the Rays themselves began with."""

import json
from pathlib import Path

import pytest

from rllib_compat import registry
from rllib_compat.registry import keys
from tests.unit.config.test_defaults import of, silent

RECORDED = sorted((Path(__file__).parents[2] / "legacy" / "defaults").glob("*.json"))

ABSENT = "absent"
#: Configs of Ray 0.5 that had none of the keys that all others had.
OF_THEIR_OWN = (("0.5.3", "BC"), ("0.5.3", "ES"))
#: Where the two differ, and why.
DIFFER = {
    "0.5.3": {
        "model.max_seq_len": "a network took it for granted",
        "model.use_lstm": "likewise",
        "model": "likewise",
        "tf_session_args": "A2C and A3C replaced the dict by one of fewer keys",
    },
    "1.13.0": {"timesteps_per_iteration": "CQL had a placeholder where all others had 0"},
    "2.0.1": {
        "off_policy_estimation_methods": "it held classes",
        "replay_buffer_config": "RNNSAC had a tuple, by a comma too many",
        "replay_ratio": "it was computed of another key",
    },
    "2.8.1": {
        "_AlgorithmConfig__prior_exploration_config": "it is private",
        "exploration_config": "what the new API stack of that time replaced by nothing",
        "policies": "nothing is said of the only policy",
        "replay_buffer_config": "that of LeelaChessZero has a dict in it",
        "rollouts_per_iteration": "the config class of Random has another name",
        "torch_compile_learner_dynamo_backend": "it depends on the machine",
        "torch_compile_worker_dynamo_backend": "likewise",
    },
}


#: What says nothing of training: the environment is given, and compilers are the machine's.
LEFT_OUT = {"env", "rollouts_per_iteration"}
LEFT_OUT |= {"torch_compile_learner_dynamo_backend", "torch_compile_worker_dynamo_backend"}


def flat(config):
    """Values by paths, with the keys of the dicts in it."""
    for key, value in config.items():
        inside = value if isinstance(value, dict) and "$" not in value else {}
        yield from ((f"{key}.{name}", inside[name]) for name in inside)
        if not inside:
            yield key, value


def is_same(ray, key, theirs, ours):
    """Whether the table has what a Ray had; classes and what that Ray had renamed are left out."""
    if theirs == ours or "$" in json.dumps(theirs):
        return True
    if theirs == -1 and ours == ABSENT:
        return keys.is_placeholder(key, -1)
    if key.startswith("model.") and theirs == ABSENT:  # the network has it anyway
        return (True, ours) == keys.default_at("model", key.partition(".")[2], ray)
    return False


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_default_configs_are_those_of_the_rays(recorded):
    ray, told = recorded.stem, json.loads(recorded.read_text())
    common, compared, wrong = told.pop("common"), 0, []
    for name, own in told.items():
        algorithm = registry.find(name).name
        theirs = dict(flat({**common, **own}))
        ours = dict(flat(json.loads(json.dumps(keys.default_config(algorithm, ray)))))
        for key in {*theirs, *ours} if (ray, name) not in OF_THEIR_OWN else theirs:
            compared += 1
            pair = theirs.get(key, ABSENT), ours.get(key, ABSENT)
            known = {key, key.partition(".")[0]} & DIFFER.get(ray, {}).keys()
            if not known and not is_same(ray, key, *pair):
                wrong.append((name, key, *pair))
    assert not wrong
    assert compared > 500


def values(config):
    """A config without what was an object."""
    return {
        key: values(value) if isinstance(value, dict) and "$" not in value else value
        for key, value in config.items()
        if (isinstance(value, dict) and "$" not in value) or '"$"' not in json.dumps(value)
    }


def trains(algorithm):
    """Whether an algorithm has a successor in today's Ray or in this package."""
    row = registry.of(registry.find(algorithm).becomes or registry.find(algorithm).name)
    return row.ours or not row.removed


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_an_empty_config_means_what_a_ray_began_with(recorded):
    """All that a real Ray had by itself says nothing more than nothing does."""
    ray, told = recorded.stem, json.loads(recorded.read_text())
    common = told.pop("common")
    for name, own in told.items():
        if trains(name):
            began_with = {k: v for k, v in values(common | own).items() if k not in LEFT_OUT}
            algorithm = registry.find(name).name
            assert of(algorithm, ray, began_with) == silent(algorithm, ray), name


@pytest.mark.parametrize("ray", keys.versions())
def test_no_default_has_a_part_that_was_no_literal(ray):
    """Ray 2.60's table of statistics went on as a dict of placeholders, and train() called it."""
    for algorithm in ("PPO", "IMPALA"):
        assert '"$"' not in json.dumps(keys.default_config(algorithm, ray), default=repr)
