"""What a config can't have is refused, or told, in words of the config."""

import logging
import time

import pytest

pytest.importorskip("ray")

import gymnasium.spaces as spaces
import numpy as np
import torch
from ray.rllib.policy.policy import PolicySpec
from ray.rllib.utils.spaces.simplex import Simplex

from rllib_compat.config import translate
from rllib_compat.errors import ConfigError
from rllib_compat.registry import keys
from rllib_compat.trainer import refusals
from rllib_compat.trainer.preparation import fit_gpus, fit_workers
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

NOTHING = None
NOISE = {"exploration_config": {"type": "OrnsteinUhlenbeckNoise"}}


def error_of(call):
    try:
        call()
    except Exception as error:
        return error


def of_ray():
    from ray.rllib.utils.exploration.ornstein_uhlenbeck_noise import OrnsteinUhlenbeckNoise

    OrnsteinUhlenbeckNoise(None, framework="torch", policy_config={}, model=None)


def of_ray_without_a_word():
    from gymnasium.spaces import Tuple
    from ray.rllib.utils.exploration.parameter_noise import ParameterNoise

    ParameterNoise(Tuple([]), framework="torch", policy_config={}, model=None)


def of_the_user():
    raise ValueError("mine")


@pytest.mark.parametrize(
    ("algorithm", "model", "error", "where"),
    [
        ("SAC", {}, AssertionError("Discrete(2)"), "the environment's action space"),
        ("SAC", {}, AssertionError("mine"), None),
        ("A3C", {"free_log_std": True}, error_of(lambda: NOTHING % 2), "model.free_log_std"),
        ("A3C", {}, error_of(lambda: NOTHING % 2), None),
    ],
)
def test_what_no_network_takes_is_said_in_words_of_the_config(algorithm, model, error, where):
    found = refusals.refused(error, translate({"model": model}, algorithm=algorithm))
    assert (found and found.where) == where


def test_layers_behind_parts_that_an_lstm_does_not_know_are_named():
    """Ray 1.13.0 failed with the same error where observations were MultiBinary."""
    error = error_of(lambda: torch.nn.LSTM(8, 6)(torch.zeros(1, 1, 7)))
    model = {"use_lstm": True, "post_fcnet_hiddens": [7]}
    for told, where in ((model, "model.post_fcnet_hiddens"), ({}, "$.exploration_config")):
        found = refusals.refused(error, translate({**NOISE, "model": told}, algorithm="A3C"))
        assert found.where == where


@pytest.mark.parametrize(
    ("config", "call", "is_said"),
    [
        (NOISE, of_ray, True),
        (NOISE, of_ray_without_a_word, True),
        (NOISE, of_the_user, False),
        ({"exploration_config": {"type": dict}}, of_ray, False),
        ({"model": {"custom_model": "mine"}}, of_ray, False),
        ({}, of_ray, False),
    ],
)
def test_an_error_of_ray_names_the_keys_unless_own_code_may_be_wrong(config, call, is_said):
    why = refusals.refused(error_of(call), translate(config, algorithm="DQN"))
    assert (why is not None) == is_said
    if is_said:
        assert isinstance(why, ConfigError)
        assert "$.exploration_config" in str(why)
        assert why.fix


def test_noise_on_weights_that_policies_fail_with_is_refused_by_name():
    config = {"exploration_config": {"type": "ParameterNoise"}}
    why = refusals.refused(error_of(of_ray), translate(config, algorithm="PG"))
    assert why.where == "exploration_config"
    assert "PG can't be built with 'ParameterNoise'" in str(why)


def test_an_error_of_a_ray_in_any_folder_is_one_of_ray(tmp_path):
    """Debian's Python has `dist-packages`, and a folder on PYTHONPATH may have any name."""
    code = compile("def build(): raise ValueError('strides')", tmp_path / "rays.py", "exec")
    module = {"__name__": "ray.rllib.utils.torch_utils"}
    exec(code, module)
    config = {"exploration_config": {"type": "ParameterNoise"}}
    for made, is_said in ((module, True), ({**module, "__name__": "raylike"}, False)):
        exec(code, made)
        why = refusals.refused(error_of(made["build"]), translate(config, algorithm="PPO"))
        assert (why is not None) == is_said


def test_a_model_that_is_no_whole_sac_is_told_where_it_belongs():
    class Layers:
        def __init__(self, observations, actions):
            pass

    config = {"model": {"custom_model": "layers"}}
    error = error_of(lambda: Layers(None, None, policy_model_config={}))
    why = refusals.refused(error, translate(config, algorithm="SAC"))
    assert why.where == "model.custom_model"
    assert "Q_model.custom_model" in why.fix


BOX = spaces.Box(-1, 1, (2,), np.float32)
BOTH = spaces.Tuple([spaces.Discrete(2), BOX])


@pytest.mark.parametrize(
    ("config", "takes", "refuses"),
    [
        ({"exploration_config": {"type": "SoftQ"}}, spaces.Discrete(2), BOX),
        ({"exploration_config": {"type": "Curiosity"}}, spaces.MultiDiscrete([2, 3]), BOTH),
        ({"exploration_config": {"type": "GaussianNoise"}}, BOX, spaces.Discrete(2)),
        ({"exploration_config": {"type": "ParameterNoise"}}, spaces.Discrete(2), BOX),
        ({"exploration_config": {"type": "ParameterNoise"}}, spaces.Discrete(2), BOTH),
        ({"model": {"attention_use_n_prev_actions": 2}}, BOX, BOTH),
    ],
)
def test_what_only_some_actions_have_is_refused_with_others(config, takes, refuses):
    refusals.require_actions(config, [takes, takes])
    with pytest.raises(ConfigError, match="only, in every Ray") as error:
        refusals.require_actions(config, [takes, refuses])
    assert error.value.where.partition(".")[0] in config
    assert error.value.fix


def test_actions_that_are_not_flattened_are_seen_whole():
    config = {"model": {"attention_use_n_prev_actions": 2}, "_disable_action_flattening": True}
    refusals.require_actions(config, [BOTH])


def test_distributions_of_ones_own_and_spaces_that_nobody_knows_are_not_judged():
    noise = {"exploration_config": {"type": "ParameterNoise"}}
    refusals.require_actions(noise, [None])
    refusals.require_actions({**noise, "model": {"custom_action_dist": "mine"}}, [BOX])


ASKED = [
    ("IMPALA", "0.5.3", "gpu"),
    ("APEX", "0.6.6", "num_gpus"),
    ("IMPALA", "1.13.0", "num_gpus"),
]


@pytest.mark.parametrize(("algorithm", "ray", "key"), ASKED)
def test_a_gpu_that_an_old_default_asks_for_is_left_out_with_a_row(algorithm, ray, key):
    defaults = keys.default_config(algorithm, ray)
    assert defaults[key]
    fitted, (finding,) = fit_gpus({"lr": 1}, defaults, legacy_ray=ray, gpus=0)
    assert fitted == {"lr": 1, key: 0}
    assert finding.path == f"$.{key}"
    assert fit_gpus({}, defaults, legacy_ray=ray, gpus=1) == ({}, [])
    assert fit_gpus({}, defaults, legacy_ray=None, gpus=0) == ({}, [])


def test_until_ray_1_3_a_gpu_was_only_reserved_and_a_trainer_went_on_without():
    fitted, findings = fit_gpus({"num_gpus": 1}, {}, legacy_ray="1.2.0", gpus=0)
    assert fitted == {"num_gpus": 0}
    assert len(findings) == 1
    for ray in ("1.3.0", None):
        with pytest.raises(ConfigError, match="there is none"):
            fit_gpus({"num_gpus": 1}, {}, legacy_ray=ray, gpus=0)


@pytest.mark.parametrize("given", [{"num_gpus_per_worker": 1}, {"num_gpus": 2, "_fake_gpus": True}])
def test_gpus_of_workers_may_come_with_a_node_and_fake_ones_need_none(given):
    assert fit_gpus(given, {}, legacy_ray="1.13.0", gpus=0) == (given, [])


def test_workers_that_an_old_default_asks_for_are_as_many_as_there_are_cpus_for():
    defaults = keys.default_config("APEX", "1.13.0")
    assert defaults["num_workers"] == 32
    fitted, (finding,) = fit_workers({"lr": 1}, defaults, legacy_ray="1.13.0", cpus=8)
    assert fitted == {"lr": 1, "num_workers": 7}
    assert finding.path == "$.num_workers"
    for given, cpus in (({"num_workers": 32}, 8), ({}, 64), ({}, None)):
        assert fit_workers(given, defaults, legacy_ray="1.13.0", cpus=cpus) == (given, [])


CARTPOLE = {"env": "CartPole-v1"}
LACKING = [
    ({"num_workers": 64}, {"CPU": 2.0}, ["64 CPUs (num_workers=64)", "has 2", "num_workers to 2"]),
    (
        {"num_workers": 4, "num_cpus_per_worker": 2},
        {"CPU": 5.0},
        ["8 CPUs", "has 5", "num_workers to 2"],
    ),
    ({"num_gpus": 2, "num_workers": 0}, {"CPU": 8.0, "GPU": 1.0}, ["2 GPUs", "num_gpus to 1"]),
    (
        {"num_workers": 1, "num_gpus_per_worker": 1},
        {"CPU": 8.0},
        ["1 GPUs (num_gpus_per_worker=1)", "has 0", "num_gpus_per_worker to 0"],
    ),
    (
        {"num_workers": 2, "num_learners": 5},
        {"CPU": 3.0},
        ["7 CPUs (num_workers=2, num_learners=5)", "has 3", "num_learners to 1"],
    ),
]
ENOUGH = [
    ({"num_workers": 2}, {"CPU": 2.0}),
    ({"num_workers": 0}, {"CPU": 1.0}),
    ({"num_workers": 64}, None),
]


@pytest.mark.parametrize(("keys", "there", "said"), LACKING)
def test_what_is_lacking_is_an_error_that_says_what_to_set(keys, there, said, monkeypatch):
    """`num_gpus: 2` on a machine with one GPU waited forever."""
    config = translate({**CARTPOLE, **keys}, algorithm="PPO").algorithm_config
    monkeypatch.setattr(refusals, "available_resources", lambda: there)
    monkeypatch.setattr(refusals.startup, "may_grow", lambda: False)
    with pytest.raises(ConfigError) as error, refusals.with_resources(config, keys):
        pass
    assert all(part in str(error.value) for part in said), error.value


@pytest.mark.parametrize(("keys", "there"), [*(row[:2] for row in LACKING), *ENOUGH])
def test_where_nodes_may_join_it_is_named_before_and_while_it_waits(
    keys, there, caplog, monkeypatch
):
    config = translate({**CARTPOLE, **keys}, algorithm="PPO").algorithm_config
    monkeypatch.setattr(refusals, "available_resources", lambda: there)
    monkeypatch.setattr(refusals.startup, "may_grow", lambda: True)
    monkeypatch.setattr(refusals, "_EVERY", 0.01)
    with caplog.at_level(logging.WARNING), refusals.with_resources(config, keys):
        before = [r.message for r in caplog.records if r.message.startswith("The config")]
        time.sleep(0.1)
    repeated = [r.message for r in caplog.records if "Still waiting" in r.message]
    lacks = (keys, there) not in ENOUGH
    assert (len(before) == 1, len(repeated) > 1) == (lacks, lacks)


@pytest.mark.parametrize("keys", [{"num_gpus": 0.5}, {"num_gpus": 2}, {"num_gpus_per_worker": 1}])
def test_gpus_that_ray_was_started_with_and_that_are_not_there_are_an_error(keys, monkeypatch):
    """torch said that local_gpu_idx 0 is not a valid GPU ID."""
    given = {"num_workers": 1, **keys}
    config = translate({**CARTPOLE, **given}, algorithm="PPO").algorithm_config
    monkeypatch.setattr(refusals, "available_resources", lambda: {"CPU": 8.0, "GPU": 2.0})
    monkeypatch.setattr(refusals.startup, "lacks_promised_gpus", lambda: True)
    checked = refusals.with_resources(config, given)
    with pytest.raises(ConfigError, match="no CUDA device") as error, checked:
        pass
    (key,) = keys
    assert error.value.where == key


@pytest.mark.parametrize(
    ("policies", "action_space", "needs"),
    [
        ({}, Simplex(shape=(3,)), True),
        ({}, spaces.Dict({"a": spaces.Tuple([Simplex(shape=(2,))])}), True),
        ({"p": (None, None, Simplex(shape=(3,)), {})}, None, True),
        ({"p": PolicySpec(action_space=spaces.Discrete(2))}, spaces.Discrete(2), False),
    ],
)
def test_a_simplex_needs_the_old_stack(policies, action_space, needs):
    translation = translate({"env": "CartPole-v1"}, algorithm="PPO")
    config = {"multiagent": {"policies": policies}}
    assert refusals.needs_old_stack(translation, config, action_space) is needs
