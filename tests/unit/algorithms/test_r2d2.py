"""What the learner of R2D2 computes is what a real old Ray computed; replay, acting.

`tests/legacy/losses/record_r2d2.py` made the numbers, with Ray 1.13.0 and torch.
"""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.algorithms.r2d2 import original, rescale
from rllib_compat.algorithms.replay import DrawnRows, ListStorage, ReplayBuffer
from rllib_compat.algorithms.sequence_replay import WEIGHTS, SequenceChopper
from rllib_compat.config import translate
from rllib_compat.errors import ConfigError
from rllib_compat.modules import ConfiguredModule, R2D2GraphModule, R2D2Module
from rllib_compat.networks import ModelSettings, read
from rllib_compat.networks.modules.configured import network_of
from rllib_compat.networks.modules.q import QF_PREDS
from rllib_compat.networks.network import OWN_PREFIX, OWN_TARGET_PREFIX
from rllib_compat.neutral import PolicyState, spaces
from rllib_compat.ray_versions import configs, episodes
from tests.legacy.losses.remembering import Remembering
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms import recordings
from tests.unit.algorithms.recordings import Recording, close, close_all, set_weights
from tests.unit.algorithms.test_losses import MODULE, RECORDS

pytestmark = OTHERS_WARNINGS

HERE = RECORDS / "r2d2"
#: That of a model of the user's own.
OWN = "own-model"
CASES = sorted(path.stem for path in HERE.glob("*.npz") if path.stem != OWN)
SPACES = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), gymnasium.spaces.Discrete(3))
#: What states are called, where they are not an LSTM's.
STATES = {"attention": ("memory_0", "memory_1"), OWN: ("state_0",)}
DENSE = {"fcnet_hiddens": [5], "fcnet_activation": "tanh"}
MODEL = {**DENSE, "use_lstm": True, "lstm_cell_size": 5}
ATTENTION = {
    **DENSE,
    "use_attention": True,
    "attention_num_transformer_units": 2,
    "attention_dim": 4,
    "attention_num_heads": 2,
    "attention_head_dim": 3,
    "attention_position_wise_mlp_dim": 5,
    "attention_memory_inference": 3,
    "attention_memory_training": 7,
}
TERMS = ("total_loss", "mean_q", "min_q", "max_q", "mean_td_error")


class Recorded(Recording):
    """One case, by the names of today."""

    def __init__(self, case):
        super().__init__(HERE / f"{case}.npz")
        found = self.told()
        self.model = ATTENTION if case == "attention" else MODEL
        self.states = STATES.get(case, ("h", "c"))
        self.burn_in, self.settings = found["burn_in"], found

    def network(self, kind):
        """What the project reads from weights, or from anything that is kept for each of them."""
        policy = PolicyState(
            MODULE,
            self.below(kind),
            observation_space=spaces.from_object(SPACES[0]),
            action_space=spaces.from_object(SPACES[1]),
        )
        config = {**self.settings, "model": self.model}
        settings = ModelSettings.from_config(config, {}, algorithm="R2D2", ray="1.13.0")
        return read(policy, settings).network

    def arrays(self, kind, prefix=OWN_PREFIX):
        return {
            prefix + name: array
            for name, array in self.network(kind).arrays.items()
            if not name.startswith("target.")
        }

    def batch(self):
        """The sequences as our replay buffer gives them."""
        found = self.below("batch")
        rows = np.arange(found["obs"].shape[1])
        real = rows < found["seq_lens"][:, None]
        return {
            **{name: found[name] for name in ("obs", "actions", "rewards")},
            Columns.TERMINATEDS: found["dones"],
            WEIGHTS: found["weights"],
            Columns.LOSS_MASK: real & (rows >= self.burn_in),
            Columns.STATE_IN: {name: found[f"state_in_{i}"] for i, name in enumerate(self.states)},
        }


def config_of(recorded, **more):
    config = configs.todays_config("R2D2")
    config.training(**{**recorded.settings, **more})
    return config


def local_learner(recorded):
    """A learner with the recorded weights, also of the target."""
    config, target = config_of(recorded), recorded.network("weights").target
    assert target.module == "rllib_compat.modules:R2D2GraphModule"
    told = configs.whole_model_config(config, dict(target.model_config))
    config.rl_module(rl_module_spec=RLModuleSpec(R2D2GraphModule, *SPACES, model_config=told))
    learner = config.build_learner(spaces={MODULE: SPACES})
    state = recorded.arrays("weights") | recorded.arrays("targets", OWN_TARGET_PREFIX)
    set_weights(learner, state)
    return learner


def updated(learner, batch):
    told, gradients = recordings.updated(learner, MODULE, batch, steps=len(batch["obs"]))
    return {name: told[name] for name in TERMS}, gradients


@pytest.fixture(params=CASES)
def recorded(request):
    return Recorded(request.param)


def test_loss_errors_and_gradients_are_those_of_ray_1_13(recorded):
    learner = local_learner(recorded)
    told, gradients = updated(learner, recorded.batch())
    recordings.same_losses(recorded, TERMS, told, learner.sequence_errors[MODULE], gradients)


def test_an_update_gives_the_weights_that_ray_1_13_had_after_it(recorded):
    learner = local_learner(recorded)
    updated(learner, recorded.batch())
    state, before = learner.module[MODULE].get_state(), recorded.arrays("weights")
    close_all(state, recorded.arrays("after"), 1e-4)
    moved = [np.abs(state[name] - old).max() for name, old in before.items()]
    assert np.mean(np.array(moved) > 1e-5) > 0.5


#: The old names of layers → those of the module that a config without a checkpoint gets.
LAYERS = {
    "_hidden_layers.0._model.0": "encoder.tokenizer.net.mlp.0",
    "lstm": "encoder.lstm",
    "_logits_branch._model.0": "logits",
    "advantage_module.dueling_A_0._model.0": "advantage.0",
    "advantage_module.A._model.0": "advantage.2",
    "value_module.dueling_V_0._model.0": "state.0",
    "value_module.V._model.0": "state.2",
}


def fresh(recorded, **more):
    """A learner with a new module that has the recorded weights."""
    model = {**MODEL, "max_seq_len": 4}
    config = config_of(recorded, **more).rl_module(model_config=model)
    learner = config.build_learner(spaces={MODULE: SPACES})
    state = {
        f"{prefix}{LAYERS[layer]}.{part}": array
        for kind, prefix in (("weights", OWN_PREFIX), ("targets", OWN_TARGET_PREFIX))
        for layer, part, array in (
            (*name.rpartition(".")[::2], array) for name, array in recorded.below(kind).items()
        )
        if layer in LAYERS
    }
    set_weights(learner, state)
    return learner


@pytest.mark.parametrize("case", [case for case in CASES if case != "attention"])
def test_a_new_network_of_today_has_the_layers_that_ray_1_13_made(case):
    recorded = Recorded(case)
    batch = recorded.batch()
    states = {name: part[:, None] for name, part in batch[Columns.STATE_IN].items()}
    told, _ = updated(fresh(recorded), {**batch, Columns.STATE_IN: states})
    for name in TERMS:
        close(told[name], recorded.found[f"loss.{name}"], 1e-5)


#: The old names of layers behind a model of one's own → those of the module.
OF_OWN = {
    "cell": "encoder.model.cell",
    "last": "encoder.model.last",
    "value": "encoder.model.value",
    **{old: new for old, new in LAYERS.items() if "module" in old},
}


def test_a_recurrent_model_of_ones_own_learns_as_with_ray_1_13():
    recorded = Recorded(OWN)
    model = {**DENSE, "custom_model": Remembering, "max_seq_len": 5}
    config = config_of(recorded).rl_module(model_config=model)
    learner = config.build_learner(spaces={MODULE: SPACES})
    module = learner.module[MODULE].unwrapped()
    named = {
        kind: {
            f"{OF_OWN[layer]}.{part}": torch.as_tensor(array)
            for name, array in recorded.below(kind).items()
            for layer, _, part in [name.rpartition(".")]
        }
        for kind in ("weights", "targets", "after")
    }
    module.net.load_state_dict(named["weights"])
    module.target_net.load_state_dict(named["targets"])
    told, _ = updated(learner, recorded.batch())
    for name in TERMS:
        close(told[name], recorded.found[f"loss.{name}"], 1e-5)
    close_all(named["after"], module.net.state_dict(), 1e-4)


class LooksBack(Remembering):
    """A model that wants the reward before."""

    def __init__(self, *given):
        super().__init__(*given)
        self.view_requirements["prev_rewards"] = self.view_requirements["obs"]


class Forgets(Remembering):
    """A model without states."""

    def get_initial_state(self):
        return []


@pytest.mark.parametrize(
    ("model", "says"), [(LooksBack, "prev_rewards"), (Forgets, "no initial state")]
)
def test_a_model_that_can_not_be_run_over_sequences_is_refused(model, says):
    config = configs.todays_config("R2D2").rl_module(model_config={"custom_model": model})
    with pytest.raises(ConfigError, match=says):
        config.build_learner(spaces={MODULE: SPACES})


def test_it_acts_by_its_values_and_explores_until_its_schedule_ends():
    recorded = Recorded("dueling")
    learner = fresh(recorded, epsilon=[[0, 1.0], [100, 0.0]])
    module = learner.module[MODULE].unwrapped()
    states = {name: part[None] for name, part in module.get_initial_state().items()}
    seen = torch.from_numpy(recorded.found["batch.obs"][:1])
    whole, last = module.values_of({Columns.OBS: seen, Columns.STATE_IN: states})
    drawn = set()
    for step in range(seen.shape[1]):
        batch = {Columns.OBS: seen[:, step : step + 1], Columns.STATE_IN: states}
        out = module.forward_inference(batch)
        assert out[Columns.ACTIONS].shape == (1, 1)
        assert int(out[Columns.ACTIONS]) == int(whole[0, step].argmax())
        explored = [module.forward_exploration(batch, t=0)[Columns.ACTIONS] for _ in range(40)]
        drawn |= {int(action) for action in explored}
        certain = module.forward_exploration(batch, t=100)[Columns.ACTIONS]
        assert int(certain) == int(whole[0, step].argmax())
        states = out[Columns.STATE_OUT]
    assert drawn == {0, 1, 2}
    for name, state in last.items():
        close(states[name].detach(), state.detach(), 1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.1, 1.0])
def test_rescaled_values_come_back_to_four_digits_and_more(epsilon):
    values = torch.cat([sign * torch.logspace(-3, 4, 50) for sign in (-1, 1)] + [torch.zeros(1)])
    close(original(rescale(values, epsilon), epsilon), values, 1e-4)


def episode_of(found, *, terminated=True, lookback=0):
    """The recorded episode, with the states that its network had."""
    last = np.full_like(found["obs"][:1], 9.0)
    episode = SingleAgentEpisode(
        observations=list(np.concatenate([found["obs"], last])),
        actions=list(found["actions"]),
        rewards=[float(reward) for reward in found["rewards"]],
        extra_model_outputs={Columns.STATE_OUT: [{"h": row} for row in found["state_out_0"]]},
        terminated=terminated,
        truncated=not terminated,
        len_lookback_buffer=lookback,
    )
    return episodes.to_numpy(episode)


@pytest.mark.parametrize(
    ("case", "zeros"), [("plain", True), ("burn-in", True), ("burn-in", False)]
)
def test_episodes_are_cut_as_ray_1_13_cut_them(case, zeros):
    recorded = Recorded(case)
    burn_in, longest = recorded.burn_in, 3
    episode = episode_of(recorded.below("replay.episode"))
    theirs = recorded.below("replay.zeros" if zeros else "replay.stored")
    cut = SequenceChopper(longest, burn_in, zeros)
    made = list(cut.chop(episode))
    batch = cut.batch(made, np.ones(len(made)))
    assert len(made) == len(theirs["obs"])
    for row, sequence in enumerate(made):
        # Before an episode's first step, RLlib's had burn-in steps of zeros; ours has none.
        begin = 0 if row else burn_in
        steps = theirs["seq_lens"][row] - begin
        for ours, name in (
            (Columns.TERMINATEDS, "dones"),
            *((n, n) for n in ("actions", "rewards")),
        ):
            np.testing.assert_array_equal(sequence[ours], theirs[name][row][begin:][:steps])
        np.testing.assert_array_equal(sequence["obs"][:-1], theirs["obs"][row][begin:][:steps])
        np.testing.assert_array_equal(
            sequence["obs"][-1], episode.get_observations(row * 3 + 3 if row < 2 else -1)
        )
        np.testing.assert_array_equal(sequence[Columns.STATE_IN]["h"], theirs["state_in_0"][row][0])
        assert list(sequence[Columns.LOSS_MASK]) == [False] * (burn_in if row else 0) + [True] * (
            steps - (burn_in if row else 0)
        )
        np.testing.assert_array_equal(batch["obs"][row][: steps + 1], sequence["obs"])
        assert not batch["obs"][row][steps + 1 :].any()
        assert batch[Columns.LOSS_MASK][row].sum() == sequence[Columns.LOSS_MASK].sum()
    assert sum(sequence[Columns.LOSS_MASK].sum() for sequence in made) == len(episode)


def test_a_step_before_a_time_limit_is_not_terminal_and_rewards_are_summed_ahead():
    found = Recorded("plain").below("replay.episode")
    cut = SequenceChopper(8, n_step=3, gamma=0.5)
    (cut_short,), (ended,) = (
        list(cut.chop(episode_of(found, terminated=end))) for end in (False, True)
    )
    assert not cut_short[Columns.TERMINATEDS].any()
    assert list(np.flatnonzero(ended[Columns.TERMINATEDS])) == [5, 6, 7]
    rewards = found["rewards"]
    close(ended["rewards"][0], rewards[0] + 0.5 * rewards[1] + 0.25 * rewards[2], 1e-6)
    close(ended["rewards"][-1], rewards[-1], 1e-6)


def test_an_episode_without_states_is_refused():
    episode = SingleAgentEpisode(
        observations=[0.0, 1.0], actions=[0], rewards=[1.0], terminated=True, len_lookback_buffer=0
    )
    with pytest.raises(ConfigError, match="no states"):
        list(SequenceChopper(3).chop(episode))


def test_the_buffer_forgets_the_oldest_and_draws_by_priorities():
    buffer = ReplayBuffer(ListStorage(3), alpha=0.5)
    for number in range(5):
        buffer.keep([{"number": number}])
    drawn, weights, rows = buffer.draw(300)
    assert (weights == 1).all()
    where = {one["number"]: place for one, place in zip(drawn, rows.places, strict=True)}
    assert set(where) == {2, 3, 4}
    changed = DrawnRows(np.array([where[2], where[3], where[4]]), 5)
    buffer.prioritize(np.array([16.0, 1.0, 1e-12]), changed)
    drawn, weights, _ = buffer.draw(4000, beta=1.0)
    shares = [sum(one["number"] == number for one in drawn) / 4000 for number in (2, 3, 4)]
    np.testing.assert_allclose(shares, [0.8, 0.2, 0.0], atol=0.05)
    # As often as 4 to 1, so each counts as 1 to 4.
    of = {one["number"]: weight for one, weight in zip(drawn, weights, strict=True)}
    close(of[2] / of[3], 0.25, 1e-6)
    # A new one is as likely as the likeliest that ever was, as with Ray.
    buffer.keep([{"number": 5}])
    drawn, _, _ = buffer.draw(4000)
    likely = [sum(one["number"] == number for one in drawn) for number in (3, 4, 5)]
    assert sorted(likely)[-1] == likely[2] > 2 * max(likely[:2])


@pytest.mark.parametrize(
    ("told", "where"),
    [
        ({"n_step": 0}, "n_step"),
        ({"burn_in": -1}, "burn_in"),
        ({"buffer_size": 0}, "buffer_size"),
        ({"h_function_epsilon": -0.1}, "h_function_epsilon"),
    ],
)
def test_a_config_that_nothing_can_train_says_which_setting_is_wrong(told, where):
    config = configs.todays_config("R2D2").training(**told)
    with pytest.raises(ConfigError, match=where):
        config.validate()


def test_parts_of_episodes_are_refused():
    config = configs.todays_config("R2D2").env_runners(batch_mode="truncate_episodes")
    with pytest.raises(ConfigError, match="batch_mode"):
        config.validate()


@pytest.mark.parametrize(
    ("model", "actions", "what"),
    [({}, SPACES[1], "no LSTM"), ({"use_lstm": True}, SPACES[0], "Discrete")],
)
def test_a_network_that_it_cannot_train_is_refused_by_name(model, actions, what):
    config = configs.todays_config("R2D2").rl_module(model_config=model)
    with pytest.raises(ConfigError, match=what):
        config.build_learner(spaces={MODULE: (SPACES[0], actions)})


@pytest.mark.parametrize(
    ("old", "settings"),
    [
        (
            {"burn_in": 5, "zero_init_states": False, "buffer_size": 900, "prioritized_replay": -1},
            {"burn_in": 5, "zero_init_states": False, "buffer_size": 900},
        ),
        (
            {"prioritized_replay": True, "prioritized_replay_alpha": 0.5, "learning_starts": 7},
            {
                "prioritized_replay": True,
                "prioritized_replay_alpha": 0.5,
                "num_steps_sampled_before_learning_starts": 7,
            },
        ),
        (
            {
                "replay_buffer_config": {
                    "type": "MultiAgentPrioritizedReplayBuffer",
                    "capacity": 800,
                    "storage_unit": "sequences",
                    "replay_burn_in": 4,
                    "replay_zero_init_states": False,
                    "replay_sequence_length": -1,
                    "prioritized_replay_beta": 0.7,
                }
            },
            {
                "prioritized_replay": True,
                "buffer_size": 800,
                "burn_in": 4,
                "zero_init_states": False,
                "prioritized_replay_beta": 0.7,
            },
        ),
        (
            {"exploration_config": {"epsilon_timesteps": 50}, "hiddens": [], "adam_epsilon": 0.1},
            {"epsilon": [[0, 1.0], [50, 0.02]], "hiddens": [], "adam_epsilon": 0.1},
        ),
        ({"exploration_config": {"type": "Random"}}, {"epsilon": 1.0}),
        ({"exploration_config": {"type": "SoftQ", "temperature": 0.5}}, {"epsilon": 0.0}),
    ],
)
def test_keys_of_every_era_mean_what_they_meant(old, settings):
    made = translate(old, algorithm="R2D2").calls["training"]
    assert {name: made.get(name) for name in settings} == settings


@pytest.mark.parametrize(
    "old",
    [
        {"num_atoms": 51},
        {"exploration_config": {"type": "ParameterNoise"}},
    ],
)
def test_what_it_never_could_or_no_longer_can_is_refused(old):
    assert translate(old, algorithm="R2D2").refused


@pytest.mark.parametrize(
    ("config", "told"), [({"noisy": True}, {}), ({}, {"soft_q_temperature": 10.0})]
)
def test_a_recurrent_network_explores_by_noisy_layers_and_by_its_values(config, told):
    config = {"hiddens": [6], "model": {"fcnet_hiddens": [5], "use_lstm": True}, **config}
    settings = ModelSettings.from_config(config, {}, algorithm="R2D2", ray="1.13.0")
    module = ConfiguredModule(
        observation_space=gymnasium.spaces.Box(-1.0, 1.0, (3,)),
        action_space=gymnasium.spaces.Discrete(4),
        model_config={"double_q": True, **told, **network_of(settings, R2D2Module)},
    )
    module.make_target_networks()
    states = {name: torch.zeros(2, size) for name, (size,) in sizes_of(module).items()}
    batch = {Columns.OBS: torch.rand(2, 5, 3), Columns.STATE_IN: states}

    def acted(forward):
        return {tuple(forward(batch)[Columns.ACTIONS].ravel().tolist()) for _ in range(9)}

    assert len(acted(module.forward_inference)) == 1
    assert len(acted(module.forward_exploration)) > 1
    learned = [module.forward_train(batch)[QF_PREDS] for _ in range(2)]
    assert torch.equal(*learned) == ("noisy" not in config)


def sizes_of(module):
    return {name: tuple(state.shape) for name, state in module.get_initial_state().items()}
