"""What old code sets in policies, as its callbacks did: it takes effect, or is an error by name."""

import numpy as np
import pytest
from ray.rllib.utils.schedules import ConstantSchedule, PiecewiseSchedule

import rllib_compat as compat
from rllib_compat.errors import GoneError
from tests.marks import OTHERS_WARNINGS
from tests.unit.trainer.test_policies_without_ray import trainer_of, weights, without_ray

pytestmark = OTHERS_WARNINGS


def learned(trainer):
    return trainer.train()["info"]["learner"]["default_policy"]["learner_stats"]


def test_rates_that_are_set_in_a_policy_are_those_of_the_next_update():
    with trainer_of("ppo", "1.3.0") as trainer:
        policy = trainer.get_policy()
        policy.kl_coeff, policy.entropy_coeff, policy.cur_lr = 0.75, 0.5, 0.0
        before = weights(trainer)
        for _ in range(2):
            stats = learned(trainer)
            assert (stats["entropy_coeff"], stats["cur_lr"]) == (0.5, 0.0)
        for name, array in weights(trainer).items():
            np.testing.assert_array_equal(array, before[name], err_msg=name)
        policy.kl_coeff_val = 0.25
        assert learned(trainer)["cur_kl_coeff"] == policy.kl_coeff * 2 == 0.25


def test_the_rate_of_an_optimizer_that_is_set_stays():
    with trainer_of("ppo", "1.13.0") as trainer:
        for group in trainer.get_policy()._optimizers[0].param_groups:
            group["lr"] = 0.0
        before = weights(trainer)
        assert [learned(trainer)["cur_lr"] for _ in range(3)] == [0.0] * 3
        for name, array in weights(trainer).items():
            np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_a_state_that_is_loaded_brings_no_rate_of_another_trainer():
    with trainer_of("ppo", "1.13.0") as trainer:
        policy, rate = trainer.get_policy(), trainer.get_policy().cur_lr
        state = policy.get_state()
        for group in state["_optimizer_variables"][0]["param_groups"]:
            group["lr"] = 100 * rate
        policy.set_state(state)
        assert [learned(trainer)["cur_lr"] for _ in range(2)] == [pytest.approx(rate)] * 2


@pytest.mark.parametrize("mark", ["", "_"])
def test_schedules_that_are_set_in_a_policy_are_followed(mark):
    with trainer_of("ppo", "1.3.0", entropy_coeff=0.5) as trainer:
        policy = trainer.get_policy()
        falling = PiecewiseSchedule([[0, 1.0], [80, 0.0]], framework=None, outside_value=0.0)
        setattr(policy, f"{mark}lr_schedule", ConstantSchedule(0.25, framework=None))
        setattr(policy, f"{mark}entropy_coeff_schedule", falling)
        stats = learned(trainer)
        assert (stats["cur_lr"], stats["entropy_coeff"]) == (pytest.approx(0.01), 0.5)
        stats = learned(trainer)
        assert (stats["cur_lr"], stats["entropy_coeff"]) == (0.25, 0.5), "after 40 of 80 steps"
        assert policy.entropy_coeff_schedule is falling
        assert policy.entropy_coeff == 0.0
        policy.lr_schedule = None
        assert policy.lr_schedule.value(1000) == policy.cur_lr == 0.25


@pytest.mark.parametrize(
    ("case", "name", "fix"),
    [
        ("ppo", "kl_target", "reset_config"),
        ("ppo", "config", "reset_config"),
        ("dqn", "kl_coeff", "the loss of this policy has none"),
        ("dqn", "target_model", "get_target_network_pairs"),
        ("sac", "cur_lr", r"policy\.optimizer\(\)"),
        ("sac", "lr_schedule", r"policy\.optimizer\(\)"),
    ],
)
def test_what_no_learner_takes_is_an_error(case, name, fix):
    with trainer_of(case, "1.13.0") as trainer:
        policy = trainer.get_policy()
        with pytest.raises(GoneError, match=fix):
            setattr(policy, name, 0.1)
        policy.of_mine = 0.1
        assert policy.of_mine == 0.1


def actions(policy, explore):
    seen = np.random.default_rng(0).uniform(-2, 2, (200, 4)).astype(np.float32)
    return policy.compute_actions(seen, explore=explore)[0]


def test_an_epsilon_schedule_that_is_set_decides_how_a_policy_explores():
    with trainer_of("dqn", "1.13.0") as trainer:
        policy = trainer.get_policy()
        assert np.any(actions(policy, explore=True) != actions(policy, explore=False))
        policy.exploration.epsilon_schedule = ConstantSchedule(0.0, framework="torch")
        np.testing.assert_array_equal(actions(policy, True), actions(policy, False))
        assert policy.get_exploration_state()["cur_epsilon"] == 0.0
        trainer.train()
        np.testing.assert_array_equal(actions(policy, True), actions(policy, False))
        policy.exploration.epsilon_schedule = [[0, 1.0], [100, 1.0]]
        assert np.any(actions(policy, explore=True) != actions(policy, explore=False))
        for name in ("random_timesteps", "temperature", "sub_exploration"):
            with pytest.raises(GoneError, match=f"exploration.{name} has no effect"):
                setattr(policy.exploration, name, 0)
        policy.exploration.of_mine = 1
        with pytest.raises(GoneError, match="epsilon_schedule"):
            policy.set_epsilon(0.0)
        with pytest.raises(GoneError, match=r"compute_single_action.*local_policy_inference"):
            policy.agent_connectors.reset(0)


def test_numbers_of_noise_that_are_set_decide_how_a_policy_explores():
    noise = {"type": "OrnsteinUhlenbeckNoise", "random_timesteps": 1000}
    old = {"env": "Pendulum-v1", "num_workers": 0, "exploration_config": noise}
    with without_ray(lambda: compat.Trainer(old, algorithm="TD3")) as trainer:
        policy = trainer.get_policy()
        seen = np.ones((5, 3), np.float32)
        policy.exploration.random_timesteps = 0
        policy.exploration.ou_sigma = 0.0
        assert (policy.exploration.random_timesteps, policy.exploration.ou_sigma) == (0, 0.0)
        drawn, best = (policy.compute_actions(seen, explore=given)[0] for given in (True, False))
        np.testing.assert_array_equal(drawn, best)
