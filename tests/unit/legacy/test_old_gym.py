"""gym's old API in its base classes, for code that derives from them."""

import json
import pickle
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from rllib_compat import gym, legacy
from rllib_compat.errors import GoneError
from rllib_compat.gym import envs, registration, wrappers
from rllib_compat.gym.seeding import np_random
from rllib_compat.runtime.envs import find_creator
from tests.legacy.gym import calls

legacy.deactivate()

RECORDED = [
    json.loads(file.read_text("utf-8")) for file in Path(calls.__file__).parent.glob("*.json")
]


class Countdown(gym.Env):
    observation_space = gym.spaces.Box(0.0, 9.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.left = 3
        return np.array([self.left], np.float32)

    def step(self, action):
        self.left -= 1
        return np.array([self.left], np.float32), 1.0, self.left == 0, {}


def test_calls_give_what_a_gym_of_their_time_gave():
    registered = dict(gymnasium.registry)
    legacy.activate()
    try:
        ours = calls.answers()
    finally:
        legacy.deactivate()
        gymnasium.registry.clear()
        gymnasium.registry.update(registered)
    assert len(RECORDED) == 2
    other = {name: told for name, told in ours.items() if told not in [r[name] for r in RECORDED]}
    assert other == {}


def test_a_subclass_of_cartpole_sees_the_old_reset_and_step():
    class Mine(envs.classic_control.CartPoleEnv):
        def reset(self):
            return super().reset()[:2]

        def step(self, action):
            seen, *rest = super().step(action)
            return seen[:2], *rest

    env = Mine()
    env.seed(3)
    first = env.reset()
    env.seed(3)
    assert first.shape == (2,)
    assert np.array_equal(first, env.reset())
    assert len(env.step(0)) == 4


def test_classes_below_envs_are_found_again_by_pickle():
    assert pickle.loads(pickle.dumps(envs.classic_control.cartpole.CartPoleEnv)) is (
        envs.classic_control.cartpole.CartPoleEnv
    )


def test_wrappers_pass_on_the_old_api_and_change_what_they_are_for():
    class Negative(gym.ObservationWrapper, gym.RewardWrapper):
        def observation(self, observation):
            return -observation

    env = Negative(Countdown())
    assert env.reset() == [-3.0]
    obs, reward, done, _ = env.step(0)
    assert (obs, reward, done) == ([-2.0], 1.0, False)
    assert env.left == 2
    assert env.observation_space is Countdown.observation_space


def test_gymnasiums_wrappers_go_around_old_environments():
    env = wrappers.FrameStack(Countdown(), 2)
    assert np.asarray(env.reset()).shape == (2, 1)
    assert len(env.step(0)) == 4


def test_registered_environments_are_made_with_their_time_limit():
    registration.register("Countdown-v9", entry_point=Countdown, max_episode_steps=2)
    try:
        env = gym.make("Countdown-v9")
        env.reset()
        env.step(0)
        _, _, done, info = env.step(0)
        assert (done, info["TimeLimit.truncated"]) == (True, True)
    finally:
        del gymnasium.registry["Countdown-v9"]


@pytest.mark.parametrize("method", ["rand", "randn", "random_sample"])
def test_random_numbers_have_their_old_names(method):
    one, seed = np_random(5)
    other, _ = np_random(5)
    assert seed == 5
    assert getattr(one, method)() == getattr(other, method)()
    assert one.randint(3, size=4).max() < 3
    assert pickle.loads(pickle.dumps(one)).rand() == one.rand()


def test_wrappers_have_their_old_arguments_and_modules():
    legacy.activate()
    try:
        from gym import error, logger
        from gym.envs.classic_control import rendering
        from gym.envs.toy_text import discrete
        from gym.wrappers.frame_stack import FrameStack
    finally:
        legacy.deactivate()
    stacked = FrameStack(Countdown(), num_stack=3)
    assert stacked.reset().shape == (3, 1)
    assert len(stacked.step(0)) == 4
    assert issubclass(error.UnseedableEnv, error.Error)
    assert logger.INFO < logger.WARN
    assert discrete.DiscreteEnv(1, 1, {0: {0: [(1.0, 0, 2.0, True)]}}, [1.0]).step(0) == (
        *(0, 2.0, True),
        {"prob": 1.0},
    )
    with pytest.raises(GoneError, match="draw with pygame"):
        rendering.Viewer(600, 400)


def test_a_monitor_counts_and_says_that_it_records_nothing():
    with pytest.warns(UserWarning, match="RecordVideo"):
        env = wrappers.Monitor(Countdown(), "videos", force=True)
    env.reset()
    while not env.step(0)[2]:
        pass
    assert (env.get_episode_rewards(), env.get_episode_lengths()) == ([3.0], [3])


def test_a_trainer_makes_what_was_registered_by_a_name_of_gym_s_own():
    registration.register("Pole-v9", "gym.envs.classic_control:CartPoleEnv", max_episode_steps=2)
    try:
        env = find_creator("Pole-v9")({})
        env.reset()
        assert [env.step(0)[2] for _ in range(2)] == [False, True]
    finally:
        del gymnasium.registry["Pole-v9"]


def test_a_name_may_have_the_module_that_registers_it(tmp_path, monkeypatch):
    (tmp_path / "gym_poles.py").write_text(
        "from rllib_compat import gym\n"
        "gym.register('Poles-v3', 'gym.envs.classic_control:CartPoleEnv', max_episode_steps=2)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        made = find_creator("gym_poles:Poles-v3")({}), gym.make("gym_poles:Poles-v3")
        assert [env.spec.id for env in made] == ["Poles-v3", "Poles-v3"]
    finally:
        del gymnasium.registry["Poles-v3"]
    assert find_creator("no_such_module:Poles-v3") is None


def test_a_registered_environment_tells_its_limit():
    gym.register("CountdownWithLimit-v0", entry_point=Countdown, max_episode_steps=2)
    env = gym.make("CountdownWithLimit-v0")
    assert env.spec.max_episode_steps == 2
    env.reset()
    assert [env.step(0)[2] for _ in range(2)] == [False, True]


def test_attributes_are_found_through_wrappers_of_gymnasium():
    class Named(gym.Wrapper):
        own = "mine"

    env = wrappers.TransformReward(Named(Countdown()), lambda reward: reward / 2)
    assert (env.own, env.env.own) == ("mine", "mine")
    with pytest.raises(AttributeError):
        env.nothing  # noqa: B018


def test_environments_of_a_vector_start_anew_at_once():
    pair = gym.vector.SyncVectorEnv([Countdown, lambda: registration.TimeLimit(Countdown(), 2)])
    assert pair.reset().tolist() == [[3.0], [3.0]]
    pair.step([0, 1])
    seen, rewards, dones, infos = pair.step([0, 1])
    assert (seen.tolist(), rewards.tolist()) == ([[1.0], [3.0]], [1.0, 1.0])
    assert (dones.tolist(), infos) == ([False, True], [{}, {"TimeLimit.truncated": True}])
    assert len(pair.action_space.sample()) == pair.num_envs == 2


def test_a_vector_of_a_name_seeds_each_environment_and_wraps_it():
    poles = gym.vector.make("CartPole-v1", 2, wrappers=lambda env: registration.TimeLimit(env, 1))
    poles.seed(5)
    first = poles.reset()
    assert not np.array_equal(*first)
    assert poles.step((0, 0))[2].tolist() == [True, True]
    poles.seed([5, 6])
    assert np.array_equal(first, poles.reset())
    with pytest.raises(RuntimeError, match="same observation space"):
        gym.vector.SyncVectorEnv([Countdown, lambda: gym.make("CartPole-v1")])
