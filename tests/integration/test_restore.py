"""`Trainer.restore`: exact for what a trainer saved, and nothing of a stranger's files runs."""

import copy
import json
import os
import pickle
import shutil
from pathlib import Path

import gymnasium.spaces as spaces
import numpy as np
import pytest
import tree

import rllib_compat as compat
from rllib_compat.formats import manifest
from rllib_compat.neutral.errors import (
    CheckpointError,
    CompatError,
    CorruptCheckpointError,
    RayNotSupportedError,
)
from rllib_compat.ray_versions import learners
from rllib_compat.runtime.observation_connectors import SEEN
from tests import trained, trainer_kills
from tests.legacy.cases import find
from tests.marks import TRAINERS, marked

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

COMMON = {"num_workers": 0, "model": {"fcnet_hiddens": [8]}, "framework": "torch"}
CASES = {
    "PPOTrainer": {
        **COMMON,
        "env": "CartPole-v0",
        "observation_filter": "MeanStdFilter",
        "train_batch_size": 100,
        "sgd_minibatch_size": 50,
        "num_sgd_iter": 1,
    },
    "SACTrainer": {
        **COMMON,
        "env": "Pendulum-v0",
        "learning_starts": 20,
        "timesteps_per_iteration": 40,
        "min_iter_time_s": 0,  # by default an iteration has as many steps as fit a second
        "train_batch_size": 16,
        "policy_model": {"fcnet_hiddens": [8]},
        "Q_model": {"fcnet_hiddens": [8]},
    },
}


class Canary:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Five:
    observation_space = spaces.Box(-np.inf, np.inf, (5,))
    action_space = spaces.Discrete(3)

    def __init__(self, config):
        pass

    def reset(self):
        return np.zeros(5, np.float32)

    def step(self, action):
        return np.zeros(5, np.float32), 1.0, True, {}


def state_of(trainer):
    """All that training goes on from; a copy, as Ray 2.40 gives the optimizers' own tensors."""
    algorithm = trainer.algorithm
    learner = learners.local_learner(algorithm).get_state()
    runner = algorithm.env_runner.get_state(not_components="rl_module")
    kept = {k: learner[k] for k in ("rl_module", "optimizer")} | {"runner": runner}
    kept["runner"].pop("weights_seq_no", None)
    # What a filter has seen since it was last given statistics is in them; a restore gives some.
    found = [row for row in tree.flatten_with_path(copy.deepcopy(kept)) if SEEN not in row[0]]
    return found, algorithm.iteration


@pytest.mark.parametrize("name", CASES)
def test_what_a_trainer_saved_comes_back_exactly(name, make, tmp_path):
    trainer = make(name, config=CASES[name])
    trainer.train()
    trainer.train()
    saved, iteration = state_of(trainer)
    path = trainer.save(str(tmp_path))
    total = trainer.train()["timesteps_total"]
    fresh = make(name, config=CASES[name])
    fresh.restore(path)
    found, found_iteration = state_of(fresh)
    assert found_iteration == iteration == 2
    assert [where for where, _ in found] == [where for where, _ in saved]
    different = [w for (w, a), (_, b) in zip(saved, found, strict=True) if not same(a, b)]
    assert different == []
    assert fresh.train()["timesteps_total"] == total


@pytest.mark.parametrize("name", marked(["MARWILTrainer", "CQLTrainer"], {"CQLTrainer"}))
def test_a_trainer_that_learns_from_recordings_comes_back(name, make, tmp_path):
    observations, actions = spaces.Box(-1, 1, (3,)), spaces.Box(-1, 1, (2,))
    trained.record(tmp_path, observations, actions)
    config = {
        "env": trained.environment({"default_policy": (observations, actions)}),
        "input": str(tmp_path),
        "num_workers": 0,
        "train_batch_size": 16,
    }
    trainer = make(name, config=config)  # its first batch takes as long as all that follows
    before = trainer.get_weights()["default_policy"]
    path = trainer.save(str(tmp_path / "saved"))
    fresh = make(name, config=config)
    fresh.restore(path)
    for weight, value in fresh.get_weights()["default_policy"].items():
        np.testing.assert_array_equal(value, before[weight])
    if fresh.algorithm.env_runner_group is None:  # Ray 2.41 – 2.47
        with pytest.raises(RayNotSupportedError, match="evaluation_interval"):
            fresh.compute_action(observations.sample())
    else:
        assert fresh.compute_action(observations.sample()) in actions
    result = fresh.train()
    assert any((before[k] != v).any() for k, v in fresh.get_weights()["default_policy"].items())
    # Ray's CQL counts no steps that it reads, nor does its MARWIL in every release.
    assert result["timesteps_total"] == result["num_env_steps_trained_this_iter"] > 0
    path = fresh.save(str(tmp_path / "again"))
    fresh.restore(path)
    again = fresh.train()
    read = again["num_env_steps_trained_this_iter"]
    assert again["timesteps_total"] == result["timesteps_total"] + read


@pytest.mark.newest
@pytest.mark.parametrize("name", marked(["MARWILTrainer", "CRRTrainer"], {"MARWILTrainer"}))
def test_recordings_are_enough_where_the_config_has_both_spaces(name, make, tmp_path):
    """`env: None` was that of old offline configs; the trainer asked for one."""
    observations, actions = spaces.Box(-1, 1, (3,)), spaces.Discrete(2)
    trained.record(tmp_path, observations, actions)
    config = {"env": None, "input": str(tmp_path), "train_batch_size": 16}
    config |= {"observation_space": observations, "action_space": actions}
    trainer = make(name, config=config)
    before = trainer.get_weights()["default_policy"]
    trainer.train()
    after = trainer.get_weights()["default_policy"]
    assert any((after[part] != old).any() for part, old in before.items())


def same(one, other):
    """Ray 2.41 – 2.55 round the settings of optimizers to 32 bits when they load them."""
    one, other = (v.detach().numpy() if hasattr(v, "detach") else v for v in (one, other))
    if isinstance(one, float) and isinstance(other, float):
        one, other = np.float32(one), np.float32(other)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


def test_a_save_is_whole_or_not_there_and_a_restore_changes_all_or_nothing(make, tmp_path):
    """Half a checkpoint restored without a word, and a refusal left half of it in the trainer."""
    trainer = make(config=trainer_kills.CONFIG)
    (tmp_path / "saves").mkdir()
    found = trainer_kills.kill_saves(trainer, 4, tmp_path / "saves")
    assert (found["killed"], found["half"], found["left beside it"]) == (4, 0, 0)
    (tmp_path / "killed").mkdir()
    found = trainer_kills.kill_restores(trainer, 4, tmp_path / "killed")
    assert (found["killed"], found["whole"], found["files changed"]) == (4, 4, 0)
    (tmp_path / "restores").mkdir()
    found = trainer_kills.break_restores(trainer, 20, tmp_path / "restores")
    assert (found["broken off"], found["half"], found["files changed"]) == (20, 0, 0)


@pytest.mark.parametrize("name", CASES)
def test_a_tree_without_one_of_its_files_is_refused_and_changes_nothing(name, make, tmp_path):
    """Without the weights, a restore kept those that the trainer had, and said nothing."""
    trainer = make(name, config=CASES[name])
    path = Path(trainer.save(str(tmp_path)))
    trainer.train()
    before = repr(state_of(trainer))
    for file in sorted(p for p in path.rglob("*") if p.is_file() and p.name != manifest.NAME):
        data = file.read_bytes()
        file.unlink()
        with pytest.raises(CorruptCheckpointError):
            trainer.restore(path)
        if "state" in file.name:  # Ray's own trees have no manifest
            listed = (path / manifest.NAME).rename(tmp_path / "manifest")
            with pytest.raises(CorruptCheckpointError):
                trainer.restore(path)
            listed.rename(path / manifest.NAME)
        file.write_bytes(data[:-1] + b"?")
        with pytest.raises(CorruptCheckpointError):
            trainer.restore(path)
        file.write_bytes(data)
    assert repr(state_of(trainer)) == before
    trainer.restore(path)


def test_what_ray_refuses_halfway_leaves_the_trainer_as_it_was(make, tmp_path):
    trainer = make(config=CASES["PPOTrainer"])
    path = Path(trainer.save(str(tmp_path)))
    (path / manifest.NAME).unlink()
    for _ in range(2):
        trainer.train()
    before = repr(state_of(trainer))
    tried = 0
    for file in sorted(path.rglob("*state.pkl")):
        data, state = file.read_bytes(), pickle.loads(file.read_bytes())
        for key in state if isinstance(state, dict) else ():
            file.write_bytes(pickle.dumps({**state, key: "odd"}))
            try:
                trainer.restore(path)
            except CompatError:
                assert repr(state_of(trainer)) == before, (file, key)
                tried += 1
            else:  # what nobody looks into may be anything
                file.write_bytes(data)
                trainer.restore(path)
                before = repr(state_of(trainer))
        file.write_bytes(data)
    assert tried > 5


def test_saving_again_replaces_what_a_trainer_wrote_and_nothing_else(make, tmp_path):
    trainer = make(config=CASES["PPOTrainer"])
    path = Path(trainer.save(str(tmp_path)))
    (path / "stale").touch()
    (path / manifest.NAME).unlink()
    manifest.write_manifest(path)
    assert trainer.save(str(tmp_path)) == str(path)
    assert not (path / "stale").exists()
    (path / "notes.txt").write_text("mine")
    trainer.save(str(tmp_path))
    assert (path / "notes.txt").read_text() == "mine"
    trainer.restore(path)
    odd = tmp_path / os.fsdecode(b"caf\xe9")  # Ray takes no path that is no UTF-8
    trainer.restore(trainer.save(str(odd)))


def test_code_in_a_tree_does_not_run_and_the_error_says_how_to_trust_it(make, tmp_path):
    trainer = make(config=CASES["PPOTrainer"])
    path = trainer.save(str(tmp_path / "saved"))
    bad = shutil.copytree(path, tmp_path / "bad")
    (bad / manifest.NAME).unlink()
    canary = pickle.dumps(Canary(tmp_path / "ran"))
    (bad / "env_runner/class_and_ctor_args.pkl").write_bytes(canary)
    (bad / "class_and_ctor_args.pkl").write_bytes(canary)
    trainer.restore(bad)  # what makes components is not asked for
    (bad / "env_runner/state.pkl").write_bytes(canary)
    with pytest.raises(CheckpointError, match="trusted=True"):
        trainer.restore(bad)
    assert not (tmp_path / "ran").exists()
    trainer.restore(path, trusted=True)
    assert trainer.train()["training_iteration"] == 1


def test_todays_files_beside_an_old_checkpoint_do_not_run(make, tmp_path):
    """A folder of Ray 0.8.5 that holds `class_and_ctor_args.pkl` was given to Ray, and ran."""
    (case,) = [c for c in find(ray="0.8.5") if c.path.name == "ppo-tf-meanstd24x16"]
    folder = shutil.copytree(case.checkpoint.parent, tmp_path / "checkpoint")
    params = json.loads((case.path / "params.json").read_text())
    trainer = make(config={**params, "env": Five})
    trainer.restore(folder)
    assert trainer.iteration == 2
    canary = pickle.dumps(Canary(tmp_path / "ran"))
    (folder / "class_and_ctor_args.pkl").write_bytes(canary)
    with pytest.raises(CorruptCheckpointError, match="several layouts"):
        trainer.restore(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", ["NoFilter", "MeanStdFilter"])
def test_the_old_stack_goes_on_from_what_it_saved_and_runs_nothing(kind, make, tmp_path):
    config = {**CASES["PPOTrainer"], "exploration_config": {"type": "Random"}}
    config |= {"observation_filter": kind}
    trainer = make(config=config)
    assert trainer.translation.api_stack == "old"
    trainer.train()
    path = Path(trainer.save(str(tmp_path / "saved")))
    saved = old_state(trainer)
    total = trainer.train()["timesteps_total"]
    fresh = make(config=config)
    fresh.restore(path)
    different = [
        w for (w, a), (_, b) in zip(saved, old_state(fresh), strict=True) if not same(a, b)
    ]
    assert different == []
    assert fresh.train()["timesteps_total"] == total
    (path / manifest.NAME).unlink()
    canary = pickle.dumps({"weights": Canary(tmp_path / "ran"), "global_timestep": 1})
    (path / "policies/default_policy/policy_state.pkl").write_bytes(canary)
    with pytest.raises(CheckpointError):
        fresh.restore(path)
    assert not (tmp_path / "ran").exists()


def old_state(trainer):
    policy = trainer.get_policy().get_state()
    kept = {k: policy[k] for k in ("weights", "global_timestep", "_optimizer_variables")}
    for found in trainer.algorithm.env_runner.filters.values():
        stats = found.running_stats
        kept["filter"] = (stats.n, stats.mean, stats.var)
    return tree.flatten_with_path(copy.deepcopy(kept))  # arrays are the network's own memory


def test_an_old_network_takes_the_place_of_another_that_the_config_describes(make):
    """Also where Ray's own module has it: value layers of its own here, none there."""
    experiment = Path(__file__).parents[1] / "legacy/experiments/0.8.5-interrupted"
    (old,) = experiment.glob("*/checkpoint_4/checkpoint-4")
    config = CASES["PPOTrainer"] | {"observation_filter": "NoFilter", "vf_share_layers": False}
    trainer = make(config={**config, "model": {"fcnet_hiddens": [4]}}, legacy_ray="0.8.7")
    trainer.restore(str(old))
    observation = np.array([0.1, -0.2, 0.3, -0.4], np.float32)
    policy = compat.load_policy(old)
    for how in ({"observation": observation}, {"observation": -observation}):
        acted = trainer.compute_single_action(**how, explore=False)
        assert acted == policy.compute_single_action(how["observation"], explore=False).actions
    assert trainer.train()["training_iteration"] == 5


@pytest.mark.nightly
def test_a_policy_of_an_atari_game_is_restored_and_trains_on(make):
    pytest.importorskip("ale_py")
    old = Path("tests/legacy/atari/ppo-1.13.0/checkpoint-1").absolute()
    config = {
        "env": "PongNoFrameskip-v4",
        "num_workers": 0,
        "train_batch_size": 64,
        "sgd_minibatch_size": 32,
        "num_sgd_iter": 2,
        "rollout_fragment_length": 32,
        "model": {"dim": 42, "conv_filters": [[4, [8, 8], 8], [8, [6, 6], 1]]},
        "framework": "torch",
    }
    trainer = make(config=config, legacy_ray="1.13.0")
    before = trainer.get_weights()["default_policy"]
    trainer.restore(str(old))
    restored = trainer.get_weights()["default_policy"]
    assert not any(np.array_equal(before[name], restored[name]) for name in restored)
    assert trainer.train()["timesteps_this_iter"] == 64
    after = trainer.get_weights()["default_policy"]
    assert not any(np.array_equal(after[name], restored[name]) for name in restored)
    space = trainer.workers.local_worker().env.observation_space
    assert space == spaces.Box(0, 255, (42, 42, 4), np.uint8)
