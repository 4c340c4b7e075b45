"""Today's DQN, with translated settings, computes what DQN and SimpleQ of an old Ray computed.

`tests/legacy/losses/record_dqn.py` made the numbers, with Ray 1.13.0 and torch.
"""

import importlib

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_compat.config import translate
from rllib_compat.networks import TARGET_PREFIX, ModelSettings, read
from rllib_compat.neutral import PolicyState, spaces
from rllib_compat.ray_versions import configs
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms import recordings
from tests.unit.algorithms.recordings import Recording, close, close_all
from tests.unit.algorithms.test_losses import MODULE, RECORDS
from tests.unit.algorithms.transitions import columns_of

pytestmark = OTHERS_WARNINGS

HERE = RECORDS / "dqn"
CASES = sorted(path.stem for path in HERE.glob("*.npz"))
SPACES = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), gymnasium.spaces.Discrete(3))
MODEL = {"fcnet_hiddens": [5], "fcnet_activation": "tanh"}


class Recorded(Recording):
    """One case, by the names of today."""

    def __init__(self, case):
        super().__init__(HERE / f"{case}.npz")
        self.algorithm = "SimpleQ" if case.startswith("simple") else "DQN"
        self.old = {**self.told(), "framework": "torch", "model": MODEL}

    def network(self, kind):
        policy = PolicyState(
            MODULE,
            self.below(kind),
            observation_space=spaces.from_object(SPACES[0]),
            action_space=spaces.from_object(SPACES[1]),
        )
        settings = ModelSettings.from_config(self.old, {}, algorithm=self.algorithm, ray="1.13.0")
        return read(policy, settings).network

    def arrays(self, kind, targets=None):
        """What is kept for each weight, by the names of the module that takes the network's place.

        A DQN policy of Ray has layers that it does not use; those have no place there.
        """
        network = self.network("weights")
        arrays = {k: v for k, v in self.network(kind).arrays.items() if not k.startswith("target.")}
        if targets is not None:
            theirs = self.network(targets).arrays
            arrays |= {TARGET_PREFIX + name: theirs[name] for name in list(arrays)}
        return network.target.arrays(arrays)

    def learner(self, targets="targets"):
        """The learner of the translated config, with the recorded weights, also of the target."""
        config = translate(self.old, algorithm=self.algorithm, legacy_ray="1.13.0").algorithm_config
        target = self.network("weights").target
        spec = config.get_default_rl_module_spec()
        if target.module is not None:  # else Ray's own
            module, _, name = target.module.partition(":")
            spec = RLModuleSpec(getattr(importlib.import_module(module), name))
        spec.observation_space, spec.action_space = SPACES
        spec.model_config = configs.whole_model_config(config, dict(target.model_config))
        config.rl_module(rl_module_spec=spec)
        learner = config.build_learner(spaces={MODULE: SPACES})
        state = self.arrays("weights", targets)
        theirs = learner.module[MODULE].get_state()
        rest = theirs.keys() - state.keys()  # a constant of Ray's, which nothing here uses
        assert all(name.endswith("log_std_clip_param_const") for name in rest)
        learner.module[MODULE].set_state({**theirs, **state})
        return learner

    def batch(self):
        """The transitions as today's replay buffers give them."""
        found = self.below("batch")
        weights = None if self.algorithm == "SimpleQ" else found["weights"]
        return columns_of(found, weights=weights, n_step=self.old.get("n_step", 1))


@pytest.fixture(params=CASES)
def recorded(request):
    return Recorded(request.param)


@pytest.fixture
def draws(recorded, monkeypatch):
    """Lets noisy layers draw what those of the old Ray drew; all of it has to be used."""
    left = []

    def load(kind):
        drawn = recorded.below(f"noise.{kind}")
        left.extend(torch.from_numpy(drawn[name]) for name in sorted(drawn, key=int))

    def draw(size):
        found = left.pop(0)
        assert len(found) == size
        return found

    monkeypatch.setattr(torch, "randn", draw)
    yield load
    assert not left


def test_loss_and_gradients_are_those_of_the_old_ray(recorded, draws):
    draws("loss")
    told, gradients = recordings.updated(recorded.learner(), MODULE, recorded.batch(), steps=16)
    close(told["qf_loss"], recorded.found["loss"], 1e-5)
    expected = recorded.arrays("gradients")
    assert expected.keys() == gradients.keys()
    close_all(gradients, expected, 1e-5)


def test_weights_after_an_update_are_those_of_the_old_ray(recorded, draws):
    draws("after")
    learner = recorded.learner()
    recordings.updated(learner, MODULE, recorded.batch(), steps=16)
    close_all(learner.module[MODULE].get_state(), recorded.arrays("after"), 1e-4)
