"""The legacy keys of a result."""

import copy
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_compat.adapters import EpisodeRecord
from rllib_compat.runtime import RECORDS, LegacyResults, complete_evaluation

CONFIG = SimpleNamespace(
    metrics_num_episodes_for_smoothing=3, input_="sampler", keep_per_episode_custom_metrics=False
)


def episode(reward, length=10, policies=("default_policy",), **more):
    shares = {(agent, policy): reward / len(policies) for agent, policy in enumerate(policies)}
    return EpisodeRecord(length, reward, shares, **more)


def result(*records, **more):
    return {"env_runners": {RECORDS: list(records)}, **more}


def completed(*records, **more):
    today = result(*records, **more)
    LegacyResults().complete(today, CONFIG)
    return today


def test_rewards_lengths_and_histograms():
    legacy = completed(episode(1.0, 5), episode(3.0, 7))
    assert legacy["episode_reward_mean"] == 2.0
    assert (legacy["episode_reward_min"], legacy["episode_reward_max"]) == (1.0, 3.0)
    assert legacy["episode_len_mean"] == 6.0
    assert legacy["episodes_this_iter"] == 2
    assert legacy["hist_stats"] == {"episode_reward": [1.0, 3.0], "episode_lengths": [5, 7]}
    for section in ("sampler_results", "env_runners"):  # of Ray 2.0 – 2.10, of 2.11 – 2.39
        assert legacy[section]["episode_reward_mean"] == 2.0
        assert legacy[section]["hist_stats"] == legacy["hist_stats"]
    assert legacy["policy_reward_mean"] == {}


def test_the_records_themselves_do_not_reach_the_loggers():
    assert RECORDS not in completed(episode(1.0))["env_runners"]


def test_older_episodes_fill_the_window_up_and_no_more():
    results = LegacyResults()
    for rewards, mean in (
        ([0.0, 2.0], 1.0),
        ([4.0], 2.0),
        ([6.0], 4.0),
        ([1.0] * 5, 1.0),
        ([], 1.0),
    ):
        today = result(*map(episode, rewards))
        results.complete(today, CONFIG)
        assert today["episode_reward_mean"] == mean
        assert today["episodes_this_iter"] == len(rewards)


def test_no_more_episodes_are_kept_than_the_window_takes():
    """A run of weeks has millions of episodes; a list of all of them would fill the memory."""
    results = LegacyResults()
    for start in (0, 25):
        results.complete(result(*(episode(float(start + i)) for i in range(25))), CONFIG)
    assert results.summary(CONFIG)["hist_stats"]["episode_reward"] == [47.0, 48.0, 49.0]


def test_without_any_episode_the_means_are_nan():
    legacy = completed()
    assert np.isnan(legacy["episode_reward_mean"])
    assert legacy["custom_metrics"] == {}


def test_rewards_by_policy():
    legacy = completed(episode(4.0, policies=("p0", "p1")), episode(8.0, policies=("p0", "p1")))
    assert legacy["policy_reward_mean"] == {"p0": 3.0, "p1": 3.0}
    assert legacy["policy_reward_min"] == {"p0": 2.0, "p1": 2.0}
    assert legacy["hist_stats"]["policy_p1_reward"] == [2.0, 4.0]


def test_what_callbacks_left_in_the_episode():
    legacy = completed(
        episode(1.0, custom_metrics={"n": 1, "odd": float("nan")}, hist_data={"h": [1]}),
        episode(1.0, custom_metrics={"n": 3}, hist_data={"h": [2, 3]}, media={"clip": "b"}),
    )
    metrics = legacy["custom_metrics"]
    assert (metrics["n_mean"], metrics["n_min"], metrics["n_max"]) == (2.0, 1.0, 3.0)
    assert np.isnan(metrics["odd_mean"])
    assert legacy["hist_stats"]["h"] == [1, 2, 3]
    assert legacy["episode_media"] == {"clip": ["b"]}


def test_a_custom_metric_that_is_nan_once_does_not_hide_the_other_episodes():
    values = (1.0, float("nan"), np.float32("nan"), 4.0)
    legacy = completed(*(episode(1.0, custom_metrics={"n": value}) for value in values))
    metrics = legacy["custom_metrics"]
    assert (metrics["n_mean"], metrics["n_min"], metrics["n_max"]) == (2.5, 1.0, 4.0)


def test_an_iteration_without_a_sample_has_whole_numbers_for_its_counters():
    """Nothing was sampled: there is no number, and `int(nan)` is an error."""
    legacy = completed(num_env_steps_sampled_lifetime=float("nan"), num_healthy_workers=1)
    assert legacy["timesteps_total"] == legacy["timesteps_this_iter"] == 0
    assert legacy["num_healthy_workers"] == 1


@pytest.mark.parametrize(
    ("today", "legacy", "value"),
    [
        ({"num_env_steps_sampled_lifetime": 40.0}, ("timesteps_total",), 40),
        ({"num_env_steps_sampled_lifetime": 40.0}, ("info", "num_steps_sampled"), 40),
        ({"fault_tolerance": {"num_healthy_workers": 2}}, ("num_healthy_workers",), 2),
        ({"num_healthy_workers": 3}, ("num_healthy_workers",), 3),
        (
            {"env_runners": {"num_agent_steps_sampled_lifetime": {"a": 2.0, "b": 3.0}}},
            ("agent_timesteps_total",),
            5,
        ),
        ({"timers": {"learner_update_timer": 0.5}}, ("timers", "learn_time_ms"), 500.0),
        (
            {"learners": {"p": {"mean_kl_loss": 0.1}, "__all_modules__": {}}},
            ("info", "learner", "p", "learner_stats", "kl"),
            0.1,
        ),
        (
            {"learners": {"p": {"qf_mean": 3.0}}},
            ("info", "learner", "p", "learner_stats", "mean_q"),
            3.0,
        ),
    ],
)
def test_renamed_keys(today, legacy, value):
    found = completed(**today)
    for key in legacy:
        found = found[key]
    assert found == value
    assert type(found) is type(value)


def test_todays_keys_stay():
    assert completed(timers={"learner_update_timer": 0.5})["timers"]["learner_update_timer"] == 0.5


def test_an_evaluation_has_its_own_episodes():
    legacy = completed(episode(1.0), evaluation=result(episode(9.0)))
    assert legacy["episode_reward_mean"] == 1.0
    assert legacy["evaluation"]["episode_reward_mean"] == 9.0
    assert complete_evaluation(result(episode(5.0)), CONFIG)["episode_reward_max"] == 5.0


def test_steps_of_agents_are_counted_where_the_config_says_so():
    config = SimpleNamespace(**vars(CONFIG), count_steps_by="agent_steps")
    today = result(num_env_steps_sampled_lifetime=40)
    today["env_runners"] |= {
        "num_agent_steps_sampled_lifetime": {"a": 30.0, "b": 61.0},
        "num_agent_steps_sampled": {"a": 10.0, "b": 21.0},
    }
    LegacyResults().complete(today, config)
    assert (today["timesteps_total"], today["timesteps_this_iter"]) == (91, 31)
    assert today["num_env_steps_sampled"] == 40


def test_an_iteration_that_learned_nothing_tells_what_the_learner_told_last():
    """IMPALA's and APPO's sample meanwhile; `broadcast_interval` is a setting of theirs."""
    config = SimpleNamespace(**vars(CONFIG), broadcast_interval=1)
    for settings, told in ((config, ["p"]), (CONFIG, [])):
        results = LegacyResults()
        results.complete(result(learners={"p": {"total_loss": 3.0}}), settings)
        nothing = result(learners={"__all_modules__": {}})
        results.complete(nothing, settings)
        assert list(nothing["info"]["learner"]) == told


def test_a_policy_has_the_td_errors_of_its_last_batch():
    errors = np.array([0.5, 1.5])
    today = result(learners={"p": {"total_loss": 3.0}, "frozen": {}})
    LegacyResults().complete(today, CONFIG, {"p": errors, "frozen": errors})
    learner = today["info"]["learner"]
    assert learner["p"]["td_error"] is errors
    assert learner["p"]["mean_td_error"] == 1.0
    assert "frozen" not in learner


def test_the_thread_that_impala_learns_in_has_the_statistics_that_it_had():
    config, results = SimpleNamespace(**vars(CONFIG), broadcast_interval=1), LegacyResults()
    for length in (1, 3, math.nan):
        of_all = {"queue_size_learner_thread_queue": length, "learner_thread_update_timer": 0.5}
        today = result(learners={"__all_modules__": of_all}, num_weight_broadcasts=length)
        results.complete(today, config)
    info = today["info"]
    queue = info["learner_queue"]
    assert (queue["size_count"], queue["size_mean"]) == (3, pytest.approx(4 / 3))
    assert queue["size_quantiles"][::2] == [0.0, 1.0, 3.0]
    assert info["timing_breakdown"]["learner_grad_time_ms"] == 500.0
    assert info["timing_breakdown"]["learner_load_time_ms"] == 0.0
    assert info["num_weight_broadcasts"] == 4
    assert "learner_queue" not in completed()["info"], "PPO never had it"


def test_rates_are_those_that_were_used():
    told = {"curr_kl_coeff": 0.1, "cur_kl_coeff": 0.2, "default_optimizer_learning_rate": 0.5}
    stats = completed(learners={"p": {**told, "mean_kl_loss": 1.0}})["info"]["learner"]["p"]
    told = {"cur_kl_coeff": 0.2, "cur_lr": 0.5, "kl": 1.0, "allreduce_latency": 0.0}
    assert stats["learner_stats"] == told


STATS = {"mean_kl_loss": 0.1, "curr_kl_coeff": 0.2, "total_loss": 3.0}


def test_learner_stats_have_each_name_once():
    learner = completed(learners={"default_policy": STATS})["info"]["learner"]
    assert learner["default_policy"]["learner_stats"] == {
        "kl": 0.1,
        "cur_kl_coeff": 0.2,
        "total_loss": 3.0,
        "allreduce_latency": 0.0,
    }


def test_a_policy_that_did_not_learn_has_no_learner_stats():
    held = {"num_trainable_parameters": 7.0, "curr_entropy_coeff": 0.0, "curr_kl_coeff": 0.2}
    learner = completed(learners={"champion": STATS, "frozen": held})["info"]["learner"]
    assert list(learner) == ["champion"]


def test_agents_without_policies_have_the_default_policy():
    learner = completed(learners={"shared_policy": STATS})["info"]["learner"]
    assert learner["default_policy"]["learner_stats"]["kl"] == 0.1
    assert learner["default_policy"]["kl"] == 0.1
    assert list(learner) == ["shared_policy"]


def test_learner_stats_are_found_where_older_rays_had_them():
    learner = completed(learners={"default_policy": STATS, "p1": STATS})["info"]["learner"]
    assert learner["default_policy"]["kl"] == learner["p1"]["kl"] == learner["kl"] == 0.1
    copied = pickle.loads(pickle.dumps(copy.deepcopy(learner)))
    assert copied == learner == dict(learner)
    assert copied["kl"] == 0.1
    assert "kl" in learner
    assert learner["p1"].get("kl") == learner.get("kl") == 0.1
    assert learner.get("nothing", 1) == 1
    assert "nothing" not in learner
    assert list(learner) == ["default_policy", "p1"]  # so that loggers write each once
    with pytest.raises(KeyError, match="nothing"):
        learner["nothing"]


def test_updates_of_target_networks_are_counted_for_all_policies_at_once():
    config = SimpleNamespace(**vars(CONFIG), target_network_update_freq=500)
    before = result()
    LegacyResults().complete(before, config)
    assert before["info"]["num_target_updates"] == 0, "there was none yet"
    stats = {"num_target_updates": 3.0, "last_target_update_ts": 1500}
    found = completed(learners={"p0": stats, "p1": stats})
    for counted in (found["info"], found["counters"]):
        assert (counted["num_target_updates"], counted["last_target_update_ts"]) == (3, 1500)
    assert "num_target_updates" not in completed()["info"], "PPO never had them"


def test_losses_of_actor_critics_have_their_own_names():
    stats = {"policy_loss": 1.0, "qf_loss": 2.0, "alpha_value": 0.5}
    learner = completed(learners={"default_policy": stats})["info"]["learner"]
    assert learner["default_policy"]["learner_stats"] == {
        "actor_loss": 1.0,
        "critic_loss": 2.0,
        "alpha_value": 0.5,
        "allreduce_latency": 0.0,
    }


def test_throughputs_are_steps_per_second():
    timers = completed(
        env_runners={"num_env_steps_sampled": 100},
        timers={"env_runner_sampling_timer": 0.5},
    )["timers"]
    assert timers["sample_throughput"] == pytest.approx(200.0)


def test_metrics_between_two_results_are_those_of_the_window():
    results = LegacyResults()
    results.complete(result(*map(episode, [1.0, 5.0])), CONFIG)
    assert results.summary(CONFIG)["episode_reward_mean"] == 3.0
    assert results.summary(CONFIG)["episodes_this_iter"] == 0


def test_what_an_evaluation_function_returned_is_not_replaced_by_nothing():
    result = {"episode_reward_mean": 7.0, "env_runners": {}}
    assert complete_evaluation(result, CONFIG)["episode_reward_mean"] == 7.0


@given(st.lists(st.lists(st.floats(-9, 9), max_size=9), max_size=9), st.integers(0, 12))
def test_the_window_holds_the_newest_episodes_and_all_of_this_iteration(iterations, window):
    results, seen = LegacyResults(), []
    config = SimpleNamespace(**{**vars(CONFIG), "metrics_num_episodes_for_smoothing": window})
    for rewards in iterations:
        results.complete(today := result(*map(episode, rewards)), config)
        seen += rewards
        count = max(window, len(rewards))
        assert today["hist_stats"]["episode_reward"] == seen[max(0, len(seen) - count) :]


def test_custom_metrics_are_kept_as_they_are_where_the_config_says_so():
    config = SimpleNamespace(**{**vars(CONFIG), "keep_per_episode_custom_metrics": True})
    records = [episode(1.0, custom_metrics={"n": n}) for n in (1, float("nan"), 3)]
    today = result(*records, evaluation=result(episode(1.0, custom_metrics={"n": 7})))
    results = LegacyResults()
    results.complete(today, config)
    assert today["custom_metrics"] == {"n": [1, 3]}
    assert today["evaluation"]["custom_metrics"] == {"n": [7]}
    assert results.summary(config)["custom_metrics"] == {"n": [1, 3]}
    assert results.summary(CONFIG)["custom_metrics"]["n_mean"] == 2.0


def test_the_old_stacks_own_times_of_sampling_are_where_old_rays_had_them():
    times = {"mean_inference_ms": 2.5}
    runners = {"episode_reward_mean": 1.0, "episodes_this_iter": 0, "sampler_perf": times}
    legacy = {"env_runners": runners}
    LegacyResults().complete(legacy, CONFIG)
    assert legacy["sampler_perf"]["mean_inference_ms"] == 2.5
    assert legacy["sampler_results"]["sampler_perf"] == legacy["sampler_perf"]


def test_an_iteration_that_learned_nothing_of_a_recording_has_a_result():
    config = SimpleNamespace(**{**vars(CONFIG), "input_": "recording"})
    learned = {"__all_modules__": {"num_env_steps_trained": math.nan}}
    today = result(learners=learned, num_env_steps_sampled=5)
    LegacyResults().complete(today, config)
    assert today["num_env_steps_sampled_this_iter"] == 0
    assert today["agent_timesteps_total"] == 5
