"""What the learner of DDPG and TD3 computes is what a real old Ray computed.

`tests/legacy/losses/record_ddpg.py` made the numbers, with Ray 1.13.0 and torch.
"""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch

from rllib_compat.networks import to_canonical
from rllib_compat.networks.families.ddpg import LOW, RANGE, TORCH
from rllib_compat.networks.network import OWN_PREFIX, OWN_TARGET_PREFIX
from rllib_compat.ray_versions import configs, learners
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import Recording, close, close_all, set_weights
from tests.unit.algorithms.test_losses import MODULE, RECORDS, updating
from tests.unit.algorithms.transitions import episodes_of

pytestmark = OTHERS_WARNINGS

CASES = sorted(path.stem for path in RECORDS.glob("*.npz") if path.stem[:2] in ("dd", "td"))
SPACES = (
    gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32),
    gymnasium.spaces.Box(np.float32([-1, -2]), np.float32([1, 3])),
)


class Recorded(Recording):
    """One case, by the names of today."""

    def __init__(self, case):
        super().__init__(RECORDS / f"{case}.npz")
        self.algorithm = case.partition("-")[0].upper()
        self.settings = {n: v.tolist() for n, v in self.below("config").items()}

    def arrays(self, kind, prefix=OWN_PREFIX):
        """Weights or gradients by the names of our module."""
        theirs = {
            name: array
            for name, array in self.below(kind).items()
            if name.rpartition(".")[2] not in (LOW, RANGE) and "_value_branch" not in name
        }
        arrays, left = to_canonical(TORCH, theirs)
        assert not left
        return {prefix + name: array for name, array in arrays.items()}

    def constants(self):
        """What that Ray counted as weights, although nothing trained it: the actions' range."""
        low, high = SPACES[1].low, SPACES[1].high
        return 0.5 * float((low**2).sum() + ((high - low) ** 2).sum())


def local_learner(recorded, **more):
    """A learner with the recorded weights, also of the targets."""
    config = configs.todays_config(recorded.algorithm)
    config.training(**{**recorded.settings, **more})
    if "seen" in recorded.found:
        config.training(parameter_noise={"initial_stddev": 1.0})
    config.rl_module(model_config={"fcnet_hiddens": [5], "fcnet_activation": "tanh"})
    learner = config.build_learner(spaces={MODULE: SPACES})
    told = recorded.arrays("weights") | recorded.arrays("targets", OWN_TARGET_PREFIX)
    set_weights(learner, told)
    return learner


def replayed(recorded):
    """The transitions as replay buffers give them."""
    batch, n_step = recorded.below("batch"), recorded.settings["n_step"]
    return episodes_of(batch, lambda i: {"weights": [batch["weights"][i]], "n_step": [n_step]})


def updated(learner, recorded, monkeypatch):
    noise = torch.from_numpy(recorded.found["noise"])
    monkeypatch.setattr(torch, "normal", lambda *_, **__: noise.clone())
    return updating(learner, replayed(recorded))


@pytest.mark.parametrize("case", CASES)
def test_losses_td_errors_and_gradients_are_those_of_ray_1_13(case, monkeypatch):
    recorded = Recorded(case)
    learner = local_learner(recorded)
    told = {}
    monkeypatch.setattr(learners, "log_td_errors", lambda _, __, errors: told.update(td=errors))
    monkeypatch.setattr(
        learner.metrics, "log_dict", lambda values, **_: told.update(values), raising=True
    )
    seen = updated(learner, recorded, monkeypatch)
    close(told["td"].numpy(), np.abs(recorded.found["td_errors"]), 1e-5)
    constants = recorded.settings["l2_reg"] * recorded.constants()
    close(float(told["actor_loss"]) + constants, recorded.found["loss.actor"], 1e-5)
    close(float(told["critic_loss"]), recorded.found["loss.critic"], 1e-5)
    theirs = recorded.arrays("gradients")
    assert seen["gradients"].keys() == theirs.keys()
    weights, decay = recorded.arrays("weights"), recorded.settings["l2_reg"]
    for name, gradient in seen["gradients"].items():
        # The gradient of the regularization, which Ray's TensorFlow had and its torch had not.
        pull = 0.0 if name.endswith(".bias") else decay * weights[name]
        close(gradient - pull, theirs[name], 1e-5)


@pytest.mark.parametrize("case", CASES)
def test_two_updates_give_the_weights_and_targets_that_ray_1_13_had_after_them(case, monkeypatch):
    recorded = Recorded(case)
    learner = local_learner(recorded, l2_reg=0.0)  # as it was without gradients
    before = learner.module[MODULE].get_state()
    for index in range(2):
        updated(learner, recorded, monkeypatch)
        state = learner.module[MODULE].get_state()
        wanted = recorded.arrays(f"after.{index}")
        wanted |= recorded.arrays(f"targets_after.{index}", OWN_TARGET_PREFIX)
        close_all(state, wanted, 1e-4)
        waits = index == 1 and recorded.settings["policy_delay"] == 2
        moved = np.abs(state["net.pi.out.kernel"] - before["net.pi.out.kernel"]).max()
        assert (moved == 0) == waits
        assert np.abs(state["net.q.out.kernel"] - before["net.q.out.kernel"]).max() > 1e-5
        before = state


def test_the_actors_optimizer_makes_no_step_where_the_actor_waits(monkeypatch):
    recorded = Recorded("td3-plain")
    learner, steps = local_learner(recorded), []
    for name in ("actor", "critic"):
        optimizer = learner.get_optimizer(MODULE, name)
        optimizer.register_step_post_hook(lambda *_, name=name: steps.append(name))
    for _ in range(4):
        updated(learner, recorded, monkeypatch)
    assert (steps.count("critic"), steps.count("actor")) == (4, 2)


@pytest.mark.parametrize("number", range(6))
def test_noise_on_weights_grows_and_shrinks_as_in_ray_1_13(number):
    recorded = Recorded("ddpg-parameter-noise")
    found, module = recorded.found, local_learner(recorded).module[MODULE]
    clean, perturbed = recorded.arrays("weights"), recorded.arrays(f"perturbed.{number}")
    names = {id(weight): name for name, weight in module.named_parameters()}
    own = [names[id(weight)] for weight in module.perturbed()]
    changed = {name for name in own if not np.array_equal(clean[name], perturbed[name])}
    assert changed == {n for n in clean if "pi." in n and ".norm." not in n} == set(own)
    module.renew_weight_noise(0.0)
    module.weight_noise._drawn = [torch.from_numpy(perturbed[n] - clean[n]) for n in own]
    seen = {"obs": torch.from_numpy(found["seen"])}
    with torch.no_grad():
        close(module.actions_of(seen), found[f"clean.{number}"], 1e-5, kind="noise")
        with module.with_weight_noise():
            close(module.actions_of(seen), found[f"noisy.{number}"], 1e-5, kind="noise")
    module.action_noise._scale = float(found["scale"])
    before, after = found[f"deviation.{number}"]
    assert module.adapted(before, seen) == pytest.approx(after, rel=1e-9)
