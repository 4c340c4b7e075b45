"""What a Trainer saves: where a path says, and for all other verbs to read."""

import shutil
from pathlib import Path

import fsspec
import numpy as np
import pytest

import rllib_compat as compat
from tests.marks import TRAINERS, marked

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

SMALL = {"env": "CartPole-v1", "num_workers": 0, "model": {"fcnet_hiddens": [8]}}
ON_POLICY = {**SMALL, "train_batch_size": 60, "sgd_minibatch_size": 30, "num_sgd_iter": 1}
REPLAYING = {**SMALL, "learning_starts": 30, "timesteps_per_iteration": 60, "train_batch_size": 16}
#: A config of each kind of algorithm: of Ray's own, and of ours.
CASES = {
    "PPO": {**ON_POLICY, "observation_filter": "MeanStdFilter"},
    "A2C": {**SMALL, "train_batch_size": 60},
    "DQN": REPLAYING,
    "SAC": {**REPLAYING, "env": "Pendulum-v1"},
    "TD3": {**REPLAYING, "env": "Pendulum-v1"},
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder of the test's own, and a working directory in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.mark.parametrize("name", marked(CASES, ["PPO", "SAC"]))
def test_all_verbs_take_what_a_trainer_saved_without_a_question(name, make, home, run):
    trainer = make(f"{name}Trainer", config=CASES[name])
    trainer.train()
    saved = Path(trainer.save())
    trainer.restore(str(saved))
    trainer.restore(saved / "algorithm_state.pkl")
    # Code of Ray 1.13 and before names a file in it.
    named = saved / "algorithm_state.pkl" if name == "PPO" else saved
    _call_verbs(named, "new", run)
    assert run("plot", named, "--json")[0] == 0


@pytest.mark.nightly
def test_all_verbs_take_the_address_at_which_a_trainer_saved(make, home, run):
    memory, trainer = fsspec.filesystem("memory"), make(config=CASES["PPO"])
    trainer.train()
    saved = trainer.save("memory://saved/here")
    before = trainer.get_weights()["default_policy"]
    trainer.train()
    trainer.restore(saved)
    restored = trainer.get_weights()["default_policy"]
    assert before.keys() == restored.keys()
    assert all(np.array_equal(before[name], restored[name]) for name in before)
    _call_verbs(saved, "memory://saved/new", run)
    loaded = compat.load(saved)
    assert loaded.iteration == 1
    memory.rm("/saved", recursive=True)


def _call_verbs(saved, new, run):
    for arguments in (
        ("inspect", saved),
        ("convert", saved, new, "--to", "msgpack", "-n", 20),
        ("verify", saved, new, "-n", 20),
        ("evaluate", saved, "--steps", 10),
    ):
        code, *told = run(*arguments)
        assert code == 0, (arguments, told)
    assert compat.load_policy(saved).policy_id == "default_policy"


def test_each_way_to_write_a_path_is_the_same_place(make, home):
    trainer = make(config=ON_POLICY)
    trainer.train()
    for form in ("~/a", "../a", Path("../a"), Path("~/a"), (home / "a").as_uri()):
        saved = trainer.save(form)
        assert Path(saved).resolve() == home / "a" / "checkpoint_000001"
        shutil.copytree(saved, home / "b")
        for place in ("~/b", "../b", Path("~/b"), (home / "b").as_uri()):
            trainer.restore(place)
            trainer.load_checkpoint(place)
            assert trainer.save_checkpoint(place)
        trainer.export_policy_model(_beside(form, "model"))
        trainer.export_policy_checkpoint(_beside(form, "module"))
        trainer.export_model("checkpoint", _beside(form, "both"))
        trainer.delete_checkpoint(_beside(form, "b"))
        trainer.delete_checkpoint(_beside(form, "a/checkpoint_000001"))
        for made in ("model/model.pt", "module/metadata.json", "both/checkpoint"):
            assert (home / made).exists()
        for made in ("model", "module", "both"):
            shutil.rmtree(home / made)
        names = {entry.name for entry in home.iterdir()} - {"ray_results"}
        assert names == {"here", "a"}
        assert not list(Path().iterdir())


def _beside(form, name):
    return form.parent / name if isinstance(form, Path) else f"{form.rpartition('/')[0]}/{name}"
