"""Simulators' folders are in the checkpoints that they belong to."""

import shutil
import sys

import gymnasium as gym
import gymnasium.spaces as spaces
import numpy as np
import pytest
import ray
from ray import cloudpickle
from ray.rllib.algorithms.ppo import PPOConfig

from rllib_compat.adapters import adapt_callbacks
from rllib_compat.artifacts import SimulatorFolders, extract, read_manifest, verify
from rllib_compat.ray_versions import algorithms, env_runners, environments
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.newest, pytest.mark.usefixtures("one_ray")]

# Workers can't import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SMALL = {"train_batch_size": 80, "sgd_minibatch_size": 40, "num_sgd_iter": 1}
SMALL |= {"model": {"fcnet_hiddens": [8]}, "rollout_fragment_length": 20}


class Simulator:
    observation_space, action_space = spaces.Box(0, 100, (1,)), spaces.Discrete(2)

    def __init__(self, config):
        self._folder = config["base"] / f"{config.worker_index}-{id(self)}"
        self._folder.mkdir()
        self._episode = 0

    def take(self, folder):
        self.took = sorted((file.name, file.stat().st_size) for file in folder.iterdir())

    def results_folder(self):
        return self._folder

    def reset(self):
        self._episode, self._steps = self._episode + 1, 0
        return [0.0]

    def step(self, action):
        self._steps += 1
        if self._steps == 10:
            (self._folder / f"episode-{self._episode}.csv").write_bytes(bytes(5_000_000))
        return [self._steps], 1.0, self._steps == 10, {}


class TodaysSimulator(gym.Env):
    observation_space, action_space = Simulator.observation_space, Simulator.action_space

    def __init__(self, config):
        self._old = Simulator(config)
        self.output_folder = self._old.results_folder()

    def reset(self, *, seed=None, options=None):
        return np.float32(self._old.reset()), {}

    def step(self, action):
        seen, reward, done, _ = self._old.step(action)
        return np.float32(seen), reward, done, False, {}

    def take_back(self, folder):
        for file in folder.iterdir():
            shutil.move(file, self.output_folder / file.name)


def test_an_algorithm_that_ray_alone_saves_has_them_too(tmp_path):
    (tmp_path / "base").mkdir()
    config = (
        PPOConfig()
        .environment(TodaysSimulator, env_config={"base": tmp_path / "base"})
        .env_runners(num_env_runners=0)
        .training(train_batch_size=80, minibatch_size=40, num_epochs=1)
        .callbacks(adapt_callbacks(SimulatorFolders(archives=True, take_back="take_back")))
    )
    algorithm = algorithms.build_algorithm(config)
    algorithm.train()
    for path in (tmp_path / "direct", tmp_path / "tunes"):
        path.mkdir()
    algorithm.save_to_path(str(tmp_path / "direct"))
    algorithm.save_checkpoint(str(tmp_path / "tunes"))
    algorithm.stop()
    again = algorithms.build_algorithm(config.copy(copy_frozen=False))
    (env,) = environments.environments_of(again.env_runner)
    assert not list(env.unwrapped.output_folder.iterdir())
    again.restore_from_path(str(tmp_path / "direct"))
    sizes = [file.stat().st_size for file in env.unwrapped.output_folder.iterdir()]
    assert sizes == [5_000_000] * 8
    again.stop()
    for path in (tmp_path / "direct", tmp_path / "tunes"):
        (folder,) = read_manifest(path).folders
        assert (folder.place, folder.archive, len(folder.files)) == ("runner-0/env-0", True, 8)
        assert verify(path) == []


def test_every_runners_folders_are_in_a_checkpoint_and_a_dead_one_is_named(make, tmp_path):
    (tmp_path / "base").mkdir()
    trainer = make(
        env=Simulator,
        config={
            **SMALL,
            "env_config": {"base": tmp_path / "base"},
            "num_workers": 2,
            "num_envs_per_worker": 2,
            "callbacks": [SimulatorFolders("results_folder", take_back="take", timeout=60)],
        },
    )
    trainer.train()
    saved = trainer.save()
    manifest = read_manifest(saved)
    assert manifest.iteration == 1
    assert {f.place for f in manifest.folders} == {
        f"runner-{runner}/env-{env}" for runner in (1, 2) for env in (0, 1)
    }
    assert verify(saved) == manifest.complaints == []
    assert all(folder.episodes for folder in manifest.folders)
    extract(saved, tmp_path / "out")
    files = [file for file in (tmp_path / "base").rglob("*") if file.is_file()]
    assert len(files) == sum(len(folder.files) for folder in manifest.folders) == 8
    for folder in manifest.folders:
        for file in folder.files:
            original = tmp_path / "base" / folder.folder / file.path
            copy = tmp_path / "out" / folder.place / file.path
            assert copy.read_bytes() == original.read_bytes()

    trainer.restore(saved)
    took = trainer.workers.foreach_env(lambda env: getattr(env, "took", None))
    stored = {f.place: sorted((x.path, x.size) for x in f.files) for f in manifest.folders}
    # The local worker has no environment, or on Ray 2.40 one that nothing was stored of.
    assert [env for worker in took for env in worker if env is not None] == [
        stored[place] for place in sorted(stored)
    ]

    dead = dict(env_runners.numbered_env_runners(trainer.algorithm.env_runner_group))[2]
    ray.kill(dead)
    again = trainer.save(str(tmp_path / "again"))
    manifest = read_manifest(again)
    assert {folder.runner for folder in manifest.folders} == {1}
    assert [p["runner"] for p in manifest.problems] == ["runner-2"]
    assert verify(again) == []
