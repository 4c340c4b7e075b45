"""Experiments that Tune of old Rays left, as `ExperimentAnalysis` reads them."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.legacy.cases import MUSEUM
from tests.trees import digest_tree

tune = pytest.importorskip("rllib_compat.tune")

EXPERIMENTS = [MUSEUM / ray / "ppo-torch-tunerun/ray_results/exp" for ray in ("1.13.0", "2.0.1")]
METRIC = "episode_reward_mean"


@pytest.fixture(params=EXPERIMENTS, ids=lambda path: path.parts[-4])
def experiment(request, tmp_path):
    return shutil.copytree(request.param, tmp_path / "moved")


def rows_of(trial):
    with (trial / "progress.csv").open() as file:
        return list(csv.DictReader(file))


def test_an_analysis_tells_what_the_files_hold(experiment):
    before = digest_tree(experiment)
    (folder,) = (path for path in experiment.iterdir() if path.is_dir())
    rows = rows_of(folder)
    for place in (experiment, str(experiment), *experiment.glob("experiment_state*.json")):
        analysis = tune.ExperimentAnalysis(place, default_metric=METRIC, default_mode="max")
        ((key, frame),) = analysis.trial_dataframes.items()
        assert key == analysis.best_logdir == str(folder)
        assert list(frame) == list(rows[0])
        assert frame[METRIC].tolist() == [float(row[METRIC]) for row in rows]
        assert analysis.best_config == json.loads((folder / "params.json").read_text())
        assert analysis.get_all_configs() == {key: analysis.best_config}
        assert analysis.best_result["training_iteration"] == 2
        assert analysis.dataframe(METRIC, "max")[METRIC].max() == frame[METRIC].max()
        (trial,) = analysis.trials
        assert trial.status == "TERMINATED"
        assert trial.trial_id == rows[0]["trial_id"]
        paths = analysis.get_trial_checkpoints_paths(trial)
        assert [(Path(path).name, value) for path, value in paths] == [
            ("checkpoint_000001", 1),
            ("checkpoint_000002", 2),
        ]
        assert analysis.get_last_checkpoint(trial).path == paths[-1][0]
        best = max(rows, key=lambda row: float(row[METRIC]))["training_iteration"]
        assert analysis.best_checkpoint.path.endswith(f"_{int(best):06d}")
    assert digest_tree(experiment) == before


def test_a_trial_that_was_broken_off_and_an_experiment_without_its_state(experiment):
    (folder,) = (path for path in experiment.iterdir() if path.is_dir())
    for state in experiment.glob("*.json"):
        state.unlink()
    with (folder / "result.json").open("a") as file:
        file.write('{"training_iteration": 3, "episode')
    analysis = tune.ExperimentAnalysis(experiment)
    assert analysis.results == {analysis.trials[0].trial_id: analysis.trials[0].last_result}
    assert analysis.trials[0].last_result["training_iteration"] == 2
