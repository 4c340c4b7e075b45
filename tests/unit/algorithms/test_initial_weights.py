"""What new networks of policy gradients begin with."""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_compat import ray_versions
from rllib_compat.algorithms.initial_networks import CATALOGS, SACCatalog, begin_as_before
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

SPACES = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), gymnasium.spaces.Discrete(3))


def built(algorithm, spaces=SPACES, **model):
    """The module that a learner trains, of a config as a trainer changes it."""
    config = ray_versions.todays_config(algorithm)
    config.rl_module(model_config={"fcnet_hiddens": [8], "vf_share_layers": False, **model})
    begin_as_before(config)
    return config.build_learner(spaces={"default_policy": spaces}).module["default_policy"]


def norms(algorithm, **given):
    """The norms of units, and the sum of all biases."""
    module = built(algorithm, **given)
    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    units = {round(float(norm), 4) for layer in layers for norm in layer.weight.norm(dim=1)}
    return units, sum(float(layer.bias.abs().sum()) for layer in layers)


CONTINUOUS = (SPACES[0], gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32))


@pytest.mark.parametrize("algorithm", ["A2C", "PG", *CATALOGS])
def test_new_actors_and_critics_begin_as_they_did_unless_the_config_says_how(algorithm):
    spaces = CONTINUOUS if algorithm in ("SAC", "CQL") else SPACES
    assert norms(algorithm, spaces=spaces) == ({1.0, 0.01}, 0.0)
    drawn, _ = norms(algorithm, spaces=spaces, fcnet_kernel_initializer="xavier_uniform_")
    assert len(drawn) > 2


def test_new_networks_of_bc_are_those_of_today():
    config = ray_versions.todays_config("BC").rl_module(model_config={"fcnet_hiddens": [8]})
    todays = config.build_learner(spaces={"default_policy": SPACES}).module["default_policy"]
    assert str(built("BC")) == str(todays)


def test_new_heads_behind_an_lstm_begin_larger():
    model = {"use_lstm": True, "max_seq_len": 5, "lstm_cell_size": 8}
    module = built("PPO", **model)
    (layer,) = (part for part in module.pi.modules() if isinstance(part, torch.nn.Linear))
    bound = (6 / (8 + 3)) ** 0.5  # Glorot and Bengio (2010), equation 16
    assert bound / 2 < float(layer.weight.abs().max()) <= bound
    assert not layer.bias.any()


def test_a_new_critic_of_sac_takes_observation_and_action_together():
    module = built("SAC", CONTINUOUS, fcnet_hiddens=[8, 7])
    for critic in (module.qf_encoder, module.qf_twin_encoder, module.target_qf_encoder):
        layers = [layer for layer in critic.modules() if isinstance(layer, torch.nn.Linear)]
        assert [(n.in_features, n.out_features) for n in layers] == [(4 + 2, 8), (8, 7)]
    batch = {"obs": torch.rand(3, 4), "new_obs": torch.rand(3, 4), "actions": torch.rand(3, 2)}
    given = torch.cat([batch["obs"], batch["actions"]], dim=-1)
    (first, *_), head = module.qf_encoder.net.mlp, module.qf.net.mlp[0]
    hidden = module.qf_encoder.net.mlp(given)
    expected = head(hidden).squeeze(-1)
    assert first.in_features == given.shape[1]
    torch.testing.assert_close(module.forward_train(batch)["qf_preds"], expected)


def test_modules_of_the_users_own_stay_what_they_are():
    class Mine:
        pass

    config = ray_versions.todays_config("SAC").rl_module(rl_module_spec=RLModuleSpec(Mine))
    begin_as_before(config)
    assert config.rl_module_spec.catalog_class is not SACCatalog
    several = MultiRLModuleSpec(rl_module_specs={"a": RLModuleSpec(Mine), "b": RLModuleSpec()})
    config.rl_module(rl_module_spec=several)
    begin_as_before(config)
    assert [s.catalog_class for s in several.rl_module_specs.values()] == [None, SACCatalog]


def test_new_networks_of_r2d2_begin_as_they_did():
    net = built("R2D2", use_lstm=True, max_seq_len=5, lstm_cell_size=8).net
    (below,) = (part for part in net["encoder"].modules() if isinstance(part, torch.nn.Linear))
    assert below.weight.norm(dim=1).allclose(torch.ones(8))
    behind = [net["logits"], *(part for part in net["advantage"] if hasattr(part, "weight"))]
    for layer in behind:
        bound = (6 / sum(layer.weight.shape)) ** 0.5  # Glorot and Bengio (2010), equation 16
        assert bound / 2 < float(layer.weight.detach().abs().max()) <= bound
    assert not any(float(layer.bias.detach().abs().sum()) for layer in (below, *behind))
