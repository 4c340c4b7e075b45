"""Policies of old Rays play an Atari game at every verb as they did: recorded, step by step."""

import json
import pickle
from pathlib import Path

import cloudpickle
import gymnasium
import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat import Given
from rllib_compat.adapters import EnvSettings, adapt_env, make_env
from rllib_compat.conversion.config import read_stored_env
from rllib_compat.errors import CheckpointError
from rllib_compat.formats import load_pickle
from rllib_compat.ray_versions import startup
from tests.legacy.atari.worlds import Game, digest
from tests.marks import marked

NAME = "MadeNoFrameskip-v4"
OLD = {ray: Path(f"tests/legacy/atari/ppo-{ray}").absolute() for ray in ("0.8.5", "1.13.0")}


@pytest.fixture(autouse=True)
def _game(monkeypatch):
    """The game of the recordings, registered as Atari games are."""
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    monkeypatch.setattr(gymnasium, "registry", gymnasium.envs.registration.registry)
    gymnasium.register(NAME, lambda **_: Game(lost=(41, 90), end=131), disable_env_checker=True)


def evaluate(run, path, folder, *more):
    """What `evaluate` saw and did in 40 steps."""
    out = folder / "steps.pkl"
    assert run("evaluate", path, *more, "--no-explore", "--steps", 40, "--out", out)[0] == 0
    steps = [step for episode in pickle.loads(out.read_bytes()) for step in episode]
    return {
        "seen": [digest(step[0]) for step in steps],
        "actions": [int(step[1]) for step in steps],
        "rewards": [step[3] for step in steps],
        "dones": [step[4] for step in steps],
    }


def recorded(ray):
    told = json.loads((OLD[ray] / "played.json").read_text("utf-8"))
    return {key: told[key] for key in ("seen", "actions", "rewards", "dones")}


@pytest.mark.parametrize("ray", marked(OLD, ["1.13.0"]))
def test_an_old_policy_plays_as_it_did_before_and_after_its_conversion(ray, tmp_path, run):
    old, new = OLD[ray] / "checkpoint-1", tmp_path / "new"
    assert evaluate(run, old, tmp_path, "--run", "PPO", "--env", NAME) == recorded(ray)
    assert run("convert", old, new, "--algorithm", "PPO", "--env", NAME)[0] == 0
    assert evaluate(run, new, tmp_path) == recorded(ray)
    assert evaluate(run, new, tmp_path, "--env", NAME) == recorded(ray)
    assert b"_make_skeleton_class" not in (new / "class_and_ctor_args.pkl").read_bytes()
    for env in (None, NAME):
        with startup.without_cluster():
            algorithm = compat.load(new, env=env, num_env_runners=0)
            space = algorithm.env_runner.env.single_observation_space
            algorithm.stop()
        assert space == gymnasium.spaces.Box(0, 255, (42, 42, 4), np.uint8)


GAMES = ["PongNoFrameskip-v4", "PongDeterministic-v4", "ALE/Pong-v5"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", GAMES)
def test_a_real_game_is_the_same_at_every_verb(name, tmp_path, run):
    """Each begins it by the same seed, and the policy of the same actions."""
    pytest.importorskip("ale_py")
    old, new = OLD["1.13.0"] / "checkpoint-1", tmp_path / "new"
    first = evaluate(run, old, tmp_path, "--run", "PPO", "--env", name, "--seed", "3")
    assert len(set(first["seen"])) > 20
    assert run("convert", old, new, "--algorithm", "PPO", "--env", name)[0] == 0
    assert evaluate(run, new, tmp_path, "--seed", "3") == first
    with startup.without_cluster():
        algorithm = compat.load(new, num_env_runners=0)
        space = algorithm.env_runner.env.single_observation_space
        algorithm.stop()
    assert space == gymnasium.spaces.Box(0, 255, (42, 42, 4), np.uint8)
    policy = compat.load_policy(new)
    env = make_env(EnvSettings(name, atari={"dim": 42}, legacy_ray="1.13.0"), {})
    observation, _ = env.reset(seed=3)
    for action in first["actions"]:
        assert policy.compute_single_action(observation, explore=False).actions == action
        observation, *_ = env.step(action)


@pytest.mark.parametrize("ray", OLD)
def test_a_policy_without_ray_gives_the_old_logits(ray):
    policy = compat.load_policy(OLD[ray] / "checkpoint-1", algorithm="PPO", given=Given(env=NAME))
    told = json.loads((OLD[ray] / "played.json").read_text("utf-8"))
    env = make_env(EnvSettings(NAME, atari={"dim": 42}, legacy_ray=ray), {})
    observation, _ = env.reset()
    for action, logits in zip(told["actions"], told["logits"], strict=True):
        computed = policy.compute_single_action(observation, explore=False, full_fetch=True)
        np.testing.assert_allclose(computed.extras["action_dist_inputs"], logits, atol=2e-5)
        assert computed.actions == action
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            observation, _ = env.reset()


def test_an_environment_with_other_observations_is_refused_before_anything_trains():
    with pytest.raises(CheckpointError, match=r"\(4,\).* and the policy of .*\(42, 42, 4\)"):
        compat.load(OLD["1.13.0"] / "checkpoint-1", algorithm="PPO", env="CartPole-v1")


def test_a_class_that_was_written_by_value_tells_its_name_and_what_stands_around_it():
    """Trainers save what `adapt_env` made; no code of it is run to read it."""
    settings = EnvSettings(NAME, horizon=7, atari={"dim": 42, "framestack": 4}, legacy_ray="1.13.0")
    saved = cloudpickle.dumps({"env": adapt_env(settings), "env_config": {"a": 1}})
    found = read_stored_env(load_pickle(saved).value, "PPO")
    assert (found.name, found.env_config) == (NAME, {"a": 1})
    assert EnvSettings(NAME, **found.settings) == settings


@pytest.mark.parametrize(
    "settings",
    [
        {"horizon": "os.system"},
        {"atari": {"dim": -1, "framestack": [4]}},
        {"legacy_ray": "1.13.0; rm"},
        {"preprocessor_pref": ["deepmind"], "env": "os:system"},
        {"atari": 3},
        3,
    ],
)
def test_settings_of_a_file_are_such_as_a_config_could_have_said(settings):
    config = {"env_config": {"__legacy_env__": {"name": NAME, "settings": settings}}}
    found = read_stored_env(config, "PPO")
    assert found.name == NAME
    read = EnvSettings(NAME, **(found.settings or {}))
    assert read in (EnvSettings(NAME), EnvSettings(NAME, atari={"framestack": None}))
