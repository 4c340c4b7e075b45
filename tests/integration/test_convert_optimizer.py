"""The optimizer of a converted checkpoint goes on where the old one stopped."""

import numpy as np
import pytest

from rllib_compat import Given, convert
from rllib_compat.conversion import prepare
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import DEFAULT, plan_optimizers
from rllib_compat.neutral import Verdict
from rllib_compat.ray_versions import checkpoints, learners, releases
from tests.marks import CONVERSIONS, marked
from tests.unit.test_optimizers import EAGER, GRAPH, STORED, TORCH, only

pytestmark = CONVERSIONS

FREE = only(STORED, ray="2.35.0", stack="new", variant="freelogstd")
MANY = only(STORED, ray="1.13.0", framework="torch", variant="ma-tuples")
LEARNER = only(STORED, ray="2.10.0", stack="learner", variant="vfshare")


def same_as_old(algorithm, done):
    """How many of the old states the optimizers of an algorithm have."""
    states, _ = plan_optimizers(done.checkpoint.policies, done.networks)
    learner = learners.local_learner(algorithm)
    for policy_id, named in states.items():
        state = named[DEFAULT]
        optimizer = learner.get_optimizer(policy_id)
        network = done.networks[policy_id]
        mean, square = network.target.arrays(state.mean), network.target.arrays(state.square)
        names = {id(p): name for name, p in learner.module[policy_id].named_parameters()}
        assert len(optimizer.state) == len(mean)
        for parameter, slot in optimizer.state.items():
            name = names[id(parameter)]
            assert float(slot["step"]) == state.step
            np.testing.assert_array_equal(slot["exp_avg"].numpy(), mean[name])
            np.testing.assert_array_equal(slot["exp_avg_sq"].numpy(), square[name])
        for group in optimizer.param_groups:
            settings = [group["lr"], group["eps"], *group["betas"]]
            # Ray 2.41 - 2.55 restore an optimizer's numbers as tensors of 32 bits.
            if releases.at_least("2.56") or not releases.at_least("2.41"):
                assert {type(value) for value in settings} == {float}
            rate, *constants = map(float, settings)
            assert constants == pytest.approx([1e-8, 0.9, 0.999], rel=1e-6)
            config = learner.config.get_config_for_module(policy_id)
            assert isinstance(config.lr, list) or rate == pytest.approx(config.lr)
    return len(states)


#: All but free deviations, whose moments `test_optimizers` holds against their weights.
ON_EACH_PUSH = (TORCH, GRAPH, EAGER, MANY, LEARNER)


@pytest.mark.parametrize("case", marked([*ON_EACH_PUSH, FREE], ON_EACH_PUSH), ids=str)
def test_from_checkpoint_has_the_old_moments_and_trains_on(case, tmp_path):
    from ray.rllib.algorithms.algorithm import Algorithm

    trains = case in (TORCH, GRAPH)
    given = Given(algorithm="PPO", env=case.about["env"] if trains else None)
    done = convert(case.checkpoint, tmp_path / "new", given=given, inputs=5)
    told = [f for f in done.report if f.rule == "optimizer"]
    assert {f.verdict for f in told} == {Verdict.DERIVED if case is GRAPH else Verdict.EXACT}
    algorithm = Algorithm.from_checkpoint(str(tmp_path / "new"))
    try:
        assert same_as_old(algorithm, done) == len(done.networks)
        if trains:
            algorithm.train()
            optimizer = learners.local_learner(algorithm).get_optimizer("default_policy")
            state, _ = plan_optimizers(done.checkpoint.policies, done.networks)
            steps = {float(slot["step"]) for slot in optimizer.state.values()}
            assert min(steps) > state["default_policy"][DEFAULT].step
    finally:
        algorithm.stop()


def test_what_was_converted_reads_back(tmp_path):
    done = convert(TORCH.checkpoint, tmp_path / "new", given=Given(algorithm="PPO"), inputs=5)
    again = prepare(read_checkpoint(tmp_path / "new"), Given())
    old, new = (
        plan_optimizers(found.checkpoint.policies, found.networks)[0]["default_policy"][DEFAULT]
        for found in (done, again)
    )
    assert old.step == new.step
    for name, mean in old.mean.items():
        np.testing.assert_array_equal(mean, new.mean[name])
        np.testing.assert_array_equal(old.square[name], new.square[name])


@pytest.mark.matrix
@pytest.mark.skipif(
    checkpoints.writes_checkpoint_version() == "2.0", reason="that Ray writes pickles only"
)
def test_state_as_msgpack_has_the_optimizer_too(tmp_path):
    from ray.rllib.algorithms.algorithm import Algorithm

    done = convert(
        TORCH.checkpoint,
        tmp_path / "new",
        given=Given(algorithm="PPO"),
        inputs=5,
        state_format="msgpack",
    )
    algorithm = Algorithm.from_checkpoint(str(tmp_path / "new"))
    assert same_as_old(algorithm, done) == 1
    algorithm.stop()
