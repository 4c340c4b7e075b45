"""Many rounds in one training step learn and tell what one round a training step does."""

from functools import partial

import numpy as np
import pytest
import tree

import rllib_compat as compat
from rllib_compat.adapters import ArrayBatchLearner
from rllib_compat.algorithms import rounds
from rllib_compat.ray_versions import training_steps
from tests.integration.test_removed_algorithms import TwoStepGame, TwoStepGameOfVectors, grouped
from tests.marks import TRAINERS, marked

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

OLD = {
    "A2C": {"env": "CartPole-v1", "num_envs_per_worker": 2},
    "DQN": {"env": "CartPole-v1", "prioritized_replay": True, "hiddens": [8]},
    "SAC": {"env": "Pendulum-v1", "prioritized_replay": False, "tau": 0.1},
    "TD3": {"env": "Pendulum-v1", "actor_hiddens": [8], "critic_hiddens": [8], "tau": 0.1},
    "R2D2": {
        "env": "CartPole-v1",
        "prioritized_replay": True,
        "model": {"fcnet_hiddens": [8], "use_lstm": True, "lstm_cell_size": 8, "max_seq_len": 4},
    },
    "QMix": {"env": "grouped_two_step_game", "model": {"lstm_cell_size": 8}},
    "MADDPG": {
        "env": TwoStepGameOfVectors,
        "actor_hiddens": [8],
        "multiagent": {
            "policies": {f"p{agent}": (None, None, None, {"agent_id": agent}) for agent in (0, 1)},
            "policy_mapping_fn": lambda agent: f"p{agent}",
        },
    },
}
ON_EACH_PUSH = {"DQN", "QMix"}
SHORT = {
    "seed": 0,
    "num_workers": 0,
    "rollout_fragment_length": 2,
    "train_batch_size": 8,
    "timesteps_per_iteration": 75,
    "min_iter_time_s": 0,
}
OF_REPLAY = {"learning_starts": 20, "target_network_update_freq": 6, "buffer_size": 1000}
#: What of a result counts steps and episodes.
COUNTED = (
    *("timesteps_total", "episodes_total", "timesteps_this_iter"),
    *("episode_reward_mean", "episode_len_mean", "hist_stats"),
)


def of_learner(result):
    """What the learner tells of the first policy."""
    return next(iter(result["info"]["learner"].values()))["learner_stats"]


def counted(result):
    """What a result has counted: steps, episodes, updates."""
    learner = of_learner(result)
    counts = {
        name: count
        for told in (result["info"], learner)
        for name, count in told.items()
        if name.startswith("num_") and not name.endswith("throughput")
    }
    return {**{name: result[name] for name in COUNTED}, **counts}


@pytest.mark.newest
@pytest.mark.parametrize("name", marked(OLD, ON_EACH_PUSH))
def test_rounds_in_one_training_step_learn_and_tell_the_same(name, make, monkeypatch):
    def trained():
        of_replay = {} if name == "A2C" else OF_REPLAY
        trainer = make(f"{name}Trainer", config={**OLD[name], **SHORT, **of_replay})
        # After more, rounding decides of MADDPG's weights.
        results = [trainer.train() for _ in range(2)]
        calls = {r["num_training_step_calls_per_iteration"] for r in results}
        return trainer.get_weights(), results, calls

    compat.tune.register_env("grouped_two_step_game", grouped)
    weights, results, calls = trained()
    assert calls == {1}
    monkeypatch.setattr(rounds, "MAX_ROUNDS", 1)
    expected_weights, expected, calls = trained()
    assert min(calls) > 1
    monkeypatch.setattr(training_steps, "trains_in_this_process", lambda _: False)
    monkeypatch.delattr(ArrayBatchLearner, "after_gradient_based_update")
    rays_weights, rays, _ = trained()  # Ray's way of telling, and targets follow as in Ray

    last = [of_learner(result)["weights_seq_no"] for result in (results[-1], expected[-1])]
    assert last[0] >= last[1] > 1, "of the last update, as in the old Rays; Ray 2.60: a mean"
    tree.map_structure(np.testing.assert_array_equal, weights, expected_weights)
    near = partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-5)
    tree.map_structure(near, weights, rays_weights)
    for result, *others in zip(results, expected, rays, strict=True):
        for other in others:
            tree.map_structure(np.testing.assert_allclose, counted(result), counted(other))


@pytest.mark.nightly
def test_no_worker_samples_a_fragment_that_is_not_needed():
    """PPO of Ray 0.8.5 asked a worker for one more until there were enough: 45 steps, not 60."""
    old = {"env": "CartPole-v1", "num_workers": 2, "num_sgd_iter": 1, "sgd_minibatch_size": 8}
    batch = {"rollout_fragment_length": 15, "train_batch_size": 40}
    trainer = compat.PPOTrainer(config={**old, **batch}, legacy_ray="0.8.5")
    try:
        assert [trainer.train()["timesteps_total"] for _ in range(2)] == [45, 90]
    finally:
        trainer.stop()


class TwoSteps(TwoStepGame):
    def __init__(self, config):
        super().__init__()


@pytest.mark.nightly
def test_agents_are_evaluated_with_a_horizon_of_their_own():
    agents = {"policies": {"all": (None,) * 4}, "policy_mapping_fn": lambda *_, **__: "all"}
    old = {
        "env": TwoSteps,
        "num_workers": 0,
        "train_batch_size": 16,
        "rollout_fragment_length": 8,
        "sgd_minibatch_size": 8,
        "multiagent": agents,
        "evaluation_interval": 1,
        "evaluation_num_episodes": 2,
        "evaluation_config": {"horizon": 1},
    }
    trainer = compat.PPOTrainer(config=old, legacy_ray="1.13.0")
    try:
        assert trainer.train()["evaluation"]["episode_len_mean"] == 1
    finally:
        trainer.stop()
