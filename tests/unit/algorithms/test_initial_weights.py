"""What new networks of policy gradients begin with."""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
import tree
from ray.rllib.core.models.torch.encoder import TorchLSTMEncoder
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_compat.algorithms import set_catalogs
from rllib_compat.ray_versions import configs, releases
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

SPACES = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), gymnasium.spaces.Discrete(3))


def built(algorithm, spaces=SPACES, **model):
    """The module that a learner trains, of a config as a trainer changes it."""
    config = configs.todays_config(algorithm)
    config.rl_module(model_config={"fcnet_hiddens": [8], "vf_share_layers": False, **model})
    set_catalogs(config)
    return config.build_learner(spaces={"default_policy": spaces}).module["default_policy"]


def norms(algorithm, **given):
    """The norms of units, and the sum of all biases."""
    module = built(algorithm, **given)
    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
    units = {round(float(norm), 4) for layer in layers for norm in layer.weight.norm(dim=1)}
    return units, sum(float(layer.bias.abs().sum()) for layer in layers)


@pytest.mark.parametrize("algorithm", ["A2C", "PG"])
def test_new_actors_and_critics_begin_as_they_did_unless_the_config_says_how(algorithm):
    assert norms(algorithm) == ({1.0, 0.01}, 0.0)
    drawn, _ = norms(algorithm, fcnet_kernel_initializer="xavier_uniform_")
    assert len(drawn) > 2


def test_new_networks_of_bc_are_those_of_today():
    config = configs.todays_config("BC").rl_module(model_config={"fcnet_hiddens": [8]})
    todays = config.build_learner(spaces={"default_policy": SPACES}).module["default_policy"]
    assert str(built("BC")) == str(todays)


OF_RAY = ("PPO", "APPO", "IMPALA", "MARWIL", "SAC", "CQL", "DQN", "APEX", "BC", "DDPPO")
BYTES = gymnasium.spaces.Box(0, 255, (10, 10, 3), np.uint8)


@pytest.mark.parametrize("algorithm", ["A2C", "PG", "ES", "R2D2", "RNNSAC", *OF_RAY])
def test_new_networks_take_images_of_bytes_as_they_are(algorithm):
    """All died of them in their first step, as Ray's own do: cameras and games give bytes."""
    if algorithm in ("SAC", "CQL") and not releases.trains_discrete_sac():
        pytest.skip("this Ray's SAC learns no discrete actions, and no images with others")
    model = {"conv_filters": [[4, 3, 2], [5, 3, 2]], "lstm_cell_size": 6, "max_seq_len": 4}
    model["use_lstm"] = algorithm in ("R2D2", "RNNSAC")
    module = built(algorithm, (BYTES, SPACES[1]), **model)
    lead = (2, 3) if model["use_lstm"] else (2,)
    images = np.random.default_rng(3).integers(0, 256, (*lead, *BYTES.shape), np.uint8)
    states = module.get_initial_state()
    states = tree.map_structure(lambda state: torch.zeros(2, *np.shape(state)), states)

    def acted(seen):
        batch = {"obs": seen, **({"state_in": states} if model["use_lstm"] else {})}
        return module.forward_inference(batch)

    from_bytes, from_floats = (
        acted(torch.from_numpy(images)),
        acted(torch.from_numpy(images).float()),
    )
    for name, floats in tree.flatten_with_path(from_floats):
        made = dict(tree.flatten_with_path(from_bytes))[name]
        torch.testing.assert_close(made, floats)


def test_new_heads_behind_an_lstm_begin_larger():
    model = {"use_lstm": True, "max_seq_len": 5, "lstm_cell_size": 8}
    module = built("A2C", **model)
    (layer,) = (part for part in module.pi.modules() if isinstance(part, torch.nn.Linear))
    bound = (6 / (8 + 3)) ** 0.5  # Glorot and Bengio (2010), equation 16
    assert bound / 2 < float(layer.weight.abs().max()) <= bound
    assert not layer.bias.any()


@pytest.mark.parametrize("algorithm", ["PPO", "APPO", "A2C", "R2D2", "RNNSAC"])
def test_the_step_before_goes_past_the_dense_layers_into_the_lstm(algorithm):
    """As `LSTMWrapper` had it, of Ray 1.13.0 (`models/torch/recurrent_net.py`) and others."""
    model = {"use_lstm": True, "max_seq_len": 5, "lstm_cell_size": 6}
    model |= {"lstm_use_prev_action": True, "lstm_use_prev_reward": True}
    beside = SPACES[1].n + 1
    seen = gymnasium.spaces.Box(-2.0, 2.0, (4 + beside,), np.float32)
    module = built(algorithm, (seen, SPACES[1]), **model)
    encoders = [part for part in module.modules() if isinstance(part, TorchLSTMEncoder)]
    assert encoders
    for encoder in encoders:
        taken = []
        encoder.lstm.register_forward_pre_hook(lambda _, given, taken=taken: taken.append(given[0]))
        obs = torch.rand(2, 5, 4 + beside)
        states = {k: torch.zeros(2, *v.shape) for k, v in encoder.get_initial_state().items()}
        encoder({"obs": obs, "state_in": states})
        torch.testing.assert_close(taken[0][..., 8:], obs[..., 4:])
        torch.testing.assert_close(taken[0][..., :8], encoder.tokenizer.net(obs[..., :4]))


def test_modules_of_the_users_own_stay_what_they_are():
    class Mine:
        pass

    config = configs.todays_config("SAC").rl_module(rl_module_spec=RLModuleSpec(Mine))
    set_catalogs(config)
    assert "rllib_compat" not in str(config.rl_module_spec.catalog_class)
    several = MultiRLModuleSpec(rl_module_specs={"a": RLModuleSpec(Mine), "b": RLModuleSpec()})
    config.rl_module(rl_module_spec=several)
    set_catalogs(config)
    mine, default = several.rl_module_specs.values()
    assert mine.catalog_class is None
    assert "rllib_compat" in str(default.catalog_class)


def test_new_networks_of_r2d2_begin_as_they_did():
    net = built("R2D2", use_lstm=True, max_seq_len=5, lstm_cell_size=8).net
    (below,) = (part for part in net["encoder"].modules() if isinstance(part, torch.nn.Linear))
    assert below.weight.norm(dim=1).allclose(torch.ones(8))
    behind = [net["logits"], *(part for part in net["advantage"] if hasattr(part, "weight"))]
    for layer in behind:
        bound = (6 / sum(layer.weight.shape)) ** 0.5  # Glorot and Bengio (2010), equation 16
        assert bound / 2 < float(layer.weight.detach().abs().max()) <= bound
    assert not any(float(layer.bias.detach().abs().sum()) for layer in (below, *behind))


def test_new_networks_of_rnnsac_begin_as_they_did():
    module = built("RNNSAC", use_lstm=True, max_seq_len=5, lstm_cell_size=8)
    for part in module.net.values():
        (below,) = (p for p in part["encoder"].modules() if isinstance(p, torch.nn.Linear))
        (behind,) = (p for p in part["head"].modules() if isinstance(p, torch.nn.Linear))
        assert below.weight.norm(dim=1).allclose(torch.ones(8))
        bound = (6 / sum(behind.weight.shape)) ** 0.5
        assert bound / 2 < float(behind.weight.detach().abs().max()) <= bound
        assert not any(float(layer.bias.detach().abs().sum()) for layer in (below, behind))
