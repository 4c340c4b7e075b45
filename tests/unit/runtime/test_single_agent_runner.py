"""An env runner that goes past its connectors samples what it would sample through them."""

import copy
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.utils.test_utils import check

from rllib_compat.adapters import CompatEnvRunner, mean_std_filter
from rllib_compat.config import translate
from rllib_compat.modules import squashed_gaussian
from rllib_compat.ray_versions import (
    algorithms,
    connectors,
    env_runners,
    episodes,
    get_actions,
    modules,
    sampling,
    single_agent_runner,
    startup,
)
from rllib_compat.ray_versions.sampling import TIMED
from rllib_compat.runtime import add_preprocessors, set_previous_steps
from tests.marks import marked

pytestmark = [
    pytest.mark.matrix,
    # Ray 2.40 registers an environment anew for each env runner.
    pytest.mark.filterwarnings("ignore:.*Overriding environment"),
]


NOISE = {"type": "ParameterNoise", "random_timesteps": 20}


class DrawsInTorch(CompatEnvRunner):
    """Goes directly, and draws actions as Ray does: with the same seeds, the same ones."""

    draws_in_numpy = False


class GoesRaysWay(CompatEnvRunner):
    bypasses_connectors = False


def ppo(env="CartPole-v1", envs=1, **settings):
    settings = {"num_envs_per_env_runner": envs, "rollout_fragment_length": 7, **settings}
    return PPOConfig().environment(env).env_runners(**settings).debugging(seed=5)


def dqn():
    config = DQNConfig().environment("CartPole-v1").debugging(seed=5)
    return config.env_runners(num_envs_per_env_runner=2).training(epsilon=[(0, 1.0), (60, 0.1)])


def translated(algorithm="DQN", **old):
    """The config that Ray trains for an old one."""
    config = {"env": "CartPole-v1", "num_envs_per_worker": 2, **old}
    made = translate(config, algorithm=algorithm).algorithm_config
    return made.debugging(seed=5)


def clipped():
    config = ppo("Pendulum-v1")
    return config.environment(clip_actions=True, normalize_actions=False)


def filtered():
    return ppo(envs=2, env_to_module_connector=mean_std_filter)


def flat():
    config = ppo("FrozenLake-v1", envs=2)
    add_preprocessors(config)
    return config


def recurrent(env="CartPole-v1"):
    model = {"use_lstm": True, "max_seq_len": 5, "lstm_cell_size": 6, "fcnet_hiddens": [7]}
    return ppo(env, envs=2).rl_module(model_config=model)


def looking_back():
    config = recurrent()
    set_previous_steps(config, 1, 1, one_hot=True)
    return config


CASES = {
    "categorical": ppo,
    "several-environments": lambda: ppo(envs=3),
    "gaussian, clipped": clipped,
    "gaussian, stretched": lambda: ppo("Pendulum-v1", envs=2),
    "epsilon": dqn,
    "noisy nets": lambda: translated(noisy=True),
    "soft Q": lambda: translated(soft_q=True),
    "noise on weights": lambda: translated(exploration_config=NOISE),
    "noise on weights and actions": lambda: translated(
        "DDPG", env="Pendulum-v1", exploration_config=NOISE
    ),
    "filter": filtered,
    "observations made flat": flat,
    "without exploration": lambda: ppo(envs=2, explore=False),
    "gaussian, without exploration": lambda: ppo("Pendulum-v1", explore=False),
    "recurrent": recurrent,
    "recurrent, gaussian": lambda: recurrent("Pendulum-v1"),
    "recurrent, the step before": looking_back,
    "lookback": lambda: ppo(envs=2, episode_lookback_horizon=3),
}


def sampled(kind, config, asked):
    torch.manual_seed(3)
    runner = kind(config=config)
    env_runners.seed_env_runner(runner, runner.env)
    torch.manual_seed(3)
    samples = [runner.sample(**each) for each in asked]
    return runner, [told(episode) for sample in samples for episode in sample]


def told(episode):
    parts = {
        "observations": episode.observations.data,
        "actions": episode.actions.data,
        "rewards": episode.rewards.data,
        "lookback": episode.rewards.lookback,
        "infos": len(episode.infos.data),
        "begin": (episode.t_started, episode.t),
        "ended": (bool(episode.is_terminated), bool(episode.is_truncated)),
    }
    extra = {name: buffer.data for name, buffer in episode.extra_model_outputs.items()}
    return {**parts, **extra}


STEPS = [{"num_timesteps": n} for n in (1, 40, 2 * TIMED, 0, 3)]
OTHERWISE = {"episodes": [{"num_episodes": 3}, {"num_episodes": 1}], "fragments": [{}, {}]}


def cases(names, *on_each_push):
    """All are asked for steps; on each push, some are asked for episodes and fragments, too."""
    made = [pytest.param(name, STEPS, id=name) for name in names]
    for name in names:
        mark = pytest.mark.newest if name in on_each_push else pytest.mark.nightly
        for kind, asked in OTHERWISE.items():
            if kind == "fragments" and name.startswith("noise on weights"):
                continue  # of whole episodes, which go on in the next fragment, but not with Ray
            made.append(pytest.param(name, asked, id=f"{name}, {kind}", marks=mark))
    return made


@pytest.mark.parametrize(("name", "asked"), cases(CASES, "filter", "recurrent, the step before"))
def test_what_is_sampled_directly_is_what_ray_samples(name, asked):
    runner, found = sampled(DrawsInTorch, CASES[name](), asked)
    other, expected = sampled(GoesRaysWay, CASES[name](), asked)
    assert runner.bypass() is not None
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        check(mine, theirs, rtol=1e-6)
    counted, wanted = runner.get_metrics(), other.get_metrics()
    for key in ("num_env_steps_sampled", "num_episodes", "episode_return_mean"):
        assert (key in counted) == (key in wanted)
        if key in wanted:
            check(counted[key].peek(), wanted[key].peek())


def test_episodes_go_on_when_the_way_changes_between_two_samples():
    runner = CompatEnvRunner(config=ppo(envs=2))
    (first, *_), direct = runner.sample(num_timesteps=4), runner.bypass()
    runner.config.restart_failed_sub_environments = True
    second = runner.sample(num_timesteps=4)
    assert direct is not None
    assert runner.bypass() is None
    assert {first.id_} & {episode.id_ for episode in second}


class Own(ConnectorV2):
    def __call__(self, *, batch, **_):
        return batch


def own_before(*_):
    return Own()


@pytest.mark.parametrize("where", ["env_to_module_connector", "module_to_env_connector"])
def test_connectors_of_ones_own_are_called(where):
    assert CompatEnvRunner(config=ppo(**{where: own_before})).bypass() is None


def test_a_connector_that_is_added_later_is_called_from_then_on():
    runner = CompatEnvRunner(config=ppo())
    runner.sample(num_timesteps=2)
    assert runner.bypass() is not None
    connectors.env_to_module(runner).prepend(Own())
    assert runner.bypass() is None
    runner.sample(num_timesteps=2)


def test_episodes_of_recurrent_modules_go_on_when_the_way_changes_between_two_samples():
    """What one way leaves of states and time axes for the next step, the other one takes."""
    directly, found = sampled(DrawsInTorch, recurrent(), [])
    other, expected = sampled(GoesRaysWay, recurrent(), [])
    torch.manual_seed(3)
    ways = []
    for steps in (3, 2, 1, 4):
        ways.append(directly.bypass() is not None)
        found += map(told, directly.sample(num_timesteps=2 * steps))
        directly.config.restart_failed_sub_environments ^= True
    torch.manual_seed(3)
    for steps in (3, 2, 1, 4):
        expected += map(told, other.sample(num_timesteps=2 * steps))
    assert ways == [True, False, True, False]
    for mine, theirs in zip(found, expected, strict=True):
        check(mine, theirs, rtol=1e-6)


def test_modules_that_see_several_parts_get_them_from_rays_connectors():
    runner = CompatEnvRunner(config=filtered())
    assert runner.bypass() is not None
    seen = runner.module.observation_space
    runner.module.observation_space = gymnasium.spaces.Dict({"a": seen})
    assert runner.bypass() is None


class Chooses(TorchRLModule):
    """Says what to do itself, and has no distribution: Ray knows none of MultiDiscrete."""

    def setup(self):
        self.layer = torch.nn.Linear(2, 2)

    def _forward(self, batch, **_):
        chosen = (self.layer(batch["obs"]) > 0).long()
        return {"actions": chosen, "actions_for_env": 1 - chosen}

    _forward_exploration = _forward_inference = _forward


class Switches(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.MultiDiscrete([2, 2])

    def __init__(self, config=None):
        self.random = np.random.default_rng(4)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        seen = self.random.uniform(-1, 1, 2).astype(np.float32)
        return seen, float(action[0]), bool(seen[0] > 0.9), False, {}


@pytest.mark.parametrize("normalized", [True, False])
def test_modules_that_choose_by_themselves_need_no_distribution(normalized):
    config = ppo(Switches, envs=2).environment(normalize_actions=normalized)
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=Chooses))
    runner, found = sampled(DrawsInTorch, config, STEPS)
    _, expected = sampled(GoesRaysWay, config, STEPS)
    assert runner.bypass() is not None
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        check(mine, theirs, rtol=1e-6)


class CountsSteps(episodes.callback_class()):
    steps = 0

    def on_episode_step(self, **_):
        CountsSteps.steps += 1


def test_callbacks_hear_of_each_step():
    CountsSteps.steps = 0
    runner = CompatEnvRunner(config=ppo().callbacks(CountsSteps))
    runner.sample(num_timesteps=9)
    assert CountsSteps.steps == 9


class Fails(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, config=None):
        self.steps, self.last = 0, config["last"]

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == self.last:
            raise KeyError("the simulator is gone")
        return np.zeros(2, np.float32), 0.0, False, False, {}


@pytest.mark.parametrize("kind", [CompatEnvRunner, GoesRaysWay])
@pytest.mark.parametrize("last", [1, 3])
def test_an_error_of_an_environment_is_the_callers(kind, last):
    runner = kind(config=ppo(Fails).environment(env_config={"last": last}))
    with pytest.raises(KeyError, match="simulator"):
        runner.sample(num_timesteps=5)


TorchCategorical = modules.action_distribution(gymnasium.spaces.Discrete(3))
TorchDiagGaussian = modules.action_distribution(gymnasium.spaces.Box(-1, 1, (2,)))
TorchMultiCategorical = modules.action_distribution(gymnasium.spaces.MultiDiscrete([2, 2]))
ROWS = 40_000
#: Rows of one step each, of sequences of one step, and of sequences.
AXES = pytest.mark.parametrize("axes", [(ROWS,), (ROWS, 1), (ROWS // 4, 4)], ids=str)


@AXES
@pytest.mark.parametrize("logits", [[0.0, 1.0, -2.0], [-np.inf, 3.0, 3.0], [1e4, 0.0, -1e4]])
def test_choices_are_as_frequent_as_their_logits_say(logits, axes):
    inputs = np.tile(np.array(logits, np.float32), (*axes, 1))
    np.random.seed(0)
    actions, logp = sampling.draw(TorchCategorical, inputs)
    theirs = TorchCategorical.from_logits(torch.from_numpy(inputs))
    frequent = np.bincount(actions.ravel(), minlength=3) / ROWS
    expected = torch.softmax(torch.tensor(logits), 0).numpy()
    np.testing.assert_allclose(frequent, expected, atol=4 * 0.5 / np.sqrt(ROWS))
    assert not frequent[expected == 0].any()
    np.testing.assert_allclose(logp, theirs.logp(torch.from_numpy(actions)), rtol=1e-5, atol=1e-6)
    assert (actions.dtype, logp.dtype) == (np.int64, np.float32)


@AXES
def test_gaussian_actions_have_their_mean_and_deviation(axes):
    inputs = np.tile(np.array([1.0, -3.0, np.log(0.5), np.log(2.0)], np.float32), (*axes, 1))
    np.random.seed(0)
    actions, logp = sampling.draw(TorchDiagGaussian, inputs)
    theirs = TorchDiagGaussian.from_logits(torch.from_numpy(inputs))
    rows = actions.reshape(ROWS, 2)
    np.testing.assert_allclose(rows.mean(0), [1, -3], atol=0.05)
    np.testing.assert_allclose(rows.std(0), [0.5, 2], rtol=0.03)
    np.testing.assert_allclose(logp, theirs.logp(torch.from_numpy(actions)), rtol=1e-4, atol=1e-5)
    assert (actions.dtype, logp.dtype) == (np.float32, np.float32)


@AXES
@pytest.mark.parametrize("squashes", [1, 2])
def test_squashed_actions_are_those_of_torch(squashes, axes):
    kind = squashed_gaussian([-2.0, 0.0], [2.0, 1.0], -5.0, squashes)
    logits = np.tile(np.array([0.3, -0.5, np.log(0.5), -9.0], np.float32), (*axes, 1))
    np.random.seed(0)
    actions, logp = sampling.draw(kind, logits)
    theirs = kind.from_logits(torch.from_numpy(logits))
    rows, expected = actions.reshape(ROWS, 2), theirs.sample().reshape(ROWS, 2)
    np.testing.assert_allclose(rows.mean(0), expected.mean(0), atol=0.03)
    np.testing.assert_allclose(rows.std(0), expected.std(0), rtol=0.03)
    np.testing.assert_allclose(logp, theirs.logp(torch.from_numpy(actions)), rtol=1e-3, atol=1e-2)
    assert (actions.dtype, logp.dtype) == (np.float32, np.float32)


@pytest.mark.parametrize("shared", [True, False])
def test_layers_act_as_the_module_around_them(shared):
    config = ppo().rl_module(model_config={"vf_share_layers": shared})
    runner = CompatEnvRunner(config=config)
    batch = {"obs": torch.randn(3, 4)}
    assert modules.acting_layers(runner.module)
    found = sampling.forward_of(runner.module, explore=True)(batch, t=0)["action_dist_inputs"]
    theirs = runner.module.forward_exploration(batch)["action_dist_inputs"]
    torch.testing.assert_close(found, theirs, rtol=0, atol=0)
    runner.module.pi.register_forward_hook(lambda *_: None)
    assert modules.acting_layers(runner.module) is None


def test_logits_that_are_no_numbers_are_left_to_torch_which_complains():
    assert sampling.draw(TorchCategorical, np.array([[np.nan, 0.0]], np.float32)) is None


def test_other_distributions_are_left_to_torch():
    assert sampling.draw(TorchMultiCategorical, np.zeros((1, 2), np.float32)) is None


BOX, THREE = gymnasium.spaces.Box(-1, 1, (2,), np.float32), gymnasium.spaces.Discrete(3)
SEVERAL = gymnasium.spaces.MultiDiscrete([2, 3])
ACTIONS = {
    "choice": THREE,
    "choices": SEVERAL,
    "numbers": BOX,
    "tuple": gymnasium.spaces.Tuple([THREE, BOX]),
    "tuple of choices": gymnasium.spaces.Tuple([THREE, SEVERAL]),
    "dict": gymnasium.spaces.Dict({"a": BOX, "b": BOX}),
    "dict of one number": gymnasium.spaces.Dict({"a": gymnasium.spaces.Box(-1, 1, (1,))}),
    "nested": gymnasium.spaces.Dict({"a": gymnasium.spaces.Tuple([THREE, BOX]), "b": THREE}),
}


class Obeys(gymnasium.Env):
    """Takes actions of a space, and none that it has not."""

    def __init__(self, config):
        self.observation_space, self.action_space = BOX, config["actions"]

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        return np.zeros(2, np.float32), 1.0, False, False, {}


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("actions", marked(ACTIONS, ("numbers", "nested")))
def test_a_step_that_is_not_explored_has_one_probability(actions, memory):
    """Zero, as in Ray 1.13.0; Ray's deterministic distributions tell one for each number."""
    config = (recurrent if memory else ppo)(Obeys)
    config.environment(env_config={"actions": ACTIONS[actions]}).env_runners(explore=False)
    for episode in CompatEnvRunner(config=config).sample(num_timesteps=2 * TIMED + 4):
        logp = np.array(episode.get_extra_model_outputs("action_logp"))
        assert logp.shape == (len(episode),)
        assert not logp.any()


def test_so_it_has_in_an_env_runner_of_ones_own():
    config = ppo(Obeys).environment(env_config={"actions": ACTIONS["numbers"]})
    config.env_runners(explore=False, env_runner_cls=SingleAgentEnvRunner)
    with startup.without_cluster(), algorithms.small_algorithm(config) as algorithm:
        get_actions.replace_in_workers(algorithm)
        (episode,) = algorithm.env_runner.sample(num_timesteps=4)
        logp = np.array(episode.get_extra_model_outputs("action_logp"))
    assert logp.shape == (4,)
    assert not logp.any()


class SaysMuch(gymnasium.Wrapper):
    """Infos of any keys, in every second step."""

    def __init__(self, _):
        super().__init__(gymnasium.make("CartPole-v1"))

    def step(self, action):
        *others, info = super().step(action)
        self.even = not getattr(self, "even", False)
        return (*others, {**info, 3: {4: "x"}, "_own": None} if self.even else info)


@pytest.mark.parametrize("kind", [CompatEnvRunner, GoesRaysWay])
def test_infos_arrive_as_the_environment_gave_them(kind):
    config = ppo(SaysMuch, envs=2)
    runner = kind(config=config)
    infos = [info for e in runner.sample(num_timesteps=6) for info in e.get_infos()]
    assert {str(info) for info in infos} == {"{}", "{3: {4: 'x'}, '_own': None}"}
    runner.stop()


class KeepsItsInfo(gymnasium.Env):
    """Ends each third episode by its limit; writes what it says into one dict again and again."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, space):
        self.observation_space, self.info, self.episode = space, {}, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.info["steps"] = 0
        return self.observation_space.sample(), self.info

    def step(self, action):
        self.info["steps"] += 1
        over = self.info["steps"] == 2 + self.episode % 3
        ended = bool(over and self.episode % 3)
        return self.observation_space.sample(), float(action), ended, over and not ended, self.info


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Box(-1, 1, (2, 3)),
        gymnasium.spaces.MultiDiscrete([3, 4]),
        gymnasium.spaces.Discrete(5),
        gymnasium.spaces.Dict(a=gymnasium.spaces.Discrete(5)),
    ],
    ids=lambda space: type(space).__name__,
)
def test_environments_of_one_process_step_as_gymnasiums_do(space):
    ours, theirs = (
        DictInfoToList(SyncVectorEnv([partial(KeepsItsInfo, copy.deepcopy(space))] * 2))
        for _ in range(2)
    )
    single_agent_runner.step_in_one_loop(ours)
    for vector in (ours, theirs):
        for number, env in enumerate(vector.env.envs):
            env.observation_space.seed(number)
        vector.reset()
    kept = []
    for _ in range(20):
        found, expected = (vector.step(np.array([0, 1])) for vector in (ours, theirs))
        check(found[0], expected[0])
        for mine, gymnasiums in zip(found[1:4], expected[1:4], strict=True):
            np.testing.assert_array_equal(mine, gymnasiums, strict=True)
        assert found[4] == expected[4]
        kept += [found[4], copy.deepcopy(found[4])]
    assert kept[::2] == kept[1::2]
