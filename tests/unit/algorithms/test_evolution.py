"""ES and ARS: their arithmetic is that of real old Rays, and their noise is mirrored and shared.

`tests/legacy/losses/record_evolution.py` made the numbers, with Ray 1.13.0.
"""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray")

import gymnasium
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rllib_compat.algorithms import evolution, rollouts
from rllib_compat.algorithms.noise import best_gradient, centered_ranks, noise_table, weighted_sum
from rllib_compat.config import translate
from rllib_compat.errors import ConfigError
from rllib_compat.neutral import Verdict
from rllib_compat.ray_versions import configs, connectors
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.recordings import close

RECORDS = Path(__file__).parents[2] / "legacy" / "losses" / "1.13.0" / "evolution"
CASES = sorted(path.stem for path in RECORDS.glob("*-*.npz"))

pytestmark = OTHERS_WARNINGS


def recorded(case):
    with np.load(RECORDS / f"{case}.npz") as file:
        return {name: file[name] for name in file}


def local_learner(case, found):
    """The config and a learner of a case, with the recorded weights."""
    name = case.partition("-")[0].upper()
    settings = {n.removeprefix("config."): v.item() for n, v in found.items() if "config." in n}
    config = configs.todays_config(name).training(**settings)
    config.rl_module(model_config={"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh"})
    actions = gymnasium.spaces.Discrete(3)
    if "continuous" in case:
        actions = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    spaces = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), actions)
    learner = config.build_learner(spaces={"default_policy": spaces})
    shapes = {n: array.shape for n, array in learner.weights().items()}
    rollouts.set_flat(learner.module["default_policy"], found["weights"], shapes)
    return config, learner


@pytest.mark.parametrize("case", CASES)
def test_three_updates_give_the_weights_that_ray_1_13_had_after_each(case):
    found = recorded(case)
    config, learner = local_learner(case, found)
    algorithm = SimpleNamespace(config=config)
    noise = noise_table(config.noise_size)
    for step in range(3):
        step_of = {n: found[f"step.{step}.{n}"] for n in ("places", "returns", "weights")}
        before = flat(learner)

        def perturbation(row, places=step_of["places"], size=before.size):
            return noise[places[row] :][:size]

        ascent = config.algo_class.ascent(algorithm, step_of["returns"], perturbation)
        norm = float(found[f"step.{step}.grad_norm"])
        assert np.square(ascent).sum() == pytest.approx(norm, rel=1e-5)
        moved = learner.descend(config.algo_class.descent(algorithm, ascent, before))
        close(flat(learner), step_of["weights"], 1e-6, "update")
        np.testing.assert_allclose(before + moved, flat(learner), rtol=1e-6, atol=1e-6)
        ratio = np.linalg.norm(moved) / np.linalg.norm(before)
        assert ratio == pytest.approx(float(found[f"step.{step}.update_ratio"]), rel=1e-4)


@pytest.mark.parametrize(("hiddens", "layers"), [(None, 3), ([], 1), ([8], 2)])
def test_networks_have_the_layers_that_the_config_says_and_linear_ones_none(hiddens, layers):
    config = configs.todays_config("ES")
    if hiddens is not None:
        config.rl_module(model_config={"fcnet_hiddens": hiddens})
    spaces = (gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), gymnasium.spaces.Discrete(3))
    weights = config.build_learner(spaces={"default_policy": spaces}).weights()
    assert len(weights) == 2 * layers
    assert sum(array.shape == (3,) for array in weights.values()) == 1
    for array in weights.values():
        if array.ndim == 2:  # as `normc_initializer` had it
            norm = 0.01 if len(array) == 3 else 1.0
            np.testing.assert_allclose(np.linalg.norm(array, axis=1), norm, rtol=1e-5)
        else:
            assert not array.any()


def flat(learner):
    return np.concatenate([array.ravel() for array in learner.weights().values()])


class Group:
    """Env runners that hold nothing but a pipeline with a filter."""

    def __init__(self, size):
        self.local_env_runner, *self.others = [self._runner() for _ in range(size + 1)]

    @staticmethod
    def _runner():
        from rllib_compat.adapters import mean_std_filter

        connector = mean_std_filter()
        connector.input_observation_space = gymnasium.spaces.Box(-9.0, 9.0, (3,), np.float64)
        return SimpleNamespace(_env_to_module=SimpleNamespace(connectors=[connector]))

    def num_remote_workers(self):
        return len(self.others)

    def foreach_env_runner(self, function, local_env_runner):
        assert not local_env_runner
        return [function(runner) for runner in self.others]


def test_filters_of_all_env_runners_hold_what_those_of_ray_1_13_held():
    found, group = recorded("filters"), Group(2)
    for number in range(3):
        for index, runner in enumerate(group.others):
            for observation in found[f"seen.{number}.{index}"]:
                connectors.observation_filter(runner)(observation)
        evolution.share_filter(group)
        for runner in (group.local_env_runner, *group.others):
            stat = connectors.observation_filter(runner).running_stats
            assert stat.n == found[f"after.{number}.count"]
            np.testing.assert_allclose(stat.mean, found[f"after.{number}.mean"], rtol=1e-6)
            np.testing.assert_allclose(stat.std, found[f"after.{number}.std"], rtol=1e-6)


RETURNS = arrays(
    np.float32,
    st.tuples(st.integers(1, 30), st.just(2)),
    elements=st.floats(-1000, 1000, width=32),
    unique=True,
)


@given(RETURNS)
def test_centered_ranks_are_evenly_spaced_around_zero_in_the_order_of_returns(returns):
    ranks = centered_ranks(returns)
    assert ranks.dtype == np.float32
    even = np.linspace(-0.5, 0.5, returns.size)
    np.testing.assert_allclose(np.sort(ranks.ravel()), even, atol=1e-6)
    np.testing.assert_array_equal(ranks.ravel().argsort(), returns.ravel().argsort())


@given(RETURNS)
def test_mirrored_pairs_that_change_places_turn_the_gradient_around(returns):
    noise = noise_table(200)

    def perturbation(row):
        return noise[3 * row :][:5]

    there = best_gradient(returns, perturbation, tried=60, used=60)
    back = best_gradient(returns[:, ::-1], perturbation, tried=60, used=60)
    np.testing.assert_allclose(there, -back, rtol=1e-4, atol=1e-5)


def test_of_many_rollouts_only_the_best_pairs_count():
    returns = np.array([[1, 2], [9, 3], [4, 5], [0, 8]], np.float32)
    vectors = np.eye(4, dtype=np.float32)
    found = best_gradient(returns, lambda row: vectors[row], tried=4, used=2)
    assert np.flatnonzero(found).tolist() == [1, 3]
    assert found[1] > 0 > found[3]


@given(st.integers(0, 1200))
def test_a_weighted_sum_is_the_same_in_parts_as_at_once(count):
    weights = np.linspace(-1, 1, max(count, 1), dtype=np.float32)
    vectors = noise_table(len(weights) + 4)
    found = weighted_sum(weights, lambda row: vectors[row : row + 4])
    expected = sum(float(w) * vectors[n : n + 4].astype(np.float64) for n, w in enumerate(weights))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_noise_table_is_that_of_every_old_ray_however_it_is_made(monkeypatch):
    whole = np.random.RandomState(123).randn(1001).astype(np.float32)
    np.testing.assert_array_equal(noise_table(1001), whole)
    monkeypatch.setattr("rllib_compat.algorithms.noise._CHUNK", 77)
    np.testing.assert_array_equal(noise_table(1001), whole)


class Line(gymnasium.Env):
    """The reward is the action; an episode has three steps."""

    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Box(-100.0, 100.0, (1,), np.float32)

    def __init__(self, _=None):
        self.step_number = 0

    def reset(self, *, seed=None, options=None):
        self.step_number = 0
        return 0, {}

    def step(self, action):
        self.step_number += 1
        return self.step_number, float(action[0]), self.step_number == 3, False, {}


class Bytes(Line):
    """The same, where steps are seen as bytes."""

    observation_space = gymnasium.spaces.Box(0, 255, (2,), np.uint8)

    def step(self, action):
        place, *others = super().step(action)
        seen = 70 * place, place
        return np.array(seen, np.uint8), *others

    def reset(self, **told):
        super().reset(**told)
        return np.array([7, 0], np.uint8), {}


def runner_on_a_line(line=Line, *, filter_keeps_integers=False, **settings):
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    from rllib_compat.runtime import add_preprocessors

    config = configs.todays_config("ARS").environment(line)
    config.rl_module(model_config={"fcnet_hiddens": []}).env_runners(**settings)
    add_preprocessors(config, filter_keeps_integers=filter_keeps_integers)
    return SingleAgentEnvRunner(config=config)


def tried(monkeypatch, runner, **search):
    """What came of two pairs of episodes around weights of zero; and the noise."""
    monkeypatch.setattr(rollouts.ray, "get", lambda held: held)
    noise = noise_table(1000)
    parameters = dict(runner.module.named_parameters())
    shapes = {name: tuple(parameters[name].shape) for name in sorted(parameters)}
    center = np.zeros(sum(p.numel() for p in parameters.values()), np.float32)
    given = rollouts.Search(noise, 0.5, **{"eval_prob": 0.0, **search})
    return rollouts.try_perturbations(runner, center, shapes, given), noise[: 10**6]


def test_perturbations_are_mirrored_and_filters_count_every_observation(monkeypatch):
    runner = runner_on_a_line(env_to_module_connector=None)
    found, _ = tried(monkeypatch, runner, least_seconds=0.05)
    assert len(found.places) > 1
    for (gain, mirrored), lengths in zip(found.returns, found.lengths, strict=True):
        assert gain == pytest.approx(-mirrored, rel=1e-5)  # the policy is linear in its weights
        assert abs(gain) > 0
        assert lengths == (3, 3)
    assert not any(p.any() for p in runner.module.parameters())  # back where they were
    runner = runner_on_a_line()
    found, _ = tried(monkeypatch, runner)
    assert connectors.observation_filter(runner).running_stats.n == found.steps == 6
    runner.stop()


@pytest.mark.parametrize("keeps", [True, False])
def test_filters_make_integers_of_integers_if_those_of_the_ray_did(monkeypatch, keeps):
    runner = runner_on_a_line(Bytes, filter_keeps_integers=keeps)
    seen, forward = [], rollouts.sampling.forward_of(runner.module, explore=True)

    def seeing(batch):
        seen.append(batch["obs"].numpy())
        return forward(batch)

    monkeypatch.setattr(rollouts.sampling, "forward_of", lambda *_, **__: seeing)
    tried(monkeypatch, runner)
    seen = np.concatenate(seen)
    assert np.array_equal(seen, seen.round()) is keeps
    assert seen.any()
    runner.stop()


def test_the_offset_is_taken_from_each_reward_and_noise_is_added_to_actions(monkeypatch):
    runner = runner_on_a_line(env_to_module_connector=None)
    found, _ = tried(monkeypatch, runner, offset=-2.0)
    ((gain, mirrored),) = found.returns
    assert gain + mirrored == pytest.approx(-12.0, abs=1e-4)
    np.random.seed(0)  # now and then, the noise of six actions is nearly nothing together
    found, _ = tried(monkeypatch, runner, action_noise=0.1)
    ((gain, mirrored),) = found.returns
    assert 1e-4 < abs(gain + mirrored) < 3
    runner.stop()


def test_episodes_without_a_perturbation_are_told_apart(monkeypatch):
    runner = runner_on_a_line(env_to_module_connector=None)
    numbers = iter([0.1, 0.2, 0.9])
    monkeypatch.setattr(rollouts.np.random, "uniform", lambda: next(numbers))
    found, _ = tried(monkeypatch, runner, eval_prob=0.5, action_noise=1.0)
    assert found.eval_returns == [0.0, 0.0]  # weights of zero, no noise
    assert found.eval_lengths == [3, 3]
    assert len(found.places) == 1
    runner.stop()


@pytest.mark.parametrize("name", ["ES", "ARS"])
def test_what_only_the_old_api_stack_can_run_is_refused(name):
    config = {"env": "CartPole-v1", "observation_filter": lambda shape: None}
    translation = translate(config, algorithm=name)
    assert translation.api_stack == "new"
    (refused,) = (f for f in translation.report if f.verdict is Verdict.REFUSED)
    assert refused.path == "$.observation_filter"
    asked = translate({}, algorithm=name, api_stack="old")
    assert asked.refused
    assert any("new API stack only" in finding.message for finding in asked.report)
    made = configs.todays_config(name).environment("CartPole-v1")
    made.api_stack(enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False)
    with pytest.raises(ConfigError, match="new API stack only"):
        made.validate()


@pytest.mark.parametrize(
    ("given", "filtered"),
    [
        ({}, True),
        ({"observation_filter": "MeanStdFilter"}, True),
        ({"observation_filter": "NoFilter"}, False),
    ],
)
@pytest.mark.parametrize("ray", [None, "1.13.0"])
def test_observations_are_normalised_unless_the_config_says_otherwise(given, filtered, ray):
    given = {"evaluation_config": {"observation_filter": "NoFilter"}, **given}
    translation = translate({"env": "CartPole-v1", **given}, algorithm="ES", legacy_ray=ray)
    config = translation.algorithm_config
    for made in (config, config.get_evaluation_config_object()):
        factory = connectors.env_to_module_factory(made)
        assert bool(connectors.make_connectors(factory, None, None, None)) == filtered


def test_a_linear_policy_of_ray_0_5_is_a_network_without_hidden_layers():
    old = {"env": "CartPole-v0", "num_deltas": 20, "deltas_used": 10, "stepsize": 0.5}
    config = translate(old, algorithm="ARS", legacy_ray="0.5.3").algorithm_config
    assert (config.num_rollouts, config.rollouts_used, config.sgd_stepsize) == (20, 10, 0.5)
    assert config.model_config["fcnet_hiddens"] == []
    more = old | {"policy_type": "MLPPolicy"}
    config = translate(more, algorithm="ARS", legacy_ray="0.5.3").algorithm_config
    assert config.model_config["fcnet_hiddens"] == [32, 32]


def test_a_noise_table_that_is_too_small_is_told():
    config = configs.todays_config("ARS").training(noise_size=10)
    algorithm = SimpleNamespace(
        config=config, _noise=None, _eval_returns=[], least_seconds=0, env_runner_group=None
    )
    algorithm.search = partial(config.algo_class.search, algorithm)
    with pytest.raises(ConfigError, match="10 numbers is too small"):
        config.algo_class._collect(algorithm, np.zeros(11), {})


@pytest.mark.parametrize("name", ["ES", "ARS"])
def test_a_share_that_leaves_no_episode_with_a_perturbation_is_refused(name):
    config = configs.todays_config(name).environment("CartPole-v1").training(eval_prob=1.0)
    with pytest.raises(ConfigError, match="sample forever"):
        config.validate()


def module_of(actions, **model):
    config = configs.todays_config("ES").rl_module(model_config=model)
    seen = gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32)
    return config.get_rl_module_spec(spaces={"default_policy": (seen, actions)}).build()


def test_half_of_an_action_may_be_numbers_of_its_own():
    actions = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
    module = module_of(actions, fcnet_hiddens=[8], free_log_std=True)
    shapes = {name: part.shape for name, part in module.get_state().items()}
    assert shapes["_pi_head.log_std"] == (2,)
    assert shapes["_pi_head.net.mlp.0.weight"] == (2, 8)
    with pytest.raises(ConfigError, match="actions need 3"):
        module_of(gymnasium.spaces.Discrete(3), free_log_std=True)


def test_a_memory_is_refused():
    with pytest.raises(ConfigError, match="recurrent policies"):
        module_of(gymnasium.spaces.Discrete(3), use_lstm=True, max_seq_len=5)
