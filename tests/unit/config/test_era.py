"""Which Ray a config or a script was written for, where nobody says: what shows it."""

import importlib
import os

import pytest

import rllib_compat
from rllib_compat.config import infer_era, translate
from rllib_compat.config.evidence import Evidence, find_evidence, of_call, of_import
from rllib_compat.errors import ConfigError
from rllib_compat.neutral.report import Severity
from tests.processes import start

TODAYS = {"env": "CartPole-v1", "lr": 1e-3, "gamma": 0.9, "train_batch_size": 400}
ALWAYS_TAKEN = {"framework": "torch", "lambda": 0.9, "callbacks": None, "multiagent": {}}


def inferred(config, *evidence, algorithm="PPO"):
    return infer_era(config, algorithm, evidence).ray


@pytest.mark.parametrize(
    ("algorithm", "config", "ray"),
    [
        ("PPO", {}, None),
        ("PPO", TODAYS, None),
        ("PPO", ALWAYS_TAKEN, None),
        ("PPO", {**TODAYS, "num_env_runners": 2}, None),
        ("PPO", {**TODAYS, "num_workers": 2}, "2.12.0"),
        ("PPO", {"sample_batch_size": 50, "num_workers": 2}, "0.8.7"),
        ("PPO", {"use_pytorch": True}, "0.8.7"),
        ("PPO", {"model": {"custom_options": {}}}, "0.8.7"),
        ("PPO", {"multiagent": {"policy_graphs": {}}}, "0.6.6"),
        ("PPO", {"timesteps_per_batch": 400}, "0.5.2"),
        ("A3C", {"summarize": True}, "0.5.0"),
        ("DDPG", {}, "2.10.0"),
        # A later Ray may have a placeholder for a key that it had renamed.
        ("BC", {"num_workers": 2, "min_time_s_per_reporting": 1}, "1.13.0"),
        ("DQN", {"num_workers": 2, "buffer_size": 5000}, "1.13.0"),
        ("PPO", {"num_rollout_workers": 2, "horizon": 200, "buffer_size": -1}, "2.10.0"),
        # Nobody uses a key before there is one; an old one may have been left standing.
        ("PPO", {"num_workers": 2, "num_env_runners": 2}, None),
        ("PPO", {"sample_batch_size": 5, "rollout_fragment_length": 5}, "0.8.7"),
    ],
)
def test_keys_and_algorithms_show_it(algorithm, config, ray):
    assert inferred(config, algorithm=algorithm) == ray


@pytest.mark.parametrize(
    ("imports", "ray"),
    [
        ([("ray.rllib.agents.ppo", "PPOTrainer")], "1.13.0"),
        ([("ray.rllib.agents", "ppo")], "1.13.0"),
        ([("ray.rllib.agents.ppo", "PPOAgent")], "0.8.1"),
        ([("ray.rllib.algorithms.ppo", "PPOConfig")], None),
        ([("ray.rllib.algorithms.ppo", "DEFAULT_CONFIG")], "2.3.1"),
        # Ray 2.0 – 2.3 had both packages.
        (
            [
                ("ray.rllib.algorithms.ppo", "PPO"),
                ("ray.rllib.agents.callbacks", "DefaultCallbacks"),
            ],
            "2.3.1",
        ),
        ([("ray.rllib", "MultiAgentEnv")], None),
        ([("gym", "Env"), ("numpy", "array"), ("ray", "tune")], None),
    ],
)
def test_imports_show_it(imports, ray):
    found = [evidence for module, name in imports for evidence in of_import(module, [name])]
    assert inferred(TODAYS, *found) == ray


def test_calls_of_configs_show_it():
    algorithms = list(of_import("ray.rllib.algorithms.ppo", ["PPOConfig"]))
    assert inferred({}, *algorithms, *of_call("rollouts")) == "2.12.0"
    assert inferred({}, *algorithms, *of_call("env_runners")) is None


PIN = ("==1.13.0 for ray in requirements.txt", "1.13.0")


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("requirements.txt", "numpy\nray[rllib]==1.13.0  # pinned\n", PIN),
        ("requirements-dev.txt", "ray [tune] == 1.2.0 ; python_version > '3'\n", "1.2.0"),
        ("requirements.txt", "ray>=0.8,<1.0\n", "0.8.7"),
        ("requirements.txt", "ray~=1.2.0\n", "1.2.0"),
        ("requirements.txt", "https://s3.com/ray-0.9.0.dev0-cp37-cp37m-linux.whl\n", "0.9.0"),
        ("requirements.txt", "# ray==1.0\nxray==1.1\nray-lightning==0.2\nray\n", None),
        ("requirements.txt", "ray>=1.0\n", None),
        ("requirements.txt", "ray==2.60.0\n", None),
        ("requirements.txt", "ray==0.4.0\nray===what\nray==\n", None),
        ("setup.py", "import os; os._exit(3)\nsetup(install_requires=['ray==0.7.3'])", "0.7.3"),
        ("setup.cfg", "install_requires =\n    ray[rllib]==1.9.2\n", "1.9.2"),
        ("pyproject.toml", 'dependencies = ["ray[rllib]>=1.9,<1.12"]\n', "1.11.1"),
        ("pyproject.toml", 'ray = {extras = ["rllib"], version = "^1.2.0"}\n', "1.13.0"),
        ("pyproject.toml", 'ray = "^0.8.4"\n', "0.8.7"),
        ("Pipfile", 'ray = "==1.0.1"\n', "1.0.1"),
        ("poetry.lock", '[[package]]\nname = "ray"\nversion = "1.11.0"\n', "1.11.0"),
        ("uv.lock", '[[package]]\nname = "ray"\nversion = "2.9.3"\n', "2.9.3"),
        (
            "Pipfile.lock",
            '{"default": {"ray": {"hashes": ["sha256:0"], "version": "==1.0.1"}}}',
            "1.0.1",
        ),
        ("environment.yml", "dependencies:\n  - ray-rllib=1.2\n", "1.2.0"),
        ("environment.yaml", "  - pip:\n    - ray[rllib]==0.8.5\n", "0.8.5"),
    ],
)
def test_requirement_and_lock_files_are_read_as_text(tmp_path, name, text, found):
    (tmp_path / name).write_text(text)
    evidence = find_evidence(tmp_path)
    what, last = found if isinstance(found, tuple) else (None, found)
    assert [e.last for e in evidence] == ([last] if last else [])
    assert what is None or evidence[0].what == what


def test_files_of_the_project_count_and_no_others(tmp_path):
    project = tmp_path / "project"
    inside = project / "examples" / "ppo"
    inside.mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("ray==0.8.5")
    assert find_evidence(inside) == ()  # nothing says where the project begins
    (project / ".git").mkdir()
    assert find_evidence(inside) == ()
    (project / "requirements.txt").write_text("ray==1.0.1")
    assert [e.last for e in find_evidence(inside)] == ["1.0.1"]


def test_what_is_no_file_or_too_large_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "requirements.txt")
    (tmp_path / "poetry.lock").mkdir()
    (tmp_path / "requirements-dev.txt").write_text("ray==1.0.1\n" + "#" * (5 << 20))
    (tmp_path / "requirements-x.txt").write_bytes(b"\xff\x00ray==" + b"1" * 2000)
    assert find_evidence(tmp_path) == ()


def test_code_counts_before_files_and_what_contradicts_is_said():
    pinned = Evidence("==2.9.0 for ray in requirements.txt", "2.9.0", "2.9.0", in_code=False)
    old = list(of_import("ray.rllib.agents.ppo", ["PPOTrainer"]))
    era = infer_era({"sample_batch_size": 5}, "PPO", [*old, pinned])
    assert era.ray == "0.8.7"
    (row,) = era.findings()
    assert row.severity is Severity.INFO
    assert "because of the key `sample_batch_size`" in row.message
    assert "against it: ==2.9.0 for ray in requirements.txt" in row.message
    assert infer_era({"num_workers": 1}, "PPO", [pinned]).ray == "2.9.0"


def test_a_report_has_a_row_for_what_was_inferred_and_none_where_it_was_said():
    def rows(**how):
        report = translate({"num_workers": 1}, algorithm="PPO", **how).report
        return [found.message for found in report if found.rule == "era.inferred"]

    assert rows() == ["taken as written for Ray 2.12.0, because of the key `num_workers`"]
    assert rows() == rows(legacy_ray="auto") == rows(legacy_ray=None)
    assert not rows(legacy_ray="1.13.0")
    assert not rows(legacy_ray="today")


FOR_1_0 = "ray[rllib]==1.0.1\n"


def _config(folder):
    (folder / "params.json").write_text('{"env": "CartPole-v0", "lr": 0.001}')
    return ["config", str(folder / "params.json"), "--algorithm", "SAC"]


def _train(folder):
    spec = "x: {run: SAC, env: CartPole-v0, config: {lr: 0.001}}"
    (folder / "experiment.yaml").write_text(spec)
    return ["train", "-f", str(folder / "experiment.yaml"), "--dry-run", "-v"]


@pytest.mark.parametrize("arguments", [_config, _train], ids=["config", "train"])
@pytest.mark.parametrize(
    ("flags", "shown"), [((), True), (("--legacy-ray", "today"), False)], ids=["auto", "today"]
)
def test_verbs_read_the_files_beside_what_they_are_given(tmp_path, run, arguments, flags, shown):
    (tmp_path / "requirements.txt").write_text(FOR_1_0)
    code, *printed = run(*arguments(tmp_path), *flags)
    assert code in (0, 1)
    told = "".join(printed)
    assert ("Ray: 1.0.1" in told) is shown
    assert ("actor_lr=0.0003" in told) is shown


@pytest.mark.parametrize("value", ["{'gamma': 0.9}", "dict(gamma=0.9)"], ids=["read", "run"])
def test_config_reads_the_imports_of_the_file(tmp_path, run, value):
    file = tmp_path / "train.py"
    file.write_text(f"from ray.rllib.agents.ppo import DEFAULT_CONFIG\nCONFIG = {value}\n")
    shown = run("config", f"{file}:CONFIG", "--algorithm", "PPO")[1]
    assert "taken as written for Ray 1.13.0" in shown
    assert "the import of `ray.rllib.agents`" in shown


def test_upgrade_reads_the_imports_of_the_file_and_the_files_beside_it(tmp_path):
    from rllib_compat.upgrade import Target, upgrade

    source = b"from ray.rllib.agents.sac import SACTrainer\nSACTrainer(config={'gamma': 0.9})\n"
    path = str(tmp_path / "train.py")
    assert b"actor_lr=0.0003" in upgrade(source, Target.NATIVE, path=path).after
    todays = upgrade(source, Target.NATIVE, path=path, legacy_ray="today").after
    assert b"actor_lr" not in todays


def test_code_says_for_which_rays_it_was_written(monkeypatch):
    monkeypatch.setattr("rllib_compat.config.era._noted", {})
    rllib_compat.written_for(last="1.13.0")
    assert infer_era({}, "SAC").ray == "1.13.0"
    assert infer_era({"sample_batch_size": 4}, "SAC").ray < "0.9", "keys narrow it"
    with pytest.raises(ConfigError, match="not a Ray version"):
        rllib_compat.written_for(first="old")


def test_trials_take_what_the_driver_has_shown():
    """Their processes know neither its script nor its imports."""
    import rllib_compat as compat
    from rllib_compat.config import era
    from rllib_compat.trainer import keep_era

    assert keep_era(compat.PPOTrainer) is compat.PPOTrainer
    era.note(of_import("ray.rllib.agents.ppo", ["PPOTrainer"]))
    kept = keep_era(compat.PPOTrainer)
    era.forget()
    assert infer_era({}, "PPO", kept.evidence).ray == "1.13.0"
    era.choose("0.8.5")
    assert keep_era(compat.PPOTrainer).legacy_ray == "0.8.5"


def test_run_reads_the_files_beside_the_script(tmp_path):
    """And default configs are those of that Ray."""
    (tmp_path / "requirements.txt").write_text(FOR_1_0)
    script = tmp_path / "old.py"
    script.write_text(
        "from ray.rllib.agents.ppo import DEFAULT_CONFIG as c\n"
        "print('evaluation_num_episodes' in c, 'evaluation_duration' in c)\n"
    )
    assert "True False" in start(tmp_path, "run", script).stdout


def test_names_that_pickle_asks_every_module_for_say_nothing_of_the_users_code():
    module = importlib.import_module("rllib_compat.agents.ppo")
    assert not hasattr(module, "a_function_of_another_module")
    assert infer_era({}).ray is None
    assert module.DEFAULT_CONFIG
    assert infer_era({}).ray == "1.13.0"


@pytest.mark.parametrize(
    ("module", "name", "ray"),
    [
        ("ray.rllib.agents.trainer", "COMMON_CONFIG", "1.13.0"),
        ("ray.rllib.models.catalog", "MODEL_DEFAULTS", None),  # the installed Ray has it, too
    ],
)
def test_a_constant_that_rays_annotated_did_not_end_with_the_last_one_that_did_not(
    module, name, ray
):
    assert infer_era({}, "PPO", of_import(module, [name])).ray == ray
