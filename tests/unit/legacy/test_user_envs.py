"""Environments that workers hand to scripts, which step them by the API of their time."""

import gymnasium
import pytest

from rllib_compat import legacy
from rllib_compat.runtime import LegacyWorker
from tests.unit.runtime.runners import runner

legacy.deactivate()  # to import it is to activate it; each test asks for it


@pytest.fixture
def active():
    legacy.activate()
    yield
    legacy.deactivate()


def test_a_script_steps_a_workers_environment_as_in_gym_and_it_ends_in_time(active):
    env_runner = runner()
    env_runner.env.envs = [gymnasium.make("CartPole-v1", max_episode_steps=3)]
    env = LegacyWorker(env_runner).env
    assert env.reset().shape == (4,)
    assert [env.step(0)[2] for _ in range(3)] == [False, False, True]


def test_a_script_that_imports_gymnasium_gets_its_api(active):
    there = {"__name__": "__main__", "__file__": "/tmp/script.py"}
    exec("import gymnasium", there)
    observation, info = LegacyWorker(runner()).env.reset()
    assert (observation.shape, info) == ((4,), {})


def test_code_that_imports_this_package_gets_gymnasiums_api():
    observation, info = LegacyWorker(runner()).env.reset()
    assert (observation.shape, info) == ((4,), {})
