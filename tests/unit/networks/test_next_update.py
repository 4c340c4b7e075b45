"""Old checkpoints of algorithms that Ray removed learn on as they did in their old Ray.

`tests/legacy/generate_removed.py` made the files. After a checkpoint was saved, the old policy
learned from one more batch; the converted one learns from the same, and has to know the same then.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest

pytest.importorskip("ray")

import torch
import tree
from ray.rllib.core.columns import Columns

from rllib_compat import convert
from rllib_compat.conversion import Form
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import ModelSettings, read
from rllib_compat.ray_versions import algorithms as ray_algorithms
from rllib_compat.ray_versions import learners, startup
from tests.legacy.cases import find
from tests.legacy.networks import given_if_asked
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms import recordings
from tests.unit.algorithms.recordings import close
from tests.unit.algorithms.test_losses import MODULE, updating
from tests.unit.algorithms.transitions import columns_of, episodes_of

pytestmark = OTHERS_WARNINGS

BANDITS = find(algorithm=("BanditLinUCB", "BanditLinTS"))


class Next:
    """What the old Ray learned from next, and what its policy was then."""

    def __init__(self, case, plan, algorithm):
        self.case, self.plan, self.algorithm = case, plan, algorithm
        self.learner = learners.local_learner(algorithm)
        if MODULE in self.learner.module.keys():  # noqa: SIM118 - it is no dict
            self.before = self.learner.module[MODULE].get_state()

    @cached_property
    def batch(self):
        """What it learned from."""
        return self._below("next/")

    def compare(self, *moved, parts="", tolerance=1e-5, least=1e-3):
        """Holds what was learned against the old weights; of some parts each has moved, or one."""
        state, theirs = self.learner.module[MODULE].get_state(), self._state()
        names = [n for n in theirs if n.startswith(parts) and "target" not in n]
        for name in names:
            close(state[name], theirs[name], tolerance, "next update")
        distances = {name: np.abs(state[name] - self.before[name]).max() for name in moved or names}
        assert (min if moved else max)(distances.values()) > least
        return names

    def _state(self):
        """The weights after it, as today's module has them: the checkpoint with other weights."""
        (policy,) = self.plan.checkpoint.policies.values()
        after = self._below("after/")
        if isinstance(policy.weights, list):
            after = [after[str(i)] for i in range(len(after))]
        else:
            assert after.keys() == policy.weights.keys()
        later = replace(policy, weights=after)
        return read(later, ModelSettings.of(self.plan.checkpoint, policy)).network.module_state()

    def _below(self, prefix):
        with np.load(self.case.path / "next.npz") as file:
            return {n.removeprefix(prefix): file[n] for n in file if n.startswith(prefix)}


@pytest.fixture
def restored(tmp_path):
    """Converts a case, and loads what became of it."""
    algorithms = []

    def restore(case):
        made = convert(case.checkpoint, tmp_path / "new", given=given_if_asked(case))
        assert made.plan.form is Form.ALGORITHM
        with startup.without_cluster():
            algorithms.append(ray_algorithms.load_algorithm(tmp_path / "new"))
        return Next(case, made.plan, algorithms[0])

    yield restore
    for algorithm in algorithms:
        ray_algorithms.stop_algorithm(algorithm)


@pytest.mark.parametrize("case", BANDITS, ids=str)
def test_a_bandit_learns_on(case, restored):
    then = restored(case)
    seen = then.batch["obs"]
    if "items" in case.variant:
        seen = {"item": seen.reshape(len(seen), 3, 4)}
    steps = {MODULE: (seen, then.batch["actions"], then.batch["rewards"], None)}
    then.learner.observe(steps)
    then.compare("precision", tolerance=1e-4, least=0.1)


@pytest.mark.parametrize("case", find(algorithm="CRR"), ids=str)
def test_crr_learns_on_with_both_optimizers(case, restored, monkeypatch):
    then = restored(case)
    drawn = [torch.from_numpy(then.batch[name]) for name in ("drawn", "drawn_next")]
    for kind in (torch.distributions.Categorical, torch.distributions.Normal):
        monkeypatch.setattr(kind, "sample", lambda _, shape=None: drawn[0 if shape else 1])
    updating(then.learner, episodes_of(then.batch))
    then.compare("net.q.0.weight")
    assert steps_of(then.learner, "actor", "critic") == {13}  # twelve before


def behind(seen, actions=None, rewards=None):
    """Observations with the step before behind them: one of three actions, and a reward."""
    if actions is None:
        return seen
    parts = [seen, np.eye(3)[actions], rewards[..., None]]
    return np.concatenate(parts, axis=-1).astype(np.float32)


def sequences_of(found, learner):
    """A batch of whole sequences, which begin with zeros."""
    count, length = found["rewards"].shape
    states = learner.module[MODULE].unwrapped().get_initial_state()
    return {
        **{name: found[name] for name in ("actions", "rewards")},
        "obs": behind(found["obs"], found.get("prev_actions"), found.get("prev_rewards")),
        Columns.TERMINATEDS: found["dones"],
        "weights": np.ones((count, length), np.float32),
        Columns.LOSS_MASK: np.ones((count, length), bool),
        Columns.STATE_IN: tree.map_structure(
            lambda zeros: np.zeros((count, *zeros.shape), np.float32), states
        ),
    }


@pytest.mark.parametrize("case", find(algorithm="RNNSAC"), ids=str)
def test_rnnsac_learns_on_with_all_optimizers(case, restored):
    then = restored(case)
    found = then.batch
    batch = {**sequences_of(found, then.learner), "new_obs": found["new_obs"]}
    if "prev_actions" in found:
        batch["new_obs"] = behind(found["new_obs"], found["actions"], found["rewards"])
    recordings.updated(then.learner, MODULE, batch, steps=len(batch["rewards"]))
    moved = ("net.pi.encoder.lstm.weight_ih_l0", "net.q.head.0.weight", "log_alpha")
    then.compare(*moved, parts=("net.", "log_alpha"))


@pytest.mark.parametrize("case", find(algorithm="R2D2", variant="prev"), ids=str)
def test_r2d2_that_sees_the_step_before_learns_on(case, restored):
    then = restored(case)
    found, batch = then.batch, sequences_of(then.batch, then.learner)
    # Its old network makes the action one-hot itself.
    parts = [found["obs"], found["prev_actions"][..., None], found["prev_rewards"][..., None]]
    batch["obs"] = np.concatenate(parts, axis=-1).astype(np.float32)
    recordings.updated(then.learner, MODULE, batch, steps=len(batch["rewards"]))
    then.compare("net.lstm.kernel", "net.lstm.recurrent_kernel")


@pytest.mark.parametrize("case", find(algorithm="MADDPG"), ids=str)
def test_maddpg_goes_on_with_its_targets_and_critics_that_see_all(case, restored):
    """No Ray stored its optimizers; the targets are in the file, and are others by then."""
    learner = restored(case).learner
    for agent in ("left", "right"):
        module = learner.module[agent].unwrapped()
        assert (module.agent, module.critic_sees) == (agent, ["left", "right"])
        arrays = case.expected(agent).arrays
        inputs = {"obs": arrays["net_in"], "everyone": arrays["q_inputs"]}
        for kind, net in (("out", module.net), ("target", module.target_net)):
            with torch.no_grad():
                made = net({name: torch.from_numpy(seen) for name, seen in inputs.items()})
            for output in ("action_dist_inputs", "q_values"):
                wanted = arrays[f"{kind}/{output}"]
                close(made[output].numpy().reshape(wanted.shape), wanted, 1e-5, "network")
        state = module.state_dict()
        assert (state["net.actor.0.weight"] - state["target_net.actor.0.weight"]).abs().max() > 1e-3


def steps_of(learner, *parts):
    """How many updates each optimizer has made."""
    return {
        int(slot["step"])
        for part in parts
        for slot in learner.get_optimizer(MODULE, part).state.values()
    }


@pytest.mark.parametrize("variant", ["paramnoise", "softq"])
def test_dqn_that_explores_otherwise_learns_on(variant, restored):
    (case,) = find(ray="1.13.0", algorithm="DQN", variant=variant)
    then = restored(case)
    (steps,) = steps_of(then.learner, "default_optimizer")
    assert steps > 0
    batch = columns_of(then.batch)
    recordings.updated(then.learner, MODULE, batch, steps=len(batch["obs"]))
    then.compare()
    assert steps_of(then.learner, "default_optimizer") == {steps + 1}


def test_ddpg_with_noise_on_its_weights_learns_on(restored):
    (case,) = find(ray="1.13.0", algorithm="DDPG", variant="paramnoise")
    then = restored(case)
    (steps,) = steps_of(then.learner, "actor", "critic")
    updating(then.learner, episodes_of(then.batch, lambda _: {"weights": [1.0], "n_step": [1]}))
    assert any(".norm." in name for name in then.compare(least=1e-4))
    assert steps_of(then.learner, "actor", "critic") == {steps + 1}


@pytest.mark.parametrize("algorithm", ["DQN", "DDPG"])
def test_noise_on_weights_goes_on_as_large_as_it_was(algorithm, restored, tmp_path):
    (case,) = find(ray="1.13.0", algorithm=algorithm, variant="paramnoise")
    then = restored(case)
    (policy,) = then.plan.checkpoint.policies.values()
    stored = policy.exploration["cur_stddev"]
    assert 0.1 < stored < 1.0  # it began with 1
    pipeline = then.algorithm.env_runner._env_to_module
    (noise,) = [c for c in pipeline.connectors if type(c).__name__ == "ParameterNoise"]
    assert noise.get_state() == {"deviations": {"": stored}}
    (again,) = read_checkpoint(tmp_path / "new").policies.values()
    assert again.exploration == {"cur_stddev": stored}
