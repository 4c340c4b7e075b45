"""Atari games in the wrappers of old Rays: told by the environment, and equal to the byte."""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from rllib_compat.adapters import EnvSettings, adapt_env, make_env
from rllib_compat.runtime import preprocessors
from rllib_compat.runtime.atari import atari_settings
from tests.legacy.atari.cases import GAMES, PLAYED, STEPS, name_of
from tests.legacy.atari.worlds import Draws, Game, digest

RECORDED = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted(Path("tests/legacy/atari").glob("[0-9]*.json"))
}
WRAPPED = [case for case in PLAYED if case[1].get("preprocessor_pref") != "rllib"]


def wrapped(game, **settings):
    return make_env(EnvSettings(lambda _: game, **settings), settings.pop("env_config", {}))


def played(env, steps=STEPS):
    """What the policy of the recordings sees, and what a learner gets."""
    seen, rewards, ends = [], [], []
    observation, _ = env.reset()
    for step in range(1, steps + 1):
        seen.append(digest(observation))
        action = step * 7 % env.action_space.n
        observation, reward, *ended, _ = env.step(action)
        rewards.append(float(reward))
        ends.append(int(any(ended)))
        if ends[-1]:
            observation, _ = env.reset()
    return seen, rewards, ends


@pytest.mark.parametrize("ray", RECORDED)
@pytest.mark.parametrize("case", WRAPPED, ids=lambda case: name_of(*case))
def test_observations_rewards_and_ends_are_those_of_the_old_ray(ray, case):
    name, config, model = case
    old = RECORDED[ray]["cases"][name_of(*case)]
    game = Game(**GAMES[name])
    atari = {k: None if k == "framestack" else v for k, v in model.items()}
    settings = EnvSettings(lambda _: game, atari=atari, legacy_ray=ray, **config)
    frameskip = {"frameskip": 1} if "NoFrameskip" in game.spec.id else {}
    seen, rewards, ends = played(make_env(settings, frameskip if ray == "2.3.1" else {}))
    old_ends = old.get("dones") or np.maximum(old["terminateds"], old["truncateds"]).tolist()
    # Ray 2.3.1 never reset a game that was cut, and cut each step from there on.
    same = old_ends.index(1, 8) + 1 if (name, ray) == ("is_cut", "2.3.1") else STEPS
    assert seen[:same] == old["seen"][:same]
    assert rewards[:same] == old["rewards"][:same]
    assert ends[:same] == old_ends[:same]


def test_observations_fit_their_space():
    env = wrapped(Game())
    observation, _ = env.reset()
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (84, 84, 4), np.uint8)
    assert env.observation_space.contains(observation)


def test_as_many_frames_are_stacked_behind_zeros_as_ray_1_2_to_1_5_were_told():
    atari = atari_settings({"framestack": -1, "num_framestacks": 3})
    first, _ = wrapped(Game(), atari=atari).reset()
    single, _ = wrapped(Game(), atari={"framestack": None}).reset()
    assert first.shape == (84, 84, 3)
    assert not first[:, :, :2].any()
    np.testing.assert_array_equal(first[:, :, 2:], single)
    assert atari_settings({"framestack": -1}) == {"framestack": 4, "zeros_first": True}
    assert atari_settings({"framestack": True, "num_framestacks": 3}) == {"framestack": 4}


class OldGame(Game):
    """A game of gym 0.21, whose random generator has other names."""

    def __init__(self, **told):
        super().__init__(**told)
        self._draws = type("RandomState", (), {"randint": Draws((3, 7)).randint})()

    def reset(self):
        return super().reset()[0]

    def step(self, action):
        observation, reward, *ended, info = super().step(action)
        return observation, reward, any(ended), info


def test_a_game_of_old_gym_gets_the_same():
    ends = {"lost": (41,), "end": 90}
    assert played(wrapped(OldGame(**ends)), 30) == played(wrapped(Game(**ends)), 30)


class TodaysGame(Game):
    """A game as people write one today."""

    def __init__(self, config):
        super().__init__(**config)

    def reset(self, *, seed=None, options=None):
        return super().reset()


def of(spec, legacy_ray=None, env_config=None):
    """How many frames of a game a step takes."""
    game = Game(noops=(1,), fire=False)
    game.spec = spec
    settings = EnvSettings(lambda _: game, legacy_ray=legacy_ray)
    env = make_env(settings, env_config or {})
    env.reset()
    before = game._frame
    env.step(0)
    return game._frame - before


NO_SKIP = EnvSpec("PongNoFrameskip-v4", entry_point="a:B")
V5 = EnvSpec("ALE/Pong-v5", entry_point="a:B", kwargs={"frameskip": 1})


@pytest.mark.parametrize(
    ("spec", "skip"),
    [
        (NO_SKIP, 4),
        (V5, 4),
        (EnvSpec("ALE/Pong-v5", entry_point="a:B", kwargs={"frameskip": 4}), 1),
        (EnvSpec("PongDeterministic-v4", entry_point="a:B", kwargs={"frameskip": 4}), 1),
    ],
    ids=lambda it: f"{it.id}-{it.kwargs}" if isinstance(it, EnvSpec) else str(it),
)
def test_frames_are_skipped_where_the_game_skips_none(spec, skip):
    assert of(spec) == skip


def test_where_the_ray_is_known_its_own_rule_says_whether_frames_are_skipped():
    assert (of(NO_SKIP, "1.13.0"), of(V5, "1.13.0")) == (4, 1)
    assert (of(V5, "2.3.1"), of(V5, "2.3.1", {"frameskip": 1})) == (1, 4)


def test_rewards_stay_whole_where_the_config_or_its_ray_says_so():
    of_old = max(map(abs, played(wrapped(Game()))[1]))
    asked = max(map(abs, played(wrapped(Game(), clip_rewards=False))[1]))
    later = max(map(abs, played(wrapped(Game(), legacy_ray="2.3.1"))[1]))
    assert of_old == 1.0 < min(asked, later)


@pytest.mark.parametrize(
    "settings", [{"preprocessor_pref": None}, {"preprocessor_pref": "rllib"}, {"old_stack": True}]
)
def test_no_wrappers(settings):
    assert wrapped(Game(), **settings).reset()[0].shape == (210, 160, 3)


def test_the_memory_of_a_game_is_no_image():
    game = Game()
    game.observation_space = gymnasium.spaces.Box(0, 255, (128,), np.uint8)
    assert wrapped(game).observation_space == game.observation_space


@pytest.mark.parametrize("pref", ["deepmind", "rllib"])
def test_a_class_or_a_name_of_a_game_knows_its_settings(pref, monkeypatch):
    registry = {**gymnasium.registry, "ALE/Pong-v5": EnvSpec("ALE/Pong-v5", "ale_py.env:AtariEnv")}
    monkeypatch.setattr(gymnasium, "registry", registry)
    for env in (TodaysGame, "ALE/Pong-v5"):
        assert adapt_env(EnvSettings(env, preprocessor_pref=pref)).settings.env == env
        assert adapt_env(EnvSettings(env, preprocessor_pref=None)) is env


def test_a_class_of_a_game_is_wrapped():
    assert adapt_env(EnvSettings(TodaysGame))({}).observation_space.shape == (84, 84, 4)


def test_other_environments_stay_what_they_are():
    assert adapt_env(EnvSettings("CartPole-v1")) == "CartPole-v1"


class TestFrames:
    """Figures of OpenCV 4.4, 4.8 and 4.14, which agree."""

    image = (np.arange(30 * 24 * 3, dtype=np.uint32).reshape(30, 24, 3) ** 2 % 251).astype(np.uint8)

    def test_gray(self):
        assert digest(preprocessors.gray(self.image)) == "uint8 30x24 971addf1b83cad14"

    @pytest.mark.parametrize(
        ("size", "by_area", "found"),
        [
            ((15, 12), True, "3085ffd7733c76d0"),
            ((15, 12), False, "3085ffd7733c76d0"),
            ((10, 8), True, "def842a60aaac08d"),
            ((10, 8), False, "4939fbc2706f53e2"),
            ((13, 11), True, "89eb777fee63737f"),
            ((13, 11), False, "bcbfd359cd398afc"),
            ((24, 24), True, "c77946bead5289b6"),
            ((24, 24), False, "72ea482197cebd7e"),
            ((40, 40), True, "852f9f2f2e6bdf2d"),
            ((40, 40), False, "3dd71fcca97c2da5"),
            ((11, 12), True, "d6c4614046e1abdb"),
            ((11, 12), False, "6addd4557486592b"),
        ],
    )
    def test_sizes(self, size, by_area, found):
        made = preprocessors.resize(self.image, size, by_area=by_area)
        assert digest(made) == f"uint8 {size[0]}x{size[1]}x3 {found}"
