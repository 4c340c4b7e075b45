"""Environments in processes of their own, asked as the actors that they were."""

import gymnasium
import pytest

from rllib_compat.adapters import EnvSettings, adapt_env
from rllib_compat.errors import LegacyEnvError
from rllib_compat.runtime import LegacyBaseEnv
from tests.unit.runtime.levels import Levels


def test_each_environment_can_be_asked_and_its_error_is_told(monkeypatch):
    monkeypatch.setattr("ray.put", lambda value: value)  # a reference to it, in a running Ray
    make = adapt_env(EnvSettings(Levels))
    vector = gymnasium.vector.AsyncVectorEnv([lambda: make({})] * 2)
    first, second = LegacyBaseEnv(vector).get_sub_environments()
    second.set_task.remote(7)
    assert [env.get_task.remote() for env in (first, second)] == [1, 7]
    assert vector.reset()[0].shape == (2, 1)
    with pytest.raises(LegacyEnvError, match="raised ValueError: no such level"):
        first.set_task.remote(-1)
    vector.close(terminate=True)
