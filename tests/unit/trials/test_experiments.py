"""Experiments that Tune of old Rays left, as `ExperimentAnalysis` reads them."""

from __future__ import annotations

import contextlib
import csv
import json
import pickle
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import pytest
from ray.tune.analysis import ExperimentAnalysis as RayAnalysis
from ray.tune.registry import get_trainable_cls

from rllib_compat import tune
from rllib_compat.errors import ConfigError, CorruptCheckpointError
from rllib_compat.trials.experiments import read_old_experiment
from tests.legacy.cases import MUSEUM
from tests.legacy.experiments.record import answers
from tests.trees import digest_tree

EXPERIMENTS = [MUSEUM / ray / "ppo-torch-tunerun/ray_results/exp" for ray in ("1.13.0", "2.0.1")]
METRIC = "episode_reward_mean"


@pytest.fixture(params=EXPERIMENTS, ids=lambda path: path.parts[-4])
def experiment(request, tmp_path):
    return shutil.copytree(request.param, tmp_path / "moved")


RECORDED = sorted((MUSEUM / "experiments").glob("*.json"))


#: What is asked of the best trial: of those that are as good, it was the one found first.
OF_THE_BEST = {"get_best_checkpoint", "get_best_config", "get_best_logdir"}
OF_THE_BEST |= {"best_trial", "get_trial_checkpoints_paths", "last_checkpoint"}


#: What has a trial's folder as its key; since Ray 2.7, it had the trial's id.
BY_FOLDER = {"trial_dataframes", "get_all_configs", "dataframe", "last"}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_an_analysis_answers_as_that_of_the_old_ray_did(recorded, tmp_path):
    folder = shutil.copytree(recorded.parent / recorded.stem, tmp_path / "experiment")
    of_folder = str if recorded.stem < "2.7" else id_in
    compared = 0
    for kind, told in json.loads(recorded.read_text())["analyses"].items():
        ours = json.loads(json.dumps(answers(getattr(tune, kind)(folder), folder)))
        best, returns = told["get_best_logdir"], told["dataframe"]
        as_good = best in list(returns) and returns[best] == returns[ours["get_best_logdir"]]
        as_good &= best != ours["get_best_logdir"]
        for name, answer in told.items():
            failed = isinstance(answer, dict) and "error" in answer
            if not failed and not (as_good and name in OF_THE_BEST):
                compared += 1
                if name in BY_FOLDER:
                    ours[name] = {of_folder(key): value for key, value in ours[name].items()}
                assert in_order(name, ours[name]) == in_order(name, answer), (kind, name)
    assert compared >= 10


def id_in(folder):
    """The id of a trial, in the name of its folder."""
    return re.search(r"[0-9a-f]{5}_\d{5}", folder)[0]


def in_order(name, answer):
    """An answer, without what was a matter of luck or of the file that was read.

    In which order a trial's checkpoints were found; and the configs that Ray 2.7 took for results.
    """
    if name == "columns":
        return [column for column in answer if not column.startswith("config/")]
    return sorted(answer) if name == "get_trial_checkpoints_paths" else answer


def rows_of(trial):
    with (trial / "progress.csv").open() as file:
        return list(csv.DictReader(file))


def test_an_analysis_tells_what_the_files_hold(experiment):
    before = digest_tree(experiment)
    file = "/checkpoint-{}" if next(experiment.rglob("*-1.tune_metadata"), None) else ""  # 1.13
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
        assert trial.logdir == str(folder)
        assert (trial.runner, trial.start_time) == (None, None)
        assert trial.location.pid == trial.last_result["pid"]
        assert trial.checkpoint.value == trial.checkpoint.dir_or_data
        assert trial.checkpoint.value == f"{folder}/checkpoint_000002{file.format(2)}"
        paths = analysis.get_trial_checkpoints_paths(trial)
        assert [(Path(path).relative_to(folder).as_posix(), value) for path, value in paths] == [
            (f"checkpoint_00000{number}{file.format(number)}", number) for number in (1, 2)
        ]
        assert analysis.get_trial_checkpoints_paths(str(folder)) == paths
        assert analysis.get_last_checkpoint(trial).path == str(folder / "checkpoint_000002")
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


@pytest.fixture
def broken_off(experiment, monkeypatch):
    """An experiment whose process has ended too early, and what reaches Ray of who resumes it."""
    (state,) = experiment.glob("experiment_state*.json")
    saved = json.loads(state.read_text())
    trial = json.loads(saved["checkpoints"][0])
    trial |= {"status": "RUNNING", "stopping_criterion": {"training_iteration": 5}}
    saved["checkpoints"] = [json.dumps(trial)]
    state.write_text(json.dumps(saved))
    calls = []

    def run(trainable, **arguments):
        calls.append(arguments)
        return RayAnalysis(str(experiment))

    monkeypatch.setattr("ray.init", lambda: None)
    monkeypatch.setattr("ray.tune.run", run)
    return experiment, calls


@pytest.mark.parametrize("how", [True, "AUTO", "LOCAL"])
def test_an_experiment_goes_on_from_its_last_checkpoints(broken_off, how):
    experiment, calls = broken_off
    analysis = tune.run("PPO", experiment.name, local_dir=str(experiment.parent), resume=how)
    (trial,) = analysis.trials  # as Ray itself reads them from what is written
    assert calls[0]["resume"] in (True, "AUTO")
    assert (trial.status, trial.stopping_criterion) == ("PENDING", {"training_iteration": 5})
    assert trial.checkpoint.path.endswith("checkpoint_000002")
    assert trial.last_result["training_iteration"] == 2
    assert trial.config == json.loads((Path(trial.path) / "params.json").read_text())
    assert Path(trial.path).parent == experiment
    assert trial.relative_logdir == Path(trial.path).name, "results are appended to the old ones"
    before = sorted(experiment.iterdir())
    tune.run("PPO", experiment.name, local_dir=str(experiment.parent), resume=how)
    assert sorted(experiment.iterdir()) == before, "it is today's now"


@pytest.mark.parametrize("name", ["experiment_state.json", "experiment_state-2099-01-01.json"])
def test_an_old_state_with_a_later_name_is_not_resumed_from(broken_off, name):
    """Ray takes the last by name: another's clock, or Ray 0.6, which wrote no time."""
    experiment, _ = broken_off
    (state,) = experiment.glob("experiment_state*.json")
    state.rename(experiment / name)
    arguments = {"name": experiment.name, "local_dir": str(experiment.parent), "resume": True}
    (trial,) = tune.run("PPO", **arguments).trials
    assert (trial.status, trial.checkpoint.path[-6:]) == ("PENDING", "000002")
    before = digest_tree(experiment)
    tune.run("PPO", **arguments)
    assert digest_tree(experiment) == before, "it is today's now"


def test_all_trials_write_where_ray_saves_from(tmp_path, monkeypatch, caplog):
    """Ray copies the driver's folder of the first trial, whose name has its second."""
    folder = shutil.copytree(MUSEUM / "experiments/1.13.0-interrupted", tmp_path / "experiment")
    seconds = iter("abcdef")
    monkeypatch.setattr("ray.tune.utils.date_str", lambda: next(seconds))
    monkeypatch.setattr("ray.init", lambda: None)
    monkeypatch.setattr("ray.tune.run", lambda *_, **__: RayAnalysis(str(folder)))
    trials = tune.run("PPO", folder.name, local_dir=str(tmp_path), resume=True).trials
    assert [trial.storage._timestamp for trial in trials] == ["a", "a", "a"]
    assert caplog.text.count("until you stop it") == 2, "their stop was a function"


@pytest.mark.parametrize("recorded", ["0.8.5", "1.13.0", "2.0.1", "2.8.1"])
def test_trials_go_on_with_the_defaults_of_their_own_ray(recorded, tmp_path, monkeypatch):
    folder = MUSEUM / f"experiments/{recorded}-interrupted"
    folder = shutil.copytree(folder, tmp_path / "experiment")
    trainers = []

    def run(trainable, **_):
        trainers.append(trainable)
        return RayAnalysis(str(folder))

    monkeypatch.setattr("ray.init", lambda: None)
    monkeypatch.setattr("ray.tune.run", run)
    arguments = {"name": folder.name, "local_dir": str(tmp_path), "resume": True}
    trials = tune.run("PPO", **arguments).trials
    assert trainers[0].legacy_ray == recorded
    saved = [trial.last_result["training_iteration"] for trial in trials if trial.checkpoint]
    assert sorted(saved) == [2, 4]
    assert all(trial.config["num_workers"] == 0 for trial in trials)
    kept = None if recorded == "0.8.5" else 2
    for trial in trials:
        saving = trial.run_metadata.checkpoint_manager.checkpoint_config
        assert (saving.checkpoint_frequency, saving.num_to_keep) == (1, kept)
    before = digest_tree(folder)
    tune.run("PPO", **arguments)
    assert digest_tree(folder) == before, "it is today's now"


def test_trials_of_old_rays_without_a_checkpoint_say_that_they_start_from_zero(
    tmp_path, monkeypatch, caplog
):
    """Ray fails at the state of Ray 2.8.1, and starts another experiment."""
    folder = shutil.copytree(MUSEUM / "experiments/2.8.1-interrupted", tmp_path / "experiment")
    for checkpoint in folder.glob("*/checkpoint_*"):
        shutil.rmtree(checkpoint)
    monkeypatch.setattr("ray.init", lambda: None)
    monkeypatch.setattr("ray.tune.run", lambda *_, **__: RayAnalysis(str(folder)))
    trials = tune.run("PPO", folder.name, local_dir=str(tmp_path), resume=True).trials
    assert [trial.checkpoint.value for trial in trials] == [None] * 3
    assert caplog.text.count("starts from zero: it has no checkpoint") == 1, "one has ended"


def test_trials_that_look_like_those_of_newer_rays_say_so_too(tmp_path, monkeypatch, caplog):
    """Only checkpoints tell the state of Ray 2.10 – 2.39 from that of a newer one."""
    folder = shutil.copytree(MUSEUM / "experiments/2.8.1-interrupted", tmp_path / "experiment")
    for checkpoint in folder.glob("*/checkpoint_*"):
        shutil.rmtree(checkpoint)
    (state,) = folder.glob("experiment_state*.json")
    found = json.loads(state.read_text())
    state.write_text(json.dumps({**found, "runner_data": {}}))
    monkeypatch.setattr("ray.tune.run", lambda *_, **__: SimpleNamespace(trials=[]))
    arguments = {"local_dir": str(tmp_path), "resume": True, "return_trials": True}
    tune.run("PPO", folder.name, **arguments)
    monkeypatch.setattr("ray.tune.Tuner.restore", lambda *_, **__: None)
    tune.Tuner.restore(str(folder), "PPO")
    assert caplog.text.count("starts from zero: it has no checkpoint") == 2


@pytest.mark.parametrize(
    "manager",
    ["not hexadecimal", "80", pickle.dumps(7).hex(), pickle.dumps({"a": 1}).hex(), 7, None, [1]],
)
def test_damaged_checkpoint_managers_are_named_or_ignored(manager, tmp_path):
    folder = shutil.copytree(MUSEUM / "experiments/2.8.1-interrupted", tmp_path / "experiment")
    (state,) = folder.glob("experiment_state*.json")
    found = json.loads(state.read_text())
    for trial in found["trial_data"]:
        changing = json.loads(trial[1])
        trial[1] = json.dumps({**changing, "checkpoint_manager": {"value": manager}})
    found["runner_data"] = manager
    state.write_text(json.dumps(found))
    with contextlib.suppress(CorruptCheckpointError):
        assert len(read_old_experiment(folder)) == 3


def test_a_spec_goes_on(broken_off):
    experiment, calls = broken_off
    spec = {"run": "PPO", "local_dir": str(experiment.parent), "checkpoint_freq": 2}
    (trial,) = tune.run_experiments({experiment.name: spec}, resume=True)
    assert calls[0]["resume"] is True
    assert get_trainable_cls(trial.trainable_name).legacy_ray in ("1.13.0", "2.0.1")
    assert trial.checkpoint.path.endswith("checkpoint_000002")


@pytest.mark.parametrize("value", ["min-episode_len_mean", 7, None])
def test_trials_go_on_saving_as_they_did(broken_off, value):
    experiment, _ = broken_off
    (state,) = experiment.glob("experiment_state*.json")
    saved = json.loads(state.read_text())
    trial = json.loads(saved["checkpoints"][0])
    trial |= {"checkpoint_freq": 3, "checkpoint_at_end": "yes", "keep_checkpoints_num": -2}
    trial |= {"checkpoint_score_attr": value, "max_failures": 4}
    saved["checkpoints"] = [json.dumps(trial)]
    state.write_text(json.dumps(saved))
    arguments = {"name": experiment.name, "local_dir": str(experiment.parent), "resume": True}
    (trial,) = tune.run("PPO", **arguments).trials
    saving = trial.run_metadata.checkpoint_manager.checkpoint_config
    assert (saving.checkpoint_frequency, saving.num_to_keep, trial.max_failures) == (3, None, 4)
    by_length = ("episode_len_mean", "min")
    found = (saving.checkpoint_score_attribute, saving.checkpoint_score_order)
    assert found == (by_length if isinstance(value, str) else (None, "max"))
    assert not saving.checkpoint_at_end


def test_a_tuner_goes_on_with_an_old_experiment(broken_off):
    experiment, calls = broken_off
    tuner = tune.Tuner.restore(str(experiment), resume_errored=True)
    assert [result.metrics["training_iteration"] for result in tuner.get_results()] == [2]
    assert [result.error for result in tuner.fit()] == [None]
    assert calls[0]["name"] == experiment.name
    assert calls[0]["resume_config"].errored == tune.ResumeConfig.ResumeType.RESUME


def test_code_in_a_config_comes_from_the_caller_or_is_asked_for(broken_off):
    experiment, _ = broken_off
    (params,) = experiment.glob("*/params.json")
    config = json.loads(params.read_text())
    space = gymnasium.spaces.Discrete(3)
    config |= {"callbacks": "<class '__main__.Mine'>", "seed": 4, "lr": 0.25}
    config |= {"env_config": {"space": str(space), "f": "<function f at 0x7f>"}}
    params.write_text(json.dumps(config))
    arguments = {"name": experiment.name, "local_dir": str(experiment.parent), "resume": True}
    with pytest.raises(ConfigError, match=r"\$\.callbacks, \$\.env_config\.f"):
        tune.run("PPO", **arguments)
    given = {"callbacks": Mine, "env_config": {"space": space, "f": len}, "lr": 3}
    given["seed"] = tune.grid_search([1, 2])
    (trial,) = tune.run("PPO", config=given, **arguments).trials
    assert trial.config["callbacks"].__name__ == "Mine"
    assert trial.config["env_config"] == {"space": space, "f": len}
    assert (trial.config["seed"], trial.config["lr"]) == (4, 0.25), "a resume changes nothing else"


@pytest.mark.parametrize("more", [{}, {"x": 1}])
def test_nothing_in_the_files_is_unpickled_by_a_resume(broken_off, tmp_path, more):
    experiment, _ = broken_off
    bomb = pickle.dumps(Bomb(str(tmp_path / "exploded"))).hex()
    mark = {"_type": "CLOUDPICKLE_FALLBACK", "value": bomb, **more}
    (folder,) = (path for path in experiment.iterdir() if path.is_dir())
    lines = (folder / "result.json").read_text().splitlines()
    last = json.loads(lines[-1]) | {"info": [mark, {"a": mark}], "timers": mark}
    (folder / "result.json").write_text("\n".join([*lines[:-1], json.dumps(last), ""]))
    config = json.loads((folder / "params.json").read_text())
    (folder / "params.json").write_text(json.dumps(config | {"env_config": {"a": [mark]}}))
    for name in ("basic-variant-state-1.json", "searcher-state-1.pkl", "callback_states-1.pkl"):
        (experiment / name).write_bytes(bytes.fromhex(bomb))
    (state,) = experiment.glob("experiment_state*.json")
    saved = json.loads(state.read_text())
    trial = json.loads(saved["checkpoints"][0]) | {"stopping_criterion": {"a": mark}}
    state.write_text(json.dumps({**saved, "checkpoints": [json.dumps(trial)]}))
    arguments = {"name": experiment.name, "local_dir": str(experiment.parent), "resume": True}
    with pytest.raises(ConfigError, match=r"\$\.env_config\.a\[0\]"):
        tune.run("PPO", **arguments)
    (folder / "params.json").write_text(json.dumps(config))
    (found,) = tune.run("PPO", **arguments).trials
    assert found.last_result["training_iteration"] == 2
    assert not (tmp_path / "exploded").exists()
    left = {path.name for path in experiment.iterdir() if path.is_file()}
    assert all(name.startswith(("experiment_state", ".validate")) for name in left), "Ray loads it"


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


class Mine:
    """A user's callbacks."""
