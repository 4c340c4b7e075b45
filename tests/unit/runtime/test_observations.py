"""Observations that do not fit their space are refused where the old Rays refused them."""

import contextlib
import json
import queue
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from ray.rllib.env.external_env import ExternalEnv
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from rllib_compat import gym
from rllib_compat.adapters import EnvSettings, adapt_env
from rllib_compat.config import translate
from rllib_compat.errors import ObservationError
from tests.legacy.api import observing

RECORDED = {
    (file.stem, part): told
    for file in sorted(Path(observing.__file__).parent.glob("observations/*.json"))
    for part, told in json.loads(file.read_text()).items()
}
#: What is cast to the space here, and old Rays refused.
CAST = {"a tuple", "reset of gymnasium"}
#: What Ray 1.13.0 sampled as it was: no array of the space's dtype has these values.
NOT_KEPT = {"bytes above", "bytes below", "bytes with a fraction", "a dict", "reset of gymnasium"}
#: What has another shape or structure, which is refused wherever it comes.
MISFITS = {"longer", "shorter", "a column", "a row for a column", "in a batch", "a number", "none"}
MISFITS |= {"text", "a part longer", "multi-discrete longer", "multi-binary longer"}
MISFITS |= {"a key less", "an array for a dict", "a tuple less", "a longer list"}

#: A space, and observations of it of which the first is outside and encoded nevertheless.
BELOW = gym.spaces.Discrete(2), (0, -1, 0)


def play(env, action=0):
    """Returns the number of observations before one that was refused; None: there was none."""
    try:
        env.reset()
        for _ in range(observing.LENGTH - 1):
            env.step(action)
    except ObservationError:
        return observing.Showing.newest.given - 1
    return None


def settings_of(ray, **config):
    """The settings that an old config gives an environment that somebody registers later."""
    return translate({"env": "Shown-v0", **config}, algorithm="PPO", legacy_ray=ray).env_settings


@pytest.mark.parametrize(("ray", "part"), RECORDED)
def test_the_same_observations_are_refused(ray, part):
    switch, agents = part.split(", ")
    settings = settings_of(ray, **observing.SWITCHES[switch])
    for name, place, space, shown in observing.cases(gym, int(agents)):
        case = f"{name} at {place}"
        if agents == "1":
            env = adapt_env(replace(settings, env=observing.make_env(gym, space, *shown)))({})
            found = play(env)
        else:
            made = observing.make_pair(MultiAgentEnv, gym, space, *shown)
            several = {"multi_agent": True, "policy_mapping_fn": lambda agent: "shared"}
            env = adapt_env(replace(settings, env=made, **several))({})
            found = play(env, {"left": 0, "right": 0})
        told = RECORDED[ray, part][case]
        if name in MISFITS:
            assert found == place, case
        elif told is None:
            assert found is None or name in NOT_KEPT, case
        elif told[1]:  # a check has refused it
            assert found == told[0] or name in CAST, case
        else:  # a preprocessor, the network or the batch has failed
            assert found in (None, place), case


@pytest.mark.parametrize("ray", ["0.5.3", "today", "2.40.0"])
def test_other_rays_checked_nothing(ray):
    space, shown = BELOW
    settings = replace(settings_of(ray), env=observing.make_env(gym, space, *shown))
    assert play(adapt_env(settings)({})) is None


def test_the_old_api_stack_says_the_same():
    space, shown = gym.spaces.Discrete(2), (0, 2, 0)
    config = {"env": "Shown-v0"}
    old = translate(config, algorithm="PPO", legacy_ray="1.13.0", api_stack="old").env_settings
    env = adapt_env(replace(old, env=observing.make_env(gym, space, *shown)))({})
    assert old.old_stack
    assert play(env) == 0


def test_an_environment_may_ask_not_to_be_checked_at_its_start():
    class Skipped(observing.make_env(gym, gym.spaces.Discrete(2), 0, -1, 1)):
        _skip_env_checking = True  # its name in Ray 1.12 - 2.x

    assert play(adapt_env(replace(settings_of("1.13.0"), env=Skipped))({})) is None


class OfGymnasium(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, context=None):
        pass

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.full(2, 7, np.float32), 0.0, False, False, {}


def test_an_environment_of_gymnasium_is_checked_and_stays_the_users():
    env = adapt_env(EnvSettings(OfGymnasium, legacy_ray="2.3.1"))({})
    assert type(env.unwrapped) is OfGymnasium
    env.reset()
    with pytest.raises(ObservationError):
        env.step(0)
    old_stack = adapt_env(EnvSettings(OfGymnasium, legacy_ray="2.3.1", old_stack=True))({})
    assert type(old_stack) is OfGymnasium
    old_stack.reset(seed=3)
    with pytest.raises(ObservationError):
        old_stack.step(0)


@pytest.mark.parametrize("ray", [None, "2.40.0"])
def test_the_old_api_stack_names_another_shape_whatever_the_ray(ray):
    """Ray's preprocessors and models raised AttributeError and numpy's errors."""

    class Wrong(OfGymnasium):
        def step(self, action):
            return None, 0.0, False, False, {}

    env = adapt_env(EnvSettings(Wrong, legacy_ray=ray, old_stack=True))({})
    env.reset()
    with pytest.raises(ObservationError, match="does not fit it"):
        env.step(0)


class OfTodaysRay(MultiAgentEnv):
    """Declares all that the installed Ray wants, and gives an observation of another shape."""

    possible_agents = agents = ("left",)
    observation_spaces = {"left": OfGymnasium.observation_space}  # noqa: RUF012
    action_spaces = {"left": OfGymnasium.action_space}  # noqa: RUF012

    def __init__(self, context=None):
        super().__init__()

    def reset(self, *, seed=None, options=None):
        return {"left": np.zeros(3, np.float32)}, {}

    def step(self, actions):
        raise NotImplementedError


@pytest.mark.parametrize("old_stack", [False, True])
def test_a_multi_agent_environment_of_todays_api_is_checked(old_stack):
    asked = {"multi_agent": True, "policy_mapping_fn": lambda agent: "p", "old_stack": old_stack}
    env = adapt_env(EnvSettings(OfTodaysRay, legacy_ray="2.10.0", **asked))({})
    with pytest.raises(
        ObservationError, match=r"of 'left' does not fit it \(its shape is \(3,\)\)"
    ):
        env.reset()
    plain = adapt_env(EnvSettings(OfTodaysRay, legacy_ray="2.40.0", **asked))({})
    assert type(plain) is OfTodaysRay


@pytest.mark.parametrize("ray", ["0.5.3", "1.13.0", "today"])
@pytest.mark.parametrize("wrong", [3, 0.5, None, "a", np.zeros(2, int)])
def test_what_no_one_hot_encoding_takes_is_refused_wherever_it_comes(ray, wrong):
    for space, right, made in (
        (gym.spaces.Discrete(3), 0, wrong),
        (gym.spaces.Dict({"which": gym.spaces.Discrete(3)}), {"which": 0}, {"which": wrong}),
    ):
        for place in (0, 7):
            env = observing.make_env(gym, space, right, made, place)
            assert play(adapt_env(replace(settings_of(ray), env=env))({})) == place


@pytest.mark.parametrize(("ray", "found"), [("0.8.5", None), ("1.13.0", 7), ("today", 7)])
def test_choices_that_no_one_hot_encoding_has_are_refused_since_it_was_made(ray, found):
    shown = (gym.spaces.MultiDiscrete([3, 3]), np.zeros(2, int), np.array([0, 3]), 7)
    env = observing.make_env(gym, *shown)
    assert play(adapt_env(replace(settings_of(ray), env=env))({})) == found


class Simulator(ExternalEnv):
    """Gives an observation of another shape."""

    def __init__(self, context=None):
        super().__init__(OfGymnasium.action_space, OfGymnasium.observation_space)

    def run(self):
        with contextlib.suppress(queue.Empty):
            self.get_action(self.start_episode(), np.zeros(3))


@pytest.mark.parametrize("old_stack", [False, True])
def test_an_external_environment_is_checked(old_stack):
    env = adapt_env(EnvSettings(Simulator, legacy_ray="1.13.0", old_stack=old_stack))({})
    with pytest.raises(ObservationError, match="its shape"):
        env.poll() if old_stack else env.reset()


def test_an_error_says_what_was_found_where_and_what_to_do():
    space = gym.spaces.Dict({"near": gym.spaces.Box(-1, 1, (2,), np.float32)})
    for wrong, why in (
        ({"near": [0, 0, 0]}, "does not fit it (its shape is (3,)): {'near': [0, 0, 0]}"),
        ({"far": 1}, "does not fit it (there is no 'near'): {'far': 1}"),
        ({"near": ["0", "1"]}, "does not fit it (it is text): {'near': ['0', '1']}"),
        ({"near": [2, 0]}, "is outside of it: {'near': [2, 0]}"),
    ):
        made = observing.make_pair(MultiAgentEnv, gym, space, {"near": [0, 0]}, wrong, 0)
        mapping = {"multi_agent": True, "policy_mapping_fn": lambda agent: agent}
        env = adapt_env(EnvSettings(made, legacy_ray="0.8.5", **mapping))({})
        with pytest.raises(ObservationError) as raised:
            env.reset()
        found = raised.value
        assert found.found == (
            "The environment's observation_space is Dict('near': Box(-1.0, 1.0, (2,), float32)). "
            f"An observation of 'right' {why}."
        )
        assert found.where == "$.env → observation_space"
        assert found.fix == "make observation_space hold all that reset() and step() return"


def test_the_checks_of_a_policy_go_on_in_its_next_episode():
    space, shown = BELOW
    made = observing.make_pair(MultiAgentEnv, gym, space, *shown)
    mapping = {"multi_agent": True, "policy_mapping_fn": lambda agent: agent}
    env = adapt_env(EnvSettings(made, legacy_ray="0.8.5", **mapping))({})
    env.env.place = -1
    env.reset()
    env.env.place = 0
    for _ in range(99):
        env.reset()
    with pytest.raises(ObservationError):
        env.reset()


def test_an_array_of_one_choice_is_that_choice_where_nothing_is_checked():
    made = observing.make_env(gym, gym.spaces.Discrete(3), np.array([1]), np.array([2]), 1)
    env = adapt_env(EnvSettings(made, legacy_ray=None))({})
    seen = env.reset()[0], env.step(0)[0]
    assert seen == (1, 2)
    assert all(np.ndim(one) == 0 for one in seen)
