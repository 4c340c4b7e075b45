"""The replay buffer of columns: what it draws has happened, as often as it should."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray")

from hypothesis import given, settings
from hypothesis import strategies as st
from ray.rllib.algorithms import dqn, sac
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils import replay_buffers

from rllib_compat.algorithms import (
    MultiAgentReplayBuffer,
    TransitionReplayBuffer,
    make_replay_buffer,
    replay_columns,
)
from rllib_compat.algorithms.dqn import DQNConfig
from rllib_compat.algorithms.off_policy import reason_to_replay_episodes
from rllib_compat.algorithms.replay import WEIGHTS, Priorities, RingStorage, SegmentTree
from rllib_compat.algorithms.transitions import N_STEP, NStepTransitions
from rllib_compat.errors import ConfigError
from rllib_compat.ray_versions import configs, training_steps
from rllib_compat.ray_versions import episodes as ray_episodes
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

GAMMA = 0.5


def chunk(name, start, rewards, *, end=None):
    """A part of an episode in which the observation says which step of which episode it is."""
    steps = np.arange(start, start + len(rewards) + 1)
    episode = SingleAgentEpisode(
        id_=name,
        observations=[np.float32([int(name), step]) for step in steps],
        actions=list(steps[:-1] % 3),
        rewards=list(rewards),
        terminated=end == "terminated",
        truncated=end == "truncated",
        t_started=start,
        len_lookback_buffer=0,
    )
    return ray_episodes.to_numpy(episode)


#: Episodes: the rewards of their chunks, and how they end (None: they go on).
EPISODES = st.lists(
    st.tuples(
        st.lists(st.lists(st.integers(-4, 4), min_size=1, max_size=5), min_size=1, max_size=4),
        st.sampled_from(["terminated", "truncated", None]),
    ),
    min_size=1,
    max_size=4,
)


def chunks_of(episodes):
    """All chunks, the first ones of all episodes first, as several environments give them."""
    found = []
    for number, (parts, end) in enumerate(episodes):
        start = 0
        for index, part in enumerate(parts):
            ends = end if index == len(parts) - 1 else None
            found.append((index, chunk(str(number), start, part, end=ends)))
            start += len(part)
    return [part for _, part in sorted(found, key=lambda pair: pair[0])]


def wanted(episodes, n_step):
    """What should be drawn, step by step: (episode, step) → reward, next step, ended, ahead."""
    found = {}
    for number, (parts, end) in enumerate(episodes):
        rewards = [reward for part in parts for reward in part]
        for step in range(len(rewards)):
            until = min(step + n_step, len(rewards))
            if until - step < n_step and end is None:
                continue  # it waits for the rest of the episode
            total = sum(GAMMA**i * reward for i, reward in enumerate(rewards[step:until]))
            ended = end == "terminated" and until == len(rewards)
            found[number, step] = (total, until, ended, until - step)
    return found


def seen(batch):
    """The same of a batch."""
    rows = zip(*(batch[name] for name in COLUMNS), strict=True)
    found = {}
    for obs, action, reward, following, ended, ahead in rows:
        assert action == obs[1] % 3
        assert following[0] == obs[0]
        found[int(obs[0]), int(obs[1])] = (reward, following[1], ended, ahead)
    return found


COLUMNS = (
    Columns.OBS,
    Columns.ACTIONS,
    Columns.REWARDS,
    Columns.NEXT_OBS,
    Columns.TERMINATEDS,
    N_STEP,
)


@settings(max_examples=60, deadline=None)
@given(EPISODES, st.integers(1, 4))
def test_what_is_kept_is_every_step_with_its_rewards_summed_ahead(episodes, n_step):
    replay = TransitionReplayBuffer(1000, n_step=n_step, gamma=GAMMA)
    replay.add(chunks_of(episodes))
    should = wanted(episodes, n_step)
    assert len(replay) == len(should)
    if should:
        kept = replay.get_state()["ring"]["rows"]
        assert seen(kept) == should
        assert seen(replay.sample(50)[0]).items() <= should.items()


def test_a_chunk_that_got_lost_ends_no_target_of_the_one_before_it():
    chunks = NStepTransitions(3, GAMMA, patience=100)
    assert len(chunks.transitions(chunk("0", 0, [1, 1, 1]))[Columns.REWARDS]) == 1
    made = chunks.transitions(chunk("0", 5, [2, 2, 2], end="truncated"))
    assert made[Columns.OBS][:, 1].tolist() == [5, 6, 7]
    assert len(chunks) == 0


def test_episodes_that_never_go_on_are_forgotten():
    chunks = NStepTransitions(3, GAMMA, patience=10)
    for number in range(100):
        chunks.transitions(chunk(str(number), 0, [1]))
    assert len(chunks) <= 11


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.lists(st.integers(1, 50), min_size=1, max_size=12))
def test_a_ring_holds_the_last_rows_and_no_more_than_its_capacity(capacity, counts):
    ring, told = RingStorage(capacity), 0
    for count in counts:
        rows = np.arange(told, told + count)
        places = ring.add({"a": rows, "b": (rows[:, None] * [1, 2],)})
        kept = rows[-capacity:]
        assert (ring.at(places)["a"] == kept).all()
        told += count
    assert len(ring) == min(told, capacity)
    held = ring.at(np.arange(len(ring)))
    assert sorted(held["a"]) == list(range(max(0, told - capacity), told))
    assert (held["b"][0][:, 1] == 2 * held["a"]).all()
    copy = RingStorage(capacity)
    copy.set_state(ring.get_state())
    for both in (ring, copy):
        both.add({"a": np.array([told]), "b": (np.zeros((1, 2), int),)})
    assert (ring.at(np.arange(len(ring)))["a"] == copy.at(np.arange(len(copy)))["a"]).all()


def test_a_ring_takes_memory_for_what_it_holds():
    ring = RingStorage(10**12)
    ring.add({"obs": np.zeros((5, 100), np.uint8)})
    assert len(ring) == 5


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), st.data())
def test_a_mark_is_found_where_the_numbers_laid_end_to_end_have_it(numbers, data):
    tree = SegmentTree(len(numbers), np.add, 0.0)
    order = data.draw(st.permutations(range(len(numbers))))
    for place in order:
        tree.set(np.array([place]), float(numbers[place]))
    total = sum(numbers)
    assert tree.all == total
    if total:
        marks = np.arange(0, total, 0.5)
        expected = np.repeat(np.arange(len(numbers)), 2 * np.array(numbers))
        assert tree.find(marks).tolist() == expected.tolist()
        assert numbers[tree.find(np.array([float(total)]))[0]] > 0  # rounded up to the whole


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=30), st.sampled_from([0.5, 1.0]))
def test_places_are_drawn_in_proportion_to_their_priorities(values, alpha):
    np.random.seed(0)
    priorities, places = Priorities(len(values), alpha), np.arange(len(values))
    priorities.add(places)
    priorities.update(places, np.array(values))
    powers = np.array(values) ** alpha
    draws = 20_000
    counts = np.bincount(priorities.draw(draws), minlength=len(values))
    expected = draws * powers / powers.sum()
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected) + 6).all()
    weights = priorities.weights(places, 0.4)
    assert np.allclose(weights, (powers / powers.min()) ** -0.4)
    assert weights.max() == 1


def test_new_steps_have_the_greatest_priority_that_any_had():
    replay = TransitionReplayBuffer(64, alpha=1.0)
    replay.add([chunk("0", 0, [0.0] * 8)])
    np.random.seed(1)
    _, places = replay.sample(32, beta=1.0)
    replay.prioritize(np.full(32, -5.0), places)  # errors have a sign, priorities have none
    replay.add([chunk("1", 0, [0.0] * 8)])
    drawn, _ = replay.sample(4000)
    fresh = (drawn[Columns.OBS][:, 0] == 1).mean()
    assert fresh == pytest.approx(0.5, abs=0.05)
    assert (drawn[WEIGHTS] == 1).all()  # without beta


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_a_restored_buffer_holds_and_draws_the_same(alpha):
    def made():
        return TransitionReplayBuffer(20, alpha=alpha, n_step=2, gamma=GAMMA)

    replay, restored = made(), made()
    for number in range(4):
        replay.add([chunk(str(number), 0, np.arange(9.0), end="truncated")])
        _, drawn = replay.sample(16)
        replay.prioritize(np.random.random(16), drawn)
    restored.set_state(replay.get_state())
    batches = []
    for each in (replay, restored):
        np.random.seed(3)
        _, drawn = each.sample(8)
        each.prioritize(np.arange(8.0), drawn)
        each.add([chunk("9", 0, [1.0] * 5, end="terminated")])
        batches.append(each.sample(500, beta=0.5)[0])
    for name, column in batches[0].items():
        np.testing.assert_array_equal(column, batches[1][name])
    of_policies = MultiAgentReplayBuffer({"capacity": 20, "alpha": alpha})
    of_policies.set_state(replay.get_state())  # as version 0.2 stored what one agent did
    assert len(of_policies.of("default_policy")) == len(replay)
    other = TransitionReplayBuffer(21)
    with pytest.raises(ConfigError, match="capacity of 20 steps"):
        other.set_state(replay.get_state())


def test_steps_are_drawn_as_often_as_ray_draws_them():
    """Chi-square of what both have drawn; of 36 steps, 99.9 % of samples are below 66.6."""
    episodes = [([[1, 2, 3]] * 4, end) for end in ("terminated", "truncated", "terminated")]
    theirs = replay_buffers.EpisodeReplayBuffer(capacity=1000)
    theirs.rng = np.random.default_rng(0)
    ours = TransitionReplayBuffer(1000, gamma=GAMMA)
    for part in chunks_of(episodes):
        theirs.add(part)
        ours.add([part])
    np.random.seed(0)
    count = 3600
    drawn = theirs.sample(count, n_step=1, gamma=GAMMA, sample_episodes=True)
    steps = [tuple(map(int, episode.get_observations(0))) for episode in drawn]
    mine = [tuple(map(int, obs)) for obs in ours.sample(count)[0][Columns.OBS]]
    should = wanted(episodes, 1)
    for found in (steps, mine):
        counts = np.array([found.count(step) for step in should])
        assert counts.sum() == count
        assert ((counts - count / 36) ** 2 / (count / 36)).sum() < 66.6


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("n_step", [1, 3])
def test_a_transition_is_what_rays_buffer_makes_of_it(prioritized, n_step):
    """Where a target is whole. Of shorter ones, Ray's prioritized buffers draw none, and the plain
    ones since 2.44 forget that the episode was terminated.
    """
    episodes = [([[1, 2, 3], [4, 5]], end) for end in ("terminated", "truncated")]
    kind = "PrioritizedEpisodeReplayBuffer" if prioritized else "EpisodeReplayBuffer"
    theirs = getattr(replay_buffers, kind)(capacity=1000)
    for part in chunks_of(episodes):
        theirs.add(part)
    drawn = theirs.sample(200, n_step=n_step, gamma=GAMMA, sample_episodes=True)
    should = wanted(episodes, n_step)
    found = {}
    for episode in drawn:
        obs, following = episode.get_observations()
        place = int(obs[0]), int(obs[1])
        found[place] = (episode.get_rewards(0), following[1], episode.is_terminated)
    whole = {place: told[:3] for place, told in should.items() if told[3] == n_step}
    assert {place: found.get(place) for place in whole} == whole


def learner_connector(*_):
    return []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda config: config, None),
        (lambda config: config.training(learner_connector=learner_connector), "connectors"),
        (lambda config: config.training(n_step=(1, 3)), "n_step"),
        (
            lambda config: config.training(replay_buffer_config={"type": "ReplayBuffer"}),
            "'ReplayBuffer'",
        ),
        (
            lambda config: config.training(
                replay_buffer_config={"type": "MultiAgentEpisodeReplayBuffer"}
            ),
            "'MultiAgentEpisodeReplayBuffer'",
        ),
        (lambda config: config.learners(num_learners=2), "several learners"),
    ],
)
@pytest.mark.parametrize("algorithm", [dqn.DQNConfig, sac.SACConfig])
def test_what_columns_cannot_do_is_left_to_rays_buffers_and_said(
    algorithm, change, reason, monkeypatch
):
    config = replay_columns(algorithm())
    change(config)
    monkeypatch.setattr(training_steps, "foreach_learner", lambda *_: [False])
    told = reason_to_replay_episodes(SimpleNamespace(config=config))
    assert told is None if reason is None else reason in told


@pytest.mark.parametrize("algorithm", [dqn.DQNConfig, sac.SACConfig])
def test_a_step_that_surprised_more_is_drawn_more_often(algorithm):
    replay = make_replay_buffer(algorithm()).of("default_policy")
    replay.keep({"obs": np.arange(3.0)}, errors=np.array([0.0, 0.5, 2.0], np.float32))
    powers = replay.get_state()["priorities"]["powers"][:3]
    alpha = algorithm().replay_buffer_config["alpha"]
    np.testing.assert_allclose(powers, np.array([1e-6, 0.5, 2.0]) ** alpha, rtol=1e-5)


def test_recurrent_modules_replay_episodes(monkeypatch):
    monkeypatch.setattr(training_steps, "foreach_learner", lambda *_: [True])
    assert "recurrent" in reason_to_replay_episodes(SimpleNamespace(config=DQNConfig()))


def test_algorithms_that_replay_no_steps_are_refused():
    with pytest.raises(ConfigError, match="not for this PPO"):
        replay_columns(configs.todays_config("PPO"))
    own = DQNConfig()
    assert replay_columns(own) is own
    made = make_replay_buffer(own.training(replay_buffer_config={"capacity": 7}))
    assert made.of("default_policy").storage.capacity == 7


def test_a_new_step_is_as_likely_as_the_likeliest_that_ever_was():
    priorities = Priorities(4, alpha=1.0)
    priorities.add(np.array([0, 1]))
    priorities.update(np.array([0, 1]), np.array([5.0, 2.0]))
    priorities.update(np.array([0]), np.array([1.0]))
    priorities.add(np.array([2]))
    likely = 1 / priorities.weights(np.arange(3), beta=1.0)
    np.testing.assert_allclose(likely, [1, 2, 5])


def test_steps_that_were_replaced_since_they_were_drawn_are_not_there():
    ring = RingStorage(4)
    places = ring.add({"obs": np.arange(4)})
    drawn = ring.added
    ring.add({"obs": np.arange(2)})
    assert ring.are_there(places, drawn).tolist() == [False, False, True, True]
