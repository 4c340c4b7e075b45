"""Execution plans of Ray 0.8.5 – 1.13, on workers that only count."""

from types import SimpleNamespace

import numpy as np
import pytest
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

from rllib_compat import legacy
from rllib_compat.errors import CompatError, ConfigError, GoneError
from rllib_compat.legacy import lookup
from rllib_compat.runtime import RunningPlan

legacy.deactivate()  # to import it is to activate it

SIZE = 4


class Worker:
    """Samples batches of 4 steps for two policies, and remembers what it was told."""

    def __init__(self):
        self.sampled = 0
        self.learned = []
        self.updated = []
        self.known = {}

    def sample(self):
        steps = np.arange(self.sampled, self.sampled + SIZE)
        self.sampled += SIZE
        batches = {p: SampleBatch({"obs": steps.astype(np.float32)}) for p in ("a", "b")}
        return MultiAgentBatch(batches, SIZE)

    def learn_on_batch(self, batch):
        self.learned.append(batch)
        return {policy: {"learner_stats": {"loss": 1.0}} for policy in batch.policy_batches}

    def get_policies_to_train(self, batch=None):
        return ["a", "b"]

    def get_policy(self, policy):
        return SimpleNamespace(update_target=lambda: self.updated.append(policy))

    def set_global_vars(self, known):
        self.known = known


class Workers:
    def __init__(self):
        self.local = Worker()

    def local_worker(self):
        return self.local

    def remote_workers(self):
        return []

    def sync_weights(self):
        pass


def ops(name):
    """An operator, as old code imports it."""
    return lookup("ray.rllib.execution", name)


def running(plan, config=None):
    counters = dict.fromkeys(
        (
            "num_env_steps_sampled",
            "num_agent_steps_sampled",
            "num_env_steps_trained",
            "num_agent_steps_trained",
            "num_target_updates",
            "last_target_update_ts",
        ),
        0,
    )
    workers, algorithm = Workers(), SimpleNamespace(_counters=counters)
    return RunningPlan(plan, workers, config or {}, algorithm), workers.local, counters


def learning(workers, config):
    rollouts = ops("ParallelRollouts")(workers, mode="bulk_sync")
    trained = rollouts.combine(ops("ConcatBatches")(min_batch_size=8)).for_each(
        ops("TrainOneStep")(workers)
    )
    trained = trained.for_each(ops("UpdateTargetNetwork")(workers, target_update_freq=8))
    return ops("StandardMetricsReporting")(trained, workers, config)


def test_a_plan_samples_learns_and_tells():
    step, worker, counters = running(learning)
    assert step() == {p: {"learner_stats": {"loss": 1.0}} for p in ("a", "b")}
    assert [batch.count for batch in worker.learned] == [8]
    assert (counters["num_env_steps_sampled"], counters["num_agent_steps_trained"]) == (8, 16)
    assert worker.known == {"timestep": 8}, "schedules and explorations go by it"
    assert worker.updated == ["a", "b"], "after 8 steps"
    step()
    assert worker.updated == ["a", "b"] * 2
    result = {"info": {"learner": "Ray's"}, "timers": {"x": 1}}
    step.complete(result)
    assert result["info"]["num_steps_sampled"] == result["timesteps_total"] == 16
    assert result["info"]["num_target_updates"] == 2
    assert result["info"]["learner"] == "Ray's"
    assert result["timers"].keys() >= {"x", "learn_time_ms"}


def test_a_plan_counts_on_after_a_restore():
    step, _, counters = running(learning)
    counters["num_env_steps_sampled"] = 100
    step()
    assert counters["num_env_steps_sampled"] == 108


def test_an_iteration_has_as_many_steps_as_the_config_says():
    step, worker, _ = running(learning, {"timesteps_per_iteration": 20})
    step()
    assert worker.sampled == 24
    step()
    assert worker.sampled == 48


def test_two_flows_have_the_same_samples():
    buffer = ops("LocalReplayBuffer")(learning_starts=8, buffer_size=100, replay_batch_size=3)

    def plan(workers, config):
        one, two = ops("ParallelRollouts")(workers).duplicate(2)
        stored = one.for_each(ops("SelectExperiences")(["a"])).for_each(
            ops("StoreToReplayBuffer")(local_buffer=buffer)
        )
        learned = ops("Replay")(local_buffer=buffer).for_each(ops("TrainOneStep")(workers, ["a"]))
        off = ops("Concurrently")([stored, learned], mode="round_robin", output_indexes=[1])
        scaled = ops("StandardizeFields")(["obs"])
        on = two.for_each(ops("SelectExperiences")(["b"])).for_each(scaled)
        on = on.for_each(ops("TrainOneStep")(workers, ["b"]))
        both = ops("Concurrently")([on, off], mode="async", output_indexes=[1])
        return ops("StandardMetricsReporting")(both, workers, config)

    step, worker, _ = running(plan)
    assert step().keys() == {"a", "b"}
    mine = [batch for batch in worker.learned if "a" in batch.policy_batches]
    assert [b.policy_batches["a"].count for b in mine] == [3], "replayed"
    on_policy = next(b for b in worker.learned if "b" in b.policy_batches)
    assert abs(on_policy.policy_batches["b"]["obs"].mean()) < 1e-6


def test_the_users_own_functions_see_the_plans_metrics_and_change_the_result():
    def plan(workers, config):
        def count(batch):
            metrics = lookup("ray.rllib.execution.common", "_get_shared_metrics")()
            metrics.counters["mine"] += batch.total() / (2 * SIZE)
            return batch

        rollouts = ops("ParallelRollouts")(workers).for_each(count)
        told = ops("StandardMetricsReporting")(rollouts, workers, config)
        return told.for_each(lambda result: {**result, "more": 5})

    step, _, _ = running(plan)
    step()
    assert step() == {}, "nothing learns"
    step.complete(result := {})
    assert (result["info"]["mine"], result["more"]) == (2, 5)


def test_what_no_plan_can_do_any_more_is_said():
    with pytest.raises(GoneError, match="raw"):
        running(lambda workers, config: ops("ParallelRollouts")(workers, mode="raw"))
    with pytest.raises(ConfigError, match="not both"):
        ops("Replay")()
    step, *_ = running(lambda workers, config: iter([{"x": 1}]))
    step()
    with pytest.raises(CompatError, match="plan has ended"):
        step()


def test_everything_of_an_old_plan_is_found_where_it_was():
    for place, name in (
        ("rollout_ops", "AsyncGradients"),
        ("train_ops", "TrainTFMultiGPU"),
        ("replay_ops", "MixInReplay"),
        ("replay_buffer", "LocalReplayBuffer"),
        ("concurrency_ops", "Enqueue"),
        ("metric_ops", "CollectMetrics"),
        ("common", "STEPS_SAMPLED_COUNTER"),
    ):
        found = lookup(f"ray.rllib.execution.{place}", name)
        assert getattr(found, "__module__", "rllib_compat.execution").startswith("rllib_compat")
        assert not hasattr(found, "_place"), name
