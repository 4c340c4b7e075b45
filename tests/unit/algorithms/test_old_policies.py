"""The policies for the old API stack compute what real old Rays computed, too."""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.policy.sample_batch import SampleBatch, concat_samples

from rllib_compat.config import translate
from rllib_compat.ray_versions import algorithms, startup
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import close
from tests.unit.algorithms.test_losses import CASES, Recorded, config_of

pytestmark = OTHERS_WARNINGS


ATTENTION = {"use_attention": True, "attention_dim": 8, "attention_head_dim": 4}


def policy_of(recorded, model_of_its_own=None, **more):
    config = config_of(recorded).api_stack(
        enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False
    )
    config.env_runners(exploration_config={"type": "StochasticSampling"})
    layers = {"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh"}
    model = {**config.model, **layers, "vf_share_layers": not recorded.separate}
    model |= model_of_its_own or {}
    settings = {**config.to_dict(), "model": model, "num_gpus": 0, **more}
    policy = config.algo_class.get_default_policy_class(config)(
        gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), recorded.action_space(), settings
    )
    if model_of_its_own is None:
        policy.set_weights({**policy.get_weights(), **recorded.below("weights")})
    return policy


def batch_of(policy, chunk):
    """A chunk as a worker would have sampled it."""
    observations = np.asarray(chunk["obs"], np.float32)
    length = len(chunk["rewards"])
    ends = np.zeros(length, bool)
    ends[-1] = bool(chunk["done"])
    columns = {
        "obs": observations[:-1],
        "new_obs": observations[1:],
        "actions": chunk["actions"],
        "rewards": np.asarray(chunk["rewards"], np.float32),
        "terminateds": ends,
        "truncateds": np.zeros(length, bool),
    }
    with torch.no_grad():
        policy.model({"obs": torch.as_tensor(observations[:-1])})
        columns["vf_preds"] = policy.model.value_function().numpy()
    return SampleBatch(columns)


#: Batches of sequences are made by Ray's own collectors on the old stack.
WITHOUT_STATES = [case for case in CASES if not case.endswith("-lstm")]


@pytest.mark.parametrize("case", WITHOUT_STATES)
def test_the_loss_is_that_of_the_old_ray(case):
    recorded = Recorded(case)
    policy = policy_of(recorded)
    batches = [policy.postprocess_trajectory(batch_of(policy, c)) for c in recorded.chunks()]
    batch = policy._lazy_tensor_dict(concat_samples(batches))
    loss = policy.loss(policy.model, policy.dist_class, batch)
    close(float(loss), float(recorded.found["loss.total"]), 1e-5)


def test_schedules_of_a2c_move_on_with_the_steps():
    halves = {"lr_schedule": [[0, 0.2], [100, 0.1]], "entropy_coeff_schedule": [[0, 0.4], [100, 0]]}
    policy = policy_of(Recorded("a2c-discrete"), **halves)
    policy.on_global_var_update({"timestep": 50})
    assert (policy.cur_lr, policy.entropy_coeff) == pytest.approx((0.15, 0.2))
    assert policy._optimizers[0].param_groups[0]["lr"] == pytest.approx(0.15)


@pytest.mark.parametrize("algorithm", ["A2C", "A3C", "PG"])
def test_schedules_of_a_config_go_by_what_was_sampled(algorithm):
    """With a model that only the old API stack runs."""
    config = {
        "env": "CartPole-v1",
        "num_workers": 0,
        "train_batch_size": 40,
        "rollout_fragment_length": 40,
        "lr_schedule": [[0, 0.2], [80, 0.1]],
    }
    made = translate(config, algorithm=algorithm, api_stack="old").algorithm_config
    with startup.without_cluster(), algorithms.small_algorithm(made) as running:
        running.training_step()
        assert running.get_policy().cur_lr == pytest.approx(0.15)


def test_a2c_learns_with_an_attention_net():
    # A policy with a model of its own, which has states, looks at its loss when it is built.
    policy = policy_of(Recorded("a2c-discrete"), model_of_its_own=ATTENTION)
    assert policy.is_recurrent()
