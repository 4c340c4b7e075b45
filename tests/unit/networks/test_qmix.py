"""Old QMIX checkpoints: agents, mixer and targets compute in today's module what they did.

`tests/legacy/generate_qmix.py` made the files and the numbers, with Ray 1.13.0.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("ray")

import torch

from rllib_compat import Given, convert
from rllib_compat.conversion import Form, prepare
from rllib_compat.errors import CheckpointError, CompatError
from rllib_compat.formats import read_checkpoint
from rllib_compat.modules import QMIXModule
from rllib_compat.networks import ModelSettings, grouped_space, read
from rllib_compat.neutral.spaces import to_gymnasium
from tests.legacy.cases import MUSEUM
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

MIXERS = {"default": "qmix", "vdn": "vdn", "none": None}


def case(name):
    folder = MUSEUM / "groups" / f"qmix-torch-{name}"
    about = json.loads((folder / "about.json").read_text("utf-8"))
    with np.load(folder / "expected.npz") as file:
        return folder / about["checkpoint"], {key: file[key] for key in file}


def read_policy(path):
    checkpoint = prepare(read_checkpoint(path), Given(), to="msgpack").checkpoint
    (policy,) = checkpoint.policies.values()
    return policy, read(policy, ModelSettings.of(checkpoint, policy)).network


def module_of(policy, network):
    module = QMIXModule(
        observation_space=grouped_space(to_gymnasium(policy.observation_space)),
        action_space=to_gymnasium(policy.action_space),
        inference_only=False,
        model_config={"mixing_embed_dim": 32, "epsilon": 0.0, **network.target.model_config},
        catalog_class=None,
    )
    module.make_target_networks()
    state = network.module_state()
    assert module.get_state().keys() == state.keys()
    module.set_state(state)
    return module


@pytest.mark.parametrize(("name", "mixer"), MIXERS.items())
def test_agents_mixer_and_targets_compute_what_they_did(name, mixer):
    path, expected = case(name)
    policy, network = read_policy(path)
    assert network.target.model_config["mixer"] == mixer
    module = module_of(policy, network)
    seen = {part: torch.from_numpy(expected[part][None]).float() for part in ("obs", "state")}
    for kind, net in (("", module.net), ("target_", module.target_net)):
        with torch.no_grad():
            values, state = module._values(net, seen)
            taken = torch.from_numpy(expected[f"out/{kind}q_values"].max(-1)[None])
            mixed = module.mixed(taken, seen, target=bool(kind))
        found = {"q_values": values[0], "state_out": state[0], "mixed": mixed[0]}
        assert (f"out/{kind}mixed" in expected) == (mixer is not None)
        for output, array in found.items():
            if (recorded := expected.get(f"out/{kind}{output}")) is not None:
                np.testing.assert_allclose(array.numpy(), recorded, rtol=1e-5, atol=1e-5)


def test_it_becomes_a_whole_algorithm_and_that_can_be_converted_again(tmp_path):
    path, _ = case("vdn")
    _, old = read_policy(path)
    for source, target in ((path, tmp_path / "new"), (tmp_path / "new", tmp_path / "newer")):
        made = convert(source, target)
        assert made.plan.form is Form.ALGORITHM
        assert made.plan.translation.calls["training"]["mixer"] == "vdn"
    _, new = read_policy(tmp_path / "newer")
    for name, array in old.module_state().items():
        np.testing.assert_array_equal(new.module_state()[name], array)


def test_a_file_that_lacks_an_array_or_has_another_one_is_refused():
    policy, _ = read_policy(case("default")[0])
    settings = ModelSettings.from_config({}, {}, algorithm="QMIX")
    weights = dict(policy.weights)
    weight = weights.pop("target_mixer.V.0.weight")
    with pytest.raises(CheckpointError, match=r"target_net.mixer.last_bias.0.weight"):
        read(replace(policy, weights=weights), settings)
    more = {**policy.weights, "model.fc3.weight": weight}
    with pytest.raises(CompatError, match="fc3"):
        read(replace(policy, weights=more), settings)
