"""Training loops of one's own around workers give what they gave in the old Rays."""

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import gymnasium
import pytest
import ray as todays
from ray.rllib.policy.policy import Policy

from rllib_compat import legacy
from rllib_compat.legacy import lookup
from tests.legacy.api import loops_here, training_loops
from tests.marks import OTHERS_WARNINGS

legacy.deactivate()  # to import it is to activate it

pytestmark = OTHERS_WARNINGS
RECORDED = Path(training_loops.__file__).with_name("loops")
HOOKS = RECORDED.with_name("hooks")


def old(module, name):
    return lookup(f"ray.rllib.{module}", name)


@pytest.mark.parametrize("ray", ["0.8.5", "1.0.1", "1.13.0"])
@pytest.mark.parametrize("loop", training_loops.LOOPS, ids=lambda loop: loop.__name__)
def test_a_loop_takes_the_same_steps_and_its_results_have_the_same_keys(loop, ray):
    recorded = json.loads((RECORDED / f"{ray}.json").read_text())[loop.__name__]
    if recorded is None:
        pytest.skip("this Ray had none")
    rays = SimpleNamespace(
        COMMON_CONFIG=old("agents.trainer", "COMMON_CONFIG"),
        LocalMultiGPUOptimizer=old("optimizers", "LocalMultiGPUOptimizer"),
        Policy=Policy,
        SampleBatch=old("policy.sample_batch", "SampleBatch"),
        SyncBatchReplayOptimizer=old("optimizers", "SyncBatchReplayOptimizer"),
        SyncReplayOptimizer=old("optimizers", "SyncReplayOptimizer"),
        SyncSamplesOptimizer=old("optimizers", "SyncSamplesOptimizer"),
        WorkerSet=old("evaluation.worker_set", "WorkerSet"),
        collect_metrics=old("evaluation.metrics", "collect_metrics"),
        make_env=lambda _: gymnasium.make("CartPole-v1"),
        policy_argument="policy" if ray == "0.8.5" else "policy_class",
        watch_minibatches=watch_minibatches,
    )
    rays.make_gpu_workers = partial(training_loops.make_workers, rays)
    found = loop(rays)
    for name, value in recorded.items():
        if name in ("keys", "info"):
            assert set(found[name]) >= set(value)
        else:
            assert found[name] == value


def watch_minibatches(optimizer):
    """The sizes of the minibatches that are learned from, from now on."""
    policy, sizes = optimizer.workers.local_worker().get_policy(), []
    learn = policy.learn_on_batch

    def learn_on_batch(batch):
        sizes.append(batch.count)
        return learn(batch)

    policy.learn_on_batch = learn_on_batch
    return sizes


ALONE = loops_here.recorded(
    lambda name: name not in loops_here.WITH_PROCESSES,
    ["1.13.0-a_plan_that_replays", "1.0.1-a_plan_of_two", "1.13.0-own_and_random"],
)


@pytest.fixture
def no_ray():
    """Training works in this process, without starting Ray."""
    same = {name: lambda value, **_: value for name in ("get", "put")}
    nothing = {"init": mock.DEFAULT, "cluster_resources": dict, **same}
    with mock.patch.multiple(todays, **nothing):
        yield


@pytest.mark.parametrize(("release", "name", "told"), ALONE)
@pytest.mark.usefixtures("no_ray")
def test_a_trainer_in_one_process_does_what_it_did(release, name, told, tmp_path):
    loops_here.check(told, loops_here.play(release, name, tmp_path))


@pytest.mark.parametrize("release", ["0.8.5", "1.0.1"])
@pytest.mark.usefixtures("no_ray")
def test_a_trainer_calls_its_hooks(release):
    recorded = json.loads((HOOKS / f"{release}.json").read_text())["trainer_hooks"]
    called = loops_here.call_hooks(release, recorded.pop("given"))
    evaluated = ["before_evaluate_fn", "trainer"]
    for calls in (recorded, called):  # today's Ray evaluates before an iteration's result is there
        calls["trained"].remove(evaluated)
    assert called == recorded
    assert evaluated not in called["trained"]


@pytest.mark.usefixtures("no_ray")
def test_a_class_checks_its_environments():
    class Strict(loops_here.old("agents.ppo", "PPOTrainer")):
        @staticmethod
        def validate_env(env, env_context):
            raise ValueError(f"{env.spec.id} in worker {env_context.worker_index}")

    with pytest.raises(ValueError, match="CartPole-v1 in worker 0"):
        Strict({"env": "CartPole-v1", "num_workers": 0, "framework": "torch"})
