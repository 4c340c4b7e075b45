"""Whole folders of checkpoints: all are found, one failure stops nothing, a cut run goes on."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import time
from functools import partial
from multiprocessing.connection import Connection

import pytest

from rllib_compat.conversion import convert_folder, convert_many, find_jobs, run_in_processes
from rllib_compat.errors import TargetExistsError, UnknownLayoutError
from tests.legacy.cases import find

SMALL = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
FOLDER = next(c for c in find(ray="2.10.0") if (c.checkpoint / "algorithm_state.pkl").exists())


@pytest.fixture
def results(tmp_path):
    """A results folder as people have them: two trials, a damaged file, a folder checkpoint."""
    folder = tmp_path / "results"
    files = SMALL.checkpoint if SMALL.checkpoint.is_dir() else SMALL.checkpoint.parent
    shutil.copytree(files, folder / "PPO_a/checkpoint_2")
    shutil.copytree(files, folder / "PPO_b/checkpoint_2")
    shutil.copytree(FOLDER.checkpoint, folder / "PPO_c/checkpoint_000002")
    (folder / "PPO_b/checkpoint_3").mkdir()
    (folder / "PPO_b/checkpoint_3/checkpoint-3").write_bytes(b"\x80\x02damaged")
    (folder / "PPO_b/notes.txt").write_text("no checkpoint")
    return folder


def test_an_empty_folder_is_told(tmp_path):
    with pytest.raises(UnknownLayoutError, match="no checkpoint below"):
        find_jobs(tmp_path, tmp_path / "out")


def test_every_checkpoint_below_a_folder_is_found_once(results, tmp_path):
    jobs = find_jobs(results, tmp_path / "out")
    names = [str(job.new.relative_to(tmp_path / "out")) for job in jobs]
    assert names == [
        "PPO_a/checkpoint_2",
        "PPO_b/checkpoint_2",
        "PPO_b/checkpoint_3",
        "PPO_c/checkpoint_000002",
    ]


def test_no_checkpoint_is_written_into_the_folder_of_another(results, tmp_path):
    inner = results / "PPO_a/checkpoint_2/again/checkpoint_1"
    shutil.copytree(results / "PPO_b/checkpoint_2", inner)
    targets = [job.new for job in find_jobs(results, tmp_path)]
    assert len(targets) == 5
    assert not [new for new in targets if set(new.parents) & set(targets)]


def test_what_convert_takes_is_found_whatever_it_is_called_and_wherever_it_lies(tmp_path):
    folder = tmp_path / "repository"
    shutil.copytree(FOLDER.checkpoint, folder)  # a checkpoint itself, with others below it
    (old,) = (c for c in find(ray="0.5.3", algorithm="A2C") if c.variant == "small")
    old = old.checkpoint.with_name("checkpoint-2.extra_data")
    for name in ("models/checkpoint-2.extra_data", "models/mine/best_model"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(old if "extra" in name else SMALL.checkpoint, folder / name)
    shutil.copytree(FOLDER.checkpoint / "policies/default_policy", folder / "models/one")
    jobs = find_jobs(folder, tmp_path / "out")
    found = {job.old.relative_to(folder).as_posix() for job in jobs}
    assert found == {
        ".",
        "models/checkpoint-2.extra_data",
        "models/mine/best_model",
        "models/one",
    }
    targets = [job.new for job in jobs]
    assert len({*targets}) == 4
    assert not [new for new in targets if {*new.parents} & {*targets}]


def test_a_folder_that_no_conversion_has_made_is_not_taken_for_one(results, tmp_path):
    jobs = find_jobs(results / "PPO_a", tmp_path / "out")
    (job,) = jobs
    (job.new / "notes").mkdir(parents=True)
    (outcome,) = convert_folder(jobs, tmp_path / "log.jsonl", to="msgpack")
    assert (outcome.status, "exists already" in outcome.message) == ("refused", True)


def test_what_was_converted_into_the_same_folder_is_not_taken_for_input(results):
    before = list(find_jobs(results, results / "out"))
    shutil.copytree(FOLDER.checkpoint, results / "out/PPO_a/checkpoint_2")
    assert list(find_jobs(results, results / "out")) == before


def test_one_failure_stops_nothing_and_a_second_run_goes_on(results, tmp_path):
    out = tmp_path / "out"
    log = out / "log.jsonl"
    jobs = find_jobs(results, out)
    first = list(convert_folder(jobs, log, processes=2, to="msgpack", inputs=5))
    statuses = {os.path.relpath(o.old, results): o.status for o in first}
    assert statuses.pop("PPO_b/checkpoint_3/checkpoint-3") == "refused"
    assert set(statuses.values()) == {"converted"}
    again = list(convert_folder(jobs, log, to="msgpack", inputs=5))
    assert sorted(o.status for o in again) == [*["already converted"] * 3, "refused"]
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(logged) == 8


def test_a_process_that_dies_takes_only_its_own_checkpoint_with_it(results, tmp_path, monkeypatch):
    jobs = find_jobs(results, tmp_path / "out")
    really = Connection.send

    def send(connection, job):
        (process,) = multiprocessing.active_children()
        dies = job.old.name == "checkpoint-3"
        if dies:  # stopped first, so that it can't be done before it is killed
            os.kill(process.pid, signal.SIGSTOP)
        really(connection, job)
        if dies:
            os.kill(process.pid, signal.SIGKILL)

    monkeypatch.setattr(Connection, "send", send)
    log = tmp_path / "out/log.jsonl"
    outcomes = list(convert_folder(jobs, log, to="msgpack", inputs=5))
    assert [o.status for o in outcomes if o.old.endswith("checkpoint-3")] == ["failed"]
    assert sum(o.status == "converted" for o in outcomes) == 3


def test_a_checkpoint_that_has_changed_is_converted_again(results, tmp_path):
    def run():
        jobs = find_jobs(results, tmp_path / "out")
        done = convert_folder(jobs, tmp_path / "out/log.jsonl", to="msgpack", inputs=5)
        return {outcome.name: outcome.status for outcome in done}

    run()
    os.utime(results / "PPO_a/checkpoint_2/checkpoint-2", (1, 1))
    again = run()
    assert again.pop("PPO_a/checkpoint_2/checkpoint-2") == "converted"
    assert again.pop("PPO_b/checkpoint_3/checkpoint-3") == "refused"
    assert set(again.values()) == set(run().values()) - {"refused"} == {"already converted"}


def test_two_runs_do_not_write_into_one_folder(results, tmp_path):
    jobs = find_jobs(results, tmp_path / "out")
    first = convert_folder(jobs, tmp_path / "out/log.jsonl", to="msgpack", inputs=5)
    next(first)
    with pytest.raises(TargetExistsError, match="Another run"):
        next(convert_folder(jobs, tmp_path / "out/log.jsonl", to="msgpack", inputs=5))
    first.close()
    assert len(list(convert_folder(jobs, tmp_path / "out/log.jsonl", to="msgpack", inputs=5))) == 4


def test_an_interrupt_sums_up_and_the_same_command_converts_the_rest(
    results, tmp_path, monkeypatch, run
):
    shutil.rmtree(results / "PPO_b/checkpoint_3")
    command = ("convert", "--recursive", "--to", "msgpack", results, tmp_path / "new")

    def interrupted(*args, **options):
        yield next(many(*args, **options))
        raise KeyboardInterrupt

    many = convert_many.convert_many
    monkeypatch.setattr(convert_many, "convert_many", interrupted)
    code, out, _ = run(*command)
    assert code == 2
    last = out.splitlines()[-1]
    assert last == "next: run the same command again, which converts the rest"
    monkeypatch.undo()
    code, out, _ = run(*command)
    assert code == 0
    assert out.startswith("2 converted, 1 already converted")


def test_what_takes_too_long_costs_only_itself():
    done = run_in_processes(time.sleep, [0, 600, 0], lambda *why: why, processes=2, limit=1)
    assert sorted(done, key=str) == [(600, "it took longer than 1 seconds"), None, None]


def test_what_lets_no_exception_end_it_is_ended_all_the_same():
    work = partial(re.fullmatch, "(a+)+b")  # holds the interpreter meanwhile
    (done,) = run_in_processes(work, ["a" * 60], lambda *why: why, processes=1, limit=0.3)
    assert done == ("a" * 60, "it took longer than 0.3 seconds")
