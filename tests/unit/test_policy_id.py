"""Policy ids become folders: what a stranger wrote into a file never decides where we write."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from rllib_compat.errors import NotYetError
from rllib_compat.formats import read_checkpoint, write_msgpack
from rllib_compat.networks import ModelSettings, read
from rllib_compat.neutral import Verdict
from rllib_compat.neutral.policy_id import LONGEST, PolicyIds, to_policy_id, why_unsafe

HOSTILE = {
    "an absolute path": "/etc/cron.d",
    "a path upwards": "../../other",
    "two dots": "..",
    "one dot": ".",
    "nothing": "",
    "a blank": " ",
    "a slash": "red/blue",
    "a backslash": "red\\blue",
    "a drive": "C:",
    "a star": "team*",
    "a NUL": "red\0blue",
    "a line feed": "red\nblue",
    "an escape": "\x1b[31mred",
    "text that turns around": "red\u202egpj.exe",
    "half a surrogate pair": "red\ud800",
    "a long one": "r" * 10_000,
    "a long one in bytes": "é" * LONGEST,
    "a device": "NUL",
    "a device with an ending": "com1.txt",
    "Ray's own": "__all_modules__",
    "a hidden folder": ".ssh",
    "a dot at the end": "red.",
    "a number": 7,
    "a boolean": True,
    "None": None,
    "a tuple": ("red", 1),
    "bytes": b"red",
    "a huge number": 1 << 100_000,
}


@pytest.mark.parametrize("found", HOSTILE.values(), ids=HOSTILE)
def test_an_id_that_can_be_no_folder_gets_a_name_that_can(found):
    assert why_unsafe(found)
    ids = PolicyIds([found])
    assert why_unsafe(ids[found]) is None
    (finding,) = ids.findings()
    assert finding.verdict is Verdict.RENAMED
    assert finding.message.isprintable()


@pytest.mark.parametrize("found", ["default_policy", "agent-1", "team red", "Ämter", "a.b", "赤"])
def test_an_id_that_is_fine_stays_as_it_is(found):
    assert to_policy_id(found) == found
    ids = PolicyIds([found])
    assert ids[found] == found
    assert ids.found_as(ids[found]) is None
    assert ids.findings() == []


def test_an_unsafe_id_is_refused_where_a_safe_one_is_asked_for():
    with pytest.raises(ValueError, match="refuse '/'"):
        to_policy_id("red/blue")


def test_a_safe_id_keeps_its_name_whatever_comes_before_it():
    ids = PolicyIds(["red/blue", "red_blue"])
    assert ids["red_blue"] == "red_blue"
    assert ids["red/blue"] == "red_blue_2"
    assert ids.found_as(ids["red/blue"]) == "red/blue"


@pytest.mark.parametrize("pair", [("Red", "red"), ("Straße", "strasse"), ("é", "e\u0301")])
def test_ids_that_a_file_system_takes_for_one_are_told_apart(pair):
    first, second = PolicyIds(pair)
    assert first == pair[0]
    assert second == f"{pair[1]}_2"


def test_a_number_and_its_text_are_two_policies():
    ids = PolicyIds([1, "1", True])
    assert list(ids) == ["1", "1_2", "True"]
    assert ids.get(1) == "1_2"
    assert ids.get("1") == "1"
    assert ids.get(2) is None


def test_a_hundred_thousand_ids_that_are_alike_take_no_time():
    ids = PolicyIds(["red" + "/" * i for i in range(1, 100)] + [f"red\0{i}" for i in range(50_000)])
    assert len(set(ids)) == 50_099


def _old_checkpoint(folder, ids):
    """A file of Ray 0.8 whose policies have these ids."""
    state = {found: {f"{found}/w": np.zeros(2, np.float32)} for found in ids}
    worker = {"state": state, "filters": dict.fromkeys(ids)}
    file = folder / "checkpoint-1"
    file.write_bytes(pickle.dumps({"worker": pickle.dumps(worker, 4)}, 4))
    return file


def test_a_checkpoint_with_hostile_ids_is_written_below_its_target_only(tmp_path):
    old, new = tmp_path / "old", tmp_path / "deep" / "new"
    old.mkdir()
    new.mkdir(parents=True)
    ids = [str(tmp_path / "away"), "../../away", "..", "", "a/b", "a_b", "A_B"]
    checkpoint = read_checkpoint(_old_checkpoint(old, ids))
    assert len(checkpoint.policies) == len(ids)
    assert [p.old_id for p in checkpoint.policies.values()] == ids
    assert sum(f.rule == "policy-id" for f in checkpoint.findings) == 6
    write_msgpack(checkpoint, new)
    assert {p.name for p in tmp_path.iterdir()} == {"old", "deep"}
    assert {p.name for p in (tmp_path / "deep").iterdir()} == {"new"}
    again = read_checkpoint(new)
    assert [p.old_id for p in again.policies.values()] == ids


def test_weights_are_found_under_the_name_that_the_old_ray_gave_them(tmp_path):
    checkpoint = read_checkpoint(_old_checkpoint(tmp_path, ["team/red"]))
    (policy,) = checkpoint.policies.values()
    assert policy.policy_id == "team_red"
    with pytest.raises(NotYetError, match="for example 'w'"):
        read(policy, ModelSettings(algorithm="PPO"))
