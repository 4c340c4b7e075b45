"""Recordings: what RLlib wrote is read, what is written RLlib reads, and nothing is executed."""

import base64
import json
import pickle
from types import SimpleNamespace

import gymnasium
import lz4.frame
import numpy as np
import pytest
from gymnasium.spaces import Box
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.offline.io_context import IOContext
from ray.rllib.offline.json_reader import from_json_data
from ray.rllib.offline.json_writer import JsonWriter
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch, concat_samples
from ray.rllib.policy.view_requirement import ViewRequirement

from rllib_compat.adapters import Readers, Recording, as_parquet
from rllib_compat.errors import CompatError, ConfigError, CorruptCheckpointError
from rllib_compat.ray_versions import episodes as ray_episodes
from rllib_compat.runtime.batches import Samples
from rllib_compat.runtime.offline.episodes import episodes_of
from rllib_compat.runtime.offline.files import Writer, find_files, pack, read_lines, unpack
from rllib_compat.runtime.offline.inputs import match_sampled_columns


def played(steps, *, start=0, end="", id_="a"):
    """A chunk of an episode whose observations count the steps."""
    episode = SingleAgentEpisode(
        id_=id_,
        observations=[np.full(2, t, np.float32) for t in range(start, start + steps + 1)],
        actions=list(np.arange(steps) % 2),
        rewards=[float(t) for t in range(start, start + steps)],
        infos=[{"t": t} for t in range(start, start + steps + 1)],
        extra_model_outputs={"action_logp": [np.float32(-0.5)] * steps},
        terminated=end == "terminated",
        truncated=end == "truncated",
        t_started=start,
        len_lookback_buffer=0,
    )
    return ray_episodes.to_numpy(episode)


def record(folder, *samples, **options):
    writer = Writer(Recording(str(folder), **options), 3)
    for sample in samples:
        writer.write(Samples(sample).batch)
    return sorted(folder.glob("*.json"))


def test_rays_own_reader_reads_what_is_written(tmp_path):
    (file,) = record(tmp_path, [played(3, end="terminated"), played(2, id_="b")])
    assert "worker-3_0" in file.name
    line = json.loads(file.read_text())
    assert line["type"] == "SampleBatch"
    assert isinstance(line["obs"], str)
    assert line["dones"] == [False, False, True, False, False]
    assert line["infos"] == [{"t": 1}, {"t": 2}, {"t": 3}, {"t": 1}, {"t": 2}]
    batch = from_json_data(line, None)
    assert batch["obs"][:, 0].tolist() == [0, 1, 2, 0, 1]
    assert batch["new_obs"][:, 0].tolist() == [1, 2, 3, 1, 2]


@pytest.mark.parametrize("compress", [(), ("obs", "new_obs")])
def test_what_rays_own_writer_wrote_is_read(tmp_path, compress):
    columns = {
        "obs": np.arange(8, dtype=np.float32).reshape(4, 2),
        "new_obs": np.arange(2, 10, dtype=np.float32).reshape(4, 2),
        "actions": np.array([0, 1, 1, 0]),
        "rewards": np.ones(4, np.float32),
        "terminateds": np.array([False, True, False, False]),
        "eps_id": np.array([7, 7, 8, 8]),
        "t": np.array([0, 1, 0, 1]),
    }
    JsonWriter(str(tmp_path), IOContext(), compress_columns=compress).write(SampleBatch(columns))
    first, second = episodes_of(find_files(str(tmp_path)))
    assert first.get_observations()[:, 0].tolist() == [0, 2, 4]
    assert (first.is_terminated, first.is_truncated) == (True, False)
    assert second.get_observations()[:, 1].tolist() == [5, 7, 9]
    assert (second.is_terminated, second.is_truncated) == (False, True), "the recording ends here"


def test_episodes_that_fragments_have_cut_are_whole_again(tmp_path):
    samples = [
        [played(3), played(2, id_="b")],
        [played(4, start=3, end="terminated"), played(1, start=2, end="truncated", id_="b")],
        [played(2, id_="c")],
        [played(2, start=5, id_="c")],
    ]
    files = record(tmp_path, *samples, max_file_size=1 << 30)
    episodes = {tuple(e.get_observations()[:, 0]): e for e in episodes_of(files)}
    assert set(episodes) == {tuple(range(8)), (0, 1, 2, 3), (0, 1, 2), (5, 6, 7)}
    whole, short = episodes[tuple(range(8))], episodes[0, 1, 2, 3]
    assert whole.is_terminated
    assert short.is_truncated
    assert whole.get_rewards().tolist() == list(range(7))
    assert whole.get_infos()[1:] == [{"t": t} for t in range(1, 8)]
    assert whole.get_extra_model_outputs("action_logp").tolist() == [-0.5] * 7
    assert len({e.id_ for e in episodes.values()}) == 4
    assert all(e.is_done for e in episodes.values())


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.sampled_from(["terminated", "truncated", ""])),
        min_size=1,
        max_size=6,
    )
)
def test_no_step_is_lost_or_doubled(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("out")
    samples = [[played(n, end=end, id_=str(i))] for i, (n, end) in enumerate(parts)]
    episodes = list(episodes_of(record(folder, *samples)))
    assert sorted(map(len, episodes)) == sorted(n for n, _ in parts)
    ends = sorted((len(e), e.is_terminated) for e in episodes)
    assert ends == sorted((n, end == "terminated") for n, end in parts)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, bool])
def test_what_is_no_image_becomes_floats_that_layers_take(tmp_path, dtype):
    steps = {"actions": [0, 1], "rewards": [0.0, 1.0], "dones": [False, True]}
    vectors = np.array([[0, 1], [1, 0]], dtype)
    for number, seen in enumerate((vectors, np.zeros((2, 4, 4, 1), np.uint8))):
        folder = tmp_path / str(number)
        folder.mkdir()
        line = {"type": "SampleBatch", "obs": pack(seen), "new_obs": pack(seen), **steps}
        (folder / "steps.json").write_text(json.dumps(line))
        (episode,) = episodes_of(find_files(str(folder)))
        kept = np.uint8 if number else np.float32
        assert episode.get_observations().dtype == kept


def test_a_new_file_begins_when_one_is_full(tmp_path):
    files = record(tmp_path, [played(2)], [played(2)], [played(2)], max_file_size=1)
    assert len(files) == 3
    assert sum(len(e) for e in episodes_of(files)) == 6


class Bomb:
    def __reduce__(self):
        return pickle.loads, (b"exploded",)


def test_a_line_of_a_data_set_is_read(tmp_path):
    row = {"type": "SampleBatch", "obs": [[0.0], [1.0]], "rewards": [1.0, 2.0]}
    (tmp_path / "a.json").write_text(f"{json.dumps({'value': row})}\n{json.dumps(row)}\n")
    (_, first), (_, second) = read_lines(tmp_path / "a.json")
    assert first == second == row


def test_nothing_in_a_packed_column_is_executed(tmp_path):
    text = base64.b64encode(lz4.frame.compress(pickle.dumps(Bomb()))).decode()
    columns = {"type": "SampleBatch", "obs": text, "actions": [0], "rewards": [1.0]}
    (tmp_path / "evil.json").write_text(json.dumps(columns))
    ((_, read),) = read_lines(tmp_path / "evil.json")
    assert "loads" in repr(read["obs"])


@given(arrays.arrays(st.sampled_from([np.float32, np.float64, np.uint8, np.int64]), (2, 3)))
def test_packing_is_undone_bit_by_bit(column):
    back = unpack(pack(column), "here")
    assert back.dtype == column.dtype
    assert back.tobytes() == column.tobytes()


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"type": "Other"}',
        '{"type": "SampleBatch", "obs": "§"}',
        '{"type": "SampleBatch", "obs": "BCJN"}',
        '{"type": "MultiAgentBatch"}',
    ],
)
def test_a_damaged_line_is_told_with_its_place(tmp_path, line):
    (tmp_path / "bad.json").write_text("\n" + line)
    with pytest.raises(CorruptCheckpointError, match=r"bad\.json:2"):
        list(read_lines(tmp_path / "bad.json"))


def test_a_column_can_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("rllib_compat.runtime.offline.files.LARGEST_COLUMN", 1000)
    with pytest.raises(CorruptCheckpointError, match="larger than 1000 bytes"):
        unpack(pack(np.zeros(10_000)), "here")


def test_one_policy_of_many_agents_is_read_and_several_are_not(tmp_path):
    batch = Samples([played(2)]).batch
    for policies in (["p"], ["p", "q"]):
        several = MultiAgentBatch(dict.fromkeys(policies, batch), 2)
        Writer(Recording(str(tmp_path / "".join(policies))), 0).write(several)
    assert len(list(episodes_of(find_files(str(tmp_path / "p"))))) == 1
    with pytest.raises(ConfigError, match="p, q"):
        list(episodes_of(find_files(str(tmp_path / "pq"))))


def test_an_info_that_json_has_no_form_for_is_an_error(tmp_path):
    episode = played(1)
    episode.infos[1] = {"object": object()}
    with pytest.raises(CompatError, match="type object"):
        record(tmp_path, [episode])


def test_files_are_found_by_directory_pattern_and_list(tmp_path):
    (file,) = record(tmp_path, [played(1)])
    assert find_files(str(tmp_path)) == find_files(str(tmp_path / "out*")) == [file]
    assert find_files([str(file)]) == [file]
    with pytest.raises(ConfigError, match="no recording"):
        find_files(str(tmp_path / "none"))


def test_conversions_are_shared_until_the_files_change(tmp_path):
    record(tmp_path, [played(1)])
    assert as_parquet(str(tmp_path / "none")) == str(tmp_path / "none")
    folder = as_parquet(str(tmp_path))
    assert as_parquet(str(tmp_path)) == folder
    record(tmp_path / "more", [played(1)])
    assert as_parquet(str(tmp_path / "more")) != folder


def test_the_old_stacks_readers_execute_nothing_either(tmp_path):
    record(tmp_path, [played(2, end="terminated")])
    mixed = Readers({"sampler": 0.5, str(tmp_path): 0.5}).build()
    sampler, read = mixed
    assert sampler == "sampler"
    batch = read(IOContext()).next()
    assert batch["obs"][:, 0].tolist() == [0, 1]
    assert batch["terminateds"].tolist() == [False, True]


def of_policy(name="default_policy", **has):
    """The context of a reader whose worker has a policy that fits what is recorded here."""
    fits = {
        "config": {},
        "action_space_struct": None,
        "observation_space": gymnasium.spaces.Box(-1, 1, (2,)),
        "action_space": gymnasium.spaces.Discrete(9),
    }
    policy = SimpleNamespace(**fits | has)
    return IOContext(worker=SimpleNamespace(policy_map={name: policy}))


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({"normalize_actions": True}, True),
        ({"normalize_actions": True, "actions_in_input_normalized": True}, False),
        ({"normalize_actions": False}, False),
    ],
)
def test_recorded_actions_of_several_parts_are_not_normalized(said, refused, tmp_path):
    """An old reader failed at its first batch; this one says so when the trainer is made."""
    record(tmp_path, [played(2, end="terminated")])
    read = Readers(str(tmp_path)).build()
    context = of_policy(config=said, action_space_struct=(gymnasium.spaces.Box(-1, 1, (1,)),))
    if refused:
        with pytest.raises(ConfigError, match="cannot normalize"):
            read(context)
    else:
        read(context)


def test_an_old_reader_says_at_once_that_a_recording_is_of_another_policy(tmp_path):
    record(tmp_path, [played(2, end="terminated")])
    read = Readers(str(tmp_path)).build()
    read(of_policy())
    with pytest.raises(ConfigError, match="2 numbers, one of the policy 3"):
        read(of_policy(observation_space=gymnasium.spaces.Box(-1, 1, (3,))))
    with pytest.raises(ConfigError, match="of a policy 'default_policy'"):
        read(of_policy("other"))


# Those of DQN's policy on the old API stack of Ray 2.60.
COLUMNS = (
    *("obs", "new_obs", "actions", "rewards", "terminateds", "truncateds", "infos"),
    *("t", "eps_id", "unroll_id", "agent_index", "weights"),
)


def batch_of(columns, number):
    made = {name: np.zeros(number) for name in columns}
    made["infos"] = np.array([{} for _ in range(number)], dtype=object)
    return SampleBatch(made)


def test_batches_of_other_columns_can_be_joined_with_a_policys_own():
    steps = ("obs", "new_obs", "actions", "rewards", "terminateds", "truncateds")
    recorded = batch_of((*steps, "action_logp", "weights_seq_no", "vf_preds"), 3)
    del recorded["infos"]
    match_sampled_columns(recorded, {name: ViewRequirement() for name in COLUMNS})
    joined = concat_samples([batch_of(COLUMNS, 2), recorded])
    assert set(joined) == set(COLUMNS)
    assert len(joined["rewards"]) == 5
    assert list(joined["weights"][2:]) == [1.0, 1.0, 1.0]
    assert list(joined["infos"]) == [{}] * 5


def test_recorded_batches_can_be_joined_before_a_policys_loss_was_computed_once():
    """Until then its samples have all that it could need."""
    columns = {name: ViewRequirement() for name in (*COLUMNS, "prev_actions", "prev_rewards")}
    columns["q_values"] = ViewRequirement(space=Box(-1.0, 1.0, (2,), np.float32))
    columns["state_in_0"] = ViewRequirement(used_for_training=False)
    sampled = batch_of([name for name in columns if name != "state_in_0"], 2)
    sampled["q_values"] = np.ones((2, 2), np.float32)
    recorded = batch_of(COLUMNS, 4)
    recorded["actions"] = np.array([1, 2, 3, 4])
    recorded["t"] = np.array([7, 8, 0, 1])
    match_sampled_columns(recorded, columns)
    joined = concat_samples([sampled, recorded])
    assert set(joined) == set(sampled)
    assert list(joined["prev_actions"][2:]) == [0, 1, 0, 3]
    assert joined["q_values"].shape == (6, 2)
