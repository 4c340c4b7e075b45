"""Whatever old code asks of a trainer and what it holds: each name of each era, on live objects.

What it gives is held against what the old Rays gave (`tests/legacy/api/`).
"""

import copy
import inspect
import json
import math
from types import SimpleNamespace
from typing import ClassVar
from unittest import mock

import numpy as np
import pytest
from ray.rllib.models import catalog
from ray.rllib.models.torch.fcnet import FullyConnectedNetwork

import rllib_compat as compat
from rllib_compat import legacy
from rllib_compat.errors import GoneError
from rllib_compat.runtime import user_envs
from tests import legacy_api
from tests.legacy.api.calls import CONFIG, ask_all, matches, play
from tests.marks import TRAINERS

legacy.deactivate()  # to import it is to activate it; old gym's API is asked for below
pytestmark = TRAINERS

#: What share of what was recorded of an object is equal, at least.
EQUAL = 0.95


def load(ray):
    return json.loads((legacy_api.FACTS / "recorded" / f"{ray}.json").read_text("utf-8"))


@pytest.fixture
def as_old_code(one_ray):
    """Legacy imports, and environments with the API of old gym."""
    legacy.activate()
    with mock.patch.object(user_envs, "TODAYS_GYM", "ANOTHER_NAME"):  # tests import gymnasium
        yield
    legacy.deactivate()


def make_trainer(ray, config):
    return compat.Trainer(config={**config, "framework": "torch"}, algorithm="PPO", legacy_ray=ray)


class Holding(compat.DefaultCallbacks):
    """Keeps what callbacks of the last episode got."""

    found: ClassVar = {}

    def on_episode_end(self, *, base_env, episode, **_):
        self.found.update(base_env=base_env, episode=episode)


@pytest.fixture(scope="module")
def objects(one_ray):
    """One object of each kind that a trainer holds."""
    config = {
        "env": "CartPole-v1",
        "num_workers": 0,
        "train_batch_size": 200,
        "sgd_minibatch_size": 100,
        "num_sgd_iter": 1,
        "callbacks": Holding,
    }
    trainer = make_trainer("1.13.0", config)
    trainer.train()
    worker = trainer.workers.local_worker()
    batch = worker.sample()
    yield {
        **Holding.found,
        "trainer": trainer,
        "trainer.optimizer": trainer.optimizer,
        "workers": trainer.workers,
        "worker": worker,
        "policy_map": worker.policy_map,
        "sample_batch": batch,
        "multi_agent_batch": batch.as_multi_agent(),
        "callbacks": trainer.callbacks,
    }
    trainer.stop()


def test_what_workers_learn_is_told_whole_after_an_iteration(objects):
    worker = objects["worker"]
    old = load("1.13.0")["worker"]["worker.learn_on_batch(worker.sample())"]
    batch = worker.sample()
    for told in (worker.learn_on_batch(batch), worker.compute_gradients(batch)[1]):
        stats = told["default_policy"]["learner_stats"]
        names = old["items"]["default_policy"]["items"]["learner_stats"]["items"].keys()
        assert names <= stats.keys()
        assert all(math.isfinite(stats[name]) for name in names)
        assert not [name for name in stats if "lifetime" in name]


@pytest.mark.nightly
@pytest.mark.parametrize("algorithm", ["A2C", "IMPALA", "PG"])
def test_policies_without_replay_learn_what_workers_sample(one_ray, algorithm):
    config = {"env": "CartPole-v1", "num_workers": 0, "rollout_fragment_length": 20}
    config = {**config, "train_batch_size": 40, "framework": "torch"}
    trainer = compat.Trainer(config=config, algorithm=algorithm, legacy_ray="1.13.0")
    worker = trainer.workers.local_worker()
    before = copy.deepcopy(worker.get_weights()["default_policy"])
    told = worker.learn_on_batch(worker.sample())["default_policy"]["learner_stats"]
    after = worker.get_weights()["default_policy"]
    trainer.stop()
    assert math.isfinite(told["policy_loss"])
    assert any(not np.array_equal(before[name], after[name], equal_nan=True) for name in after)


class Imagining(compat.DefaultCallbacks):
    """Adds 30 steps of its own to the first sample."""

    added: ClassVar = []

    def on_episode_end(self, *, worker, episode, **_):
        if self.added:
            return
        builder, policy = episode.new_batch_builder(), worker.get_policy()
        for step in range(30):
            seen = np.full(4, step / 100, np.float32)
            actions, _, told = policy.compute_actions(seen[None])
            outputs = {name: told[name][0] for name in ("action_logp", "action_dist_inputs")}
            row = {"obs": seen, "new_obs": seen, "actions": actions[0], "rewards": 1.0, **outputs}
            builder.add_values("agent0", "default_policy", **row, dones=step == 29)
        self.added.append(builder.build_and_reset(episode))
        episode.add_extra_batch(self.added[0])


@pytest.mark.nightly
def test_extra_batches_are_learned_from(one_ray):
    trainer = make_trainer("1.13.0", {**CONFIG, "callbacks": Imagining})
    trained = [trainer.train()["num_env_steps_trained_this_iter"] for _ in range(2)]
    trainer.stop()
    (batch,) = Imagining.added
    assert batch["default_policy"].count == 30
    assert trained == [230, 200]


KINDS = legacy_api.CLASSES.keys() - {"policy", "model", "analysis"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_name_of_each_era_is_there_or_says_what_to_do(objects, kind):
    ask_for_each_name(kind, objects[kind])


def ask_for_each_name(kind, asked, *, listed=True):
    bare, there = [], set(dir(asked))
    for name in legacy_api.names_of(kind):
        try:
            getattr(asked, name)
        except GoneError:
            assert not hasattr(asked, name)
            assert name not in there
        except AttributeError:
            bare.append(name)
        else:
            assert name in there or not listed
    assert bare == []


@pytest.fixture(scope="module")
def old_stack_objects(one_ray):
    """Those of a trainer with a model of one's own, which are Ray's."""
    catalog.ModelCatalog.register_custom_model("own", FullyConnectedNetwork)
    trainers = [
        compat.Trainer(
            config={"env": CONFIG["env"], "num_workers": 0, "model": {"custom_model": "own"}},
            algorithm=algorithm,
            legacy_ray="1.13.0",
        )
        for algorithm in ("PPO", "DQN")
    ]
    workers = [trainer.workers.local_worker() for trainer in trainers]
    policies = [worker.get_policy() for worker in workers]
    yield {
        "worker": workers,
        "policy_map": [worker.policy_map for worker in workers],
        "policy": policies,
        "model": [policy.model for policy in policies],
    }
    for trainer in trainers:
        trainer.stop()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["model", "policy", "policy_map", "worker"])
def test_each_name_is_there_of_objects_of_the_old_stack(old_stack_objects, kind):
    for asked in old_stack_objects[kind]:
        ask_for_each_name(kind, asked, listed=False)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_objects_can_be_looked_at(objects, kind):
    seen = objects[kind]
    assert {name for name, _ in inspect.getmembers(seen)} <= set(dir(seen))
    assert [name for name in dir(seen) if not hasattr(seen, name)] == []
    assert repr(seen)
    for name in ("_repr_html_", "_ipython_display_", "_ipython_canary_method_"):
        assert not hasattr(seen, name)  # what a notebook asks everything


RAYS = ["1.13.0", *(pytest.param(ray, marks=pytest.mark.nightly) for ray in ("0.8.5", "1.0.1"))]


@pytest.mark.parametrize("ray", RAYS)
def test_what_old_code_asks_gives_what_it_gave(as_old_code, ray):
    old = load(ray)
    del old["analysis"]  # below
    rays = SimpleNamespace(
        trainer=lambda config: make_trainer(ray, config), callbacks=compat.DefaultCallbacks
    )
    new = play(rays, {kind: list(answers) for kind, answers in old.items()})
    for kind in old:
        compare(ray, kind, old[kind], new[kind])


def compare(ray, kind, old, new):
    differing = {
        asked: (told, new[asked]) for asked, told in old.items() if not matches(told, new[asked])
    }
    share = 1 - len(differing) / len(old)
    print(ray, kind, len(old), round(share, 3), json.dumps(differing, indent=1))
    assert share >= EQUAL, differing


@pytest.fixture(scope="module")
def analysis(one_ray, tmp_path_factory):
    return compat.tune.run(
        "PPO",
        config={**CONFIG, "framework": "torch"},
        stop={"training_iteration": 2},
        checkpoint_freq=1,
        local_dir=str(tmp_path_factory.mktemp("results")),
        verbose=0,
    )


@pytest.mark.nightly
@pytest.mark.parametrize("ray", RAYS)
def test_an_analysis_answers_what_it_did(analysis, ray):
    old = load(ray)["analysis"]
    compare(ray, "analysis", old, ask_all("analysis", analysis, {}, list(old)))
