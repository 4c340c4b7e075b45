"""An env runner for many agents that goes past its connectors samples what it would otherwise."""

import gymnasium
import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.connectors.env_to_module import MeanStdFilter
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.utils.test_utils import check

from rllib_compat.adapters import CompatMultiAgentEnvRunner
from rllib_compat.errors import LegacyEnvError
from rllib_compat.ray_versions import configs, connectors, releases
from rllib_compat.ray_versions import episodes as ray_episodes
from rllib_compat.ray_versions.multi_agent_runner import EnvToModulePipeline, ModuleToEnvPipeline
from rllib_compat.ray_versions.sampling import TIMED
from rllib_compat.runtime import add_preprocessors
from tests.marks import marked
from tests.unit.runtime.test_single_agent_runner import ACTIONS, STEPS, cases, told

pytestmark = [
    pytest.mark.matrix,
    # Ray 2.40 registers an environment anew for each env runner.
    pytest.mark.filterwarnings("ignore:.*Overriding environment"),
]

SEEN = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
TWO, WIDE = gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(-3, 5, (2,), np.float32)


class DrawsInTorch(CompatMultiAgentEnvRunner):
    """Goes directly, and draws actions as Ray does: with the same seeds, the same ones."""

    draws_in_numpy = False


class GoesRaysWay(CompatMultiAgentEnvRunner):
    bypasses_connectors = False


class Meeting(MultiAgentEnv):
    """Agents that come and go; the observation and reward of each tell of its last action."""

    def __init__(self, config):
        super().__init__()
        self.calls = config.get("calls", lambda time: ("a", "b"))
        self.space = config.get("actions", TWO)
        self.leaves = config.get("leaves", {})
        self.agents = self.possible_agents = ["a", "b"]
        seen = config.get("seen", SEEN)
        self.observation_spaces = dict.fromkeys(self.agents, seen)
        self.action_spaces = dict.fromkeys(self.agents, self.space)
        self.seen = seen
        self.random = np.random.default_rng(4)

    def look(self):
        acts = self.calls(self.time)
        if isinstance(self.seen, gymnasium.spaces.Discrete):
            return dict.fromkeys(acts, self.time % 3)
        return {agent: self.random.uniform(-1, 1, 2).astype(np.float32) for agent in acts}

    def reset(self, *, seed=None, options=None):
        self.time, self.gone = 0, set()
        return self.look(), {}

    def step(self, actions):
        self.time += 1
        rewards = {agent: float(np.sum(action)) for agent, action in actions.items()}
        ended = {agent: self.time >= self.leaves.get(agent, 99) for agent in actions}
        seen = {a: s for a, s in self.look().items() if a not in self.gone}
        self.gone |= {agent for agent, is_over in ended.items() if is_over}
        ended["__all__"] = self.time >= 5
        return seen, rewards, ended, {"__all__": False}, {a: {"time": self.time} for a in seen}


class Grouped(Meeting):
    """Two agents that observe each other's parts, and act as one."""

    def __init__(self, config):
        super().__init__({"calls": lambda _: ("both",)})
        part = gymnasium.spaces.Dict({"obs": SEEN, "state": TWO})
        self.agents = self.possible_agents = ["both"]
        self.observation_spaces = {"both": gymnasium.spaces.Tuple([part, part])}
        self.action_spaces = {"both": gymnasium.spaces.Tuple([TWO, TWO])}

    def look(self):
        one = {"obs": self.random.uniform(-1, 1, 2).astype(np.float32), "state": self.time % 2}
        return {"both": (one, {**one, "obs": -one["obs"]})}


class Obeys(Meeting):
    """Takes actions of a space, and none that it has not."""

    def step(self, actions):
        assert all(map(self.space.contains, actions.values())), actions
        return super().step(dict.fromkeys(actions, 0))


def agents(config, env, policies=("one", "two"), envs=1, **env_config):
    config.environment(env, env_config=env_config).debugging(seed=5)
    config.env_runners(num_envs_per_env_runner=envs)
    of = {"a": policies[0], "b": policies[-1], "both": policies[0]}
    mapped = lambda agent_id, *_, **__: of[agent_id]  # noqa: E731
    return config.multi_agent(policies=set(policies), policy_mapping_fn=mapped)


def ppo(env=Meeting, **more):
    config = PPOConfig().env_runners(rollout_fragment_length=7)
    return agents(config, env, **more)


def qmix(**more):
    config = configs.todays_config("QMIX")
    config.training(epsilon=[[0, 1.0], [60, 0.1]], lstm_cell_size=5)
    return agents(config, Grouped, policies=("one",), **more)


def recurrent(env=Meeting, **more):
    model = {"use_lstm": True, "lstm_cell_size": 4, "max_seq_len": 5}
    return ppo(env, **more).rl_module(model_config=model)


def filtered():
    return ppo().env_runners(env_to_module_connector=lambda *_: MeanStdFilter(multi_agent=True))


def flat():
    config = ppo(seen=gymnasium.spaces.Discrete(3))
    add_preprocessors(config)
    return config


def clipped():
    return ppo(actions=WIDE).environment(clip_actions=True, normalize_actions=False)


def turns(time):
    return ("ab"[time % 2],)


CASES = {
    "groups of agents": qmix,
    "a policy for each": ppo,
    "a policy for both": lambda: ppo(policies=("one",)),
    "with states": recurrent,
    "actions stretched": lambda: ppo(actions=WIDE),
    "actions clipped": clipped,
    "filter": filtered,
    "without exploration": lambda: ppo().env_runners(explore=False),
    "stretched, without exploration": lambda: ppo(actions=WIDE).env_runners(explore=False),
    "lookback": lambda: qmix().env_runners(episode_lookback_horizon=3),
}
if configs.vectorizes_multi_agent_envs():
    CASES |= {
        "several environments": lambda: ppo(envs=3),
        "several environments of groups": lambda: qmix(envs=2),
        # Ray 2.40 fails at these, or an env runner alone does.
        "observations made flat": flat,
        "no lookback": lambda: qmix().env_runners(episode_lookback_horizon=0),
        "one after the other": lambda: ppo(calls=turns),
        "one after the other, with states": lambda: recurrent(calls=turns),
    }
if releases.at_least("2.60"):
    CASES["one leaves"] = lambda: ppo(leaves={"a": 3})  # others let act who is gone


def sampled(kind, config, asked):
    torch.manual_seed(3)
    runner = kind(config=config)
    torch.manual_seed(3)
    samples = [runner.sample(**each) for each in asked]
    return runner, [told_of_all(episode) for sample in samples for episode in sample]


def told_of_all(episode):
    parts = {agent: told(part) for agent, part in episode.agent_episodes.items()}
    ended = (bool(episode.is_terminated), bool(episode.is_truncated))
    return {**parts, "all": (ended, episode.env_t_started, episode.env_t)}


@pytest.mark.parametrize(("name", "asked"), cases(CASES, "a policy for each", "with states"))
def test_what_is_sampled_directly_is_what_ray_samples(name, asked):
    runner, found = sampled(DrawsInTorch, CASES[name](), asked)
    other, expected = sampled(GoesRaysWay, CASES[name](), asked)
    assert goes_directly(runner) == (True, True)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        check(mine, theirs, rtol=1e-6)
    counted, wanted = runner.get_metrics(), other.get_metrics()
    assert counted.keys() == wanted.keys()
    for key in ("num_env_steps_sampled", "num_episodes", "episode_return_mean"):
        if key in wanted:
            check(counted[key].peek(), wanted[key].peek())
    for key in ("num_agent_steps_sampled", "num_module_steps_sampled"):
        for name, count in wanted[key].items():
            check(counted[key][name].peek(), count.peek())


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("actions", marked(ACTIONS, ("numbers", "nested")))
def test_a_step_that_is_not_explored_has_one_probability(actions, memory):
    config = (recurrent if memory else ppo)(Obeys, actions=ACTIONS[actions])
    runner = CompatMultiAgentEnvRunner(config=config.env_runners(explore=False))
    for episode in runner.sample(num_timesteps=2 * TIMED + 4):
        for part in episode.agent_episodes.values():
            logp = np.array(part.get_extra_model_outputs("action_logp"))
            assert logp.shape == (len(part),)
            assert not logp.any()


def goes_directly(runner):
    """Whether a runner goes past its pipelines: to modules, and to agents."""
    to_modules, to_agents = runner.pipelines()
    return isinstance(to_modules, EnvToModulePipeline), isinstance(to_agents, ModuleToEnvPipeline)


class Own(ConnectorV2):
    """Adds what it likes to the batch, or nothing."""

    added = ()

    def __call__(self, *, batch, episodes, **_):
        for part in self.single_agent_episode_iterator(episodes) if self.added else ():
            self.add_batch_item(batch, Columns.OBS, part.get_observations(-1) * 0.5, part)
        return batch


class Halves(Own):
    added = (Columns.OBS,)


@pytest.mark.parametrize("own", [Own, Halves])
def test_what_connectors_of_ones_own_add_goes_to_the_modules(own):
    def config():
        return ppo().env_runners(env_to_module_connector=lambda *_: own())

    runner, found = sampled(DrawsInTorch, config(), STEPS)
    _, expected = sampled(GoesRaysWay, config(), STEPS)
    assert goes_directly(runner) == (True, True)
    for mine, theirs in zip(found, expected, strict=True):
        check(mine, theirs, rtol=1e-6)


def test_connectors_of_ones_own_for_actions_are_called():
    runner = CompatMultiAgentEnvRunner(
        config=ppo().env_runners(module_to_env_connector=lambda *_: Own())
    )
    runner.sample(num_timesteps=3)
    assert goes_directly(runner) == (True, False)


def test_a_connector_that_is_added_later_is_called_from_then_on():
    runner = CompatMultiAgentEnvRunner(config=ppo())
    runner.sample(num_timesteps=3)
    assert goes_directly(runner) == (True, True)
    connectors.env_to_module(runner).append(Own())
    runner.sample(num_timesteps=3)
    assert goes_directly(runner) == (False, True)


class CountsSteps(ray_episodes.callback_class()):
    heard = ()

    def on_episode_start(self, **_):
        CountsSteps.heard += ("start",)

    def on_episode_step(self, *, env_runner, **_):
        CountsSteps.heard += ("step",)
        assert connectors.env_to_module(env_runner).connectors

    def on_episode_end(self, **_):
        CountsSteps.heard += ("end",)


def test_callbacks_hear_what_they_hear_from_ray():
    heard = []
    for kind in (CompatMultiAgentEnvRunner, GoesRaysWay):
        CountsSteps.heard = ()
        kind(config=ppo().callbacks(CountsSteps)).sample(num_episodes=2)
        heard.append(CountsSteps.heard)
    assert heard[0] == heard[1]
    assert heard[0].count("step") >= 9


def test_a_runner_has_its_pipelines_again_after_a_sample_even_one_that_fails():
    runner = CompatMultiAgentEnvRunner(config=ppo())
    rays = connectors.env_to_module(runner), connectors.module_to_env(runner)
    runner.sample(num_timesteps=3)
    with pytest.raises(AssertionError):
        runner.sample(num_timesteps=-1, num_episodes=-1)
    assert (connectors.env_to_module(runner), connectors.module_to_env(runner)) == rays


def test_a_policy_that_is_not_there_is_named():
    mapping = {"a": "one", "b": "other"}
    config = ppo().multi_agent(policy_mapping_fn=lambda agent, *_, **__: mapping[agent])
    runner = CompatMultiAgentEnvRunner(config=config)
    with pytest.raises(LegacyEnvError, match="gave agent 'b' the policy 'other'"):
        runner.sample(num_timesteps=4)


def test_a_filter_sees_the_last_observation_of_a_whole_episode_once():
    runner = DrawsInTorch(config=filtered())
    runner.sample(num_episodes=2)
    (filter_,) = (piece for piece in runner._env_to_module if isinstance(piece, MeanStdFilter))
    (seen,) = filter_.get_state()["a"]["running_stats"]
    assert seen["num_pushes"] == 12


@pytest.mark.newest
def test_an_episode_becomes_arrays_once(monkeypatch):
    made, convert = [], MultiAgentEpisode.to_numpy

    def count(episode):
        made.append(episode.id_)
        return convert(episode)

    monkeypatch.setattr(MultiAgentEpisode, "to_numpy", count)
    episodes = CompatMultiAgentEnvRunner(config=ppo()).sample(num_timesteps=12)
    assert made == [episode.id_ for episode in episodes]
    assert all(episode.is_numpy for episode in episodes)


class Still(Meeting):
    """Observes the same in each step."""

    def look(self):
        return {agent: np.zeros(2, np.float32) for agent in self.calls(self.time)}


@pytest.mark.parametrize("goes", [CompatMultiAgentEnvRunner, GoesRaysWay])
def test_a_policy_that_does_not_explore_takes_its_best_action(goes):
    config = ppo(Still, actions=WIDE)
    config.rl_module(algorithm_config_overrides_per_module={"two": {"explore": False}})
    runner = goes(config=config)
    taken = {"one": set(), "two": set()}
    for episode in runner.sample(num_timesteps=20, random_actions=False):
        for agent in episode.agent_episodes.values():
            taken[agent.module_id] |= {tuple(action) for action in agent.get_actions()}
    assert len(taken["one"]) > 1
    assert len(taken["two"]) == 1
