"""The replay buffers of several policies: each learns from what its own agents did."""

import numpy as np
import pytest
import tree

pytest.importorskip("ray")

from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.algorithms import MultiAgentReplayBuffer, make_replay_buffer, may_replay_columns
from rllib_compat.ray_versions import configs, episodes
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

SETTINGS = {"capacity": 20, "alpha": 0.6}
#: Agent → its policy, and what each of its rewards is.
AGENTS = {0: ("a", 1.0), 1: ("b", 2.0), 2: ("b", 3.0)}


class Episode(MultiAgentEpisode):
    """A chunk of an episode of several agents."""

    def __init__(self, steps):
        self.agent_episodes = {
            agent: self.part(agent, policy, reward, steps)
            for agent, (policy, reward) in AGENTS.items()
        }

    @staticmethod
    def part(agent, policy, reward, steps):
        part = SingleAgentEpisode(
            id_=str(agent),
            module_id=policy,
            observations=[np.float32([agent, step]) for step in range(steps + 1)],
            actions=[0] * steps,
            rewards=[reward] * steps,
            len_lookback_buffer=0,
        )
        return episodes.to_numpy(part)


def test_a_policy_learns_from_what_its_own_agents_did():
    replay = MultiAgentReplayBuffer(SETTINGS, {})
    replay.add([Episode(4)], None)
    assert (len(replay.of("a")), len(replay.of("b")), len(replay)) == (4, 8, 12)
    drawn = replay.sample(50, 0.4, None)
    assert set(drawn["a"][Columns.REWARDS]) == {1.0}
    assert set(drawn["b"][Columns.REWARDS]) == {2.0, 3.0}
    np.testing.assert_array_equal(drawn["b"][Columns.OBS][:, 0], drawn["b"][Columns.REWARDS] - 1)


def test_statistics_are_those_of_old_buffers():
    replay = MultiAgentReplayBuffer(SETTINGS, {})
    for _ in range(3):
        replay.add([Episode(4)], None)
    replay.sample(50, 0.4, None)
    assert sorted(replay.replay_buffers) == ["a", "b"]
    stats = replay.stats()
    names = ("added_count", "added_count_wrapped", "eviction_started", "num_entries")
    assert [stats["policy_a"][name] for name in names] == [12, 12, False, 12]
    assert [stats["policy_b"][name] for name in names] == [24, 4, True, 20]
    assert stats["policy_b"]["sampled_count"] == 50
    assert stats["policy_b"]["est_size_bytes"] % 20 == 0 < stats["policy_b"]["est_size_bytes"]


@pytest.mark.parametrize("to_train", [["b"], lambda policy, _: policy == "b"])
def test_a_policy_that_does_not_learn_is_neither_kept_nor_drawn(to_train):
    replay = MultiAgentReplayBuffer(SETTINGS, {})
    replay.add([Episode(4)], to_train)
    assert (len(replay), len(replay.of("b"))) == (8, 8)
    replay.add([Episode(4)], None)
    assert set(replay.sample(5, 0.0, to_train)) == {"b"}


def test_errors_of_one_policy_leave_the_priorities_of_others_alone():
    replay = MultiAgentReplayBuffer(SETTINGS, {})
    replay.add([Episode(4)], None)
    replay.sample(30, 0.4, None)
    before = replay.get_state()
    replay.prioritize({"b": np.linspace(1, 9, 30)})
    after = replay.get_state()
    tree.map_structure(np.testing.assert_array_equal, before["a"], after["a"])
    powers = [state["b"]["priorities"]["powers"] for state in (before, after)]
    assert not np.array_equal(*powers)


def test_a_restored_one_holds_what_was_stored_and_a_new_policy_has_the_defaults():
    replay = MultiAgentReplayBuffer(SETTINGS, {"a": {"capacity": 3}})
    replay.add([Episode(4)], None)
    arguments, named = replay.get_ctor_args_and_kwargs()
    again = MultiAgentReplayBuffer(*arguments, **named)
    again.set_state(replay.get_state())
    tree.map_structure(np.testing.assert_array_equal, again.get_state(), replay.get_state())
    assert (len(again.of("a")), again.of("later").storage.capacity) == (3, 20)


def test_settings_of_one_policy_reach_its_buffer_alone():
    config = configs.todays_config("DQN").training(
        n_step=1, replay_buffer_config={"type": "MultiAgentEpisodeReplayBuffer", "capacity": 7}
    )
    config.multi_agent(
        policies={"a", "b"}, algorithm_config_overrides_per_module={"b": {"gamma": 0.5}}
    )
    config.freeze()  # as that of an algorithm is
    assert may_replay_columns(config)
    (_, of_policies), _ = make_replay_buffer(config).get_ctor_args_and_kwargs()
    assert [of_policies[policy]["capacity"] for policy in "ab"] == [7, 7]
    assert [of_policies[policy]["gamma"] for policy in "ab"] == [0.99, 0.5]
