"""Whoever has no gymnasium can read an old checkpoint of a common environment without a hint."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import rllib_compat as compat
from rllib_compat.conversion.known_spaces import KNOWN_ENVS, EnvSpaces, known_spaces
from rllib_compat.errors import MissingInformationError
from rllib_compat.neutral import spaces
from rllib_compat.runtime import resolve_env_name
from rllib_compat.runtime.atari import game_spec
from rllib_compat.runtime.envs import why_not_importable
from tests.legacy.cases import find


def _is_of_box2d(name):
    return "box2d" in str(gymnasium.registry[resolve_env_name(name)[0]].entry_point)


NAMES = [f"{stem}-v{n}" for stem, rows in KNOWN_ENVS.items() for row in rows for n in row[0]]
#: What gymnasium brings by itself; those of Box2D have bounds in it that gym's had not.
HERE = [name for name in NAMES if why_not_importable(name) is None and not _is_of_box2d(name)]


@pytest.mark.filterwarnings("ignore:.*out of date|.*deprecated")
@pytest.mark.parametrize("name", HERE)
def test_a_known_environment_has_the_spaces_that_gymnasium_gives_it(name):
    today = resolve_env_name(name)[0]
    if name.startswith("CliffWalking") and today not in gymnasium.registry:
        today = "CliffWalking-v1"
    env = gymnasium.make(today)
    known = known_spaces(name)
    for ours, theirs in (
        (known.observation_space, env.observation_space),
        (known.action_space, env.action_space),
    ):
        true = spaces.from_object(theirs)
        assert ours == true
        if isinstance(ours, spaces.Box):
            np.testing.assert_array_equal(ours.low, true.low)
            np.testing.assert_array_equal(ours.high, true.high)


def test_most_are_compared_and_all_can_be_read():
    assert len(HERE) >= 15
    for name in NAMES:
        known = known_spaces(name)
        assert known.observation_space is not None, name


def test_an_atari_game_has_the_actions_that_it_has_in_the_arcade_learning_environment():
    for name in ("Pong-v4", "BreakoutNoFrameskip-v4", "SeaquestDeterministic-v0", "ALE/Pong-v5"):
        game = gymnasium.make(game_spec(name))
        assert known_spaces(name) == EnvSpaces(None, spaces.from_object(game.action_space))


@pytest.fixture
def missing_package():
    """An environment in gymnasium's list whose package is not installed."""
    name = "NeedsAPackage-v0"
    gymnasium.register(name, entry_point="no_such_package.envs:Env")
    yield name
    del gymnasium.registry[name]


def test_what_gymnasium_lists_and_cannot_make_is_told_by_its_package(
    missing_package,
):
    assert "no_such_package" in why_not_importable(missing_package)
    assert why_not_importable("CartPole-v1") is None
    case = next(c for c in find(ray="0.8.5") if c.variant == "cont")
    given = {"algorithm": "PPO", "env": missing_package}
    with pytest.raises(MissingInformationError, match="can't make 'NeedsAPackage-v0': No module"):
        compat.load_policy(case.checkpoint, given=compat.Given(**given))


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
