"""What the learner of CRR computes is what a real old Ray computed.

`tests/legacy/losses/record_crr.py` made the numbers, with Ray 2.0.1 and torch.
"""

import re

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch

from rllib_compat.config import translate
from rllib_compat.errors import ConfigError
from rllib_compat.ray_versions import configs
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import Recording, close, close_all, set_weights
from tests.unit.algorithms.test_losses import MODULE, RECORDS, updating
from tests.unit.algorithms.transitions import episodes_of

pytestmark = OTHERS_WARNINGS

HERE = RECORDS.with_name("2.0.1")
CASES = sorted(path.stem for path in HERE.glob("crr-*.npz"))
OBSERVATIONS = gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32)
DISCRETE = gymnasium.spaces.Discrete(3)
BOX = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
KINDS = torch.distributions.Categorical, torch.distributions.Normal


class Recorded(Recording):
    """One case, by the names of today."""

    def __init__(self, case):
        super().__init__(HERE / f"{case}.npz")
        self.settings = {n: value.tolist() for n, value in self.below("config").items()}
        self.actions = BOX if "box" in case else DISCRETE

    def arrays(self, kind, prefix="net."):
        return {prefix + _ours(name): array for name, array in self.below(kind).items()}

    def episodes(self):
        return episodes_of(self.below("batch"))


def _ours(name):
    """`twin_q_model.twin_q_hidden_0._model.0.weight` → `twin_q.0.weight`: each layer, then what
    activates it; the last one has none."""
    network, layer, last = re.fullmatch(r"(\w+)_model\.(\w+)\._model\.0\.(\w+)", name).groups()
    hiddens = 2 if network == "actor" else 1
    index = 2 * hiddens if layer.endswith("out") else 2 * int(layer.rpartition("_")[2])
    return f"{network}.{index}.{last}"


def local_learner(recorded, **more):
    """A learner with the recorded weights, also of the targets."""
    config = configs.todays_config("CRR")
    config.training(**{**recorded.settings, "target_network_update_freq": 1, **more})
    config.training(train_batch_size_per_learner=len(recorded.below("batch")["obs"]))
    learner = config.build_learner(spaces={MODULE: (OBSERVATIONS, recorded.actions)})
    told = recorded.arrays("weights") | recorded.arrays("targets", "target_net.")
    set_weights(learner, told)
    return learner


@pytest.fixture(params=CASES)
def recorded(request, monkeypatch):
    found = Recorded(request.param)
    drawn = [torch.from_numpy(found.found[name]) for name in ("drawn", "drawn_next")]
    for kind in KINDS:
        monkeypatch.setattr(kind, "sample", lambda _, shape=None: drawn[0 if shape else 1])
    return found


def test_losses_and_gradients_are_those_of_ray_2_0(recorded, monkeypatch):
    learner, told = local_learner(recorded), {}
    monkeypatch.setattr(learner.metrics, "log_dict", lambda values, **_: told.update(values))
    seen = updating(learner, recorded.episodes())
    close(float(told["loss_actor"]), recorded.found["loss.actor"], 1e-5)
    # Ray 2.0 added both critics' errors up; from 2.1 on, the loss was their mean.
    close(2 * float(told["loss_critic"]), recorded.found["loss.critic"], 1e-5)
    theirs = recorded.arrays("gradients")
    assert seen["gradients"].keys() == theirs.keys()
    for name, gradient in seen["gradients"].items():
        times = 1 if ".actor." in name else 2
        close(times * gradient, theirs[name], 1e-5)


def test_an_update_gives_the_weights_and_targets_that_ray_2_0_had_after_it(recorded):
    learner = local_learner(recorded)
    updating(learner, recorded.episodes())
    wanted = recorded.arrays("after") | recorded.arrays("targets_after", "target_net.")
    state = learner.module[MODULE].get_state()
    close_all(state, wanted, 1e-4)
    before = recorded.arrays("weights")
    assert np.abs(state["net.q.0.weight"] - before["net.q.0.weight"]).max() > 1e-5


def test_targets_wait_until_enough_steps_were_learned_from():
    recorded = Recorded("crr-discrete")
    learner = local_learner(recorded, target_network_update_freq=18)  # of two batches
    name = "target_net.q.0.weight"
    before = recorded.arrays("targets", "target_net.")[name]
    for moved in (False, True):
        updating(learner, recorded.episodes())
        now = learner.module[MODULE].get_state()[name]
        assert (now != before).any() == moved


def test_the_huber_loss_is_linear_far_away(monkeypatch):
    recorded, told = Recorded("crr-discrete"), {}
    for kind in ("mse", "huber"):
        learner, seen = local_learner(recorded, td_error_loss_fn=kind, gamma=0.0), {}
        monkeypatch.setattr(
            learner.metrics, "log_dict", lambda values, seen=seen, **_: seen.update(values)
        )
        recorded.found["batch.rewards"][:] = 1000.0
        updating(learner, recorded.episodes())
        told[kind] = float(seen["loss_critic"])
    assert told["mse"] == pytest.approx(0.5e6, rel=0.05)
    assert told["huber"] == pytest.approx(1e3, rel=0.05)


def test_a_lower_temperature_makes_the_policy_surer():
    states = []
    for temperature in (1.0, 0.1):
        recorded = Recorded("crr-discrete")
        learner = local_learner(recorded, categorical_distribution_temperature=temperature)
        seen = torch.from_numpy(recorded.below("batch")["obs"])
        module = learner.module[MODULE].unwrapped()
        states.append(module.policy_of({"obs": seen}).entropy().mean())
    assert states[1] < 0.7 * states[0]


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"weight_type": "log"}, "weight_type"),
        ({"advantage_type": "least"}, "advantage_type"),
    ],
)
def test_settings_that_nothing_can_run_are_told(wrong, where):
    config = configs.todays_config("CRR").training(**wrong)
    config.environment(observation_space=OBSERVATIONS, action_space=DISCRETE)
    config.offline_data(input_="/nowhere", dataset_num_iters_per_learner=1)
    with pytest.raises(ConfigError) as told:
        config.validate()
    assert told.value.where == where


def test_an_expectation_over_box_actions_is_refused_before_anything_is_learned():
    with pytest.raises(ConfigError, match="expectation"):
        local_learner(Recorded("crr-box"), advantage_type="expectation")


def test_targets_follow_every_hundred_batches_unless_the_config_says_otherwise():
    old = {"env": "CartPole-v1", "input": "/somewhere", "train_batch_size": 30}
    for given, expected in (({}, 3000), ({"target_network_update_freq": 7, "tau": 0.5}, 7)):
        config = translate({**old, **given}, algorithm="CRR", legacy_ray="2.0.1").algorithm_config
        config.validate()
        assert config.target_network_update_freq == expected
        assert config.tau == given.get("tau", 0.005)
