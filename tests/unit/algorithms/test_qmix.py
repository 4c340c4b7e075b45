"""What the learner of QMIX computes is what a real old Ray computed; groups, replay, acting.

`tests/legacy/losses/record_qmix.py` made the numbers, with Ray 1.13.0 and torch.
"""

import re

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from hypothesis import given
from hypothesis import strategies as st
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from rllib_compat.adapters import EnvSettings
from rllib_compat.algorithms.qmix import Fragment, draw_fragments, fragment, sequences
from rllib_compat.algorithms.replay import ListStorage, ReplayBuffer
from rllib_compat.config import translate
from rllib_compat.errors import ConfigError, LegacyEnvError
from rllib_compat.networks import grouped_space
from rllib_compat.networks.modules.grouped import Grouping
from rllib_compat.ray_versions import configs
from rllib_compat.runtime.multi_agent import adapt_multi_agent
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms import recordings
from tests.unit.algorithms.recordings import Recording, close, close_all, set_weights
from tests.unit.algorithms.test_losses import MODULE, RECORDS

pytestmark = OTHERS_WARNINGS

HERE = RECORDS / "qmix"
CASES = sorted(path.stem for path in HERE.glob("*.npz"))
PARTS = ("obs", "action_mask", "state")
TWO_ACTORS = gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(3)] * 2)

#: The old names of layers → ours.
LAYERS = {
    "model.fc1": "agent.encoder",
    "model.fc2": "agent.q",
    "mixer.hyper_w_1": "mixer.first_weight",
    "mixer.hyper_b_1": "mixer.first_bias",
    "mixer.hyper_w_final": "mixer.last_weight",
    "mixer.V": "mixer.last_bias",
}


class Recorded(Recording):
    """One case, by the names of today."""

    def __init__(self, case):
        super().__init__(HERE / f"{case}.npz")
        self.settings = self.told()

    def chunks(self):
        return [self._chunk(found) for found in super().chunks()]

    def arrays(self, kind, prefix="net."):
        return {prefix + _ours(name): array for name, array in self.below(kind).items()}

    def space(self):
        seen = self.chunks()[0][Columns.OBS]
        boxes = {n: gymnasium.spaces.Box(-9, 9, a.shape[1:], np.float32) for n, a in seen.items()}
        return gymnasium.spaces.Dict(boxes)

    @staticmethod
    def _chunk(found):
        seen = {name: found[name] for name in PARTS if name in found}
        rest = {name: found[name] for name in ("actions", "rewards")}
        return {Columns.OBS: seen, **rest, "terminated": bool(found["done"])}


def _ours(name):
    gru = re.fullmatch(r"model\.rnn\.(\w+)", name)
    if gru:
        return f"agent.gru.{gru[1]}_l0"
    old = next(layer for layer in LAYERS if name.startswith(f"{layer}."))
    return LAYERS[old] + name.removeprefix(old)


def local_learner(recorded, **more):
    """A learner with the recorded weights, also of the targets."""
    config = configs.todays_config("QMIX")
    config.training(lstm_cell_size=7, **{**recorded.settings, **more})
    learner = config.build_learner(spaces={MODULE: (recorded.space(), TWO_ACTORS)})
    told = recorded.arrays("weights") | recorded.arrays("targets", "target_net.")
    set_weights(learner, told)
    return learner


def updated(learner, chunks, sampled=0):
    made = sequences(chunks, learner.config.max_seq_len)
    return recordings.updated(learner, MODULE, made, steps=len(chunks), sampled=sampled)


@pytest.fixture(params=CASES)
def recorded(request):
    return Recorded(request.param)


def test_loss_and_gradients_are_those_of_ray_1_13(recorded):
    told, gradients = updated(local_learner(recorded), recorded.chunks())
    for name in ("loss", "td_error_abs", "q_taken_mean", "target_mean"):
        close(told[name], recorded.found[f"stats.{name}"], 1e-5)
    theirs = recorded.arrays("gradients")
    assert gradients.keys() == theirs.keys()
    close_all(gradients, theirs, 1e-5)


def test_an_update_gives_the_weights_that_ray_1_13_had_after_it(recorded):
    learner = local_learner(recorded)
    updated(learner, recorded.chunks())
    state, before = learner.module[MODULE].get_state(), recorded.arrays("weights")
    close_all(state, recorded.arrays("after"), 1e-4)
    assert np.abs(state["net.agent.q.weight"] - before["net.agent.q.weight"]).max() > 1e-5


def test_values_are_those_of_ray_1_13_a_step_at_a_time_and_only_valid_actions_are_taken(recorded):
    module = local_learner(recorded).module[MODULE].unwrapped()
    state = {"h": module.get_initial_state()["h"][None]}
    chunk = recorded.chunks()[0][Columns.OBS]
    for step, wanted in enumerate(recorded.found["acting.values"]):
        seen = {name: torch.from_numpy(array[step][None, None]) for name, array in chunk.items()}
        values, _ = module._values(module.net, seen, state["h"])
        close(values[0, 0].detach().numpy(), wanted, 1e-5)
        mask = chunk.get("action_mask", np.ones((len(chunk["obs"]), 2, 3)))[step]
        batch = {Columns.OBS: seen, Columns.STATE_IN: state}
        best = module.forward_inference(batch)
        for agent, action in enumerate(best[Columns.ACTIONS]):
            assert action.item() == np.where(mask[agent] == 1, wanted[agent], -np.inf).argmax()
        drawn = [module.forward_exploration(batch, t=0)[Columns.ACTIONS] for _ in range(40)]
        for agent in range(2):  # all at random before the first step
            taken = {int(actions[agent]) for actions in drawn}
            assert taken == set(np.flatnonzero(mask[agent]))
        state = best[Columns.STATE_OUT]


def test_agents_explore_as_often_as_epsilon_says_and_each_valid_action_as_often_as_others():
    recorded, rows = Recorded("none"), 20_000
    module = local_learner(recorded, epsilon=[[0, 1.0], [100, 0.0]]).module[MODULE].unwrapped()
    one = {n: torch.from_numpy(a[:1][None]) for n, a in recorded.chunks()[0][Columns.OBS].items()}
    one["action_mask"] = torch.tensor([[[[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]]])
    seen = {name: part.expand(rows, *part.shape[1:]) for name, part in one.items()}
    state = {"h": module.get_initial_state()["h"].expand(rows, -1, -1)}
    batch = {Columns.OBS: seen, Columns.STATE_IN: state}
    best = module.forward_inference(batch)[Columns.ACTIONS]
    torch.manual_seed(0)
    taken = module.forward_exploration(batch, t=40)[Columns.ACTIONS]
    for agent, valid in enumerate((2, 3)):
        frequent = np.bincount(taken[agent].flatten(), minlength=3) / rows
        expected = np.where(np.arange(3) < valid, 0.6 / valid, 0.0)
        expected[int(best[agent][0])] += 0.4
        np.testing.assert_allclose(frequent, expected, atol=0.02)
        assert not frequent[valid:].any()


def test_exploration_ends_with_its_schedule():
    recorded = Recorded("none")
    module = local_learner(recorded, epsilon=[[0, 1.0], [100, 0.0]]).module[MODULE].unwrapped()
    seen = {n: torch.from_numpy(a[:1][None]) for n, a in recorded.chunks()[0][Columns.OBS].items()}
    state = {"h": module.get_initial_state()["h"][None]}
    batch = {Columns.OBS: seen, Columns.STATE_IN: state}
    best = module.forward_inference(batch)[Columns.ACTIONS]
    for _ in range(20):
        assert module.forward_exploration(batch, t=100)[Columns.ACTIONS] == best


def test_targets_follow_once_enough_steps_were_sampled():
    recorded = Recorded("qmix")
    learner = local_learner(recorded, target_network_update_freq=50)
    name = "target_net.mixer.first_bias.weight"
    before = recorded.arrays("targets", "target_net.")[name]
    for sampled, moved in ((49, False), (50, True)):
        updated(learner, recorded.chunks(), sampled)
        state = learner.module[MODULE].get_state()
        assert (state[name] != before).any() == moved
    close(state[name], state["net.mixer.first_bias.weight"], 1e-7)


def test_a_terminal_step_needs_no_valid_action_and_any_other_does():
    recorded = Recorded("none")
    last = recorded.chunks()[0][Columns.OBS]["action_mask"]
    before = updated(local_learner(recorded), recorded.chunks())[0]
    last[-1] = 0.0
    close(updated(local_learner(recorded), recorded.chunks())[0]["loss"], before["loss"], 1e-6)
    last[-2] = 0.0
    with pytest.raises(ConfigError, match="valid action"):
        updated(local_learner(recorded), recorded.chunks())


LENGTHS = st.lists(st.tuples(st.integers(1, 7), st.booleans()), min_size=1, max_size=5)


@given(LENGTHS, st.integers(1, 9))
def test_sequences_hold_each_step_once_with_what_was_observed_after_it(lengths, longest):
    chunks, number = [], 0
    for steps, ended in lengths:
        seen = np.arange(number, number + steps + 1, dtype=np.float32)
        column = seen[:-1, None]
        chunk = {"obs": {"obs": seen[:, None]}, "actions": column, "rewards": column}
        chunks.append({**chunk, "terminated": ended})
        number += steps + 1
    made = sequences(chunks, longest)
    real = made["loss_mask"]
    assert real.shape[1] == min(longest, max(steps for steps, _ in lengths))
    wanted = np.concatenate([chunk["rewards"] for chunk in chunks])
    for name in ("actions", "rewards"):
        np.testing.assert_array_equal(made[name][real], wanted)
    np.testing.assert_array_equal(made["obs"]["obs"][real], wanted)
    np.testing.assert_array_equal(made[Columns.NEXT_OBS]["obs"][real], wanted + 1)
    ends = [chunk["rewards"][-1, 0] for chunk in chunks if chunk["terminated"]]
    assert sorted(made["rewards"][made["terminateds"]].ravel()) == ends
    assert not made["rewards"][~real].any()


def test_the_buffer_forgets_the_oldest_and_draws_until_there_are_enough_steps():
    buffer = ReplayBuffer(ListStorage(3))
    buffer.keep([Fragment(4, {"a": [number]}) for number in range(5)])
    drawn = draw_fragments(buffer, 400)
    assert drawn.steps == 400
    assert set(drawn.chunks["a"]) == {2, 3, 4}
    assert draw_fragments(buffer, 5).steps == 8


class Pair(MultiAgentEnv):
    """An old environment of two agents."""

    def __init__(self):
        super().__init__()
        parts = {
            "obs": gymnasium.spaces.MultiDiscrete([2, 3]),
            "state": gymnasium.spaces.Discrete(4),
        }
        self.observation_space = gymnasium.spaces.Dict(parts)
        self.action_space = gymnasium.spaces.Discrete(3)

    def seen(self):
        return {agent: {"obs": [1, agent], "state": 3} for agent in (0, 1)}

    def reset(self):
        return self.seen()

    def step(self, actions):
        return self.seen(), {0: 1.0, 1: 2.0}, {"__all__": True}, {}


def test_groups_of_an_old_environment_observe_what_their_module_takes():
    inner = Pair()
    spaces = (gymnasium.spaces.Tuple([inner.observation_space] * 2), TWO_ACTORS)
    env = adapt_multi_agent(
        inner.with_agent_groups({"both": [0, 1]}, *spaces), EnvSettings(env=None)
    )
    seen, _ = env.reset(seed=1)
    _, rewards, terminateds, _, infos = env.step({"both": (0, 2)})
    assert rewards == {"both": 3.0}
    assert infos["both"]["_group_rewards"] == [1.0, 2.0]
    assert terminateds["__all__"]
    made = Grouping(spaces[0])(seen["both"])
    np.testing.assert_array_equal(made["obs"], [[0, 1, 1, 0, 0], [0, 1, 0, 1, 0]])
    np.testing.assert_array_equal(made["state"], [0, 0, 0, 1])
    assert grouped_space(spaces[0]).contains(made)
    assert grouped_space(grouped_space(spaces[0])) == grouped_space(spaces[0])


FLAT = [
    gymnasium.spaces.Discrete(3, start=-1),
    gymnasium.spaces.MultiDiscrete([2, 3], start=[4, -2]),
    gymnasium.spaces.MultiDiscrete([[2, 3], [1, 2]]),
    gymnasium.spaces.Box(-3, 3, (2, 2), np.int16),
    gymnasium.spaces.Box(-3, 3, (2,), np.float64),
    gymnasium.spaces.MultiBinary(3),
    gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(-1, 1, (1,))]),
]


@pytest.mark.parametrize("part", FLAT, ids=str)
def test_parts_of_groups_are_made_flat_as_gymnasium_does(part):
    part.seed(1)
    grouping = Grouping(gymnasium.spaces.Tuple([part, part]))
    for _ in range(20):
        seen = (part.sample(), part.sample())
        made = grouping(seen)["obs"]
        wanted = np.stack([gymnasium.spaces.flatten(part, one) for one in seen])
        np.testing.assert_array_equal(made, wanted.astype(np.float32))
        assert made.dtype == np.float32


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Discrete(2),
        gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(3)]),
        gymnasium.spaces.Tuple([gymnasium.spaces.Dict({"seen": gymnasium.spaces.Discrete(2)})]),
    ],
)
def test_spaces_that_are_no_groups_are_refused_with_what_to_do(space):
    with pytest.raises(ConfigError) as told:
        grouped_space(space)
    assert told.value.where == "observation_space"
    assert told.value.fix


def test_an_environment_without_the_rewards_of_each_agent_is_told():
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    seen = {"obs": np.zeros((2, 1), np.float32)}
    episode = SingleAgentEpisode(
        observations=[seen, seen],
        actions=[(0, 1)],
        rewards=[1.0],
        infos=[{}, {}],
        len_lookback_buffer=0,
    )
    with pytest.raises(LegacyEnvError, match="_group_rewards"):
        fragment([episode])


@pytest.mark.parametrize(
    "wrong", [{"mixer": "sum"}, {"buffer_size": 0}, {"max_seq_len": 0}], ids=lambda w: next(iter(w))
)
def test_settings_that_nothing_can_run_are_told(wrong):
    config = configs.todays_config("QMIX").training(**wrong)
    with pytest.raises(ConfigError) as told:
        config.validate()
    assert told.value.where == next(iter(wrong))


#: Ray → what it was by default.
DEFAULTS = {
    "0.6.6": ([[0, 1.0], [10000, 0.02]], 10000),
    "1.0.1": ([[0, 1.0], [10000, 0.02]], 1000),
    "1.13.0": ([[0, 1.0], [40000, 0.01]], 1000),
    "2.7.2": ([[0, 1.0], [40000, 0.01]], 1000),
}


@pytest.mark.parametrize("ray", DEFAULTS)
def test_an_old_config_has_the_defaults_of_its_ray(ray):
    old = {"env": "CartPole-v1", "mixer": None, "model": {"lstm_cell_size": 5}}
    config = translate(old, algorithm="QMIX", legacy_ray=ray).algorithm_config
    assert (config.epsilon, config.buffer_size) == DEFAULTS[ray]
    assert (config.mixer, config.lstm_cell_size, config.max_seq_len) == (None, 5, 999_999)
    assert (config.grad_clip, config.num_steps_sampled_before_learning_starts) == (10, 1000)
    assert config.batch_mode == "complete_episodes"


def test_a_given_epsilon_is_completed_from_the_defaults_of_its_ray():
    old = {"env": "CartPole-v1", "exploration_config": {"final_epsilon": 0.0}}
    for ray, steps in (("1.0.1", 10000), ("1.13.0", 40000)):
        config = translate(old, algorithm="QMIX", legacy_ray=ray).algorithm_config
        assert config.epsilon == [[0, 1.0], [steps, 0.0]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"exploration_config": {"type": "SoftQ"}},
        {"observation_filter": "MeanStdFilter"},
        {"model": {"custom_model": "mine"}},
    ],
    ids=lambda w: next(iter(w)),
)
def test_what_qmix_can_no_longer_do_is_refused(wrong):
    old = {"env": "CartPole-v1", **wrong}
    assert translate(old, algorithm="QMIX", legacy_ray="1.13.0").refused


def test_an_old_config_of_apex_qmix_trains_as_qmix():
    old = {"env": "CartPole-v1", "num_workers": 3, "prioritized_replay": True}
    translation = translate(old, algorithm="APEX_QMIX")
    assert not translation.refused
    assert translation.algorithm == "QMIX"
    assert translation.algorithm_config.num_env_runners == 3


def test_a_space_that_no_group_observes_is_refused_before_an_environment_is_made():
    config = configs.todays_config("QMIX").environment(
        observation_space=gymnasium.spaces.Discrete(3)
    )
    with pytest.raises(ConfigError, match="a part for each agent"):
        config.validate()
