"""`rllib-compat train`: what becomes of experiment files and of the flags of `rllib train`."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml
from ray import tune as ray_tune

from rllib_compat import registry
from rllib_compat.errors import ConfigError, RefusedKeysError
from rllib_compat.neutral import Verdict
from rllib_compat.tune import experiments

CONFIGS = sorted((Path(__file__).parents[1] / "legacy_configs").glob("*.json"))

SPEC = {
    "run": "PPO",
    "env": "CartPole-v0",
    "stop": {"episode_reward_mean": 150, "timesteps_total": 100_000},
    "config": {"framework": "tf", "num_workers": 1, "lr": {"grid_search": [1e-3, 1e-4]}},
}


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """Runs the verb; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    return partial(run, "train")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cartpole-ppo.yaml"
    path.write_text(yaml.safe_dump({"cartpole-ppo": SPEC}))
    return path


def spec_of(out):
    (experiment,) = json.loads(out)["experiments"]
    return experiment["spec"]


def _spec(path):
    told = json.loads(path.read_text("utf-8"))
    return {name: told[name] for name in ("run", "env", "config")}


def _ids(paths):
    return {"argvalues": paths, "ids": [path.stem for path in paths]}


REMOVED = [path for path in CONFIGS if not registry.find(_spec(path)["run"]).becomes]
TYPO = [path for path in CONFIGS if "observation_fliter" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", **_ids([p for p in CONFIGS if p not in (*REMOVED, *TYPO)]))
def test_tuned_examples_are_built(path):
    spec = _spec(path)
    (made,) = experiments.prepare({"x": spec}, keys={})
    experiment = ray_tune.Experiment.from_json(made.name, dict(made.spec))
    assert experiment.spec["config"]["env"] == spec["env"]
    assert made.needs["CPU"] >= 1


@pytest.mark.parametrize("path", **_ids(REMOVED))
def test_tuned_examples_of_removed_algorithms_are_refused_with_a_reason(path):
    with pytest.raises(RefusedKeysError, match="was removed from RLlib") as refused:
        experiments.prepare({"x": _spec(path)}, keys={})
    assert refused.value.findings


@pytest.mark.parametrize("path", **_ids(TYPO))
def test_a_typo_in_a_tuned_example_is_told(path):
    with pytest.raises(ConfigError, match="did you mean 'observation_filter'"):
        experiments.prepare({"x": _spec(path)}, keys={})


def test_a_file_is_translated_with_a_report(run, file):
    code, out, err = run("-f", file, "--dry-run", "--json", "--strict")
    told = json.loads(out)
    assert code == 1, "tf became torch"
    assert spec_of(out)["stop"] == SPEC["stop"]
    rows = {row["path"]: row["verdict"] for row in told["experiments"][0]["report"]["findings"]}
    assert rows["$.framework"] == "converted"
    assert rows["$.lr"] == "kept"
    assert err == ""


def test_flags_replace_what_the_file_says_and_tell_it(run, file):
    code, out, err = run(
        "file", file, "--stop", '{"training_iteration": 3}', "--torch", "--num-samples", 2,
        "--config", '{"gamma": 0.9}', "--num-workers", 0, "--dry-run", "--json",
    )  # fmt: skip
    spec = spec_of(out)
    assert spec["stop"] == {"training_iteration": 3}
    assert spec["num_samples"] == 2
    assert spec["config"]["framework"] == "torch"
    assert (spec["config"]["gamma"], spec["config"]["num_workers"]) == (0.9, 0)
    assert spec["config"]["lr"] == SPEC["config"]["lr"], "the rest is the file's"
    assert "the flags replace config.framework, config.num_workers, stop of the file" in err
    assert code == 0


def test_the_flags_alone_are_an_experiment(run, tmp_path):
    _, out, _ = run(
        "--run", "APEX", "--env", "CartPole-v1", "--stop", '{"timesteps_total": 10}',
        "--checkpoint-freq", 2, "--checkpoint-at-end", "--keep-checkpoints-num", 3,
        "--checkpoint-score-attr", "min-episode_len_mean", "--local-dir", tmp_path,
        "--experiment-name", "mine", "--trial-resources", '{"cpu": 1}', "--eager", "--trace",
        "-vv", "--dry-run", "--json",
    )  # fmt: skip
    spec = spec_of(out)
    assert json.loads(out)["experiments"][0]["experiment"] == "mine"
    assert (spec["checkpoint_freq"], spec["checkpoint_at_end"]) == (2, True)
    assert spec["keep_checkpoints_num"] == 3
    assert spec["checkpoint_score_attr"] == "min-episode_len_mean"
    assert spec["local_dir"] == str(tmp_path)
    assert spec["max_failures"] == experiments.MAX_FAILURES
    assert spec["resources_per_trial"] == {"cpu": 1}
    config = spec["config"]
    assert (config["framework"], config["eager_tracing"]) == ("tfe", True)
    assert config["log_level"] == "DEBUG"


def test_every_flag_without_a_meaning_says_why(run, file):
    alone = ["--local-mode", "--no-ray-ui", "--sync-on-checkpoint"]
    valued = ["--ray-redis-max-memory", "--ray-memory", "--sync-function", "--loggers"]
    valued += ["--trial-name-creator", "--export-formats", "--ray-num-nodes"]
    flags = [*alone, *(word for flag in valued for word in (flag, "1"))]
    code, out, _ = run("-f", file, *flags, "--dry-run", "--json", "--strict")
    assert code == 1
    told = dict(text.split(": ", 1) for text in json.loads(out)["flags"])
    assert told.keys() == {*alone, *valued}
    assert all(told.values())


def test_arguments_of_a_spec_that_mean_nothing_are_rows_of_the_report(file):
    spec = {**SPEC, "queue_trials": True, "pass_criteria": {"episode_reward_mean": 1}}
    (made,) = experiments.prepare({"x": spec}, keys={})
    assert {f.rule for f in made.report} >= {"experiment.queue_trials", "experiment.pass_criteria"}
    assert "queue_trials" not in made.spec


def test_recorded_data_is_found_where_rllib_train_found_it(tmp_path):
    data = tmp_path / "rllib" / "tests" / "data" / "large.json"
    data.parent.mkdir(parents=True)
    data.touch()
    file = tmp_path / "rllib" / "tuned_examples" / "marwil" / "cartpole-marwil.yaml"
    file.parent.mkdir(parents=True)
    config = {"input": {"tests/data/large.json": 0.5, "sampler": 0.5}}
    file.write_text(
        yaml.safe_dump({"x": {"run": "MARWIL", "env": "CartPole-v0", "config": config}})
    )
    spec = experiments.read(str(file))["x"]
    assert spec["config"]["input"] == {str(data): 0.5, "sampler": 0.5}


def test_a_yaml_file_runs_nothing(run, tmp_path):
    evil = tmp_path / "evil.yaml"
    evil.write_text("x: !!python/object/apply:os.mkdir [made]\n")
    code, _, err = run("-f", evil)
    assert code == 2
    assert "evil.yaml can't be read" in err
    assert not (tmp_path / "made").exists()


def test_defaults_of_the_old_ray_reach_the_trial_and_its_resources():
    spec = {"run": "PPO", "env": "CartPole-v0", "config": {}}
    (then,) = experiments.prepare({"x": spec}, keys={}, legacy_ray="0.8.7")
    assert then.spec["run"].legacy_ray == "0.8.7"
    assert then.spec["run"].__name__ == "PPOTrainer"
    assert then.needs["CPU"] == 3, "two workers were the default"
    assert any(f.verdict is Verdict.DEFAULT for f in then.report)


def test_a_trial_that_would_wait_for_ever_is_refused():
    spec = {**SPEC, "config": {"num_workers": 32, "num_gpus": 1}}
    found = experiments.prepare({"x": spec}, keys={})
    with pytest.raises(ConfigError, match=r"needs 33 CPU, 1 GPU, and Ray has 2 CPU, 0 GPU"):
        experiments.check_resources(found, {"CPU": 2})
    experiments.check_resources(found, {"CPU": 64, "GPU": 1})


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "has no algorithm"),
        (["--run", "PPO"], "has no environment"),
        (["--run", "Nonsense", "--env", "CartPole-v1"], "never had an algorithm"),
        (["--run", "MAML", "--env", "CartPole-v1"], "MAML was removed"),
        (["--run", "PPO", "--env", "CartPole-v1", "--config", "{lr: 1}"], "Expecting property"),
        (["--run", "PPO", "--env", "CartPole-v1", "--config", '{"gama": 1}'], "gamma"),
        (["-f", "nothing.yaml"], "can't be read"),
        (["-f", "train.py"], "rllib-compat run train.py"),
        (["-f", "{file}", "--experiment-name", "x"], "-f names its experiments itself"),
        (["-f", "{file}", "{file}"], "Two files define the experiment"),
    ],
)
def test_what_can_not_be_trained_says_why_before_anything_starts(run, file, args, text):
    code, out, err = run(*(arg.replace("{file}", str(file)) for arg in args))
    assert code == 2
    assert text in err
    assert out == ""


def test_a_word_that_an_experiment_never_had_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'num_samples'"):
        experiments.prepare({"x": {**SPEC, "num_sample": 3}}, keys={})
