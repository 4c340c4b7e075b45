"""Policies of Q-values explore by noisy nets, soft Q and noise on weights as in the old Rays.

`tests/legacy/losses/record_dqn.py` recorded what `ParameterNoise` of Ray 1.13.0 did.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.schedules.scheduler import Scheduler

from rllib_compat.adapters import ParameterNoise
from rllib_compat.config import translate
from rllib_compat.errors import NotYetError
from rllib_compat.modules import ExploringQModule
from rllib_compat.networks import Graph
from rllib_compat.networks import actions as choosing
from rllib_compat.networks.modules import exploration
from rllib_compat.networks.modules.exploration import Noise, NoisyLinear, WeightNoise, noise
from rllib_compat.neutral import PolicyState
from rllib_compat.ray_versions import modules
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.test_dqn_losses import SPACES, Recorded
from tests.unit.algorithms.test_losses import MODULE, RECORDS

pytestmark = OTHERS_WARNINGS

FILE = RECORDS / "q_exploration" / "parameter-noise.npz"
SEEN = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)


def module_of(config):
    """The module of a translated config."""
    told = {"hiddens": [8], "model": {"fcnet_hiddens": [6]}, **config}
    translated = translate(told, algorithm="DQN", legacy_ray="1.13.0").algorithm_config
    translated.environment(observation_space=SPACES[0], action_space=SPACES[1])
    spec = translated.get_multi_rl_module_spec(spaces={"default_policy": SPACES})
    return spec["default_policy"].build()


def batch(seen=SEEN):
    return {Columns.OBS: torch.from_numpy(seen)}


def test_a_config_that_asks_for_none_of_it_has_rays_own_module():
    assert not isinstance(module_of({}), ExploringQModule)


def test_noisy_layers_are_those_of_both_streams():
    module = module_of({"noisy": True, "sigma0": 0.7})
    kinds = {name: type(part) for name, part in module.named_modules()}
    noisy_layers = [name for name, kind in kinds.items() if kind is NoisyLinear]
    assert {name.partition(".")[0] for name in noisy_layers} == {"af", "vf"}
    assert len(noisy_layers) == 4
    dense = [name for name, kind in kinds.items() if kind is torch.nn.Linear]
    assert {name.partition(".")[0] for name in dense} == {"encoder"}
    first = module.get_submodule(noisy_layers[0])
    np.testing.assert_allclose(first.sigma_bias.detach(), 0.7 / math.sqrt(6), rtol=1e-6)


def test_noisy_nets_explore_with_new_noise_each_time_and_act_without():
    module = module_of(
        {"noisy": True, "exploration_config": {"initial_epsilon": 0.0, "final_epsilon": 0.0}}
    )
    best = module.forward_inference(batch())[Columns.ACTIONS]
    assert all(
        torch.equal(best, module.forward_inference(batch())[Columns.ACTIONS]) for _ in range(5)
    )
    drawn = {
        tuple(module.forward_exploration(batch(), t=10)[Columns.ACTIONS].tolist())
        for _ in range(30)
    }
    assert len(drawn) > 1


def test_noise_is_learned_and_each_pass_of_a_training_step_has_its_own(monkeypatch):
    module = module_of({"noisy": True})
    module.make_target_networks()
    sizes = []
    really = exploration.draw
    monkeypatch.setattr(exploration, "draw", lambda size: sizes.append(size) or really(size))
    out = module.forward_train(batch() | {Columns.NEXT_OBS: torch.from_numpy(SEEN)})
    assert sizes == [6, 8, 8, 3, 6, 8, 8, 1] * 3
    assert not torch.equal(out["qf_preds"], out["qf_next_preds"])
    out["qf_preds"].square().sum().backward()
    sigmas = {
        name: weight for name, weight in module.named_parameters() if name.startswith(("af", "vf"))
    }
    assert all(weight.grad is not None and weight.grad.any() for weight in sigmas.values())


@given(
    takes=st.integers(1, 5), gives=st.integers(1, 5), seed=st.integers(0, 1000), by=st.floats(0, 2)
)
def test_noise_of_a_layer_is_factorised(takes, gives, seed, by):
    torch.manual_seed(seed)
    layer = NoisyLinear(takes, gives, by)
    rows = torch.randn(3, takes)
    torch.manual_seed(seed)
    with noise(layer):
        ours = layer(rows)
    torch.manual_seed(seed)
    into, out = (torch.sign(d) * d.abs() ** 0.5 for d in (torch.randn(takes), torch.randn(gives)))
    weight = layer.weight + layer.sigma_weight * torch.outer(out, into)
    bias = layer.bias + layer.sigma_bias * out
    torch.testing.assert_close(ours, rows @ weight.T + bias)
    torch.testing.assert_close(layer(rows), rows @ layer.weight.T + layer.bias)


@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_soft_q_draws_actions_by_their_values(temperature):
    module = module_of({"exploration_config": {"type": "SoftQ", "temperature": temperature}})
    many = np.repeat(SEEN[:1], 20_000, 0)
    with torch.no_grad():
        values = modules.q_values(module, batch(many))[0]
        drawn = module.forward_exploration(batch(many), t=10)[Columns.ACTIONS]
    seen = np.bincount(drawn.numpy(), minlength=3) / len(many)
    np.testing.assert_allclose(seen, torch.softmax(values / temperature, -1), atol=0.02)
    best = module.forward_inference(batch())[Columns.ACTIONS]
    assert torch.equal(best, modules.q_values(module, batch()).argmax(-1))


def test_soft_q_begins_with_random_steps():
    module = module_of(
        {"exploration_config": {"type": "SoftQ", "temperature": 1e-4, "random_timesteps": 50}}
    )
    many = np.repeat(SEEN[:1], 3_000, 0)
    at_first = module.forward_exploration(batch(many), t=49)[Columns.ACTIONS]
    np.testing.assert_allclose(np.bincount(at_first) / 3_000, 1 / 3, atol=0.05)
    later = module.forward_exploration(batch(many), t=51)[Columns.ACTIONS]
    assert len(set(later.tolist())) == 1


@pytest.mark.parametrize("error", [False, True])
def test_noise_on_weights_is_gone_afterwards(error):
    module = module_of({"exploration_config": {"type": "ParameterNoise"}})
    before = {name: weight.clone() for name, weight in module.named_parameters()}
    module.renew_weight_noise(0.5)
    with pytest.raises(KeyError) if error else module.noisy(), module.noisy():
        changed = {n for n, w in module.named_parameters() if not torch.equal(w, before[n])}
        if error:
            raise KeyError
    norms = {name for name, part in module.named_modules() if isinstance(part, torch.nn.LayerNorm)}
    assert len(norms) == 2
    assert {name.rpartition(".")[0] for name in before.keys() - changed} == norms
    assert all(torch.equal(weight, before[n]) for n, weight in module.named_parameters())


class Episode(Recorded):
    """What `ParameterNoise` of the old Ray did with an episode."""

    def __init__(self):
        super(Recorded, self).__init__(FILE)
        self.algorithm = "DQN"
        self.old = {**self.told(), "framework": "torch", "model": {"fcnet_hiddens": [5]}}
        self.old["model"]["fcnet_activation"] = "tanh"


@pytest.mark.parametrize("number", range(8))
def test_noise_grows_and_shrinks_as_in_the_old_ray(number):
    recorded = Episode()
    module = recorded.learner("weights").module[MODULE]
    clean = recorded.arrays("weights")
    perturbed = recorded.arrays(f"perturbed.{number}")
    module.weight_noise = WeightNoise(module.parameters(), 0.0)
    module.weight_noise._drawn = [
        torch.from_numpy(np.asarray(perturbed[name] - clean[name])) if name in clean else 0.0
        for name, _ in module.named_parameters()
    ]
    found = recorded.found
    seen = batch(found["obs"])
    with torch.no_grad():
        values = module.actions_of(seen)
        np.testing.assert_allclose(values, found[f"values.{number}"], rtol=1e-4, atol=1e-5)
        with module.noisy():
            moved = module.actions_of(seen)
        np.testing.assert_allclose(moved, found[f"noisy.{number}"], rtol=1e-4, atol=1e-4)
    module.epsilon_schedule = Scheduler(fixed_value_or_schedule=float(found["epsilon"]))
    before, after = found[f"deviation.{number}"]
    assert module.adapted(before, seen) == pytest.approx(after, rel=1e-9)


def episode_of(steps, *, done):
    made = SingleAgentEpisode(observation_space=SPACES[0], action_space=SPACES[1])
    made.add_env_reset(SEEN[0])
    for step in range(steps):
        made.add_env_step(SEEN[step + 1], 0, 1.0, terminated=done and step == steps - 1)
    return made


def call(connector, module, *episodes, explore=True):
    connector(rl_module=module, batch={}, episodes=list(episodes), explore=explore)


def test_noise_changes_where_an_episode_begins_and_its_size_where_one_ends():
    module = module_of({"exploration_config": {"type": "ParameterNoise", "initial_stddev": 0.25}})
    connector = ParameterNoise()
    call(connector, module, episode_of(0, done=False), explore=False)
    assert module.weight_noise is None
    call(connector, module, episode_of(0, done=False))
    first = module.weight_noise
    assert np.std(torch.cat([d.ravel() for d in first._drawn]).numpy()) == pytest.approx(0.25, 0.3)
    call(connector, module, episode_of(3, done=False))
    assert module.weight_noise is first
    assert connector.get_state() == {"deviations": {"": 0.25}}
    call(connector, module, episode_of(5, done=True))
    (after,) = connector.get_state()["deviations"].values()
    assert after in (0.25 * 1.01, 0.25 / 1.01)
    other = ParameterNoise()
    other.set_state(connector.get_state())
    call(other, module, episode_of(0, done=False))
    assert module.weight_noise is not first
    assert other.get_state() == connector.get_state()


def test_deviations_of_several_env_runners_are_averaged():
    states = [{"deviations": {"a": 1.0, "b": 4.0}}, {"deviations": {"a": 3.0}}]
    connector = ParameterNoise()
    assert connector.merge_states(states) == {"deviations": {"a": 2.0, "b": 4.0}}
    connector.set_state({"deviations": {"a": 9.0, "c": 5.0}})  # as after a restore
    assert connector.merge_states(states)["deviations"] == {"a": 2.0, "b": 4.0, "c": 5.0}


def test_noise_on_weights_asks_for_whole_episodes_and_says_so():
    told = translate({"exploration_config": {"type": "ParameterNoise"}}, algorithm="DQN")
    assert told.calls["env_runners"]["batch_mode"] == "complete_episodes"
    (row,) = [f for f in told.report if f.path == "$.batch_mode"]
    assert "whole episodes" in row.message
    assert "adapt_config" in told.to_python()


@pytest.mark.parametrize("key", ["soft_q", "exploration_final_eps"])
def test_soft_q_takes_no_random_actions(key):
    given_ = {"soft_q": True, "softmax_temp": 0.5, key: True if key == "soft_q" else 0.3}
    told = translate(given_, algorithm="DQN", legacy_ray="0.7.6")
    assert told.calls["training"]["epsilon"] == 0.0
    assert told.calls["rl_module"]["model_config"]["soft_q_temperature"] == 0.5


@pytest.mark.parametrize(
    ("config", "model", "temperature"),
    [
        ({"exploration_config": {"type": "SoftQ", "temperature": 0.5}}, {}, 0.5),
        ({"soft_q": True, "softmax_temp": 0.25}, {}, 0.25),
        ({}, {"soft_q_temperature": 2.0}, 2.0),
    ],
)
def test_a_policy_without_ray_explores_by_soft_q(config, model, temperature):
    policy = PolicyState("p", {}, config={"model": model})
    explore = choosing._exploration_by_values(policy, config, Graph({"obs": (1,)}, (), {}))
    values = np.repeat([[0.0, 1.0, -1.0]], 20_000, 0)
    drawn = explore(values, np.random.default_rng(0))
    expected = torch.softmax(torch.tensor([0.0, 1.0, -1.0]) / temperature, -1)
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 20_000, expected, atol=0.02)


@pytest.mark.parametrize(
    "model", [{"parameter_noise": {"initial_stddev": 1.0}}, {"parameter_noise": "x"}]
)
def test_a_policy_without_ray_says_that_it_does_not_explore_by_noise_on_weights(model):
    policy = PolicyState("p", {}, config={"model": model})
    explore = choosing._exploration_by_values(policy, {}, Graph({"obs": (1,)}, (), {}))
    if model["parameter_noise"] == "x":  # what no module of ours was told
        explore(np.zeros((1, 3)), np.random.default_rng(0))
        return
    with pytest.raises(NotYetError, match="ParameterNoise"):
        explore(np.zeros((1, 3)), np.random.default_rng(0))


BOX = gymnasium.spaces.Box(np.float32([-1, -2]), np.float32([1, 3]))


def test_noise_is_scaled_as_its_schedule_says_and_stays_within_the_bounds():
    torch.manual_seed(3)
    added = Noise({"type": "GaussianNoise", "random_timesteps": 10, "stddev": 0.2}, BOX)
    zeros = torch.zeros(4000, 2)
    drawn = added(zeros, 9)
    assert (drawn.min(0).values < torch.tensor([-0.9, -1.9])).all()
    assert (drawn.max(0).values > torch.tensor([0.9, 2.9])).all()
    for step, size in ((10, 0.2), (5010, 0.2 * 0.51), (10_010, 0.2 * 0.02), (10**6, 0.2 * 0.02)):
        np.testing.assert_allclose(added(zeros, step).std(0), size, rtol=0.06)
    assert added(torch.full((100, 2), 0.99), 10).max() <= 1.0 + 2.0


def test_ornstein_uhlenbeck_noise_goes_back_to_nothing_and_is_as_wide_as_the_range():
    torch.manual_seed(3)
    added = Noise({"type": "OrnsteinUhlenbeckNoise", "random_timesteps": 0}, BOX)
    drawn = torch.stack([added(torch.zeros(1, 2), 0)[0] for _ in range(4000)])
    # Its variance is sigma² / (1 - (1 - theta)²), that of its neighbours (1 - theta) times as much.
    wanted = 0.1 * 0.2 / (1 - 0.85**2) ** 0.5 * torch.tensor([2.0, 5.0])
    np.testing.assert_allclose(drawn.std(0), wanted, rtol=0.15)
    together = (drawn[1:] * drawn[:-1]).mean(0) / drawn.var(0)
    np.testing.assert_allclose(together, 0.85, atol=0.05)
