"""What is kept of an episode, and the files that hold it."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_compat.episode_data import EpisodeRecorder, read_episodes
from rllib_compat.episode_data.files import EpisodeFiles
from rllib_compat.episode_data.recorder import AgentData, Seen
from rllib_compat.errors import CheckpointError, CompatError, CorruptCheckpointError
from rllib_compat.runtime.legacy_callbacks import instantiate, resolve

HEAD = {"worker": 1, "env": 0, "episode": 7, "time": 0.5, "length": 2, "reward": 1.5}
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text() | st.floats()
PLAIN = st.recursive(
    SCALARS, lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text(), s, max_size=3)
)


def same(one, other):
    """Equal, where NaN is NaN."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (one != one and other != other)


def without_none(value):
    """What Parquet keeps: None and nothing are the same there."""
    return {k: v for k, v in value.items() if v is not None}


def line(**data):
    return json.dumps({**HEAD, "running": {}, "final": {}, "media": {}, **data})


def test_arrays_and_lists_are_kept_as_they_were_when_the_environment_said_them():
    data, place = AgentData(10), np.zeros(2)
    path = [1]
    for step in (1, 2):
        place[:] = step
        path.append(step)
        data.add("media", {"place": place, "path": path})
    assert [p.tolist() for p in data.media["place"]] == [[1, 1], [2, 2]]
    assert data.media["path"] == [[1, 1], [1, 1, 2]]


def test_sums_are_exact_when_values_are_left_out_and_the_record_tells_how_many():
    data = AgentData(3)
    for step in range(100):
        data.add("running", {"speed": step})
        data.add("media", {"place": step})
    record = data.record()
    assert record["running"]["speed"] == {
        "count": 100,
        "values": [0, 1, 2],
        "mean": 49.5,
        "sum": 4950,
        "min": 0,
        "max": 99,
    }
    assert record["media"] == {"place": [0, 1, 2]}
    assert record["media_left_out"] == {"place": 97}


def test_an_object_that_no_file_can_hold_is_an_error_that_names_its_place():
    with pytest.raises(CompatError, match=r"type set .*\n.*media → trace → at"):
        AgentData(3).add("media", {"trace": {"at": {1, 2}}})


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@settings(max_examples=25)
@given(final=st.dictionaries(st.text(), PLAIN), media=st.lists(PLAIN), other=PLAIN)
def test_files_give_back_what_was_written(tmp_path_factory, kind, final, media, other):
    folder = tmp_path_factory.mktemp("trial")
    lines = [line(final=final, media={"m": media}), line(final={"x": other})]
    EpisodeFiles(None, str(folder), "episode_data", kind).write(lines, iteration=3, evaluation=True)
    one, two = read_episodes(folder)
    assert (one["iteration"], one["evaluation"], one["reward"]) == (3, True, 1.5)
    if kind == "jsonl":
        assert same(one["final"], final)
        assert same(two["final"], {"x": other})
    else:
        assert same(one["final"], without_none(final))
        assert same(two["final"], without_none({"x": other}))
    assert same(one["media"], {"m": media})


def test_parquet_has_one_type_for_whole_numbers_and_others(tmp_path):
    import pyarrow.dataset

    files = EpisodeFiles(None, str(tmp_path), "data", "parquet")
    for iteration, value in enumerate((1, 2.5), 1):
        series = {"speed": {"count": 1, "values": [value], "mean": value}}
        files.write(
            [line(final={"n": value}, running=series)], iteration=iteration, evaluation=False
        )
    table = pyarrow.dataset.dataset(tmp_path / "data").to_table()
    assert table["final/n"].to_pylist() == [1.0, 2.5]
    assert table["running/speed/values"].to_pylist() == [[1.0], [2.5]]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_agents_keep_their_policies_and_rewards(tmp_path, kind):
    one = {"policy": "p", "reward": 2.0, "running": {}, "final": {"n": 1.0}, "media": {}}
    two = {**one, "policy": "q", "final": {"n": 2.0}}
    text = json.dumps({**HEAD, "agents": {"0": one, "1": two}})
    files = EpisodeFiles(None, str(tmp_path), "episode_data", kind)
    files.write([text, text.replace('"episode": 7', '"episode": 8')], iteration=1, evaluation=False)
    episodes = list(read_episodes(tmp_path))
    assert [e["episode"] for e in episodes] == [7, 8]
    assert [e["agents"] for e in episodes] == [{"0": one, "1": two}] * 2


def test_a_run_that_was_set_back_replaces_what_it_wrote_and_adds_to_its_own(tmp_path):
    for run in (1, 2):
        files = EpisodeFiles(None, str(tmp_path), "episode_data", "jsonl")
        for iteration in (1, 2, 2):
            files.write([line(final={"run": run})], iteration=iteration, evaluation=False)
    found = [(e["iteration"], e["final"]["run"]) for e in read_episodes(tmp_path)]
    assert found == [(1, 2), (2, 2), (2, 2)]


def test_a_damaged_file_is_told_and_an_empty_folder_too(tmp_path):
    with pytest.raises(CheckpointError, match="no recorded episodes"):
        list(read_episodes(tmp_path))
    for suffix, where in (("jsonl", ":2"), ("parquet", "")):
        file = tmp_path / f"train-00000001.{suffix}"
        file.write_text("{}\n{")
        with pytest.raises(CorruptCheckpointError, match=f"{file.name}{where}"):
            list(read_episodes(file))


@given(st.lists(st.integers(0, 20)))
def test_each_serial_number_is_new_once_in_whatever_order(numbers):
    seen = Seen()
    new = [number for number in numbers if seen.is_new(number)]
    assert new == list(dict.fromkeys(numbers))
    assert len(seen._above) <= len(set(numbers))
    for number in range(21):
        seen.is_new(number)
    assert not seen._above


def test_a_recorder_goes_where_a_callbacks_class_goes():
    recorder = EpisodeRecorder(running=["speed"], media=False, max_values=5)
    assert resolve(recorder) is recorder
    made = instantiate(pickle.loads(pickle.dumps(recorder)))
    assert made._arguments == recorder._arguments
    assert made._id != recorder._id


@pytest.mark.parametrize(
    "arguments",
    [
        {"running": "speed"},
        {"final": 3},
        {"format": "csv"},
        {"folder": "../x"},
        {"media": lambda x: x},
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments):
    with pytest.raises(CompatError, match="EpisodeRecorder can't take"):
        EpisodeRecorder(**arguments)


def test_what_is_no_number_has_no_mean_and_reaches_no_result():
    data = AgentData(10)
    data.add("running", {"room": "hall", "speed": np.float32(0.5), "hot": True})
    data.add("final", {"who": "me", "n": np.int64(3)})
    assert data.record()["running"]["room"] == {"count": 1, "values": ["hall"]}
    assert data.metrics() == {
        "speed_avg": 0.5,
        "speed_sum": 0.5,
        "hot_avg": 1.0,
        "hot_sum": 1.0,
        "n": 3.0,
    }
    assert not math.isnan(data.running["hot"].mean)
