"""Policies that come and go while a `compat.Trainer` trains, and what it hands out of them."""

import json
import sys
from pathlib import Path

import gymnasium.spaces as spaces
import numpy as np
import pytest
import ray
import torch
from ray.rllib.core.rl_module.rl_module import RLModule

import rllib_compat as compat
from rllib_compat.errors import CompatError, GoneError
from rllib_compat.ray_versions import learners
from tests.marks import TRAINERS

pytestmark = TRAINERS

# What env runners need of this module travels by value: they could not import it.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

OBS, ACT = spaces.Box(-10, 10, (3,)), spaces.Discrete(2)


class Duel:
    """An old two-player environment of ten steps; player 1 gets twice what player 0 gets."""

    def __init__(self, config):
        pass

    def reset(self):
        self.steps = 0
        return {0: np.zeros(3), 1: np.zeros(3)}

    def step(self, actions):
        self.steps += 1
        obs = {agent: np.full(3, self.steps / 10) for agent in (0, 1)}
        return obs, {0: 1.0, 1: 2.0}, {"__all__": self.steps == 10}, {}


def sides(main, other):
    def mapping(agent_id, episode, worker=None, **kwargs):
        return main if agent_id == 0 else other

    return mapping


CONFIG = {
    "env": Duel,
    "num_workers": 1,
    "train_batch_size": 100,
    "sgd_minibatch_size": 50,
    "model": {"fcnet_hiddens": [8]},
    "multiagent": {
        "policies": {"main": (None, OBS, ACT, {}), "old": (None, OBS, ACT, {})},
        "policy_mapping_fn": sides("main", "old"),
        "policies_to_train": ["main"],
    },
}


@pytest.fixture(scope="module")
def trainer(tmp_path_factory, one_ray):
    home = pytest.MonkeyPatch()
    home.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    league = compat.PPOTrainer.with_updates(
        name="League",
        default_config={"num_sgd_iter": 1},
        validate_config=lambda config: config.update(clip_rewards=config["lr"] < 1),
        after_train_result=lambda trainer, result: result.update(size=len(trainer.get_weights())),
    )
    made = league(config=CONFIG)
    made.train()
    yield made
    made.stop()
    home.undo()


def changed_by(trainer, action):
    before = trainer.get_weights()
    action()
    after = trainer.get_weights()
    return {
        policy
        for policy in before.keys() & after.keys()
        if any(np.any(before[policy][name] != after[policy][name]) for name in before[policy])
    }


@pytest.mark.matrix
def test_a_policy_is_added_plays_and_learns(trainer):
    assert trainer.translation.legacy_config["num_sgd_iter"] == 1
    assert trainer.last_result["size"] == 2
    mean = trainer.last_result["policy_reward_mean"]
    assert mean == {"main": 10.0, "old": 20.0}, "clipped rewards are reported"
    added = trainer.add_policy(
        "new",
        type(trainer.get_policy("main")),
        policy_mapping_fn=sides("main", "new"),
        policies_to_train=["main", "new"],
        config={"lr": 0.5},
    )
    added.set_state(trainer.get_policy("main").get_state())
    trainer.workers.sync_weights()
    weights = trainer.get_weights()
    shared = weights["main"].keys() & weights["new"].keys()
    assert shared
    assert all(np.array_equal(weights["main"][name], weights["new"][name]) for name in shared)
    assert changed_by(trainer, trainer.train) == {"main", "new"}
    assert trainer.last_result["policy_reward_mean"]["new"] == 20.0
    assert trainer.last_result["info"]["learner"]["new"]["cur_lr"] == 0.5
    told = trainer.workers.foreach_worker(lambda w: (sorted(w.policy_map), w.policies_to_train))
    assert told == [(["main", "new", "old"], ["main", "new"])] * 2
    # Nobody is mapped to it now, and still it can be asked.
    assert trainer.compute_action(np.zeros(3), policy_id="old") in (0, 1)
    with pytest.raises(CompatError, match="There is no policy 'gone'"):
        trainer.compute_action(np.zeros(3), policy_id="gone")


@pytest.mark.matrix
def test_workers_decide_who_plays_and_learns(trainer):
    trainer.workers.foreach_worker(lambda w: w.set_policies_to_train(["new"]))
    assert trainer.workers.trainable_policies() == ["new"]
    assert changed_by(trainer, trainer.train) == {"new"}
    trainer.workers.foreach_worker(lambda w: w.set_policy_mapping_fn(sides("new", "main")))
    trainer.train()
    assert trainer.train()["hist_stats"]["policy_main_reward"][-1] == 20.0


def test_a_policy_is_removed(trainer):
    trainer.remove_policy("old")
    assert sorted(trainer.get_weights()) == ["main", "new"]
    assert trainer.get_policy("old") is None
    assert trainer.train()["episode_len_mean"] == 10
    with pytest.raises(GoneError, match="workers only"):
        trainer.add_policy("x", workers=[])


def test_exports(trainer, tmp_path):
    trainer.export_policy_model(str(tmp_path / "torch"), "main")
    model = torch.jit.load(tmp_path / "torch" / "model.pt")
    obs = torch.zeros(1, 3)
    ours = trainer.compute_action(np.zeros(3), policy_id="main", explore=False, full_fetch=True)
    logits = model({"obs": obs}, [torch.ones(1)], torch.ones(1))[0][0]
    assert np.allclose(ours[2]["action_dist_inputs"], logits.detach(), atol=1e-6)
    trainer.export_policy_checkpoint(str(tmp_path / "checkpoint"), policy_id="main")
    loaded = RLModule.from_checkpoint(str(tmp_path / "checkpoint"))
    assert torch.allclose(loaded.forward_inference({"obs": obs})["action_dist_inputs"][0], logits)
    with pytest.raises(CompatError, match="'h5'"):
        trainer.export_model(["h5"], str(tmp_path))
    with pytest.raises(CompatError, match="There is no policy"):
        trainer.export_policy_model(str(tmp_path), "gone")


def test_what_scripts_ask_of_optimizer_workers_and_files(trainer):
    stats = trainer.optimizer.stats()
    assert stats["num_steps_sampled"] == trainer.last_result["timesteps_total"]
    assert {"main", "new"} <= stats["learner"].keys()
    assert trainer.optimizer.foreach_evaluator(lambda worker: 1) == [1, 1]
    names = trainer.workers.foreach_env_with_context(
        lambda env, context: (type(env).__name__, context.worker_index)
    )
    assert names[-1] == [("Duel", 1)]
    assert type(trainer.env_creator({})).__name__ == "Duel"
    assert trainer.local_evaluator.worker_index == 0
    assert trainer.collect_metrics()["episode_len_mean"] == 10
    lines = (Path(trainer.logdir) / "result.json").read_text().splitlines()
    assert json.loads(lines[-1])["episode_len_mean"] == 10


def test_a_restore_keeps_the_configs_learning_rate(trainer):
    """PBT changes `lr` and restores; the checkpoint's optimizer has the old one."""

    def learning_rates():
        learner = learners.local_learner(trainer.algorithm)
        return {learner._get_optimizer_lr(o) for o in learner._optimizer_lr_schedules}

    trainer.reset_config({**CONFIG, "lr": 0.25})
    checkpoint = trainer.save_to_object()
    assert trainer.reset_config({**CONFIG, "lr": 0.125})
    trainer.restore_from_object(checkpoint)
    assert learning_rates() == {0.125}
    assert trainer.train()["config"]["lr"] == 0.125
