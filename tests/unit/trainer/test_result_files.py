"""What a Trainer outside Tune writes beside its checkpoints."""

import csv
import json
from collections import Counter
from types import SimpleNamespace

import pytest

from rllib_compat.adapters import EpisodeRecord
from rllib_compat.runtime import RECORDS, LegacyResults
from rllib_compat.tune import UnifiedLogger
from rllib_compat.tune.loggers import JsonLogger, Logger

CONFIG = SimpleNamespace(
    metrics_num_episodes_for_smoothing=3, input_="sampler", keep_per_episode_custom_metrics=False
)


def result(iteration):
    today = {
        "training_iteration": iteration,
        "env_runners": {
            RECORDS: [EpisodeRecord(5, 2.0, {("agent0", "default_policy"): 2.0})],
            "episode_return_mean": 2.0,
            "num_env_steps_sampled": 10,
        },
        "num_env_steps_sampled_lifetime": 10 * iteration,
        "learners": {"default_policy": {"mean_kl_loss": 0.5, "total_loss": 1.0}},
        "timers": {"learner_update_timer": 0.5},
    }
    LegacyResults().complete(today, CONFIG)
    return today


@pytest.fixture
def written(tmp_path):
    logger = UnifiedLogger({"lr": 1.0}, tmp_path / "new")
    for iteration in (1, 2):
        logger.on_result(result(iteration))
    logger.flush()
    logger.close()
    logger.close()
    return tmp_path / "new"


def test_json_and_csv_have_legacy_and_todays_keys(written):
    lines = [json.loads(line) for line in (written / "result.json").read_text().splitlines()]
    assert [line["timesteps_total"] for line in lines] == [10, 20]
    assert lines[1]["info"]["learner"]["default_policy"]["learner_stats"]["kl"] == 0.5
    assert json.loads((written / "params.json").read_text()) == {"lr": 1.0}
    with (written / "progress.csv").open() as file:
        (first, _) = csv.DictReader(file)
    assert first["episode_reward_mean"] == first["env_runners/episode_return_mean"] == "2.0"


def test_tensorboard_has_each_name_once(written):
    from tensorboardX.proto.event_pb2 import Event

    (events,) = written.glob("events.out.tfevents.*")
    data, at, tags = events.read_bytes(), 0, Counter()
    while at < len(data):  # length, its checksum, the event, its checksum
        length = int.from_bytes(data[at : at + 8], "little")
        event = Event.FromString(data[at + 12 : at + 12 + length])
        tags.update(f"{event.step} {value.tag}" for value in event.summary.value)
        at += length + 16
    of_last = {tag.split()[1] for tag in tags if tag.startswith(("20 ", "2 "))}
    assert {
        "ray/tune/episode_reward_mean",
        "ray/tune/env_runners/episode_return_mean",
        "ray/tune/info/learner/default_policy/learner_stats/kl",
        "ray/tune/learners/default_policy/mean_kl_loss",
    } <= of_last
    assert set(tags.values()) == {1}
    assert not any("learner_stats/mean_kl_loss" in tag for tag in of_last)


def test_nothing_is_written_before_the_first_result(tmp_path):
    UnifiedLogger({}, tmp_path / "empty").close()
    assert not (tmp_path / "empty").exists()


def test_loggers_of_old_rays_may_be_those_of_a_trainer(tmp_path):
    heard = []

    class Mine(Logger):
        def _init(self):
            heard.append((self.config["lr"], self.logdir))

        def on_result(self, result):
            heard.append(result["training_iteration"])

        def flush(self):
            heard.append("flushed")

        def close(self):
            heard.append("closed")

    logger = UnifiedLogger({"lr": 1.0}, str(tmp_path), loggers=[JsonLogger, Mine])
    logger.on_result({"training_iteration": 1})
    logger.flush()
    logger.close()
    assert heard == [(1.0, str(tmp_path)), 1, "flushed", "closed"]
    assert (tmp_path / "result.json").read_text().count("\n") == 1
