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

from rllib_compat import ray_versions
from rllib_compat.algorithms.initial_networks import CATALOGS, SACCatalog, begin_as_before
from rllib_compat.networks.modules.initial_weights import BeginsAsBefore
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


#: The algorithms whose first weights are others than today's.
DRAWN = [name for name, catalog in CATALOGS.items() if issubclass(catalog, BeginsAsBefore)]


@pytest.mark.parametrize("algorithm", ["A2C", "PG", *DRAWN])
def test_new_actors_and_critics_begin_as_they_did_unless_the_config_says_how(algorithm):
    spaces = CONTINUOUS if algorithm in ("SAC", "CQL") else SPACES
    assert norms(algorithm, spaces=spaces) == ({1.0, 0.01}, 0.0)
    drawn, _ = norms(algorithm, spaces=spaces, fcnet_kernel_initializer="xavier_uniform_")
    assert len(drawn) > 2


def test_new_networks_of_bc_are_those_of_today():
    config = ray_versions.todays_config("BC").rl_module(model_config={"fcnet_hiddens": [8]})
    todays = config.build_learner(spaces={"default_policy": SPACES}).module["default_policy"]
    assert str(built("BC")) == str(todays)


BYTES = gymnasium.spaces.Box(0, 255, (10, 10, 3), np.uint8)


@pytest.mark.parametrize("algorithm", ["A2C", "PG", "ES", "R2D2", "RNNSAC", *CATALOGS])
def test_new_networks_take_images_of_bytes_as_they_are(algorithm):
    """All died of them in their first step, as Ray's own do: cameras and games give bytes."""
    if algorithm in ("SAC", "CQL") and not ray_versions.trains_discrete_sac():
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
    module = built("PPO", **model)
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


def test_new_networks_of_rnnsac_begin_as_they_did():
    module = built("RNNSAC", use_lstm=True, max_seq_len=5, lstm_cell_size=8)
    for part in module.net.values():
        (below,) = (p for p in part["encoder"].modules() if isinstance(p, torch.nn.Linear))
        (behind,) = (p for p in part["head"].modules() if isinstance(p, torch.nn.Linear))
        assert below.weight.norm(dim=1).allclose(torch.ones(8))
        bound = (6 / sum(behind.weight.shape)) ** 0.5
        assert bound / 2 < float(behind.weight.detach().abs().max()) <= bound
        assert not any(float(layer.bias.detach().abs().sum()) for layer in (below, behind))
