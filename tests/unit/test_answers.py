"""One file answers what many checkpoints lack, and a folder is shown in one table."""

import json
import shutil

import pytest
import yaml

from tests.legacy.cases import find

ASKED = {"a2c-tf-cont": "algorithm", "ppo-tf-cont": "action-space", "ppo-tf-linear": "action-space"}
CASES = {case.path.name: case for case in find(ray="0.8.5")}


@pytest.fixture
def results(tmp_path):
    """Three checkpoints that lack something, and one that lacks nothing."""
    for name in (*ASKED, "ppo-torch-multiagent"):
        shutil.copytree(CASES[name].path, tmp_path / "results" / name)
    return tmp_path / "results"


def test_the_skeleton_of_a_run_is_filled_in_and_answers_what_was_refused(run, results, tmp_path):
    new = tmp_path / "new"
    convert = ("convert", "--recursive", results, new, "--to", "onnx", "-n", "5")
    code, out, _ = run(*convert)
    assert code == 1
    assert "2 refused: The action space is neither" in out
    assert f"command: rllib-compat convert {results}/a2c-tf-cont/" in out
    assert f"--hints {new / 'hints.yaml'}" in out
    skeleton = (new / "hints.yaml").read_text()
    spaces, algorithm = yaml.safe_load(skeleton)
    assert [path.partition("/")[0] for path in spaces["checkpoints"]] == [
        "ppo-tf-cont",
        "ppo-tf-linear",
    ]
    assert list(algorithm) == ["checkpoints"], "no option holds before somebody wrote a value"
    answers = tmp_path / "answers.yaml"
    answers.write_text(
        skeleton.replace('# action-space: "Discrete(2)"', "action-space: Box(-2, 2, (1,))")
        .replace('# algorithm: "PPO"', "algorithm: A2C")
        .replace("ppo-tf-linear/", "a glob that nothing matches/")
        + "\n- {checkpoints: 'ppo-tf-l*', action_space: Discrete(3)}\n"
    )
    code, out, _ = run(*convert, "--hints", answers)
    assert (code, "1 already converted" in out, "3 converted" in out) == (0, True, True), out


def test_a_later_entry_goes_before_an_earlier_one_and_both_before_the_command_line(run, tmp_path):
    case = CASES["a2c-tf-cont"].path
    answers = tmp_path / "answers.yaml"
    entries = [{"checkpoints": "*", "algorithm": "PG"}, {"checkpoints": ["x", "*"], "env": "Mine"}]
    answers.write_text(json.dumps(entries))
    code, out, _ = run("inspect", "--json", case, "--algorithm", "PPO", "--hints", answers)
    shown = json.loads(out)
    assert (code, shown["algorithm"], shown["environment"]) == (0, "PG", "Mine")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("algorithm: PPO", "not a list of entries"),
        ("- {algorithm: PPO}", "not a list of entries"),
        ("- {checkpoints: a, algorythm: PPO}", "--algorythm"),
        ("- {checkpoints: a, action-space: Disc}", "'Disc' is not a space"),
        ("- {checkpoints: a, config: 3}", "Invalid value for '--config'"),
        ("- !!python/object/apply:os.system [x]", "Not YAML"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(run, tmp_path, text, said):
    answers = tmp_path / "answers.yaml"
    answers.write_text(text)
    code, _, err = run("inspect", CASES["a2c-tf-cont"].path, "--hints", answers)
    assert (code, said in err, str(answers) in err) == (2, True, True), err


def test_a_name_in_a_folder_can_write_no_answer_into_the_skeleton(run, tmp_path):
    evil = tmp_path / "results" / 'x"\n- {checkpoints: "*", env: "os:system"}\n#'
    shutil.copytree(CASES["ppo-tf-cont"].path, evil)
    run("convert", "--recursive", evil.parent, tmp_path / "new", "--to", "onnx")
    (entry,) = yaml.safe_load((tmp_path / "new/hints.yaml").read_text())
    assert list(entry) == ["checkpoints"]
    assert "os:system" in entry["checkpoints"][0]


def test_a_folder_is_a_table_with_what_each_checkpoint_needs(run, results):
    code, out, _ = run("inspect", results)
    assert code == 0
    rows = {line.partition("/")[0]: line for line in out.splitlines()}
    assert {
        name: f"needs --{option}" in rows[name] for name, option in ASKED.items()
    } == dict.fromkeys(ASKED, True)
    assert rows["ppo-torch-multiagent"].endswith("ready")
    assert "checkpoints: 2 needs --action-space, 1 needs --algorithm, 1 ready" in out


def test_the_table_has_the_return_of_the_iteration_and_names_what_can_not_be_read(run, tmp_path):
    trial = next(case for case in find(ray="1.13.0") if case.variant == "tunerun").path
    shutil.copytree(trial, tmp_path / "trial")
    (tmp_path / "trial/checkpoint_9").mkdir()
    (tmp_path / "trial/checkpoint_9/checkpoint-9").write_bytes(b"damaged")
    code, out, err = run("inspect", "--recursive", "--json", tmp_path)
    rows = json.loads(out)
    assert (code, {row["verdict"] for row in rows}) == (1, {"ready", "unreadable"})
    assert all(row["return"] > 0 for row in rows if row["verdict"] == "ready")
    assert "checkpoint-9" in err
