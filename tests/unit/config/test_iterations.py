"""How long an iteration is, and what it learns from, is what old Rays made of their keys.

`tests/legacy/losses/record_iterations.py` asked A2C, whose train batch has 200 steps;
`record_rounds.py` beside it asked PPO.
"""

import json
from pathlib import Path

import pytest

from rllib_compat import translate
from rllib_compat.neutral import Severity, Verdict

LOSSES = Path(__file__).parents[2] / "legacy" / "losses"
RECORDED = json.loads((LOSSES / "1.13.0" / "iterations.json").read_text())
RAYS = ("0.8.5", "1.13.0", "2.0.1")


@pytest.mark.parametrize("case", RECORDED)
def test_an_iteration_has_as_many_steps_as_it_had(case):
    told = RECORDED[case]
    made = translate(told["config"], algorithm="A2C", legacy_ray="1.13.0")
    least = made.calls.get("reporting", {}).get("min_sample_timesteps_per_iteration") or 0
    assert max(200, least) == told["steps"]


def test_a_key_that_a_ray_passed_over_is_told_and_counts_in_others():
    config = RECORDED["new key"]["config"]
    made = translate(config, algorithm="A2C", legacy_ray="1.13.0")
    (row,) = (f for f in made.report if f.path == "$.min_sample_timesteps_per_reporting")
    assert (row.verdict, bool(row.hint)) == (Verdict.DROPPED, True)
    made = translate(config, algorithm="A2C", legacy_ray="today")
    assert made.calls["reporting"]["min_sample_timesteps_per_iteration"] == 400


#: Release → what `tests/legacy/losses/record_rounds.py` recorded there.
ROUNDS = {ray: json.loads((LOSSES / ray / "rounds.json").read_text()) for ray in RAYS}


@pytest.mark.parametrize("ray", RAYS)
def test_a_batch_of_ppo_has_as_many_steps_as_it_had(ray):
    """Fragments of Ray 1.4 - 2.1 are changed where they make no batch; then it may take two."""
    for told in ROUNDS[ray]["batches"]:
        old, fw = told["config"], {} if ray == "0.8.5" else {"framework": "torch"}
        made = translate(
            {"num_workers": 0, "sgd_minibatch_size": 8, **fw, **old},
            algorithm="PPO",
            legacy_ray=ray,
        )
        assert not made.refused
        least = made.legacy_training.collected_steps
        runners = made.calls["env_runners"]
        workers = old.get("num_workers", 0) or 1
        fragment = runners["rollout_fragment_length"] * old.get("num_envs_per_worker", 1)
        each = fragment if least else fragment * workers
        least = least or made.calls["training"]["train_batch_size_per_learner"]
        assert max(-(-least // each) * each, fragment * workers) == told["steps"], old


def test_what_no_key_says_of_replay_is_that_of_the_ray():
    optimizer = {"use_exec_api": False, "final_prioritized_replay_beta": 1.0}
    beta = [[0, 0.4], [20000, 1.0]]
    for ray, algorithm, told, replayed in (
        ("1.13.0", "DQN", {}, {"first": 1.0, "intensity_of": "all"}),
        ("1.3.0", "SAC", {}, {"first": 1.0, "offset": 1e-6, "intensity_of": "fragment"}),
        ("1.5.2", "DDPG", {}, {"first": 1.0, "offset": 1e-6, "intensity_of": "all"}),
        ("2.1.0", "DQN", {"prioritized_replay_eps": 0.1}, {"first": 1.0, "offset": 0.1}),
        ("0.8.5", "DQN", {}, {"first": 1.0, "offset": 1e-6, "intensity_of": "fragment"}),
        (
            "0.8.5",
            "DQN",
            optimizer,
            {"first": None, "offset": 1e-6, "intensity_of": "fragment", "beta": beta},
        ),
        (
            "0.7.0",
            "DQN",
            {
                "final_prioritized_replay_beta": 1.0,
                "beta_annealing_fraction": 0.5,
                "schedule_max_timesteps": 4000,
            },
            {
                "first": None,
                "offset": 1e-6,
                "intensity_of": "fragment",
                "beta": [[0, 0.4], [2000, 1.0]],
            },
        ),
    ):
        made = translate(told, algorithm=algorithm, legacy_ray=ray)
        found = dict(made.legacy_training.replay)
        assert found == {**found, **replayed}, (ray, algorithm)
        assert "beta" in replayed or "beta" not in found


@pytest.mark.parametrize(
    ("told", "warns"),
    [
        ({"prioritized_replay_eps": 0.1}, False),
        ({"prioritized_replay_eps": 1e-6}, False),
        ({"worker_side_prioritization": True}, True),
        ({"replay_buffer_config": {"storage_unit": "episodes"}}, True),
        ({"replay_buffer_config": {"storage_unit": "timesteps"}}, False),
        ({"replay_buffer_config": {"replay_mode": "lockstep"}}, True),
        ({"final_prioritized_replay_beta": 1.0}, True),
    ],
)
def test_what_a_replay_buffer_can_not_do_is_a_warning(told, warns):
    made = translate(told, algorithm="DQN", legacy_ray="1.11.1", api_stack="new")
    rows = [f for f in made.report if f.path.startswith(f"$.{next(iter(told))}")]
    assert any(row.severity is Severity.WARNING for row in rows) is warns


def test_targets_follow_later_until_ray_1_11():
    for ray, frequency in (("1.11.1", 41), ("1.12.1", 40), ("0.6.6", 41), ("today", 40)):
        told = {"target_network_update_freq": 40}
        made = translate(told, algorithm="DQN", legacy_ray=ray)
        assert made.calls["training"]["target_network_update_freq"] == frequency


def test_ppo_does_not_shuffle_where_it_did_not():
    for ray, told, shuffle in (
        ("0.8.5", {}, "once"),
        ("0.8.5", {"shuffle_sequences": False}, "never"),
        ("1.5.2", {"shuffle_sequences": False, "framework": "tf"}, "never"),
        ("0.8.5", {"shuffle_sequences": False, "simple_optimizer": True}, "each epoch"),
    ):
        made = translate(told, algorithm="PPO", legacy_ray=ray)
        assert made.legacy_training.shuffle == shuffle, (ray, told)


def test_an_evaluation_with_an_environment_of_its_own_has_the_agents_of_training():
    policies = {"policies": {"a": (None,) * 4}, "policy_mapping_fn": lambda *_, **__: "a"}
    old = {
        "env": "E",
        "multiagent": {**policies, "observation_fn": len},
        "evaluation_config": {"horizon": 5},
    }
    made = translate(old, algorithm="PPO")
    inner = made.calls["evaluation"]["evaluation_config"]["env"].settings
    assert (inner["horizon"], inner["multi_agent"], inner["observation_fn"]) == (5, True, len)


def test_the_mean_of_squared_advantages_moves_as_fast_as_it_did():
    key = "moving_average_sqd_adv_norm_update_rate"
    old = {"input": "/tmp/x", "env": "CartPole-v1"}
    for ray, rate in (("1.3.0", 1e-6), ("1.4.1", 1e-7), ("1.5.0", None), ("0.8.5", 1e-6)):
        made = translate(old, algorithm="MARWIL", legacy_ray=ray)
        assert made.calls.get("training", {}).get(key) == rate, ray
