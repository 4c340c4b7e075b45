"""Old names of Atari games, against the registry of gym 0.21."""

import importlib.util
import json
from pathlib import Path

import gymnasium
import pytest

from rllib_compat.adapters import EnvSettings, make_env
from rllib_compat.errors import LegacyEnvError
from rllib_compat.runtime import find_creator, may_be_atari
from tests.legacy.atari.worlds import Draws
from tests.unit.runtime.test_atari import played

OF_GYM = json.loads(Path("tests/legacy/atari/ids.json").read_text("utf-8"))
OF_GYM.pop("gym")
GAMES_PLAYED = json.loads(Path("tests/legacy/atari/games.json").read_text("utf-8"))
HAS_GAMES = importlib.util.find_spec("ale_py") is not None


@pytest.mark.skipif(not HAS_GAMES, reason="needs ale-py")
@pytest.mark.parametrize("name", OF_GYM)
def test_arguments_are_those_of_gym(name, monkeypatch):
    monkeypatch.setattr(gymnasium, "make", lambda spec: spec)
    made = find_creator(name)({})
    skip = made.kwargs["frameskip"]
    told = {**made.kwargs, "frameskip": list(skip) if isinstance(skip, tuple) else skip}
    assert {**told, "max_episode_steps": made.max_episode_steps} == OF_GYM[name]
    assert may_be_atari(name)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pong-v5", "PongHard-v4"])
def test_other_names_are_no_games(name, monkeypatch):
    monkeypatch.setattr(gymnasium, "make", lambda spec: spec)
    creator = find_creator(name, trusted=False)
    assert creator is None or creator({}) == name


@pytest.mark.skipif(HAS_GAMES, reason="the games are here")
def test_a_game_that_is_not_installed_says_what_to_install():
    with pytest.raises(LegacyEnvError, match=r"rllib-compat\[atari\]"):
        make_env(EnvSettings("PongDeterministic-v4"), {})


@pytest.mark.skipif(not HAS_GAMES, reason="needs ale-py")
class TestGames:
    @pytest.mark.parametrize(
        ("name", "shape"),
        [
            ("PongNoFrameskip-v4", (84, 84, 4)),
            ("PongDeterministic-v4", (84, 84, 4)),
            ("Pong-v0", (84, 84, 4)),
            ("Pong-ram-v0", (128,)),
            ("Pong-ramNoFrameskip-v4", (128,)),
            ("ALE/Pong-v5", (84, 84, 4)),
            ("ALE/Pong-ram-v5", (128,)),
        ],
    )
    def test_names_make_games(self, name, shape):
        env = make_env(EnvSettings(name), {})
        observation, _ = env.reset(seed=1)
        assert observation.shape == shape
        assert env.observation_space.contains(observation)
        env.close()

    @pytest.mark.parametrize("name", GAMES_PLAYED["cases"])
    def test_games_are_played_as_ray_0_8_5_and_1_13_0_did(self, name):
        old = GAMES_PLAYED["cases"][name]
        env = make_env(EnvSettings(name, legacy_ray="1.13.0"), {})
        env.unwrapped.env.unwrapped.np_random = Draws((5, 9))
        seen, rewards, ends = played(env)
        assert (seen, rewards, ends) == (old["seen"], old["rewards"], old["dones"])

    def test_all_games_are_there(self):
        from ale_py import roms

        assert {told["game"] for told in OF_GYM.values()} <= set(roms.get_all_rom_ids())
