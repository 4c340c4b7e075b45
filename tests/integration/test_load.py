"""`compat.load`: what anybody's checkpoint takes to train on, on the machine at hand."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat import Given
from rllib_compat.errors import NotYetError
from rllib_compat.trials import find_trials, read_trial
from tests.legacy.cases import find
from tests.legacy.networks import given_of
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

SINGLE = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
LEAGUE = next(c for c in find(ray="1.13.0", framework="torch") if c.variant == "league20")
NO_SPACES = next(c for c in find(ray="0.8.5") if c.variant == "fc32relu-share")
REMOVED = next(c for c in find(ray="0.8.5") if c.algorithm == "A3C")
RECURRENT = next(c for c in find(ray="1.13.0") if c.algorithm == "R2D2")


@pytest.fixture
def load():
    loaded = []

    def load(*args, **kwargs):
        loaded.append(compat.load(*args, **kwargs))
        return loaded[-1]

    yield load
    for algorithm in loaded:
        algorithm.stop()


def test_an_old_checkpoint_trains_on_with_what_the_caller_overrides(load, caplog):
    algorithm = load(SINGLE.checkpoint, env="CartPole-v1", num_workers=0, train_batch_size=200)
    assert any("from the keys of its config" in message for message in caplog.messages)
    before = algorithm.iteration
    assert algorithm.config.num_env_runners == 0
    assert algorithm.config.train_batch_size_per_learner == 200
    result = algorithm.train()
    assert result["training_iteration"] == before + 1
    assert result["env_runners"]["num_env_steps_sampled"] > 0
    (file,) = find_trials(Path(algorithm.logdir))
    assert "episode return" in read_trial(file).curves


class Duel:
    """An environment of two agents, of the kind that Ray 1.x took."""

    def __init__(self, config=None):
        self.rng = np.random.default_rng(1)

    def _observe(self):
        return {agent: self.rng.uniform(-1, 1, 5).astype(np.float32) for agent in ("us", "them")}

    def reset(self):
        self.steps = 0
        return self._observe()

    def step(self, actions):
        self.steps += 1
        rewards = dict.fromkeys(actions, 1.0)
        return self._observe(), rewards, {"__all__": self.steps == 10}, {}


class Corridor:
    """A single-agent environment that nobody has registered."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, config=None):
        self.steps = 0

    def reset(self):
        self.steps = 0
        return np.zeros((4,), np.float32)

    def step(self, action):
        self.steps += 1
        return np.zeros((4,), np.float32), 1.0, self.steps == 10, {}


def test_the_callers_environment_tells_the_spaces_that_the_checkpoint_does_not(load):
    algorithm = load(NO_SPACES.checkpoint, env=Corridor, given=Given(algorithm="PPO"))
    assert algorithm.train()["env_runners"]["episode_return_mean"] == 10.0


def weights_of(algorithm, policy):
    module = algorithm.get_module(policy)
    return {name: p.detach().clone() for name, p in module.named_parameters()}


def test_a_league_trains_what_was_trained_and_leaves_the_frozen_as_they_are(load):
    algorithm = load(
        LEAGUE.checkpoint,
        env=Duel,
        policy_mapping_fn=lambda agent, **_: "league_0" if agent == "us" else "league_7",
        num_workers=0,
    )
    before = {policy: weights_of(algorithm, policy) for policy in ("league_0", "league_7")}
    algorithm.train()
    after = {policy: weights_of(algorithm, policy) for policy in before}
    changed = {
        policy: any((before[policy][n] != after[policy][n]).any() for n in before[policy])
        for policy in before
    }
    assert changed == {"league_0": True, "league_7": False}


def test_an_algorithm_that_ray_removed_trains_on(load):
    algorithm = load(REMOVED.checkpoint, given=given_of(REMOVED), num_workers=0, min_iter_time_s=0)
    assert type(algorithm).__name__ == "A3C"
    before = weights_of(algorithm, "default_policy")
    algorithm.train()
    after = weights_of(algorithm, "default_policy")
    assert any((before[name] != after[name]).any() for name in before)


def test_dqn_whose_values_are_all_zero_explores_as_it_always_did(load, tmp_path):
    (case,) = find(ray="2.40.0", algorithm="DQN")
    tree = shutil.copytree(case.checkpoint, tmp_path / "tree")
    (file,) = tree.glob("learner_group/learner/rl_module/default_policy/module_state.*")
    state = pickle.loads(file.read_bytes())
    file.write_bytes(pickle.dumps({name: np.zeros_like(array) for name, array in state.items()}))
    algorithm = load(tree, num_workers=0, learning_starts=0, min_iter_time_s=0)
    assert algorithm.train()["env_runners"]["num_env_steps_sampled"] > 0


def test_a_network_that_nothing_trains_is_refused_with_the_reason():
    with pytest.raises(NotYetError, match="LSTM"):
        compat.load(RECURRENT.checkpoint, given=replace(given_of(RECURRENT), algorithm="DQN"))
