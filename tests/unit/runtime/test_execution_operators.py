"""What each operator of execution plans promises: what Ray 1.13.0 did, and what always holds."""

import itertools
import json
import queue
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.rllib.env.env_context import EnvContext

from rllib_compat import legacy
from rllib_compat.adapters import EpisodeRecord
from rllib_compat.errors import CompatError, ConfigError, LegacyEnvError
from rllib_compat.execution import (
    ApplyGradients,
    AverageGradients,
    ComputeGradients,
    ConcatBatches,
    Concurrently,
    Dequeue,
    Enqueue,
    MixInReplay,
    OncePerTimestepsElapsed,
    SimpleReplayBuffer,
    StandardMetricsReporting,
)
from rllib_compat.legacy import lookup
from tests.legacy.execution import operators
from tests.legacy.execution.operators import Workers, batch, counted, flow, of_two, steps

legacy.deactivate()  # to import it is to activate it

OLD = Path(__file__).parents[2] / "legacy" / "execution" / "1.13.0.json"


def find(module, name):
    """An operator, as old code imports it; and a record of an episode by its old names."""
    if name == "RolloutMetrics":
        return lambda episode_length, episode_reward, **parts: EpisodeRecord(
            episode_length, episode_reward, **parts
        )
    return lookup(f"ray.rllib.{module}", name)


@pytest.mark.parametrize(("name", "old"), json.loads(OLD.read_text()).items())
def test_operators_do_what_ray_1_13_did(name, old):
    assert json.loads(json.dumps(operators.play(find, [name])))[name] == old


BATCHES = st.lists(st.integers(0, 20), max_size=30)


@given(BATCHES, st.integers(1, 40))
def test_no_step_is_lost_and_no_large_batch_is_larger_than_needed(sizes, least):
    operator = ConcatBatches(least)
    large = list(flow(*map(batch, sizes)).combine(operator))
    assert sum(b.count for b in large) + operator.count == sum(sizes)
    assert sum(b.count for b in operator.buffer) == operator.count < least
    for b in large:
        assert least <= b.count < least + max(sizes)


@given(BATCHES, st.integers(1, 30))
def test_items_pass_once_in_an_interval(sizes, delay):
    counts = np.cumsum(sizes).tolist()
    passed = [0, *steps(OncePerTimestepsElapsed(delay), counts)]
    assert all(after - before >= delay for before, after in itertools.pairwise(passed))
    assert not counts or counts[-1] - passed[-1] < delay, "none passed that could have"


@given(st.integers(1, 6), st.integers(0, 12))
def test_a_buffer_has_the_newest_batches(slots, count):
    buffer = SimpleReplayBuffer(slots)
    for number in range(count):
        buffer.add_batch(number)
        assert buffer.replay() in buffer.replay_batches
    assert list(buffer.replay_batches) == list(range(count))[-slots:]
    assert len(buffer) == min(slots, count)


@given(st.floats(0.0, 4.0))
def test_as_many_old_batches_are_mixed_in_as_was_asked_for_in_the_mean(proportion):
    random.seed(1)
    mix = MixInReplay(5, proportion)
    counts = [len(mix(number)) - 1 for number in range(2000)]
    assert np.mean(counts) == pytest.approx(proportion, abs=0.05)
    assert max(counts) - min(counts) <= 1


@given(st.lists(st.integers(), max_size=9), st.lists(st.integers(), max_size=9), st.data())
def test_flows_side_by_side_lose_nothing_and_keep_their_order(one, two, data):
    flows = [flow(*((i, x) for x in items)) for i, items in enumerate((one, two))]
    mode = data.draw(st.sampled_from(("round_robin", "async")))
    shown = data.draw(st.sets(st.sampled_from((0, 1))))
    joined = list(Concurrently(flows, mode=mode, output_indexes=sorted(shown)))
    for i, items in enumerate((one, two)):
        expected = items if i in (shown or {0, 1}) else []
        assert [x for flow_, x in joined if flow_ == i] == expected


def test_what_a_queue_gets_comes_out_in_its_order_beside_what_puts_it_in():
    between = queue.Queue(3)
    put, taken = flow(*range(20)).for_each(Enqueue(between)), Dequeue(between)
    both = Concurrently([put, taken], mode="round_robin", output_indexes=[1])
    assert [next(both) for _ in range(20)] == list(range(20))
    assert between.empty()


def test_a_queue_that_nobody_fills_any_more_is_an_error():
    alive = [True]
    taken = Dequeue(queue.Queue(), check=lambda: alive[0])
    other = flow(*range(3)).for_each(lambda x: alive.__setitem__(0, x < 1) or x)
    with pytest.raises(CompatError, match="producer has ended"):
        list(Concurrently([other, taken], mode="async"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"ops": [flow()]}, "1 flow\\(s\\) and needs at least 2"),
        ({"mode": "raw"}, "mode 'raw' is unknown"),
        ({"mode": "async", "round_robin_weights": [1, 1]}, "takes no weights"),
        ({"round_robin_weights": ["*", "*"]}, "one has to be a number"),
        ({"output_indexes": [0, 5]}, r"\[0, 5\] for 2 flows"),
    ],
)
def test_flows_that_can_not_run_side_by_side_are_refused(arguments, says):
    with pytest.raises(ConfigError, match=says):
        Concurrently(**{"ops": [flow(), flow()], **arguments})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ConcatBatches(4, count_steps_by="episodes"), "episodes"),
        (lambda: Enqueue([]), "list"),
        (lambda: MixInReplay(0, 0.5), "no batches to replay"),
        (
            lambda: find("execution.rollout_ops", "SelectExperiences")(),
            "neither policy_ids nor local_worker",
        ),
    ],
)
def test_arguments_that_mean_nothing_are_refused(make, says):
    with pytest.raises(ConfigError, match=says):
        make()


def test_gradients_of_several_policies_are_summed_one_by_one():
    one = {"a": [np.ones(2), None], "b": [np.ones(1)]}
    two = {"a": [np.ones(2), np.ones(1)], "b": [np.zeros(1)]}
    total, count = AverageGradients()([(one, 3), (two, 4)])
    assert count == 7
    assert [g.tolist() for g in total["a"]] == [[2.0, 2.0], [1.0]]
    assert total["b"][0].tolist() == [1.0]
    assert AverageGradients()([(([None],), 1), (([None],), 1)])[0] == ([None],)


def test_gradients_of_several_policies_are_told_by_policy():
    class Local:
        def compute_gradients(self, samples, single_agent=None):
            told = {policy: {"n": b.count} for policy, b in samples.policy_batches.items()}
            return {policy: [1.0] for policy in told}, {**told, "batch_count": samples.count}

    def run(metrics):
        found = ComputeGradients(SimpleNamespace(local_worker=Local))(of_two(4))
        return found, metrics.info["learner"]

    (found, learner), _ = counted(run)
    assert found == ({"a": [1.0], "b": [1.0]}, 4)
    assert learner == {"a": {"n": 4}, "b": {"n": 8}}, "policies, and nothing else"


def test_all_workers_get_the_weights_that_were_learned():
    sent = []
    remote = SimpleNamespace(set_weights=SimpleNamespace(remote=lambda *given: sent.append(given)))
    workers = Workers(trained=["a"])
    workers.remote_workers = lambda: [remote, remote]
    counted(lambda metrics: ApplyGradients(workers)(([1.0], 4)), num_steps_sampled=5)
    assert sent == [({"of": ["a"]}, {"timestep": 5})] * 2


@pytest.mark.parametrize(
    ("by_steps_trained", "totals"),
    [(False, [20, 40]), (True, [10, 20])],
    ids=["sampled", "trained"],
)
def test_an_iteration_is_counted_in_the_steps_that_were_asked_for(by_steps_trained, totals):
    shared = flow()

    def learn(_):
        counters = shared.get_metrics().counters
        counters["num_steps_sampled"] += 5
        counters["num_steps_trained"] += 5 if counters["num_steps_sampled"] % 10 == 0 else 0

    config = {"timesteps_per_iteration": 10 if by_steps_trained else 20}
    results = StandardMetricsReporting(
        flow(*range(8)).for_each(learn), Workers(), config, by_steps_trained=by_steps_trained
    )
    assert [result["timesteps_total"] for result in results] == totals


def test_copies_of_an_environment_know_which_worker_they_are_in():
    seen = []
    make = find("env.multi_agent_env", "make_multi_agent")

    def creator(context):
        seen.append((dict(context), context.worker_index))
        return SimpleNamespace(observation_space=None, action_space=None)

    context = EnvContext({"num_agents": 2, "x": 1}, worker_index=3)
    make(creator)(context)
    assert seen == [({"x": 1}, 3)] * 2
    assert context == {"num_agents": 2, "x": 1}, "it is the caller's"


def test_copies_of_an_environment_that_nobody_knows_are_refused():
    with pytest.raises(LegacyEnvError, match="There is no environment 'Nowhere-v0'"):
        find("env.multi_agent_env", "make_multi_agent")("Nowhere-v0")
