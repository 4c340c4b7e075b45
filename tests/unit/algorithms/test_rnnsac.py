"""What the learner of RNNSAC computes is what a real old Ray computed; acting, replay.

`tests/legacy/losses/record_rnnsac.py` made the numbers, with Ray 1.13.0 and torch.
"""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.algorithms.sequence_replay import WEIGHTS, SequenceChopper
from rllib_compat.config import translate
from rllib_compat.errors import ConfigError
from rllib_compat.networks.modules.rnnsac import drawn
from rllib_compat.ray_versions import configs, episodes
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms import recordings
from tests.unit.algorithms.recordings import Recording, close, close_all, set_weights
from tests.unit.algorithms.test_losses import MODULE, RECORDS

pytestmark = OTHERS_WARNINGS

HERE = RECORDS / "rnnsac"
CASES = sorted(path.stem for path in HERE.glob("*.npz"))
SEEN = gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32)
DISCRETE, BOX = gymnasium.spaces.Discrete(3), gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
MODEL = {"fcnet_hiddens": [7], "fcnet_activation": "tanh", "use_lstm": True, "lstm_cell_size": 5}
TERMS = ("actor_loss", "critic_loss", "alpha_loss")

#: The old names → those of today.
NETWORKS = {"action_model": "pi", "q_net": "q", "twin_q_net": "twin_q"}
LAYERS = {
    "_hidden_layers.0._model.0": "encoder.tokenizer.net.mlp.0",
    "lstm": "encoder.lstm",
    "_logits_branch._model.0": "head.0",
}


class Recorded(Recording):
    """One case, by the names of today."""

    def __init__(self, case):
        super().__init__(HERE / f"{case}.npz")
        self.space = DISCRETE if case.startswith("discrete") else BOX
        self.settings = self.told() | {"actor_lr": 0.01, "critic_lr": 0.02, "alpha_lr": 0.03}

    def arrays(self, kind, prefix="net."):
        found = {}
        for name, array in self.below(kind).items():
            network, _, rest = name.partition(".")
            layer, _, part = rest.rpartition(".")
            if network in NETWORKS and layer in LAYERS:
                found[f"{prefix}{NETWORKS[network]}.{LAYERS[layer]}.{part}"] = array
            elif name == "log_alpha" and prefix == "net.":
                found[name] = array
        return found

    def batch(self):
        """The sequences as our replay buffer gives them."""
        found = self.below("batch")
        rows = np.arange(found["obs"].shape[1])
        names = [n for n in NETWORKS.values() if self.settings["twin_q"] or n != "twin_q"]
        states = {
            name: {part: found[f"state_in_{2 * i + j}"][:, None] for j, part in enumerate("hc")}
            for i, name in enumerate(names)
        }
        real = rows < found["seq_lens"][:, None]
        return {
            **{name: found[name] for name in ("obs", "new_obs", "actions", "rewards")},
            Columns.TERMINATEDS: found["dones"],
            WEIGHTS: found["weights"],
            Columns.LOSS_MASK: real & (rows >= self.settings["burn_in"]),
            Columns.STATE_IN: states,
        }


def config_of(recorded, **more):
    config = configs.todays_config("RNNSAC").training(**recorded.settings, **more)
    return config.rl_module(model_config={**MODEL, "max_seq_len": 4})


def local_learner(recorded, **more):
    """A learner with the recorded weights, also of the targets."""
    learner = config_of(recorded, **more).build_learner(spaces={MODULE: (SEEN, recorded.space)})
    targets = recorded.arrays("targets", "target_net.")
    critics = {name: array for name, array in targets.items() if ".pi." not in name}
    state = recorded.arrays("weights") | critics
    set_weights(learner, state)
    return learner


@pytest.fixture(params=CASES)
def recorded(request, monkeypatch):
    # No actions are drawn: each is so many standard deviations above its mean, as in the records.
    fixed = lambda normal, _=(): normal.loc + 0.7 * normal.scale  # noqa: E731
    monkeypatch.setattr(torch.distributions.Normal, "rsample", fixed)
    return Recorded(request.param)


def test_losses_errors_and_gradients_are_those_of_ray_1_13(recorded):
    learner = local_learner(recorded)
    batch = recorded.batch()
    told, gradients = recordings.updated(learner, MODULE, batch, steps=len(batch["obs"]))
    recordings.same_losses(recorded, TERMS, told, learner.sequence_errors[MODULE], gradients)


def test_an_update_gives_the_weights_and_targets_that_ray_1_13_had_after_it(recorded):
    learner = local_learner(recorded)
    batch = recorded.batch()
    recordings.updated(learner, MODULE, batch, steps=len(batch["obs"]), sampled=1)
    state, before = learner.module[MODULE].get_state(), recorded.arrays("weights")
    after = recorded.arrays("after") | recorded.arrays("target_after", "target_net.")
    theirs = {name: array for name, array in after.items() if not name.startswith("target_net.pi.")}
    close_all(state, theirs, 1e-4)
    for name in ("net.pi.encoder.lstm.weight_ih_l0", "net.q.head.0.weight", "log_alpha"):
        assert np.abs(state[name] - before[name]).max() > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("case", ["discrete", "box"])
def test_step_by_step_its_states_are_those_of_the_whole_sequence(case):
    recorded = Recorded(case)
    module = local_learner(recorded, zero_init_states=False).module[MODULE].unwrapped()
    states = {
        network: {name: part[None] for name, part in parts.items()}
        for network, parts in module.get_initial_state().items()
    }
    seen, taken, first = torch.from_numpy(recorded.found["batch.obs"][:1]), [], states
    for step in range(seen.shape[1]):
        batch = {Columns.OBS: seen[:, step : step + 1], Columns.STATE_IN: states}
        out = module.forward_inference(batch)
        best = out[Columns.ACTION_DIST_INPUTS].argmax(-1)
        taken.append(out.get(Columns.ACTIONS, best))
        states = out[Columns.STATE_OUT]
    taken = torch.cat(taken, 1)
    logits, last = module.logits_of(seen, first)
    best = logits.argmax(-1) if case == "discrete" else logits.chunk(2, -1)[0].tanh()
    close(taken, best, 1e-6)
    assert states.keys() == {"pi", "q", "twin_q"}
    close(states["pi"]["h"], last["h"], 1e-6)
    # A critic's state has seen the actions that were taken.
    inputs = seen if case == "discrete" else torch.cat([seen, taken], -1)
    encoded = module.net["q"]["encoder"]({Columns.OBS: inputs, Columns.STATE_IN: first["q"]})
    close(states["q"]["c"], encoded[Columns.STATE_OUT]["c"], 1e-6)
    explored = set()
    for _ in range(40):
        out = module.forward_exploration(batch)
        policy = module.get_exploration_action_dist_cls().from_logits(out["action_dist_inputs"])
        # Of a Box, critics have gone on with what was drawn already.
        explored.add(str(out.get(Columns.ACTIONS, policy.sample())))
    assert len(explored) > 1


def test_log_probabilities_are_those_of_samples_squashed_into_their_range():
    mean, log_std = torch.zeros(200_000, 1), torch.full((200_000, 1), -0.5)
    torch.manual_seed(0)
    actions, logp = drawn(torch.cat([mean, log_std], -1))
    shares, edges = torch.histogram(actions[:, 0], 20, range=(-1.0, 1.0), density=True)
    middle = (actions[:, 0] > edges[9]) & (actions[:, 0] < edges[10])
    close(logp[middle].exp().mean(), shares[9], 0.05)


def test_sequences_have_what_follows_each_step_by_so_many_steps():
    episode = episodes.to_numpy(
        SingleAgentEpisode(
            observations=[np.float32([i]) for i in range(6)],
            actions=[0, 1, 2, 0, 1],
            rewards=[1.0, 2.0, 4.0, 8.0, 16.0],
            extra_model_outputs={
                Columns.STATE_OUT: [{"pi": {"h": np.float32([i])}} for i in range(5)]
            },
            terminated=True,
            len_lookback_buffer=0,
        )
    )
    cut = SequenceChopper(3, 1, zero_states=False, n_step=2, gamma=0.5, following=True)
    first, second = cut.chop(episode)
    assert first["obs"].ravel().tolist() == [0, 1, 2]
    assert second["obs"].ravel().tolist() == [2, 3, 4]
    assert first["new_obs"].ravel().tolist() == [2, 3, 4]
    assert second["new_obs"].ravel().tolist() == [4, 5, 5]
    assert second["rewards"].tolist() == [8.0, 16.0, 16.0]
    assert second[Columns.LOSS_MASK].tolist() == [False, True, True]
    assert second[Columns.STATE_IN]["pi"]["h"].tolist() == [1]
    batch = cut.batch([first, second], np.ones(2))
    assert batch["obs"].shape == batch["new_obs"].shape == (2, 4, 1)
    assert batch[Columns.LOSS_MASK].sum() == 5


@pytest.mark.parametrize(
    ("model", "spaces", "what"),
    [
        ({}, (SEEN, DISCRETE), "no LSTM"),
        ({"use_lstm": True}, (SEEN, gymnasium.spaces.MultiBinary(2)), "Discrete or Box"),
        (
            {"use_lstm": True},
            (gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8), BOX),
            "one-dimensional",
        ),
    ],
)
def test_a_network_that_it_cannot_train_is_refused_by_name(model, spaces, what):
    config = configs.todays_config("RNNSAC").rl_module(model_config=model)
    with pytest.raises(ConfigError, match=what):
        config.build_learner(spaces={MODULE: spaces})


def test_rays_own_example_means_what_it_meant():
    network = {"use_lstm": True, "lstm_cell_size": 64, "fcnet_hiddens": [64, 64]}
    network |= {"lstm_use_prev_action": True}
    old = {
        "burn_in": 4,
        "zero_init_states": False,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "tau": 0.3,
        "optimization": {"actor_learning_rate": 0.005, "entropy_learning_rate": 0.0001},
        "model": {"max_seq_len": 20},
        "policy_model": network,
        "Q_model": network,
    }
    translation = translate(old, algorithm="RNNSAC")
    assert translation.calls["training"] == {
        "actor_lr": 0.005,
        "alpha_lr": 0.0001,
        "buffer_size": 100_000,
        "burn_in": 4,
        "num_steps_sampled_before_learning_starts": 1000,
        "tau": 0.3,
        "zero_init_states": False,
    }
    assert translation.calls["rl_module"]["model_config"] == {**network, "max_seq_len": 20}
    seen = translation.calls["env_runners"]["env_to_module_connector"]
    assert (seen.actions, seen.rewards) == (1, 0)


def acted(exploration, space=DISCRETE, **more):
    """How often each action is taken of 3,000 times, and the chances of its distribution."""
    old = {"policy_model": MODEL, "Q_model": MODEL, "exploration_config": exploration, **more}
    config = translate(old, algorithm="RNNSAC", legacy_ray="1.13.0").algorithm_config
    config.environment(observation_space=SEEN, action_space=space)
    spec = config.get_multi_rl_module_spec(spaces={MODULE: (SEEN, space)})[MODULE]
    torch.manual_seed(3)
    module = spec.build()
    with torch.no_grad():  # heads begin too small to show much
        module.net["pi"]["head"][0].bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
    many = 3000
    state = {
        net: {part: torch.zeros(many, *value.shape) for part, value in parts.items()}
        for net, parts in module.get_initial_state().items()
    }
    batch = {Columns.OBS: torch.ones(many, 1, 4), Columns.STATE_IN: state}
    out = module.forward_exploration(batch, t=0)
    counts = np.bincount(out[Columns.ACTIONS].flatten().numpy(), minlength=3) / many
    return counts, out[Columns.ACTION_DIST_INPUTS][0, 0].detach()


def test_it_explores_as_ray_1_13_trained_it():
    """Asked of a real one: Random, SoftQ and epsilon-greedy trained with Discrete actions."""
    counts, _ = acted({"type": "Random"})
    np.testing.assert_allclose(counts, 1 / 3, atol=0.04)
    counts, logits = acted({"type": "SoftQ", "temperature": 0.5})
    np.testing.assert_allclose(counts, torch.softmax(logits / 0.5, -1), atol=0.04)
    for kind in ("EpsilonGreedy", "PerWorkerEpsilonGreedy"):
        counts, _ = acted({"type": kind, "initial_epsilon": 0.3})
        np.testing.assert_allclose(counts, [0.8, 0.1, 0.1], atol=0.04)


@pytest.mark.parametrize("kind", ["ParameterNoise", "GaussianNoise", "Curiosity"])
def test_what_ray_1_13_died_of_is_refused(kind):
    old = {"exploration_config": {"type": kind}}
    with pytest.raises(ConfigError, match=f"not by {kind}; with that, Ray 1.13.0 failed, too"):
        translate(old, algorithm="RNNSAC").algorithm_config  # noqa: B018


def test_box_actions_are_explored_by_the_distribution_alone():
    with pytest.raises(ConfigError, match="explores only by its action distribution"):
        acted({"type": "Random"}, BOX)
