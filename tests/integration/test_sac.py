"""Converted SAC checkpoints in the installed Ray: they go on learning where they stopped."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rllib_compat import Given, convert
from rllib_compat.conversion.write.checkpointable import module_specs
from rllib_compat.conversion.write.training_state import keep_action_range, set_temperatures
from rllib_compat.networks import plan_optimizers, set_weights
from rllib_compat.networks.network import own_name
from rllib_compat.neutral import LegacyCheckpoint, Source
from rllib_compat.ray_versions import learners
from tests.legacy.cases import find
from tests.legacy.networks import given_of, read
from tests.marks import CONVERSIONS
from tests.unit.networks.test_sac import identified, torch_policy

pytestmark = CONVERSIONS

TODAY = {"Pendulum-v0": "Pendulum-v1", "CartPole-v0": "CartPole-v1"}
CONTINUOUS = [
    next(c for c in find(ray="0.7.6") if c.algorithm == "SAC"),
    next(c for c in find(ray="2.0.1") if c.algorithm == "SAC"),
]
(DISCRETE,) = find(ray="1.13.0", algorithm="SAC", variant="disc")


def converted(case, target):
    told = given_of(case)
    env = TODAY.get(case.about["env"], case.about["env"])
    given = Given(
        algorithm="SAC",
        env=env,
        observation_spaces=told.observation_spaces if case.ray < "1" else {},
        action_spaces=told.action_spaces if case.ray < "1" else {},
    )
    return convert(case.checkpoint, target, given=given, inputs=50)


def trained_once(load, target, done):
    """Restores an algorithm, holds it against what was converted, and trains one iteration."""
    (policy_id,) = done.networks
    policy, network = done.checkpoint.policies[policy_id], done.networks[policy_id]
    algorithm = load(target)
    learner = learners.local_learner(algorithm)
    module = learner.module[policy_id]
    before = {name: array.copy() for name, array in module.get_state().items()}
    for name, array in network.arrays.items():
        np.testing.assert_array_equal(before[own_name(name)], array.astype(np.float32))
    alpha = float(learner.curr_log_alpha[policy_id].detach()[0])
    assert alpha == pytest.approx(policy.log_alpha, abs=1e-6)
    states, _ = plan_optimizers({policy_id: policy}, {policy_id: network})
    for name, state in states.get(policy_id, {}).items():
        slots = learner.get_optimizer(policy_id, name).state.values()
        assert {int(slot["step"]) for slot in slots} == {state.step}
    result = algorithm.train()
    after = module.get_state()
    moved = {k: float(np.abs(after[k] - before[k]).max()) for k in before}
    return moved, result["learners"][policy_id]


@pytest.mark.matrix
@pytest.mark.parametrize("case", CONTINUOUS, ids=str)
def test_continuous_actions_go_on_learning(case, load, tmp_path):
    done = converted(case, tmp_path / "new")
    moved, losses = trained_once(load, tmp_path / "new", done)
    assert math.isfinite(losses["qf_loss"])
    for name, distance in moved.items():
        # A target follows slowly (tau), all others take whole steps.
        assert 0 < distance < (0.05 if name.startswith("target_net.") else 1), name


@pytest.mark.matrix
def test_discrete_actions_go_on_learning(load, tmp_path):
    done = converted(DISCRETE, tmp_path / "new")
    moved, losses = trained_once(load, tmp_path / "new", done)
    assert losses["target_entropy"] == pytest.approx(0.98 * math.log(2))
    assert all(moved.values())


def test_cql_learns_with_the_same_networks():
    import torch
    from ray.rllib.algorithms.cql import CQLConfig
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec

    policy, told = torch_policy()
    network, _ = identified(policy, told, "CQL")
    checkpoint = LegacyCheckpoint(Source(Path(), ""), algorithm="CQL", policies={"p": policy})
    config = CQLConfig().training(bc_iters=0)
    specs = MultiRLModuleSpec(rl_module_specs=module_specs(checkpoint, {"p": network}))
    learner = config.get_default_learner_class()(config=config, module_spec=specs)
    learner.build()
    set_weights(learner.module, {"p": network})
    rng = np.random.default_rng(0)
    shapes = {"obs": (8, 3), "new_obs": (8, 3), "actions": (8, 2), "rewards": (8,)}
    batch = {k: torch.tensor(rng.uniform(-0.9, 0.9, s)).float() for k, s in shapes.items()}
    batch |= {"terminateds": torch.zeros(8), "weights": torch.ones(8), "n_step": torch.ones(8)}
    module = learner.module["p"]
    before = {name: array.copy() for name, array in module.get_state().items()}
    loss = learner.compute_loss_for_module(
        module_id="p", config=config, batch=batch, fwd_out=module.forward_train(batch)
    )
    learner.apply_gradients(learner.compute_gradients({"p": loss}))
    after = module.get_state()
    for name, array in before.items():
        assert np.array_equal(after[name], array) == name.startswith("target_net."), name


@pytest.mark.parametrize(("case", "normalized"), [(CONTINUOUS[0], False), (CONTINUOUS[1], True)])
def test_actions_in_the_range_of_the_environment_are_not_stretched(case, normalized):
    from ray.rllib.algorithms.sac import SACConfig

    _, networks = read(case)
    config = SACConfig()
    findings = keep_action_range(config, networks)
    assert config.normalize_actions == normalized
    assert bool(findings) != normalized


def test_each_policy_keeps_its_temperature_and_target_entropy():
    from ray.rllib.algorithms.sac import SACConfig

    checkpoint, _ = read(find(ray="1.13.0", algorithm="SAC", variant="ma-two")[0])
    policies = {
        policy_id: replace(checkpoint.policies[policy_id], log_alpha=log_alpha)
        for policy_id, log_alpha in (("pol_a", -1.0), ("pol_b", 0.5))
    }
    checkpoint = checkpoint.with_policies(policies.values())
    config = SACConfig()
    set_temperatures(config, checkpoint)
    own = {policy_id: config.get_config_for_module(policy_id) for policy_id in policies}
    assert {k: c.initial_alpha for k, c in own.items()} == pytest.approx(
        {k: math.exp(p.log_alpha) for k, p in policies.items()}
    )
    # pol_a has two discrete actions; today's "auto" is right for the continuous ones of pol_b.
    assert own["pol_a"].target_entropy == pytest.approx(0.98 * math.log(2))
    assert own["pol_b"].target_entropy == "auto"
