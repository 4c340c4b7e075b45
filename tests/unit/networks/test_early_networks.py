"""New networks of Ray 0.5 and 0.6 with old weights compute what those Rays computed.

`tests/legacy/new_networks/record_early.py` recorded 0.5.3 and 0.6.6, whose policies stored one
vector.
"""

import json
import zlib
from pathlib import Path

import gymnasium
import numpy as np
import pytest

pytest.importorskip("ray")

from rllib_compat.networks import ModelSettings, draw_network, fresh, read
from rllib_compat.neutral import PolicyState, spaces
from rllib_compat.trainer import defaults_of
from tests.legacy.new_networks import cases

ALL = cases.cases()
HERE = Path(cases.__file__).parent / "early"
RECORDED = {file.stem: json.loads(file.read_text()) for file in HERE.glob("*.json")}
#: What is other, and why.
UNLIKE = {
    "MultiDiscrete observations were the bare numbers": (
        *("PPO of-several", "PPO of-nested", "PPO lstm-of-nested"),
    ),
    "beside an LSTM, values had convolutions of their own": (
        *("PPO lstm-of-image", "PPO lstm-of-image84", "PPO lstm-of-image-not-one-pixel"),
    ),
    "what it gave had noise": ("DQN noisy", "DQN noisy-atoms", "DQN noisy-no-hiddens"),
    "Q-networks did not need one pixel": ("DQN filters-not-one-pixel",),
    "PG stored no value function, and its vector of convolutions is not read": ("PG filters",),
}
OTHERS = {name for names in UNLIKE.values() for name in names}
CASES = [
    (ray, name)
    for ray, found in sorted(RECORDED.items())
    for name, told in found.items()
    if "outputs" in told and name not in OTHERS
]


def made(name, shape):
    """The weights and inputs that `record_early.py` made."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
    return (drawn * scale).astype(np.float32)


def settings_of(ray, name):
    """What the config of a case says, and its spaces."""
    algorithm, seen, acts, config = ALL[name]
    default = defaults_of(algorithm, ray)
    model = dict(config.get("model", {}))
    own = {"framework": "tf", **default, **config}
    if "vf_share_layers" in model:
        own["vf_share_layers"] = model.pop("vf_share_layers")
    own["model"] = {**default["model"], **model}
    settings = ModelSettings.from_config(fresh.of_networks(own), {}, algorithm=algorithm, ray=ray)
    made_of = (cases.space(told, gymnasium.spaces) for told in (seen, acts))
    return settings, *map(spaces.from_object, made_of)


@pytest.mark.parametrize(("ray", "name"), CASES)
def test_a_new_network_with_old_weights_computes_what_the_old_one_did(ray, name):
    settings, seen, acts = settings_of(ray, name)
    told = RECORDED[ray][name]
    # What is no array is the coefficient of PPO's loss, which began as the config said.
    vector = np.concatenate(
        [
            made(n, shape).ravel() if shape else [settings.kl_coeff]
            for n, shape in told["weights"].items()
        ]
    )
    policy = PolicyState("old", vector, observation_space=seen, action_space=acts)
    old = read(policy, settings).known
    new = draw_network(settings, seen, acts, np.random.default_rng(3))
    theirs, ours = in_order(old), in_order(new)
    if name.startswith("PG"):  # whose values nothing reads: here, too, they come last
        ours = ours[: len(theirs)]
    assert len(ours) == len(theirs)
    arrays = {
        n: old.arrays[then].reshape(new.arrays[n].shape)
        for n, then in zip(ours, theirs, strict=True)
    }
    out = new.graph.evaluate({**new.arrays, **arrays}, inputs_of(new.graph))
    for then, now in NAMES.items():
        if then in told["outputs"]:
            expected = np.asarray(told["outputs"][then])
            np.testing.assert_allclose(out[now].reshape(expected.shape), expected, atol=1e-5)


#: The outputs of old networks → those of ours.
NAMES = {"logits": "action_dist_inputs", "values": "vf_preds", "q_values": "q_values"}


def in_order(network):
    """The names of arrays in the order in which they are computed with."""
    steps = [step.name for step in network.graph.steps]
    found = [n for n in network.arrays if n.rpartition(".")[0] in steps]
    return sorted(found, key=lambda n: (steps.index(n.rpartition(".")[0]), n))


def inputs_of(graph):
    """The made inputs of two items, without steps before; actions before are the first choices."""
    lead = (2, 1) if graph.states else (2,)
    found = {name: np.zeros((2, *shape)) for name, shape in graph.inputs.items()}
    found["obs"] = made("inputs", (2, *graph.inputs["obs"]))
    if "prev_rewards" in found:
        found["prev_rewards"] = made("rewards", (2,)).reshape(2, 1)
    return {
        name: array if name in graph.states else array.reshape(*lead, *array.shape[1:])
        for name, array in found.items()
    }
