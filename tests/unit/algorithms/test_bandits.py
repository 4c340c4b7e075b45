"""The bandits know what a real old Ray knew after the same steps; Random draws, and plays.

`tests/legacy/losses/record_bandits.py` made the numbers, with Ray 1.13.0 and torch.
"""

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.spaces.space_utils import unbatch

from rllib_compat.adapters import with_preprocessors
from rllib_compat.algorithms.banditlinucb import steps_of
from rllib_compat.config import translate
from rllib_compat.errors import ConfigError, RefusedKeysError
from rllib_compat.modules import RandomModule
from rllib_compat.ray_versions import configs
from rllib_compat.runtime import LegacyModel
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import close
from tests.unit.algorithms.test_losses import MODULE, RECORDS

pytestmark = OTHERS_WARNINGS

CASES = sorted(path.stem for path in (RECORDS / "bandits").glob("*.npz"))
ARMS, SIZE = 3, 4
VECTOR = gymnasium.spaces.Box(-2.0, 2.0, (SIZE,), np.float32)
ITEMS = gymnasium.spaces.Dict({"item": gymnasium.spaces.Box(-2.0, 2.0, (ARMS, SIZE), np.float32)})


class Recorded:
    """One case."""

    def __init__(self, case):
        with np.load(RECORDS / "bandits" / f"{case}.npz") as file:
            self.found = {name: file[name] for name in file}
        self.name = "BanditLinUCB" if case.startswith("ucb") else "BanditLinTS"
        self.items = "items" in case
        self.settings = {
            name.removeprefix("config."): value.item()
            for name, value in self.found.items()
            if name.startswith("config.")
        }

    def steps(self):
        count = sum(name.endswith(".reward") for name in self.found)
        for n in range(count):
            yield tuple(self.found[f"step.{n}.{p}"] for p in ("obs", "action", "reward", "scores"))

    def seen(self, observations):
        rows = torch.from_numpy(np.stack(observations))
        return {"item": rows} if self.items else rows

    def learner(self, **settings):
        config = configs.todays_config(self.name).training(**self.settings, **settings)
        spaces = (ITEMS if self.items else VECTOR, gymnasium.spaces.Discrete(ARMS))
        return config.build_learner(spaces={MODULE: spaces})


@pytest.mark.parametrize("case", CASES)
def test_scores_and_posterior_are_those_of_ray_1_13_after_each_step(case):
    recorded = Recorded(case)
    learner = recorded.learner()
    module = learner.module[MODULE].unwrapped()
    for seen, action, reward, scores in recorded.steps():
        batch = {Columns.OBS: recorded.seen([seen])}
        rate = module.bounds if recorded.name == "BanditLinUCB" else module.expected
        close(rate(batch[Columns.OBS])[0].numpy(), scores, 1e-4)
        assert module.forward_inference(batch)[Columns.ACTIONS].item() == scores.argmax()
        one = (recorded.seen([seen]), torch.tensor([int(action)]), torch.tensor([float(reward)]))
        learner.observe({MODULE: (*one, None)})
    for name in ("precision", "f", "theta", "covariance"):
        close(getattr(module, name).numpy(), recorded.found[name], 1e-4)
    arms = LegacyModel(module, ITEMS if recorded.items else VECTOR, {}, ARMS).arms
    close(np.stack([arm.theta.numpy() for arm in arms]), recorded.found["theta"], 1e-4)


@pytest.mark.parametrize("case", CASES)
def test_many_steps_at_once_teach_what_they_teach_one_by_one(case):
    recorded = Recorded(case)
    learner = recorded.learner()
    seen, acted, earned, _ = zip(*recorded.steps(), strict=True)
    several = recorded.seen(seen), np.array(acted), np.array(earned)
    learner.observe({MODULE: (*several, None)})
    close(learner.module[MODULE].unwrapped().theta.numpy(), recorded.found["theta"], 1e-4)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("ts")])
@pytest.mark.parametrize("drawn_from", ["prior", "posterior"])
def test_thompson_sampling_draws_as_ray_1_13_or_from_the_posterior_where_asked(case, drawn_from):
    recorded = Recorded(case)
    learner = recorded.learner(drawn_from=drawn_from)
    module = learner.module[MODULE].unwrapped()
    close(recorded.found["posterior"], module.covariance.numpy(), 1e-6)  # nothing was learned there
    seen, acted, earned, _ = zip(*recorded.steps(), strict=True)
    several = recorded.seen(seen), np.array(acted), np.array(earned)
    learner.observe({MODULE: (*several, None)})
    torch.manual_seed(7)
    first = recorded.seen(seen[:1])
    drawn = torch.stack([module.sampled(first)[0] for _ in range(2000)])
    x = torch.from_numpy(seen[0])
    x = x if recorded.items else x.expand(ARMS, SIZE)
    covariance = module.covariance
    if drawn_from == "prior":
        covariance = torch.from_numpy(recorded.found["posterior"]).float()
    covariance = covariance.expand(ARMS, SIZE, SIZE)
    expected = torch.einsum("ad,ade,ae->a", x, covariance, x).sqrt()
    np.testing.assert_allclose(drawn.std(0).numpy(), expected.numpy(), rtol=0.1)
    deviations = (drawn.mean(0) - module.expected(first)[0]) / expected
    assert deviations.abs().max() < 0.1


def test_the_steps_of_episodes_have_what_was_seen_before_each_and_the_regret_of_each():
    infos = [{}, {"regret": 1.0}, {"regret": 0.5}]
    episode = SingleAgentEpisode(
        observations=[np.float32([n, 0]) for n in range(3)],
        actions=[1, 0],
        rewards=[5.0, 6.0],
        infos=infos,
        len_lookback_buffer=0,
    )
    (seen, actions, rewards, regrets) = steps_of([episode, episode])[MODULE]
    assert seen[:, 0].tolist() == [0, 1, 0, 1]
    assert actions.tolist() == [1, 0, 1, 0]
    assert rewards.tolist() == [5, 6, 5, 6]
    assert regrets.sum() == 3.0
    infos[1].clear()
    assert steps_of([episode])[MODULE][3] is None


def test_items_reach_a_bandit_as_a_table_and_all_else_as_a_vector():
    flat = gymnasium.spaces.Dict({"other": VECTOR})
    for space, kept in ((ITEMS, True), (flat, False), (gymnasium.spaces.Discrete(3), False)):
        spaces = {"__env_single__": (space, gymnasium.spaces.Discrete(ARMS))}
        made = with_preprocessors(None, False, spaces=spaces, keeps=("item",))
        assert (made == []) == kept


@pytest.mark.parametrize(
    ("spaces", "where"),
    [
        ((VECTOR, VECTOR), "action_space"),
        ((gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(3)), "observation_space"),
    ],
)
def test_spaces_that_no_bandit_knows_are_told(spaces, where):
    config = configs.todays_config("BanditLinTS")
    with pytest.raises(ConfigError) as told:
        config.build_learner(spaces={MODULE: spaces})
    assert told.value.where == where


def test_an_old_config_says_alpha_and_lambda_in_its_model():
    for asked in ("UpperConfidenceBound", "ray.rllib.contrib.bandits.exploration.UCB"):
        old = {
            "env": "CartPole-v1",
            "model": {"alpha": 0.5, "lambda_": 2.0},
            "exploration_config": {"type": asked},
        }
        config = translate(old, algorithm="contrib/LinUCB").algorithm_config
        assert (config.alpha, config.lambda_) == (0.5, 2.0)
        assert config.algo_class.__name__ == "BanditLinUCB"
    with pytest.raises(RefusedKeysError, match="BanditLinUCB"):
        _ = translate(old, algorithm="BanditLinTS").algorithm_config


@pytest.mark.parametrize("algorithm", ["BanditLinTS", "BanditLinUCB"])
@pytest.mark.parametrize(
    ("asked", "chances"),
    [
        ({"type": "Random"}, [1 / 3, 1 / 3, 1 / 3]),
        ({"type": "SoftQ", "temperature": 0.5}, [0.106, 0.788, 0.106]),
        ({"type": "StochasticSampling"}, [0.212, 0.576, 0.212]),
        ({"type": "EpsilonGreedy", "initial_epsilon": 0.3}, [0.1, 0.8, 0.1]),
    ],
)
def test_other_ways_to_explore_choose_by_what_is_expected_as_in_ray_1_13(algorithm, asked, chances):
    old = {"env": "CartPole-v1", "exploration_config": asked}
    translation = translate(old, algorithm=algorithm, legacy_ray="1.13.0")
    spaces = {MODULE: (VECTOR, gymnasium.spaces.Discrete(ARMS))}
    learner = translation.algorithm_config.build_learner(spaces=spaces)
    ones = torch.ones(1, SIZE)
    # With a prior of 1, a step of the second arm lets it expect four fifths of the reward.
    learner.observe({MODULE: (ones, torch.tensor([1]), torch.tensor([1.25]), None)})
    module = learner.module[MODULE].unwrapped()
    assert module.forward_inference({Columns.OBS: ones})[Columns.ACTIONS].item() == 1
    seen = {Columns.OBS: ones.expand(4000, SIZE)}
    acts = module.forward_exploration(seen, t=0)[Columns.ACTIONS]
    found = np.bincount(acts.numpy(), minlength=ARMS) / len(acts)
    np.testing.assert_allclose(found, chances, atol=0.03)


def test_items_are_chosen_in_the_bandits_own_way_alone():
    old = {"env": "CartPole-v1", "exploration_config": {"type": "SoftQ"}}
    config = translate(old, algorithm="BanditLinUCB").algorithm_config
    with pytest.raises(ConfigError, match="items") as told:
        config.build_learner(spaces={MODULE: (ITEMS, gymnasium.spaces.Discrete(ARMS))})
    assert told.value.where == "exploration_config"


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"lambda_": -1.0}])
def test_a_posterior_that_is_none_is_told(wrong):
    config = configs.todays_config("BanditLinUCB").environment("CartPole-v1")
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        config.training(**wrong).validate()


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Discrete(4),
        gymnasium.spaces.Box(-3.0, 5.0, (2,), np.float32),
        gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2), "b": VECTOR}),
    ],
)
def test_random_actions_are_drawn_from_the_action_space_as_many_as_there_are_observations(space):
    module = RandomModule(observation_space=VECTOR, action_space=space)
    drawn = module.forward_exploration({Columns.OBS: torch.zeros(200, SIZE)})[Columns.ACTIONS]
    rows = unbatch(drawn)
    assert len(rows) == 200
    assert all(row in space for row in rows)
    assert len({str(row) for row in rows}) > 3


def test_random_actions_are_not_stretched_a_second_time():
    config = translate(
        {"env": "Pendulum-v1", "rollouts_per_iteration": 3, "normalize_actions": True},
        algorithm="contrib/RandomAgent",
        legacy_ray="0.8.7",
    ).algorithm_config
    assert config.rollouts_per_iteration == 3
    assert not config.normalize_actions
