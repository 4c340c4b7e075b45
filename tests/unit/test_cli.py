"""The command line as people and scripts use it: output, exit codes, streams."""

import importlib
import io
import json
import logging
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest

from rllib_compat import Inspection
from rllib_compat.cli import options, output
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral import Report, Severity, Verdict
from tests.legacy.cases import find, one_of_each
from tests.marks import marked

CASE = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
CUSTOM = next(c for c in find(algorithm="PPO") if c.variant == "custommodel" and c.ray >= "2.0")


def test_the_group_lists_its_verbs_and_exit_codes(run):
    code, out, _ = run("--help")
    assert code == 0
    assert all(verb in out for verb in ("config", "convert", "demo", "inspect", "verify"))
    assert "Exit codes" in out


def test_inspect_tells_what_is_inside(run):
    code, out, _ = run("inspect", CASE.path, "--algorithm", "PPO")
    assert code == 0
    for text in ("0.8.5", "PPO", "CartPole-v0", "fc 4-32-32-2 relu", "MeanStdFilter, 419 seen"):
        assert text in out


def test_inspect_shows_classes_that_are_not_known(run):
    code, out, _ = run("inspect", CUSTOM.checkpoint, "-v")
    assert code == 0
    assert run("inspect", CUSTOM.checkpoint, "--strict")[0] == 1
    assert "_make_skeleton_class" in out
    assert "has the custom model MyModel" in out


@pytest.mark.parametrize(
    "case", marked(find(), one_of_each(find(), lambda c: (c.stack, c.ray))), ids=str
)
def test_inspect_fits_forty_lines_of_eighty_columns(run, case, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("inspect", case.checkpoint)
    lines = [line for line in out.splitlines() if not line.startswith("checkpoint ")]
    assert 8 < len(lines) < 40
    assert max(map(len, lines)) <= 80


def test_spaces_and_policies_of_hundreds_of_lines_are_counted_without_v(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    given = ("--action-space", f"MultiDiscrete({[5] * 576})", "--algorithm", "PPO")
    assert run("inspect", CASE.path, *given)[1].count("\n") <= 40
    assert run("inspect", CASE.path, *given, "-v")[1].count("\n") > 100


def test_classes_of_this_package_are_not_listed_as_unknown():
    named = {"ray.rllib.Thing": 1, "rllib_compat.modules.SACModule": 2}
    checkpoint = replace(read_checkpoint(CASE.checkpoint), stand_ins=named)
    assert Inspection(checkpoint, Report("")).stand_ins == {"ray.rllib.Thing": 1}


def test_inspect_says_once_what_is_assumed_of_a_whole_league(run):
    league = next(c for c in find(ray="1.13.0") if c.variant == "league20")
    _, out, _ = run("inspect", league.checkpoint)
    assert out.count("a distribution over") == 1
    assert out.count("fc 5-16-3 tanh") == 1
    assert run("inspect", league.checkpoint, "-v")[1].count("fc 5-16-3 tanh") == 20


def test_inspect_json_is_json_and_nothing_else(run):
    code, out, err = run("inspect", "--json", CASE.path, "--algorithm", "PPO")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["algorithm"] == "PPO"
    assert told["policies"]["default_policy"]["parameters"] == 2531
    assert told["counters"]["iterations"] == 2
    assert sum(math.prod(array["shape"]) for array in told["arrays"]) == 2531


def test_convert_to_msgpack_and_verify(run, tmp_path):
    new = tmp_path / "new"
    code, out, err = run("convert", CASE.path, new, "--to", "msgpack", "-n", "20")
    assert code == 0
    assert "0.00e+00" in out
    assert "reading" in err
    assert (new / "algorithm_state.msgpck").is_file()
    code, out, _ = run("verify", CASE.path, new, "-n", "20", "--json")
    assert code == 0
    assert all(row["ok"] for row in json.loads(out)["compared"])


def test_verify_compares_on_given_observations_too(run, tmp_path):
    run("convert", CASE.path, tmp_path / "new", "--to", "msgpack", "-n", "5")
    file = tmp_path / "seen.npz"
    np.savez(file, default_policy=CASE.expected().inputs)
    code, out, _ = run(
        "verify", CASE.path, tmp_path / "new", "-n", "5", "--observations", file, "--json"
    )
    assert code == 0
    rows = [row for row in json.loads(out)["compared"] if row["output"] != "weights"]
    assert [row["inputs"] for row in rows] == [5, 5, 16, 16]


def test_a_recording_of_the_old_ray_proves_the_activation_on_the_command_line(run, tmp_path):
    recording = ("--recorded", CASE.path / "expected.npz")
    code, out, _ = run("convert", CASE.path, tmp_path / "new", "--to", "msgpack", *recording)
    assert "16 recorded" in out
    assert "the recording confirms" in out
    code, out, _ = run("verify", CASE.path, tmp_path / "new", "-n", "5", "--json", *recording)
    told = json.loads(out)
    assert code == 0
    assert {row["kind"] for row in told["compared"]} == {"stored", "random", "recorded"}
    assert all(row["proven"] for row in told["assumed"] if row["what"] == "activation")


def test_the_recorder_is_printed_as_it_is(run):
    code, out, _ = run("recorder")
    assert code == 0
    compile(out, "record.py", "exec")
    assert "def record(trainer, file" in out


def test_verify_finds_a_changed_weight_and_exits_with_1(run, tmp_path):
    old = shutil.copytree(CASE.path, tmp_path / "old")
    run("convert", CASE.path, tmp_path / "new", "--to", "msgpack", "-n", "5")
    file = old / "checkpoint_2" / "checkpoint-2"
    (policy,) = read_checkpoint(old).policies.values()
    kernel = np.array(policy.weights["default_policy/fc_out/kernel"])
    changed = kernel + np.float32(0.01)
    file.write_bytes(file.read_bytes().replace(kernel.tobytes(), changed.tobytes()))
    code, out, _ = run("verify", old, tmp_path / "new", "-n", "50")
    assert code == 1
    assert "NO" in out


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["inspect", "/nothing/here"], "no such file"),
        (["convert", CASE.path, "{new}", "--action-space", "Circle(3)"], "not a space"),
        (["convert", CASE.path, "{new}", "--config", "/nothing.json"], "No such file"),
        (["convert", CASE.path, "{new}", "--algorithm", "Nonsense"], "never had an algorithm"),
        (["convert", CUSTOM.checkpoint, "{new}"], "has the custom model MyModel"),
        (["convert", CASE.path], "Missing argument"),
        (["explode"], "No such command"),
    ],
)
def test_bad_input_gives_a_clear_error_and_exit_2_and_writes_nothing(run, tmp_path, args, text):
    new = tmp_path / "new"
    code, out, err = run(*(str(a).replace("{new}", str(new)) for a in args))
    assert code == 2
    assert text in err
    assert "Traceback" not in out + err
    assert not new.exists()


def test_an_error_says_where_and_what_to_do(run):
    _, _, err = run("inspect", "/nothing/here")
    assert "where: /nothing/here" in err
    assert "to do:" in err


@pytest.mark.parametrize(
    ("args", "kind"),
    [(["inspect", "/nothing/here"], "UnknownLayoutError"), (["inspect", "--nope"], "NoSuchOption")],
)
def test_an_error_is_data_where_data_was_asked_for(run, args, kind):
    code, out, err = run(*args, "--json")
    error = json.loads(out)["error"]
    assert (code, error["kind"]) == (2, kind)
    assert error["found"].splitlines()[0] in err


@pytest.mark.parametrize("verb", ["train", "convert"])
def test_help_in_groups_has_each_option_once(run, verb):
    _, out, _ = run(verb, "--help")
    command = importlib.import_module(f"rllib_compat.cli.{verb}").command
    named = re.findall(r"^  (?:-\w, )*(--[\w-]+)", out, re.MULTILINE)
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    assert len(set(named)) == len(named) == len(options) + 1, "--help is the one"


def test_what_happened_to_several_parts_alike_is_one_row(capsys):
    report = Report("Conversion")
    for part in ("optimizer", "trainer_state", "tune_metadata"):
        report.add("extra", Verdict.DROPPED, part, "the new files have no place for it")
    output.report(report, verbose=1)
    shown = capsys.readouterr().out
    assert "optimizer, trainer_state, tune_metadata  the new files" in shown


def test_an_existing_target_needs_overwrite(run, tmp_path):
    args = ("convert", CASE.path, tmp_path, "--to", "msgpack", "-n", "5")
    code, _, err = run(*args)
    assert (code, "--overwrite" in err) == (2, True)
    assert run(*args, "--overwrite")[0] == 0
    # The class of the policy, which Ray would want to know, is not in the source.
    assert run(*args, "--overwrite", "--strict")[0] == 1


def test_a_dry_run_writes_nothing(run, tmp_path):
    code, out, _ = run(
        "convert", CASE.path, tmp_path / "new", "--to", "msgpack", "--dry-run", "--algorithm", "PPO"
    )
    assert code == 0
    assert "nothing was written" in out
    assert not (tmp_path / "new").exists()


def test_no_color_is_respected(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "rllib_compat", "inspect", str(CASE.path), "--algorithm", "PPO"],
        capture_output=True,
        check=True,
        env={"NO_COLOR": "1", "FORCE_COLOR": "", "TERM": "xterm", "PATH": "/usr/bin"},
    )
    assert b"\x1b[" not in done.stdout


def test_terminal_control_characters_in_a_checkpoint_are_not_sent_to_the_terminal(run, tmp_path):
    old = shutil.copytree(CASE.path, tmp_path / "old")
    params = json.loads((old / "params.json").read_text()) | {"env": "\x1b[2J\x1b]0;owned\x07"}
    (old / "params.json").write_text(json.dumps(params))
    (old / "params.pkl").unlink()
    _, out, _ = run("inspect", old)
    assert "\x1b" not in out
    assert "owned" in out


def test_the_trial_folder_can_be_given_relative_to_the_working_directory(run, monkeypatch):
    monkeypatch.chdir(Path(CASE.path).parent)
    code, out, _ = run("inspect", Path(CASE.path).name, "--algorithm", "PPO")
    assert code == 0
    assert "PPO" in out


def test_control_characters_in_an_error_are_not_sent_to_the_terminal(run):
    _, _, err = run("inspect", "/nothing/\x1b[2Jhere")
    assert "\x1b" not in err


def test_an_unexpected_error_is_exit_2_and_not_done_with_findings(run, monkeypatch):
    from rllib_compat.conversion import inspect

    def broken(*args, **kwargs):
        raise RuntimeError("a bug")

    monkeypatch.setattr(inspect, "inspect", broken)
    code, _, err = run("inspect", CASE.path)
    assert code == 2
    assert "a bug" in err


def test_a_report_fits_a_screen_and_says_how_much_is_left_out(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    long = Report("Conversion of a league")
    for number in range(40):
        long.add("r", Verdict.NOTE, f"$.key_{number}", f"odd {number}", severity=Severity.WARNING)
    long.add("r", Verdict.REFUSED, "$.bad", "refused", severity=Severity.ERROR)
    long.add("r", Verdict.KEPT, "$.good", "kept")
    output.report(long, verbose=0)
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) < 40
    assert "$.bad" in shown
    assert "29 more that need attention (-v shows them)" in shown
    assert "1 more that need no attention" in shown
    output.report(long, verbose=1)
    whole = capsys.readouterr().out
    assert all(f"$.key_{number} " in whole for number in range(40))
    assert "$.good" in whole
    assert "more that" not in whole


def test_in_a_pipe_a_row_is_a_line_that_nothing_cuts(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    long = "x" * 200
    output.table("", ("key", "what"), [("a", (long, "→ do")), ("bb", "[red]\x1b[2Jmarkup")])
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["key  what", f"a    {long} → do", "bb   [red]\\x1b[2Jmarkup", ""]


def test_a_narrow_table_breaks_paths_at_their_parts_and_no_word(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    output.table("", ("where", "to do"), [("apex-tf-v-atoms/checkpoint_2", "give --action-space")])
    shown = [line.split() for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert shown == [["apex-tf-v-", "give"], ["atoms/", "--action-space"], ["checkpoint_2"]]


def test_a_program_that_ends_at_once_has_written_everything(tmp_path):
    command = [sys.executable, "-m", "rllib_compat", "inspect", "--arrays", "--json", CASE.path]
    with (tmp_path / "out").open("w") as out:
        done = subprocess.run(command, stdout=out, check=False)
    assert done.returncode in (0, 1)
    assert json.loads((tmp_path / "out").read_text())["policies"]


@pytest.mark.parametrize("name", ["CartPole-v1", "no_such_module:CartPole-v1", "json:Pong-v5"])
def test_an_environment_is_a_name_or_a_class_of_the_caller(name):
    known = dict.fromkeys(("algorithm", "config", "model", "weights_map"))
    known |= {"observation_space": (), "action_space": (), "policy": ()}
    assert options.given(env=name, **known).env == name
    assert options.given(env="json:JSONDecoder", **known).env is json.JSONDecoder


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_verbs_and_options(run, monkeypatch, shell):
    code, script, _ = run("completion", shell)
    assert code == 0
    assert "_RLLIB_COMPAT_COMPLETE" in script
    monkeypatch.setenv("COMP_WORDS", "rllib-compat conv")
    monkeypatch.setenv("COMP_CWORD", "conv" if shell == "fish" else "1")
    monkeypatch.setenv("_RLLIB_COMPAT_COMPLETE", f"{shell}_complete")
    assert "convert" in run()[1]
    monkeypatch.setenv("COMP_WORDS", "rllib-compat convert --recur")
    monkeypatch.setenv("COMP_CWORD", "--recur" if shell == "fish" else "2")
    assert "--recursive" in run()[1]


def test_a_command_that_is_nearly_right_is_named(run):
    code, _, err = run("convrt", "old", "new")
    assert code == 2
    assert "Did you mean 'convert'?" in err
    assert "Did you mean" not in run("frobnicate")[2]


def test_of_what_ray_says_only_errors_are_shown_whatever_level_an_algorithm_sets():
    pytest.importorskip("ray")
    from rllib_compat.ray_versions.startup import quiet_logs

    logger, shown = logging.getLogger("ray.rllib"), io.StringIO()
    handler, level = logging.StreamHandler(shown), logger.level
    logger.addHandler(handler)
    try:
        with quiet_logs():
            logger.setLevel(logging.INFO)
            logger.info("a connector was added")
            logging.getLogger("ray.rllib.algorithms").warning("the new stack")
            logger.error("it failed")
        logger.warning("behind it")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert shown.getvalue().splitlines() == ["it failed", "behind it"]
