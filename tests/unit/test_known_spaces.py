"""Whoever has no gymnasium can read an old checkpoint of a common environment without a hint."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from rllib_compat.conversion.policies import KNOWN_ENVS, known_spaces
from rllib_compat.neutral import spaces
from rllib_compat.runtime import resolve_env_name
from tests.legacy.cases import find

NAMES = [f"{stem}-v{version}" for stem, row in KNOWN_ENVS.items() for version in row[0]]


@pytest.mark.filterwarnings("ignore:.*out of date|.*deprecated")
@pytest.mark.parametrize("name", NAMES)
def test_a_known_environment_has_the_spaces_that_gymnasium_gives_it(name):
    today = resolve_env_name(name)[0]
    if name.startswith("CliffWalking") and today not in gymnasium.registry:
        today = "CliffWalking-v1"
    env = gymnasium.make(today)
    for known, theirs in zip(
        known_spaces(name), (env.observation_space, env.action_space), strict=True
    ):
        true = spaces.from_object(theirs)
        assert known == true
        if isinstance(known, spaces.Box):
            np.testing.assert_array_equal(known.low, true.low)
            np.testing.assert_array_equal(known.high, true.high)


@pytest.mark.parametrize("name", ["CartPole", "CartPole-v7", "Acrobot-v0", "Mine-v1", ""])
def test_nothing_is_guessed(name):
    assert known_spaces(name) is None


def test_without_gymnasium_an_old_checkpoint_acts_as_it_did():
    case = find(ray="0.7.6", algorithm="DQN")[0]
    code = (
        "import sys; sys.modules['gymnasium'] = sys.modules['gym'] = None\n"
        "import rllib_compat, numpy as np\n"
        f"expected = np.load({str(case.path / 'expected.npz')!r})\n"
        f"policy = rllib_compat.load_policy({str(case.checkpoint)!r})\n"
        "actions = policy.compute_actions(expected['default_policy/obs_raw']).actions\n"
        "assert (actions == expected['default_policy/q_values'].argmax(1)).all()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
