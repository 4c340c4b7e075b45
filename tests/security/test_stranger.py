"""What somebody who wants to do harm tries next: odd files, odd targets, odd text."""

from __future__ import annotations

import json
import logging
import os
import pickle
import shutil
import time
from dataclasses import replace

import numpy as np
import pytest
import yaml
from packaging.version import Version

from rllib_compat import Given, convert, inspect
from rllib_compat.cli import output
from rllib_compat.config import read_experiments
from rllib_compat.errors import (
    BudgetExceededError,
    CheckpointError,
    CompatError,
    ConfigError,
    TargetExistsError,
)
from rllib_compat.formats import layouts, manifest
from rllib_compat.formats.msgpack import write as msgpack_writer
from rllib_compat.neutral import (
    Budget,
    Finding,
    LegacyCheckpoint,
    PolicyState,
    Report,
    Severity,
    Source,
    Verdict,
)
from rllib_compat.neutral.check import check
from rllib_compat.neutral.policy_id import PolicyId
from rllib_compat.runtime import find_creator
from tests.legacy.cases import find
from tests.security import payloads
from tests.security.canary import MODULE, watched
from tests.security.payloads import dumps
from tests.trees import digest_tree

WORKER1 = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
#: Clears the screen, links, colours, starts lines anew, turns the direction, is half a pair.
NASTY = "a\x1b[2J\x1b]8;;http://x\x07[link=http://x][red]\r\n  to do: sh x\n\u202eb\ud800"


def sent(path, new):
    """What the doors without Ray say of a checkpoint."""
    said = []
    for door in (lambda: inspect(path), lambda: convert(path, new, to="msgpack", inputs=2)):
        try:
            door()
            said.append("taken")
        except CompatError as error:
            said.append(str(error))
    return said


# --- files that are none


@pytest.mark.parametrize("layout", payloads.LAYOUTS)
def test_pipes_links_and_devices_in_place_of_files_are_not_opened(layout, tmp_path):
    """Opening a pipe would wait for ever; a link may lead to any file of the reader."""
    whole = payloads.LAYOUTS[layout][0](tmp_path / "whole")
    folder = whole if whole.is_dir() else whole.parent
    names = [p.relative_to(folder) for p in sorted(folder.rglob("*")) if p.is_file()]
    secret = tmp_path / "secret.pkl"
    secret.write_bytes(dumps({"secret": "of the reader"}))
    for number, name in enumerate(names):
        for kind in ("pipe", "link", "device", "folder"):
            copy = shutil.copytree(folder, tmp_path / f"{number}{kind}")
            file = copy / name
            file.unlink()
            if kind == "pipe":
                os.mkfifo(file)
            elif kind == "folder":
                file.mkdir()
            else:
                file.symlink_to(secret if kind == "link" else "/dev/zero")
            started = time.process_time()
            said = sent(
                copy if whole.is_dir() else copy / whole.name, tmp_path / f"n{number}{kind}"
            )
            assert time.process_time() - started < 5
            assert "of the reader" not in str(said)
    assert "taken" in sent(whole, tmp_path / "new")


@pytest.mark.parametrize("ending", ["json", "yaml", "pkl"])
def test_a_config_that_is_a_pipe_or_a_device_is_not_waited_for(ending, tmp_path, run):
    os.mkfifo(tmp_path / f"a.{ending}")
    (tmp_path / f"b.{ending}").symlink_to("/dev/zero")
    for name in "ab":
        with pytest.raises(ConfigError):
            read_experiments(str(tmp_path / f"{name}.{ending}"))
        assert run("inspect", "x", "--config", tmp_path / f"{name}.{ending}")[0] == 2


# --- targets


def others_folders(converted, target):
    """Makes folders at `target` that `--overwrite` must leave alone, one after the other."""

    def copy():
        shutil.rmtree(target, ignore_errors=True)
        return shutil.copytree(converted, target)

    for name in ("notes.txt", ".git", "Documents", "checkpoint-1", "params.json", "x.safetensors"):
        (copy() / name).write_text("precious")
        yield f"one of ours with {name} in it"
    (copy() / "policies" / "default_policy" / "notes.txt").write_text("precious")
    yield "a file deep in it"
    (copy() / "algorithm_state.msgpck").write_bytes(b"trained on")
    yield "a file that has changed"
    (copy() / "link").symlink_to("/etc")
    yield "a link in it"
    (copy() / manifest.NAME).unlink()
    yield "one that nobody says who wrote"
    (copy() / manifest.NAME).write_text('{"version": 1, "sha256": {}}')
    yield "a list that names none of it"
    for text in (
        "[]",
        "",
        '{"version": 2, "sha256": {}}',
        '{"version": 1, "sha256": 1}',
        "[" * 9999,
    ):
        (copy() / manifest.NAME).write_text(text)
        yield f"a list that is damaged: {text[:40]}"
    (copy() / manifest.NAME).unlink()
    (target / manifest.NAME).symlink_to(converted / manifest.NAME)
    yield "a list that is a link"
    for name in ("x.safetensors", "x.onnx", "policies", "learner_group", "rllib_checkpoint.json"):
        shutil.rmtree(target)
        target.mkdir()
        (target / name).write_text("precious")
        yield f"somebody's {name}"
    shutil.rmtree(target)
    shutil.copytree(next(iter(find(ray="2.40.0"))).checkpoint, target)
    yield "a checkpoint of Ray"


def test_overwrite_replaces_nothing_but_what_was_written_there(tmp_path):
    old, target = payloads.v0_1(tmp_path / "old"), tmp_path / "new"
    convert(old, tmp_path / "converted", to="msgpack", inputs=2)
    tried = 0
    for what in others_folders(tmp_path / "converted", target):
        before = digest_tree(tmp_path)
        with pytest.raises(TargetExistsError, match=r"not replaced"):
            pytest.fail(f"{what}: {convert(old, target, to='msgpack', inputs=2, overwrite=True)}")
        assert digest_tree(tmp_path) == before, what
        tried += 1
    assert tried > 20
    shutil.rmtree(target)
    for make in (target.mkdir, lambda: None):  # what is empty is nobody's loss
        make()
        convert(old, target, to="msgpack", inputs=2, overwrite=True)
    assert digest_tree(target) == digest_tree(tmp_path / "converted")


def test_overwrite_replaces_no_file_no_home_and_not_where_one_stands(tmp_path, monkeypatch):
    old = payloads.v0_1(tmp_path / "old")
    (tmp_path / "file").write_text("precious")
    (tmp_path / "home" / "user").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "user"))
    monkeypatch.chdir(tmp_path / "here")
    before = digest_tree(tmp_path)
    for name in ("file", "home/user", "home", "here"):
        with pytest.raises(TargetExistsError, match="not replaced"):
            convert(old, tmp_path / name, to="msgpack", inputs=2, overwrite=True)
    assert digest_tree(tmp_path) == before
    assert (tmp_path / "here").is_dir()


def test_what_appears_at_the_target_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    old = payloads.v0_1(tmp_path / "old")
    real = msgpack_writer.write

    def slow(*args):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "precious").write_text("1")
        return real(*args)

    monkeypatch.setattr(msgpack_writer, "write", slow)
    with pytest.raises(TargetExistsError):
        convert(old, tmp_path / "new", to="msgpack", inputs=2, overwrite=True)
    assert (tmp_path / "new" / "precious").exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_what_is_linked_to_a_file_of_a_target_keeps_its_bytes(tmp_path):
    old = payloads.v0_1(tmp_path / "old")
    convert(old, tmp_path / "new", to="msgpack", inputs=2)
    os.link(tmp_path / "new" / "algorithm_state.msgpck", tmp_path / "linked")
    before = (tmp_path / "linked").read_bytes()
    convert(WORKER1.checkpoint, tmp_path / "new", to="msgpack", inputs=2, overwrite=True)
    assert (tmp_path / "linked").read_bytes() == before
    assert (tmp_path / "new" / "algorithm_state.msgpck").read_bytes() != before


# --- ids


IDS = ("a", "A", "é", "e\u0301", "ﬁ", "fi", "\ud800", "a\0b", "..", "-rf", "~", "$HOME", "a\nb",
       "CON", "[red]x", 1, "1", True, None, ("a", 1), b"a", 1.5, 10**400)  # fmt: skip


def test_ids_that_a_file_system_takes_for_one_or_that_are_no_text_are_told_apart(tmp_path):
    path = payloads.v0_1(tmp_path / "old", ids=IDS)
    found = layouts.read(path)
    assert len(found.policies) == len(set(IDS))
    convert(path, tmp_path / "new", to="msgpack", prove=False)
    assert len(list((tmp_path / "new" / "policies").iterdir())) == len(set(IDS))
    assert len(layouts.read(tmp_path / "new").policies) == len(set(IDS))


# --- text that is shown


def hostile(tmp_path):
    """Text at each place from which a report may take it."""
    params = {"env": NASTY, NASTY: NASTY, "callbacks": NASTY, "model": {NASTY: NASTY}}
    old = payloads.v0_1(tmp_path / "old", params=params, ids=(NASTY, "b"))
    metadata = {"iteration": 1, "ray_version": NASTY}
    (old.parent / "checkpoint-1.tune_metadata").write_bytes(dumps(metadata))
    named = b"X\x01\x00\x00\x00x" + payloads.named(NASTY, NASTY) + b")R"
    data = old.read_bytes()
    assert data.endswith(b"u.")
    old.write_bytes(data[:-2] + named + b"u.")
    return old


def assert_harmless(text):
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert not [line for line in text.splitlines() if line.startswith(("  to do: sh", "to do"))]
    text.encode()  # half a surrogate pair would end the program here


@pytest.mark.parametrize("options", [[], ["-v"], ["--globals"], ["--json"]])
def test_text_of_a_file_neither_steers_a_terminal_nor_starts_a_line(options, tmp_path, run):
    _, out, err = run("inspect", hostile(tmp_path), *options)
    assert "[red]" in out  # shown, and not obeyed
    assert_harmless(out)
    assert_harmless(err)


def test_nor_does_it_in_errors_logs_and_reports(tmp_path, caplog, capsys):
    error = CheckpointError(NASTY, where=NASTY, fix=NASTY)
    assert_harmless(str(error))
    report = Report(NASTY, {"Ray": NASTY})
    report.extend([Finding("x", Severity.WARNING, Verdict.NOTE, NASTY, NASTY, NASTY)])
    with caplog.at_level(logging.WARNING):
        report.warn(logging.getLogger("x"))
    assert len(caplog.text.splitlines()) == 1
    for text in (str(report), caplog.text, report.to_json()):
        assert_harmless(text)
    output.report(report, verbose=1)
    output.table(NASTY, ("x",), [(NASTY,)])
    output.progress(NASTY)
    assert_harmless(capsys.readouterr().out)


# --- arguments of environments


def test_gymnasium_gets_no_path_that_a_file_names(tmp_path):
    """MuJoCo's environments open `xml_file`, those of Atari a ROM, and others what they please."""
    context = {"xml_file": "/etc/passwd", "nested": {"a": ["x.xml"]}, b"x": b"x", "natural": True}
    creator = find_creator("Blackjack-v1", trusted=False)
    assert creator(context).unwrapped.natural
    with pytest.raises(TypeError):
        find_creator("Blackjack-v1")(context)
    old = shutil.copytree(WORKER1.path, tmp_path / "old")
    (old / "params.pkl").unlink()
    params = json.loads((old / "params.json").read_text())
    params["env_config"] = {"sutton_barto_reward": True, "xml_file": "../x.xml"}
    (old / "params.json").write_text(json.dumps({**params, "env": "CartPole-v1"}))
    given = Given("PPO")
    report = convert(old, tmp_path / "new", given=given, dry_run=True).report
    assert any(f.path == "config.env_config.xml_file" for f in report)
    assert not any("sutton" in f.path for f in report if f.verdict is Verdict.DROPPED)


# --- what a little text stands for


def yaml_bombs():
    laughs = "a0: &a0 [x,x]\n" + "".join(
        f"a{i}: &a{i} [*a{i - 1},*a{i - 1}]\n" for i in range(1, 60)
    )
    merges = "a0: &a0 {x0: 1}\n" + "".join(
        f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}], x{i}: 1}}\n" for i in range(1, 60)
    )
    keys = "a: {" + ", ".join(f"{i * ((1 << 61) - 1)}: 1" for i in range(1, 9000)) + "}"
    return {
        "laughs": laughs,
        "merges": merges,
        "keys that collide": keys,
        "a circle": "a: &a [*a]\n",
        "deep": "a: " + "[" * 100_000,
        "a tag": f"a: !!python/object/apply:{MODULE}.touch []\n",
        "a module": f"a: !!python/module:{MODULE}\n",
        "a long number": "a: " + "9" * 5000,
        "a date that is none": "a: 2001-99-99\n",
        "a list as a key": "? [a, b]\n: 1\n",
        "large": "a: 'x'\n" * 100_000,
        "not text": "\udcff",
    }


#: What may be read: the numbers that collide are few enough here, and PyYAML merges a key once
#: since 6.0.4.
HARMLESS = {"keys that collide"}
if Version(yaml.__version__) >= Version("6.0.4"):
    HARMLESS.add("merges")


@pytest.mark.parametrize("bomb", yaml_bombs())
def test_a_yaml_file_costs_little_and_makes_no_object(bomb, tmp_path):
    file = tmp_path / "x.yaml"
    file.write_bytes(yaml_bombs()[bomb].encode("utf-8", "surrogateescape"))
    started = time.process_time()
    (tmp_path / "out").mkdir()
    with watched(tmp_path / "code", tmp_path / "out") as seen:
        if bomb in HARMLESS:
            read_experiments(str(file))
        else:
            with pytest.raises(ConfigError):
                read_experiments(str(file))
    seen.assert_clean()
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text", ['{"x": ' + "[" * 100_000, '{"x": 1e999, "y": ' + "9" * 5000 + "}", "["]
)
def test_a_json_file_that_is_none_is_an_error(text, tmp_path, run):
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ConfigError):
        read_experiments(str(file))
    for given in (str(file), text):
        assert run("inspect", "x", "--config", given)[0] == 2


@pytest.mark.parametrize("ending", ["json", "yaml", "pkl"])
def test_a_config_file_is_translated_and_nothing_of_it_runs(ending, tmp_path, run):
    for number, text in enumerate(payloads.TEXTS.values()):
        config = dict.fromkeys(payloads.KEYS, text)
        config["evaluation_config"] = dict(config)
        file = tmp_path / f"{number}.{ending}"
        if ending == "pkl":
            file.write_bytes(dumps({**config, "x": payloads.Call(), "callbacks": payloads.Call()}))
        else:
            file.write_text(json.dumps(config))  # JSON is YAML
        with watched(tmp_path / "code", tmp_path / "out") as seen:
            run("config", file, "--algorithm", "DQN", "--on-unknown", "pass")
        seen.assert_clean()


# --- one budget, to the last write


def state(policies, config):
    made = {
        PolicyId(f"p{i}"): PolicyState(PolicyId(f"p{i}"), {"w": np.zeros(2)})
        for i in range(policies)
    }
    return LegacyCheckpoint(Source(payloads.Path("x"), "0.1"), config=config, policies=made)


def test_a_config_is_not_repeated_without_end(tmp_path):
    """Ray's form has the config in each policy: 5,000 of them times 100 kB would be 500 MB."""
    large = {f"k{i}": "x" * 100 for i in range(1000)}
    started = time.process_time()
    with pytest.raises(BudgetExceededError, match="to be written"):
        msgpack_writer.write(state(5000, large), tmp_path, Budget())
    assert time.process_time() - started < 5
    assert sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file()) < 100_000_000
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    msgpack_writer.write(state(50, large), tmp_path, Budget())  # a league


@pytest.mark.parametrize("what", ["outputs", "written"])
def test_a_conversion_spends_from_one_budget(what, tmp_path, monkeypatch):
    old = payloads.v0_1(tmp_path / "old")
    budgets = []
    real = Budget.take_input

    def noted(self, *args):
        budgets.append(self)
        real(self, *args)
        setattr(self, what, 10)

    monkeypatch.setattr(Budget, "take_input", noted)
    with pytest.raises(BudgetExceededError, match=what):
        convert(old, tmp_path / "new", to="msgpack", inputs=2)
    assert len({id(budget) for budget in budgets}) == 1
    assert not (tmp_path / "new").exists()


# --- numbers


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_told_by_every_reader(number, tmp_path):
    sound = layouts.read(payloads.v0_1(tmp_path / "old"))
    (policy_id,) = sound.policies
    for field in ("weights", "learner_weights"):
        broken = {"a": np.array([1.0, number], np.float32), "b": np.zeros(2)}
        policy = replace(sound.policies[policy_id], **{field: broken})
        (row,) = [
            f for f in check(sound.with_policies([policy])).findings if f.rule == "not-finite"
        ]
        assert row.severity is Severity.WARNING
        assert " a" in row.message
        folder = tmp_path / f"{field}"
        folder.mkdir()
        msgpack_writer.write(sound.with_policies([policy]), folder)
        again = layouts.read(folder)
        assert [f.rule for f in again.findings].count("not-finite") == 1
        report = convert(folder, tmp_path / f"{field}-new", to="msgpack", prove=False).report
        assert report.exit_code == 1


def test_what_our_own_msgpack_says_of_findings_is_not_believed_twice(tmp_path):
    """A file may hold findings of its own; those about its weights are made anew."""
    path = payloads.v0_1(tmp_path / "old")
    convert(path, tmp_path / "one", to="msgpack", prove=False)
    convert(tmp_path / "one", tmp_path / "two", to="msgpack", prove=False)
    one, two = (layouts.read(tmp_path / name).findings for name in ("one", "two"))
    assert [f.rule for f in one].count("params") == [f.rule for f in two].count("params")


ODD = [
    np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
    np.array([object()], object),
    np.array(["2020-01-01"], "M8[D]"),
    np.array(["x"]),
    np.ma.masked_array([1.0], [True]),
]


@pytest.mark.parametrize("array", ODD, ids=lambda a: str(a.dtype))
def test_arrays_of_no_numbers_are_no_weights(array, tmp_path):
    path = payloads.v0_1(tmp_path / "old")
    inner = pickle.dumps({"state": {"default_policy": {"fc_1/kernel": array}}}, 4)
    path.write_bytes(pickle.dumps({"worker": inner}, 4))
    said = sent(path, tmp_path / "new")
    assert isinstance(array, np.ma.MaskedArray) or "taken" not in said


def test_flags_are_no_counts_and_counts_no_flags(tmp_path):
    sound = layouts.read(payloads.v0_1(tmp_path / "old"))
    for wrong in (
        {"iteration": True},
        {"env_steps": 1.5},
        {"seconds": True},
        {"episodes": 1 << 70},
    ):
        with pytest.raises(CheckpointError):
            check(replace(sound, counters=replace(sound.counters, **wrong)))
    with pytest.raises(CheckpointError):
        check(replace(sound, config_is_complete=1))


def test_a_checkpoint_is_deleted_and_nothing_that_somebody_else_has_written(tmp_path):
    pytest.importorskip("ray")
    from rllib_compat import PPOTrainer

    saved, others = tmp_path / "saved", tmp_path / "others"
    for folder in (saved, others):
        folder.mkdir()
        (folder / "state.pkl").touch()
    manifest.write_manifest(saved)
    trainer = object.__new__(PPOTrainer)
    trainer.delete_checkpoint(str(saved))
    assert not saved.exists()
    with pytest.raises(CompatError, match="not deleted"):
        trainer.delete_checkpoint(str(others))
    assert (others / "state.pkl").exists()
