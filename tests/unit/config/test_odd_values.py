"""None, 0, "", [] and {} for each key, and values beyond their range: as the old Rays took them."""

import json
import math
from functools import cache
from pathlib import Path

import pytest

from rllib_compat.config import translate
from rllib_compat.neutral.report import Severity, Verdict

RECORDED = sorted((Path(__file__).parents[2] / "legacy" / "odd_values").glob("*.json"))
EMPTY = {"None": None, "0": 0, '""': "", "[]": [], "{}": {}}
CONTINUOUS = {"DDPG", "SAC", "TD3"}

#: What the old Ray's sampling took, and we refuse, by key; what samples has not learned yet.
LEARNING = "the recording ends before the learner or the buffer reads it, as a number"
REFUSED = {
    "env": "the recording's workers were given one",
    "framework": "it was the policy class that was recorded; no framework is none of ours",
    "use_critic": "GAE without a critic ended in an error at the first batch, in every Ray",
    "opt_type": "anything but 'adam' was RMSprop",
    "n_step": "0 steps discounted the target by nothing, which no learner of ours does",
    "placement_strategy": "nothing was placed in the recording",
    "rollout_fragment_length": "0 sampled one step after the other",
    "sample_batch_size": "0 sampled one step after the other",
}


def _ended():
    for path in RECORDED:
        found = json.loads(path.read_text("utf-8"))
        for algorithm, keys in found["ended"].items():
            for key, values in keys.items():
                for name, ended in values.items():
                    yield found["ray"], algorithm, key, name, ended


@cache
def refused(ray, algorithm, key, name):
    """Why a config with the value is refused; None: it is not."""
    env = "Pendulum-v1" if algorithm in CONTINUOUS else "CartPole-v1"
    config = {"env": env, "num_workers": 0, key: EMPTY[name]}
    found = translate(config, algorithm=algorithm, legacy_ray=ray, old_networks=True)
    return next((f.message for f in found.report if f.verdict is Verdict.REFUSED), None)


@pytest.mark.parametrize("ray", sorted({ray for ray, *_ in _ended()}))
def test_what_an_old_ray_sampled_with_is_taken(ray):
    taken = [case for case in _ended() if case[0] == ray and case[-1] is None]
    wrong = {
        (algorithm, key, name): why
        for _, algorithm, key, name, _ in taken
        if (why := refused(ray, algorithm, key, name)) is not None
        and key not in REFUSED
        and "number" not in why  # LEARNING
    }
    assert len(taken) > 450
    assert not wrong


@pytest.mark.parametrize("key", ["observation_filter", "batch_mode"])
def test_what_ended_an_old_ray_is_an_error_here(key):
    for ray, algorithm, of, name, ended in _ended():
        # None is a key that is not set here; there, most died of it.
        if of == key and ended is not None and algorithm == "PPO" and name != "None":
            assert refused(ray, algorithm, key, name) is not None, (ray, name)


@pytest.mark.parametrize("value", [None, 0, "", [], {}])
def test_an_empty_config_of_an_environment_is_one_without_keys(value):
    calls = translate({"env": "E", "env_config": value}, algorithm="PPO").calls
    assert not calls["environment"].get("env_config")


@pytest.mark.parametrize(
    ("algorithm", "key", "setting", "value"),
    [
        ("PPO", "lambda", "lambda_", 1.14),
        ("PPO", "gamma", "gamma", 1.05),
        ("SAC", "tau", "tau", 1.2),
    ],
)
def test_what_population_based_training_makes_trains_with_a_warning(algorithm, key, setting, value):
    found = translate({key: value}, algorithm=algorithm)
    assert found.calls["training"][setting] == value
    (row,) = [f for f in found.report if f.path == f"$.{key}"]
    assert row.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("key", "value", "method", "setting", "made"),
    [
        ("train_batch_size", 4000.7, "training", "train_batch_size_per_learner", 4001),
        ("rollout_fragment_length", 200.0, "env_runners", "rollout_fragment_length", 200),
        ("sgd_minibatch_size", 64.0, "training", "minibatch_size", 64),
        ("num_workers", 2.0, "env_runners", "num_env_runners", 2),
    ],
)
def test_numbers_of_things_are_whole(key, value, method, setting, made):
    found = translate({key: value}, algorithm="PPO", legacy_ray="today").calls[method][setting]
    assert (found, type(found)) == (made, int)


@pytest.mark.parametrize(
    ("algorithm", "key", "given", "taken"),
    [
        ("PPO", "kl_coeff", 0, 0.0),
        ("APPO", "kl_coeff", 1, 1.0),
        ("PPO", "vf_clip_param", None, math.inf),
        ("IMPALA", "vtrace_clip_rho_threshold", None, math.inf),
        ("APPO", "vtrace_clip_pg_rho_threshold", None, math.inf),
    ],
)
def test_learners_can_compute_with_what_the_old_ones_took(algorithm, key, given, taken):
    calls = translate({"env": "E", key: given}, algorithm=algorithm, legacy_ray="1.13.0").calls
    assert calls["training"][key] == taken
    assert isinstance(calls["training"][key], float), "Ray halves a tensor of the same type"


@pytest.mark.parametrize("algorithm", ["IMPALA", "APPO"])
def test_no_vtrace_is_none_too(algorithm):
    found = [
        translate({"env": "E", "vtrace": given}, algorithm=algorithm, legacy_ray="1.13.0")
        for given in (None, False)
    ]
    assert found[0].calls == found[1].calls
    assert found[0].legacy_training == found[1].legacy_training
