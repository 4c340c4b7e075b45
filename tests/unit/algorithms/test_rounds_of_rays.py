"""What is sampled before an update, and how often it is replayed, is what it was in old Rays.

`tests/legacy/losses/record_rounds.py` made the numbers, with Ray 0.8.5, 1.13.0 and 2.0.1.
"""

import json
from collections import Counter

import pytest

pytest.importorskip("ray")

import gymnasium
import numpy as np

from rllib_compat import translate
from rllib_compat.algorithms import replay_columns, use_legacy_learners
from rllib_compat.algorithms.rounds import round_weights
from rllib_compat.ray_versions import algorithms, startup
from rllib_compat.runtime import use_compat_env_runners
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.test_losses import RECORDS

pytestmark = OTHERS_WARNINGS

RAYS = ("0.8.5", "1.13.0", "2.0.1")
RECORDED = {ray: json.loads((RECORDS.parent / ray / "rounds.json").read_text()) for ray in RAYS}
LENGTHS = (2, 5, 11)


class Walk(gymnasium.Env):
    """Episodes have as many steps as the config says for the environment, or seven."""

    observation_space = gymnasium.spaces.Box(-100.0, 100.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)
    made = 0

    def __init__(self, config):
        own = config.get("lengths")
        self.steps = own[Walk.made % len(own)] if own else 7
        Walk.made += 1

    def reset(self, **_):
        self.at = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.at += 1
        return np.full(2, self.at, np.float32), 1.0, self.at == self.steps, False, {}


def config_of(algorithm, ray, **told):
    """The config that a trainer makes of an old one."""
    translation = translate({"num_workers": 0, **told}, algorithm=algorithm, legacy_ray=ray)
    config = translation.algorithm_config.environment(Walk)
    use_legacy_learners(config, translation.legacy_training)
    use_compat_env_runners(config)
    return config


@pytest.mark.parametrize("ray", RAYS)
@pytest.mark.parametrize("bypasses", [True, False])
def test_whole_episodes_of_several_environments_are_all_there(ray, bypasses):
    """Ray begins new episodes each time: none of eleven steps would ever end."""
    config = config_of(
        "PPO",
        ray,
        num_envs_per_worker=len(LENGTHS),
        rollout_fragment_length=4,
        batch_mode="complete_episodes",
        train_batch_size=48,
        sgd_minibatch_size=8,
        env_config={"lengths": LENGTHS},
    )
    Walk.made = 0
    runner = config.env_runner_cls(config=config, worker_index=0)
    runner.bypasses_connectors = bypasses
    recorded = [*map(sum, RECORDED[ray]["whole"])]
    sampled = [runner.sample() for _ in recorded]
    assert all(sum(map(len, episodes)) >= 4 * len(LENGTHS) for episodes in sampled)
    if not bypasses:  # of Ray's own sampler, it is only said
        return
    lengths = Counter(len(episode) for episodes in sampled for episode in episodes)
    theirs = Counter(length for sample in RECORDED[ray]["whole"] for length in sample)
    assert set(lengths) == set(theirs) == set(LENGTHS)
    # Each environment made as many steps; a reset is one of them today.
    for count, takes in ((theirs, 0), (lengths, 1)):
        steps = [count[length] * (length + takes) for length in LENGTHS]
        assert max(steps) - min(steps) <= 2 * max(LENGTHS)
    assert runner.get_metrics()


def test_betas_and_new_priorities_are_those_of_a_policy_optimizer():
    recorded = RECORDED["0.8.5"]["replay"]
    config = replay_columns(config_of("DQN", "0.8.5", use_exec_api=False, **recorded["config"]))
    betas, greatest = [], []
    with startup.without_cluster():
        algorithm = algorithms.build_algorithm(config)
        sample = algorithm.replay.sample

        def see(count, beta, to_train):
            betas.append(beta)
            kept = algorithm.replay.of("default_policy")
            priorities = kept._priorities
            powers = kept.get_state()["priorities"]["powers"][: len(kept)]
            greatest.append(bool(np.isclose(powers[-1], priorities._greatest**priorities._alpha)))
            return sample(count, beta, to_train)

        algorithm.replay.sample = see
        while len(betas) < len(recorded["betas"]):
            algorithm.training_step()
    count = len(recorded["betas"])
    assert betas[:count] == pytest.approx(recorded["betas"])
    assert greatest[:count] == recorded["greatest"] == [True] * count


@pytest.mark.parametrize(
    ("ray", "algorithm", "updates"),
    [
        ("1.3.0", "DQN", 1.5),  # 12 × 4 / 32, whatever samples
        ("1.11.1", "DQN", 9.0),  # × 2 environments × 3 workers
        ("2.0.1", "DQN", 12),  # × 4: one worker more than there are
        ("1.9.2", "R2D2", 1.5),
        ("1.12.1", "R2D2", 9.0),
    ],
)
def test_training_intensity_is_that_of_the_ray(ray, algorithm, updates):
    config = config_of(
        algorithm,
        ray,
        num_workers=3,
        num_envs_per_worker=2,
        rollout_fragment_length=4,
        train_batch_size=32,
        training_intensity=12,
    )
    samples, count = round_weights(config)
    drawn = [count() for _ in range(400)]
    assert samples == 1
    assert {*drawn} <= {int(updates), int(np.ceil(updates))}
    assert abs(np.mean(drawn) - updates) < 0.15


def test_a_round_of_sequences_has_a_fragment_of_each_environment():
    """Each of three environments is to give ten steps, or a little more."""
    config = config_of(
        "R2D2",
        "1.13.0",
        num_envs_per_worker=3,
        rollout_fragment_length=10,
        learning_starts=1000,
        timesteps_per_iteration=0,
        min_time_s_per_reporting=0,
        model={"fcnet_hiddens": [4], "use_lstm": True, "lstm_cell_size": 4, "max_seq_len": 4},
    )
    with startup.without_cluster():
        algorithm = algorithms.build_algorithm(config)
        algorithm.training_step()
        assert 30 <= algorithm.rounds.steps < 60
