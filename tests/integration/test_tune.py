"""Old Tune scripts after changing only the import."""

import json
import shutil
from itertools import count
from pathlib import Path

import gymnasium.spaces as spaces
import numpy as np
import pytest
import ray

from rllib_compat import tune
from tests.legacy.cases import MUSEUM, find
from tests.legacy.experiments.record import iterations
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

SMALL = {
    "env": "CartPole-v0",
    "num_workers": 0,
    "train_batch_size": 100,
    "sgd_minibatch_size": 50,
    "num_sgd_iter": 1,
    "model": {"fcnet_hiddens": [8]},
}


@pytest.mark.slow("its trial and its workers are processes of their own")
@pytest.mark.newest
def test_a_script_of_ray_0_8(tmp_path):
    analysis = tune.run(
        "PPO",
        name="old",
        stop={"timesteps_total": 200},
        config={
            **SMALL,
            "lr": tune.grid_search([1e-3, 1e-4]),
            "callbacks": {
                "on_train_result": tune.function(lambda info: info["result"].update(mine=7))
            },
        },
        checkpoint_freq=1,
        checkpoint_score_attr="episode_reward_mean",
        keep_checkpoints_num=1,
        local_dir=str(tmp_path),
        export_formats=["model"],
        queue_trials=True,
        verbose=0,
    )
    best = analysis.get_best_trial("episode_reward_mean")
    assert analysis.get_best_config("episode_reward_mean")["lr"] in (1e-3, 1e-4)
    table = analysis.dataframe()
    assert table["timesteps_total"].tolist() == [200, 200]
    assert table["mine"].tolist() == [7, 7]
    folder = Path(analysis.get_best_logdir("episode_reward_mean"))
    assert folder.parent == tmp_path / "old"
    ((path, _),) = analysis.get_trial_checkpoints_paths(best)
    checkpoint = analysis.get_best_checkpoint(best, "episode_reward_mean", "max")
    assert checkpoint.path == path

    # ... and on from there, as the specs of Ray 0.5 said it.
    (trial,) = tune.run_experiments(
        {
            "again": {
                "run": "PPO",
                "env": SMALL["env"],
                "stop": {"timesteps_total": 300},
                "config": {key: value for key, value in SMALL.items() if key != "env"},
                "local_dir": str(tmp_path),
                "restore": path,
            }
        },
        verbose=0,
    )
    assert trial.last_result["timesteps_total"] == trial.last_result["training_iteration"] * 100
    assert trial.last_result["iterations_since_restore"] < trial.last_result["training_iteration"]


def test_a_checkpoint_of_ray_0_8_5_goes_on_in_tune(tmp_path):
    (case,) = [c for c in find(ray="0.8.5") if c.path.name == "ppo-tf-meanstd24x16"]

    class Five:
        observation_space = spaces.Box(-np.inf, np.inf, (5,))
        action_space = spaces.Discrete(3)

        def __init__(self, config):
            pass

        def reset(self):
            return self.observation_space.sample()

        def step(self, action):
            return self.observation_space.sample(), 1.0, True, {}

    tune.register_env("five", lambda config: Five(config))
    tuner = tune.run(
        "PPO",
        config={**json.loads((case.path / "params.json").read_text()), "env": "five"},
        restore=str(case.checkpoint),
        stop={"training_iteration": 3},
        local_dir=str(tmp_path),
        verbose=0,
    )
    (trial,) = tuner.trials
    assert trial.last_result["training_iteration"] == 3
    assert trial.last_result["iterations_since_restore"] == 1


@pytest.mark.nightly
def test_population_based_training_changes_legacy_keys(tmp_path):
    from ray.tune.schedulers import PopulationBasedTraining

    tuner = tune.Tuner(
        "PPO",
        param_space={**SMALL, "lr": 1e-3},
        tune_config=ray.tune.TuneConfig(
            num_samples=2,
            reuse_actors=True,
            scheduler=PopulationBasedTraining(
                time_attr="training_iteration",
                metric="episode_reward_mean",
                mode="max",
                perturbation_interval=2,
                hyperparam_mutations={"lr": [0.5], "num_sgd_iter": [2]},
            ),
        ),
        run_config=run_config(stop={"training_iteration": 5}, storage_path=str(tmp_path)),
    )
    trials = tuner.fit()
    assert not trials.errors
    lines = [
        json.loads(line)
        for result in trials
        for line in (Path(result.path) / "result.json").read_text().splitlines()
    ]
    changed = [line for line in lines if line["config"]["lr"] != 1e-3]
    for line in changed:
        assert line["config"]["num_sgd_iter"] == 2
        assert line["info"]["learner"]["default_policy"]["learner_stats"]["cur_lr"] == 0.5
    assert max(line["training_iteration"] for line in lines) == 5


def run_config(**arguments):
    from ray import train

    kind = getattr(ray.tune, "RunConfig", train.RunConfig)
    return kind(verbose=0, **arguments)


#: One passes from one trial to the next.
SECONDS = map("2026-01-01_00-00-{:02}".format, count())
INTERRUPTED = sorted((MUSEUM / "experiments").glob("*-interrupted.json"))


@pytest.mark.slow("three trials, each a process of its own")
@pytest.mark.nightly
@pytest.mark.parametrize("recorded", INTERRUPTED, ids=lambda path: path.stem)
def test_an_interrupted_experiment_goes_on_as_in_its_own_ray(recorded, tmp_path, monkeypatch):
    """One trial had ended, one was broken off behind its second checkpoint, one had not begun."""
    monkeypatch.setattr("ray.tune.utils.date_str", lambda: next(SECONDS))
    shutil.copytree(recorded.parent / recorded.stem, tmp_path / "experiment")
    stop = {"training_iteration": 4}
    tune.run("PPO", name="experiment", local_dir=str(tmp_path), stop=stop, resume=True, verbose=0)
    told = json.loads(recorded.read_text())["resumed"]
    ours = iterations(tmp_path / "experiment")
    # (iteration, since it was restored); Ray 2.0 lost count of the steps before.
    assert sorted(counted(ours)) == sorted(counted(told))
    assert all(steps == 60 * number for rows in ours.values() for number, steps, _ in rows)


def counted(trials):
    """Of each trial, the iterations that it has logged, and how many since it was restored."""
    return [[(number, since) for number, _, since in rows] for rows in trials.values()]
