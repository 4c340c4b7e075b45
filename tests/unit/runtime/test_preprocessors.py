"""Observations as old Rays preprocessed and filtered them, against what these recorded."""

import json
from pathlib import Path

import numpy as np
import pytest
from ray.rllib.connectors.env_to_module import EnvToModulePipeline
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.adapters import EnvSettings, make_env, mean_std_filter, with_preprocessors
from rllib_compat.networks import ModelSettings
from rllib_compat.neutral import spaces
from rllib_compat.policy import preprocessor
from rllib_compat.runtime import LegacyPreprocessor
from tests.legacy.atari.cases import FEWER, GAMES, PLAYED, name_of
from tests.legacy.atari.worlds import Game, Given, digest, spaces_and_values

RECORDED = {
    path.stem: json.loads(path.read_text("utf-8"))["cases"]
    for path in sorted(Path("tests/legacy/atari").glob("[0-9]*.json"))
}
SPACES = spaces_and_values()
RAW = [case for case in PLAYED if case[1].get("preprocessor_pref") == "rllib"]
FILTER, NONE = {"observation_filter": "MeanStdFilter"}, {"observation_filter": "NoFilter"}


def seen(env, preprocessor, filtered=False):
    """What the connectors make of an environment's observations."""
    made = mean_std_filter if filtered else None
    cuts = preprocessor.legacy_ray != "0.8.5"
    connectors = with_preprocessors(
        made, False, env, legacy=preprocessor, filter_keeps_integers=cuts
    )
    pipeline = EnvToModulePipeline(
        input_observation_space=env.observation_space,
        input_action_space=env.action_space,
        connectors=connectors,
    )

    def passed(episode):
        for connector in pipeline.connectors:
            connector(rl_module=None, batch={}, episodes=[episode], explore=True, shared_data={})
        return np.asarray(episode.get_observations(-1), np.float32)

    over = True
    for step in range(1, FEWER + 1):
        if over:
            episode = SingleAgentEpisode(
                observation_space=env.observation_space, action_space=env.action_space
            )
            episode.add_env_reset(env.reset()[0])
        yield passed(episode)
        action = step * 7 % env.action_space.n
        observation, reward, over, _, _ = env.step(action)
        episode.add_env_step(observation, action, reward, terminated=over)
        if over:
            passed(episode)  # filters learn from the last one, too


def is_same(made, old, exact=True):
    """Whether an array is the recorded one, whose hash or whose numbers are known."""
    if isinstance(old, str):
        return digest(np.asarray(made).astype(old.split()[0])) == old
    numbers = np.asarray(old[2], np.float32)  # tables were flattened by the network itself
    if exact:
        return np.array_equal(np.ravel(made), numbers)
    return np.allclose(np.ravel(made), numbers, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ray", RECORDED)
@pytest.mark.parametrize("case", RAW, ids=lambda case: name_of(*case))
def test_raw_frames_become_what_the_old_ray_made_of_them(ray, case):
    game, config, model = case
    env = make_env(EnvSettings(lambda _: Game(**GAMES[game]), **config), {})
    made = seen(env, LegacyPreprocessor.from_model(model, ray))
    old = RECORDED[ray][name_of(*case)]
    if "error" in old:  # it could not divide bytes by 255
        assert 0 <= next(made).min() <= next(made).max() <= 1
    else:
        assert all(map(is_same, made, old["seen"]))


@pytest.mark.parametrize("ray", RECORDED)
@pytest.mark.parametrize("space", [s for s in SPACES if s != "tuple_with_frame"])
def test_spaces_become_what_the_old_ray_made_of_them(ray, space):
    kind, values = SPACES[space]
    old = RECORDED[ray][name_of(space, NONE, {})]["seen"]
    env = make_env(EnvSettings(lambda _: Given(kind, values)), {})
    made = list(seen(env, LegacyPreprocessor(legacy_ray=ray)))
    assert all(map(is_same, made, old))
    # The same without Ray.
    settings = ModelSettings.from_config({}, {}, ray=ray)
    batch = preprocessor(spaces.from_object(kind), settings, made[0].shape, where="p")(values)
    assert all(map(is_same, batch, old[:4]))


@pytest.mark.parametrize("ray", RECORDED)
@pytest.mark.parametrize("space", [s for s in SPACES if s != "tuple_with_frame"])
def test_the_filter_stands_behind_the_preprocessor(ray, space):
    kind, values = SPACES[space]
    old = RECORDED[ray][name_of(space, FILTER, {})]["seen"]
    env = make_env(EnvSettings(lambda _: Given(kind, values)), {})
    made = list(seen(env, LegacyPreprocessor(legacy_ray=ray), filtered=True))
    if isinstance(old[0], str):
        assert not made[0].any()  # hashes of numbers that rounding changes
        assert made[0].shape == tuple(map(int, old[0].split()[1].split("x")))
    else:
        assert [is_same(*both, exact=False) for both in zip(made, old, strict=True)] == [True] * 12
