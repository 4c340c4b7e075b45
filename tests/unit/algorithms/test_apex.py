"""APEX and APEX_DDPG: configs of every era, shares of exploration, shards, who owes what."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray")

import torch
from hypothesis import given
from hypothesis import strategies as st
from ray.rllib.utils.schedules.scheduler import Scheduler

from rllib_compat.algorithms import (
    MultiAgentReplayBuffer,
    TransitionReplayBuffer,
    distributed_replay,
)
from rllib_compat.algorithms.apex import APEX, APEXConfig
from rllib_compat.algorithms.apex_ddpg import APEX_DDPGConfig, scale_of_worker
from rllib_compat.algorithms.distributed_replay import (
    DistributedReplayAlgorithm,
    ReplayShard,
    ShardedReplayBuffer,
)
from rllib_compat.algorithms.replay import WEIGHTS
from rllib_compat.algorithms.sampling import epsilon_of_worker
from rllib_compat.algorithms.transitions import N_STEP
from rllib_compat.config import translate
from rllib_compat.errors import CompatError, ConfigError
from rllib_compat.networks.modules.exploration import Noise
from rllib_compat.neutral import Severity, Verdict
from rllib_compat.ray_versions import env_runners, releases
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.test_losses import RECORDS
from tests.unit.algorithms.test_replay import chunk, seen

pytestmark = OTHERS_WARNINGS

#: Workers → what `PerWorkerEpsilonGreedy` and `PerWorkerOrnsteinUhlenbeckNoise` of Ray 1.13.0 had.
OF_RAY = {
    1: ([0.4], [0.00065536]),
    2: ([0.4, 0.00065536], [0.00065536, 1.073741824e-06]),
    5: (
        [0.4, 0.08047573949970788, 0.016190861620062107, 0.0032574289050298407, 0.00065536],
        [
            0.08047573949970788,
            0.016190861620062107,
            0.0032574289050298407,
            0.00065536,
            0.00013185145159632145,
        ],
    ),
}


@pytest.mark.parametrize("workers", OF_RAY)
def test_each_worker_explores_as_much_as_it_did(workers):
    epsilons, scales = OF_RAY[workers]
    numbers = range(1, workers + 1)
    assert [epsilon_of_worker(i, workers) for i in numbers] == pytest.approx(epsilons)
    assert [scale_of_worker(i, workers) for i in numbers] == pytest.approx(scales)
    if workers == 2:
        recorded = json.loads((RECORDS / "sequences.json").read_text())
        assert recorded["R2D2 of two workers"]["epsilons"] == pytest.approx(epsilons)
    told = [i for i in numbers if distributed_replay.tells_of_episodes(i, workers)]
    assert told == list(numbers)[-workers // 3 :]  # as Ray 1.13.0 wrote it


def test_a_workers_module_explores_by_its_own_share_however_much_was_sampled():
    module = SimpleNamespace(epsilon_schedule=Scheduler(1.0))
    config = APEXConfig().env_runners(num_env_runners=5)
    config.explore_as_worker(module, 2)
    for step in (0, 10**6):
        module.epsilon_schedule.update(step)
        assert module.epsilon_schedule.get_current_value() == pytest.approx(OF_RAY[5][0][1])
    space = SimpleNamespace(low=np.float32([-9]), high=np.float32([9]))
    noise = Noise({"type": "GaussianNoise", "random_timesteps": 0, "stddev": 1.0}, space)
    noise.fixed_scale = 1e-6
    assert abs(noise(torch.zeros(100, 1), 0)).max() < 1e-4


#: What configs of each era say, and the settings that it becomes.
ERAS = {
    "APEX": (
        {
            "optimizer": {"num_replay_buffer_shards": 2, "max_weight_sync_delay": 7, "debug": True},
            "per_worker_exploration": False,
            "worker_side_prioritization": False,
            "prioritized_replay_eps": 0.5,
        },
        {
            "num_replay_buffer_shards": 2,
            "max_weight_sync_delay": 7,
            "debug_replay": True,
            "per_worker_exploration": False,
            "worker_side_prioritization": False,
            "prioritized_replay_eps": 0.5,
        },
    ),
    "ApexTrainer": (
        {
            "exploration_config": {"type": "EpsilonGreedy", "final_epsilon": 0.1},
            "replay_buffer_shards_colocated_with_driver": False,
            "buffer_size": 300,
            "training_intensity": None,
        },
        {
            "per_worker_exploration": False,
            "epsilon": [[0, 1.0], [10000, 0.1]],
            "replay_buffer_shards_colocated_with_driver": False,
            "training_intensity": None,
        },
    ),
    "ApexDQN": (
        {
            "exploration_config": {"type": "PerWorkerEpsilonGreedy"},
            "max_requests_in_flight_per_replay_worker": float("inf"),
            "replay_buffer_config": {
                "capacity": 400,
                "worker_side_prioritization": True,
                "no_local_replay_buffer": True,
                "prioritized_replay_eps": 0.25,
                "replay_buffer_shards_colocated_with_driver": True,
            },
        },
        {
            "per_worker_exploration": True,
            "worker_side_prioritization": True,
            "prioritized_replay_eps": 0.25,
            "max_requests_in_flight_per_replay_worker": None,
        },
    ),
    "ApexDDPGTrainer": (
        {"exploration_config": {"type": "PerWorkerGaussianNoise", "stddev": 0.3}},
        {
            "per_worker_exploration": True,
            "exploration_noise": {"type": "GaussianNoise", "stddev": 0.3},
        },
    ),
    "APEX_DDPG": (
        {"exploration_config": {"type": "OrnsteinUhlenbeckNoise"}, "num_workers": 0},
        {"per_worker_exploration": False, "num_env_runners": 0},
    ),
}


@pytest.mark.parametrize("name", ERAS)
def test_settings_of_distributed_replay_are_kept_from_every_era(name):
    old, new = ERAS[name]
    translation = translate({"env": "CartPole-v1", **old}, algorithm=name, api_stack="auto")
    assert not [f for f in translation.report if f.severity is not Severity.INFO]
    config = translation.algorithm_config
    assert {setting: getattr(config, setting) for setting in new} == new
    size = old.get("buffer_size", old.get("replay_buffer_config", {}).get("capacity", 2_000_000))
    assert config.replay_buffer_config["capacity"] == size
    assert config.algo_class.__name__ == ("APEX_DDPG" if "DDPG" in name.upper() else "APEX")
    assert f"{config.algo_class.__name__}Config()" in translation.to_python()


def test_what_only_the_old_api_stack_can_run_of_apex_trains_as_dqn_with_a_warning():
    old = {"env": "CartPole-v1", "model": {"custom_model": "mine"}, **ERAS["APEX"][0]}
    translation = translate(old, algorithm="APEX", api_stack="auto")
    assert (translation.algorithm, translation.api_stack) == ("DQN", "old")
    (row,) = [f for f in translation.report if f.rule == "algorithm.successor"]
    assert row.severity is Severity.WARNING
    assert "DQN takes its place" in row.message
    buffer = translation.algorithm_config.replay_buffer_config
    assert buffer["prioritized_replay_eps"] == 0.5


@pytest.mark.parametrize(("release", "prioritized"), [("1.13.0", True), ("2.0.1", False)])
def test_shards_were_prioritized_before_a_config_could_name_their_class(release, prioritized):
    old = {"env": "CartPole-v1", "replay_buffer_config": {"type": "MultiAgentReplayBuffer"}}
    translation = translate(old, algorithm="APEX", legacy_ray=release)
    kind = translation.algorithm_config.replay_buffer_config["type"]
    assert ("Prioritized" in kind) == (prioritized or not releases.at_least("2.47"))


def test_the_report_says_that_workers_of_apex_ddpg_set_no_priorities():
    translation = translate({"worker_side_prioritization": True}, algorithm="APEX_DDPG")
    (row,) = [f for f in translation.report if f.path == "$.worker_side_prioritization"]
    assert row.verdict is Verdict.DROPPED
    assert "no critics" in row.message


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_replay_buffer_shards": 0},
        {"training_intensity": 0},
        {"max_requests_in_flight_per_replay_worker": 0},
    ],
)
@pytest.mark.parametrize("kind", [APEXConfig, APEX_DDPGConfig])
def test_settings_that_nothing_can_run_are_told(kind, wrong):
    config = kind().environment("CartPole-v1").training(**wrong)
    with pytest.raises(ConfigError, match=r"at least 1|above 0") as raised:
        config.validate()
    assert raised.value.where == next(iter(wrong))


def test_without_env_runners_it_replays_in_its_own_process():
    algorithm = APEX.__new__(APEX)
    algorithm.config = APEXConfig().training(replay_buffer_config={"capacity": 9})
    algorithm.config.env_runners(num_env_runners=0)
    assert isinstance(algorithm.make_replay_buffer(), MultiAgentReplayBuffer)
    algorithm.config.env_runners(num_env_runners=2)
    made = algorithm.make_replay_buffer()
    assert isinstance(made, ShardedReplayBuffer)
    assert (made.count, made.capacity) == (4, 9)


def rows(*episodes):
    """Transitions as columns; what is observed says which."""
    replay = TransitionReplayBuffer(1000, n_step=1)
    replay.add(episodes)
    return replay.get_state()["ring"]["rows"]


def test_a_shard_draws_once_it_was_given_enough_and_gives_back_what_it_drew():
    shard = ReplayShard(capacity=8, least=6, alpha=1.0, offset=0.5)
    shard.add(rows(chunk("0", 0, [1.0] * 4, end="terminated")), np.float32([0.0, 0.5, 0.5, 1.5]))
    assert shard.draw(2, 0.4) is None
    shard.add(rows(chunk("1", 0, [1.0] * 2, end="terminated")), None)
    batch, drawn = shard.draw(4000, 1.0)
    assert seen(batch).keys() == {(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)}
    counts = np.bincount(drawn.places, minlength=6) / 4000
    # With the offset 0.5, 1, 1 and 2; new ones have the greatest.
    assert counts == pytest.approx(np.array([0.5, 1, 1, 2, 2, 2]) / 8.5, abs=0.03)
    np.testing.assert_allclose(batch[WEIGHTS].max(), 1.0)
    told = shard.stats(debug=True)
    assert (told["num_entries"], told["added_count"], told["capacity"]) == (6, 6, 8)
    assert told["est_size_bytes"] > 6 * 8


def test_errors_do_not_reach_transitions_that_took_the_place_of_those_that_were_drawn():
    replay = TransitionReplayBuffer(4, alpha=1.0)
    replay.add([chunk("0", 0, [0.0] * 4)])
    _, drawn = replay.sample(64)
    replay.add([chunk("1", 0, [0.0] * 2)])  # in the first two places
    replay.prioritize(np.full(64, 7.0), drawn)
    powers = replay.get_state()["priorities"]["powers"]
    np.testing.assert_array_equal(powers[:2], [1.0, 1.0])
    np.testing.assert_array_equal(powers[2:], [7.0, 7.0])


def test_an_error_of_storing_is_told_at_the_next_draw():
    shard = ReplayShard(capacity=8, least=1)
    shard.add(rows(chunk("0", 0, [1.0] * 4)), None)
    shard.add({"obs": np.zeros((2, 2))}, None)  # columns are missing
    with pytest.raises(ValueError, match="structure"):
        shard.draw(2, 0.4)


class Given:
    """Stands for an actor: what it was given."""

    def __init__(self):
        self.rows, self.errors = [], []
        self.add = SimpleNamespace(remote=self._add)

    def _add(self, columns, errors):
        self.rows.append(columns)
        self.errors.append(errors)


class Table(torch.nn.Module):
    """Q-values that can be computed by hand: action a is worth the observed step and a."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.epsilon_schedule = None

    def compute_q_values(self, batch):
        return {"qf_preds": batch["obs"][:, 1:] + torch.arange(3.0)}


def test_an_env_runner_stores_transitions_over_fragments_with_their_errors():
    fragments = [
        [chunk("0", 0, [1.0, 2.0])],
        [chunk("0", 2, [4.0], end="terminated"), chunk("1", 0, [0.0, 1.0], end="truncated")],
    ]
    config = APEXConfig().env_runners(num_env_runners=3).training(n_step=2, gamma=0.5)
    runner = SimpleNamespace(
        config=config,
        worker_index=1,
        module=Table(),
        sample=lambda: fragments.pop(0),
        get_metrics=lambda: {"num_episodes": 1, "episode_return_mean": 0.3},
    )
    shard = Given()
    told = [distributed_replay.sample_into(runner, [shard]) for _ in range(2)]
    assert [one.steps for one in told] == [2, 3]
    assert [one.metrics for one in told] == [{"num_episodes": 1}] * 2  # it explores most
    first, second = shard.rows
    assert seen(first) == {(0, 0): (2.0, 2, False, 2)}
    assert seen(second) == {
        (0, 1): (4.0, 3, True, 2),
        (0, 2): (4.0, 3, True, 1),
        (1, 0): (0.5, 2, False, 2),
        (1, 1): (1.0, 2, False, 1),
    }
    (error,) = shard.errors[0]
    assert error == pytest.approx(0 + 0 - (2.0 + 0.25 * (2 + 2)))  # action 0 in step 0
    assert shard.errors[1][0] == pytest.approx(1 + 1 - 4.0)  # nothing follows
    config.training(worker_side_prioritization=False)
    fragments.append([chunk("2", 0, [1.0], end="terminated")])
    runner.worker_index = 3
    assert "episode_return_mean" in distributed_replay.sample_into(runner, [shard]).metrics
    assert shard.errors[-1] is None
    assert N_STEP in shard.rows[-1]


class Asked:
    """Stands for `ShardedReplayBuffer`: counts what it is asked for, and answers at once."""

    count, actors = 2, ()

    def __init__(self):
        self.pending, self.batches = [], 0

    def ask(self, size, beta):
        self.pending.append(size)
        self.batches += 1


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=30),
    st.sampled_from([0.25, 1, 4]),
    st.sampled_from([None, 1]),
)
def test_it_learns_from_as_many_steps_as_the_intensity_says(fragments, intensity, most):
    config = APEXConfig().training(
        train_batch_size=64,
        training_intensity=intensity,
        max_requests_in_flight_per_replay_worker=most,
    )
    algorithm = DistributedReplayAlgorithm.__new__(DistributedReplayAlgorithm)
    vars(algorithm).update(config=config, replay=Asked(), _owed=0.0, env_runner_group=None)
    sampling = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(env_runners, "ask_env_runners", lambda *_, **__: sampling.append(True))
        for steps in fragments:
            algorithm._owe(steps)
            algorithm._ask()
            assert len(algorithm.replay.pending) <= (most or np.inf) * 2
            while algorithm._owed >= 1:  # env runners wait
                algorithm.replay.pending.clear()
                algorithm._ask()
            algorithm.replay.pending.clear()
    assert algorithm.replay.batches == int(sum(fragments) * intensity / 64)
    assert len(sampling) == len(fragments)


def test_without_an_intensity_batches_are_always_on_their_way_and_nobody_waits(monkeypatch):
    config = APEXConfig().training(training_intensity=None)
    algorithm = DistributedReplayAlgorithm.__new__(DistributedReplayAlgorithm)
    vars(algorithm).update(config=config, replay=Asked(), _owed=0.0, env_runner_group=None)
    sampling = []
    monkeypatch.setattr(env_runners, "ask_env_runners", lambda *_, **__: sampling.append(True))
    for _ in range(3):
        algorithm._owe(50)
        algorithm._ask()
        assert len(algorithm.replay.pending) == 2 * distributed_replay._AHEAD
    assert len(sampling) == 3


def test_env_runners_that_are_all_dead_are_told(monkeypatch):
    algorithm = DistributedReplayAlgorithm.__new__(DistributedReplayAlgorithm)
    config = APEXConfig().fault_tolerance(restart_failed_env_runners=False)
    vars(algorithm).update(config=config, replay=ShardedReplayBuffer(2, 100), env_runner_group=None)
    monkeypatch.setattr(env_runners, "healthy_env_runners", lambda _: 0)
    with pytest.raises(CompatError, match="All 32 env runners have failed"):
        algorithm.training_step()


def test_shards_of_another_number_are_not_restored():
    stored = ShardedReplayBuffer(2, 100).get_state()
    with pytest.raises(ConfigError, match="2 shards of 100 steps"):
        ShardedReplayBuffer(4, 100).set_state(stored)
    again = ShardedReplayBuffer(2, 100)
    again.set_state(stored)
    assert again.get_state() == stored
    assert ShardedReplayBuffer(2, 100).stats() == {}
