"""Frozen policies of a league: one copy of their weights on a node, and nothing else changes."""

import sys
import time

import numpy as np
import pytest
import ray
import torch

import rllib_compat as compat
from rllib_compat import league
from rllib_compat.errors import CompatError
from rllib_compat.league.modules import arrays_of, weights_of
from rllib_compat.ray_versions import env_runners, learners
from tests.integration.test_league import ACT, OBS, Duel, sides
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.newest]

# What env runners need of these modules travels by value: they could not import them.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
ray.cloudpickle.register_pickle_by_value(sys.modules[Duel.__module__])

CONFIG = {
    "env": Duel,
    "num_workers": 2,
    "recreate_failed_workers": True,
    "num_cpus_per_worker": 0.5,
    "train_batch_size": 100,
    "sgd_minibatch_size": 50,
    "num_sgd_iter": 1,
    "model": {"fcnet_hiddens": [64]},
    "multiagent": {
        "policies": {name: (None, OBS, ACT, {}) for name in ("main", "old", "older")},
        "policy_mapping_fn": sides("main", "old"),
        "policies_to_train": ["main"],
    },
}


@pytest.fixture(scope="module")
def trainer(tmp_path_factory, one_ray):
    home = pytest.MonkeyPatch()
    home.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    made = compat.PPOTrainer(config=CONFIG)
    yield made
    made.stop()
    home.undo()


def look(worker):
    """What each module of a worker computes, whether it shares, and how often it is writable."""
    seen = {}
    for name, module in worker.env_runner.module.items():
        shared = weights_of(module) is not None
        batch = {"obs": torch.linspace(-1, 1, 24).reshape(8, 3)}
        out = module.forward_inference(batch)["action_dist_inputs"].numpy()
        seen[name] = (shared, out)
    return seen


def expected(trainer):
    """The same with the learner's own tensors."""
    learner = learners.local_learner(trainer.algorithm)
    batch = {"obs": torch.linspace(-1, 1, 24).reshape(8, 3)}
    return {
        name: module.forward_inference(batch)["action_dist_inputs"].numpy()
        for name, module in learner.module.items()
    }


def check(trainer, frozen):
    """All workers share what is frozen and nothing else, and all compute what the learner does."""
    trainer.workers.sync_weights()
    right = expected(trainer)
    answers = trainer.workers.foreach_worker(look)
    assert len(answers) == 3
    for seen in answers:
        assert {name for name, (shared, _) in seen.items() if shared} == frozen
        for name, (_, out) in seen.items():
            assert np.array_equal(out, right[name]), name


def optimizers(trainer):
    learner = learners.local_learner(trainer.algorithm)
    return {
        name for name in dict(learner.module.items()) if learner.get_optimizers_for_module(name)
    }


def weights(trainer, policy):
    return {name: np.copy(array) for name, array in trainer.get_weights([policy])[policy].items()}


def same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.matrix
def test_frozen_policies_are_shared_and_stay_what_they_are(trainer):
    check(trainer, {"old", "older"})
    assert optimizers(trainer) == {"main"}
    before = {name: weights(trainer, name) for name in ("main", "old", "older")}
    for _ in range(2):
        trainer.train()
    assert not same(before["main"], weights(trainer, "main"))
    assert same(before["old"], weights(trainer, "old"))
    check(trainer, {"old", "older"})


@pytest.mark.matrix
def test_a_challenger_joins_with_the_weights_of_the_champion(trainer):
    champion = trainer.get_policy("main").get_state()
    trainer.add_policy(
        "challenger",
        type(trainer.get_policy("main")),
        policy_state=champion,
        policy_mapping_fn=sides("main", "challenger"),
        policies_to_train=["main"],
    )
    before = weights(trainer, "challenger")
    assert same(before, weights(trainer, "main"))
    trainer.train()
    assert same(before, weights(trainer, "challenger"))
    assert not same(before, weights(trainer, "main"))
    check(trainer, {"old", "older", "challenger"})
    assert optimizers(trainer) == {"main"}


@pytest.mark.matrix
def test_a_worker_that_was_replaced_shares_again(trainer):
    victim = env_runners.remote_env_runners(trainer.algorithm.env_runner_group)[0]
    ray.kill(victim, no_restart=False)
    for _ in range(20):
        trainer.train()
        if trainer.workers.num_healthy_remote_workers() == 2:
            break
        time.sleep(0.2)
    check(trainer, {"old", "older", "challenger"})


@pytest.mark.matrix
def test_a_frozen_policy_is_trained_again_and_another_one_is_frozen(trainer):
    before = {name: weights(trainer, name) for name in ("main", "challenger")}
    trainer.workers.foreach_worker(lambda w: w.set_policies_to_train(["challenger"]))
    trainer.train()
    assert same(before["main"], weights(trainer, "main"))
    assert not same(before["challenger"], weights(trainer, "challenger"))
    check(trainer, {"main", "old", "older"})
    assert optimizers(trainer) == {"main", "challenger"}, "Adam's moments of `main` are kept"


def test_weights_that_are_set_reach_a_frozen_policy(trainer):
    doubled = {name: 2 * array for name, array in weights(trainer, "old").items()}
    trainer.set_weights({"old": doubled})
    check(trainer, {"main", "old", "older"})
    assert same(doubled, weights(trainer, "old"))


def test_nothing_that_is_written_on_a_worker_reaches_another_one(trainer):
    group = trainer.algorithm.env_runner_group
    first, second = env_runners.remote_env_runners(group)
    before = ray.get(second.apply.remote(outputs))
    ray.get(first.apply.remote(write))
    assert not np.array_equal(ray.get(first.apply.remote(outputs)), before)
    assert np.array_equal(ray.get(second.apply.remote(outputs)), before)
    check(trainer, {"main", "old", "older"})


def outputs(runner, *_):
    batch = {"obs": torch.linspace(-1, 1, 24).reshape(8, 3)}
    return runner.module["old"].forward_inference(batch)["action_dist_inputs"].numpy()


def write(runner, *_):
    module = runner.module["old"]
    module.set_state({name: array + 1 for name, array in module.get_state().items()})


def test_a_checkpoint_brings_weights_and_sharing_back(trainer):
    before = {name: weights(trainer, name) for name in trainer.get_weights()}
    saved = trainer.save_to_object()
    trainer.set_weights({"old": {name: 0 * array for name, array in before["old"].items()}})
    trainer.train()
    trainer.restore_from_object(saved)
    for name, arrays in before.items():
        assert same(arrays, weights(trainer, name)), name
    check(trainer, {"main", "old", "older"})
    trainer.train()
    trainer.remove_policy("older")
    check(trainer, {"main", "old"})


def hold_one(runner, *_):
    """Lets a runner hold one shared policy at a time; returns what it has after playing each."""
    runner.frozen_modules.capacity = 1
    found = []
    for name in ("main", "old", "main"):
        out = runner.module[name].forward_inference({"obs": torch.zeros(1, 3)})
        held = {other for other in ("main", "old") if weights_of(runner.module[other]).attached}
        found.append((held, not out["action_dist_inputs"].isnan().any()))
    return found


def test_a_worker_lets_go_of_what_it_has_not_used_for_longest(trainer):
    runner = env_runners.remote_env_runners(trainer.algorithm.env_runner_group)[0]
    found = ray.get(runner.apply.remote(hold_one))
    assert found == [({"main"}, True), ({"old"}, True), ({"main"}, True)]
    check(trainer, {"main", "old"})


@pytest.mark.usefixtures("one_ray")
def test_training_without_workers_leaves_what_is_in_the_object_store_as_it_is(make, monkeypatch):
    fewer = {"num_workers", "sgd_minibatch_size", "num_sgd_iter"}
    config = {key: value for key, value in CONFIG.items() if key not in fewer}
    config |= {"num_workers": 0, "min_time_s_per_reporting": 0}
    alone = make("A2CTrainer", config=config)
    alone.workers.foreach_worker(lambda w: w.set_policies_to_train(["old"]))
    stored = weights_of(alone.algorithm.env_runner.module["older"]).ref
    before = {name: np.copy(array) for name, array in arrays_of(ray.get(stored)).items()}
    learner = learners.local_learner(alone.algorithm)
    with torch.no_grad():
        for parameter in learner.module["older"].parameters():
            parameter += 1
    alone.train()
    assert same(before, arrays_of(ray.get(stored)))
    right = expected(alone)
    (seen,) = alone.workers.foreach_worker(look)
    assert {name for name, (shared, _) in seen.items() if shared} == {"main", "older"}
    for name, (_, out) in seen.items():
        assert np.array_equal(out, right[name]), name
    # What is trained goes to the runner of this process and to no other.
    monkeypatch.setattr(ray, "put", None)
    alone.train()
    (seen,) = alone.workers.foreach_worker(look)
    assert np.array_equal(seen["old"][1], expected(alone)["old"])


def test_one_policy_is_refused():
    class Alone:
        learner_group = None

    with pytest.raises(CompatError, match="several policies"):
        league.share_frozen(Alone())
