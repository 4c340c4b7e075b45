"""What workers in other processes sample and hold, called by hand, is that of whole policies."""

import numpy as np
import pytest
import ray

import rllib_compat as compat
from tests.marks import TRAINERS

pytestmark = TRAINERS


@pytest.fixture(scope="module")
def trainer(one_ray):
    config = {"env": "CartPole-v1", "framework": "torch", "num_workers": 1, "num_sgd_iter": 1}
    config |= {"rollout_fragment_length": 50, "train_batch_size": 100, "sgd_minibatch_size": 50}
    config |= {"model": {"fcnet_hiddens": [4]}, "evaluation_interval": 9, "lr": 0.01}
    config["vf_clip_param"] = 1e4  # values that are far off learn, too
    made = compat.PPOTrainer(config=config)
    yield made
    made.stop()


def sample(trainer):
    """What all workers sample, however they are asked."""
    (worker,) = trainer.workers.remote_workers()
    by_function = trainer.workers.foreach_worker(lambda w: w.worker_index and w.sample())
    applied = worker.apply.remote(lambda w: w.sample())
    evaluating = trainer.evaluation_workers.local_worker().sample()
    return [*ray.get([worker.sample.remote(), applied]), by_function[1], evaluating]


def values(trainer, observations):
    return trainer.get_policy().compute_actions(observations)[2]["vf_preds"]


def test_samples_have_the_values_of_the_critic_that_was_trained_last(trainer):
    before = values(trainer, np.ones((1, 4), np.float32))
    for _ in range(2):
        for batch in sample(trainer):
            assert np.allclose(batch["vf_preds"], values(trainer, batch["obs"]), atol=1e-6)
            assert np.ptp(batch["value_targets"]) > 0
        trainer.train()
    assert not np.allclose(values(trainer, np.ones((1, 4), np.float32)), before)
    trainer.workers.local_worker().learn_on_batch(sample(trainer)[0])


def test_workers_compute_gradients_which_another_one_applies(trainer):
    (worker,) = trainer.workers.remote_workers()
    before = {n: np.array(w) for n, w in trainer.get_weights()["default_policy"].items()}
    gradients, _ = ray.get(worker.compute_gradients.remote(worker.sample.remote()))
    trainer.workers.local_worker().apply_gradients(gradients)
    after = trainer.get_weights()["default_policy"]
    same = [name for name in before if np.array_equal(after[name], before[name])]
    assert [name for name in same if not name.endswith("_const")] == []


def test_weights_are_those_of_all_layers_and_may_be_set(trainer):
    (worker,) = trainer.workers.remote_workers()
    weights = trainer.get_weights()["default_policy"]
    theirs = ray.get(worker.get_weights.remote())["default_policy"]
    assert {n: w.shape for n, w in theirs.items()} == {n: w.shape for n, w in weights.items()}
    other = {name: np.full_like(array, 0.1) for name, array in weights.items()}
    ray.get(worker.set_weights.remote(ray.put({"default_policy": other})))
    theirs = ray.get(worker.get_weights.remote())["default_policy"]
    assert all(np.array_equal(theirs[name], other[name]) for name in other)
    assert len({*np.round(ray.get(worker.sample.remote())["vf_preds"], 5)}) > 1
    trainer.workers.sync_weights()
    batch = ray.get(worker.sample.remote())
    assert np.allclose(batch["vf_preds"], values(trainer, batch["obs"]), atol=1e-6)


@pytest.mark.nightly
def test_policies_of_workers_say_how_much_they_explore(one_ray, make):
    config = {"env": "CartPole-v1", "num_workers": 1, "learning_starts": 100}
    config |= {"timesteps_per_iteration": 200, "exploration_config": {"epsilon_timesteps": 1000}}
    made = make("DQNTrainer", config={**config, "framework": "torch"}, legacy_ray="1.13.0")
    made.train()
    epsilons = made.workers.foreach_policy(lambda p, _: p.get_exploration_info()["cur_epsilon"])
    own, of_the_worker = epsilons
    assert of_the_worker == pytest.approx(own, abs=0.02) != 1.0
