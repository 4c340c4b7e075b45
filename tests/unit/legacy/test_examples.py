"""`ray.rllib.examples` of old Rays: redirected, our own, or out of a Ray that the user names."""

import builtins
import importlib
import json
import os
import pickle
import re
import runpy
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from rllib_compat import legacy
from rllib_compat.adapters import EnvSettings, adapt_env, make_env
from rllib_compat.errors import CompatError, GoneError
from rllib_compat.registry import old_names
from rllib_compat.trainer import subclasses
from tests.processes import start

legacy.deactivate()  # to import it is to activate it; each test asks for it

ROOT = Path(__file__).parents[3]
RECORDER = ROOT / "tests/legacy/examples/record.py"
RECORDED = json.loads(RECORDER.with_name("1.13.0.json").read_text("utf-8"))
EXAMPLES = "ray.rllib.examples"
#: gymnasium's, of an environment that old code wants.
pytestmark = pytest.mark.filterwarnings("ignore:.*CartPole-v0 is out of date")
#: Libraries that some modules need, and a class that needs TensorFlow; 2.40 has more of them.
LIBRARIES = "chess|dnc|mujoco|numba|pettingzoo|recsim|RNNSpyModel"
#: Today's Ray says a space for each agent, and tells more in infos, than Ray 1.13.0 did.
SPACES_BY_AGENT = ("counters", "two steps, grouped")
MORE_INFOS = ("two steps", "two steps, one-hot", "two steps, state", "hierarchical maze")


@pytest.fixture(autouse=True)
def old_imports():
    legacy.activate()
    yield
    legacy.deactivate()


def run(code):
    namespace = {"__name__": "__main__", "__file__": "/home/me/train.py", "__builtins__": builtins}
    exec(textwrap.dedent(code), namespace)
    return namespace


def imported(module, name):
    return run(f"from {EXAMPLES}.{module} import {name}")[name]


@pytest.fixture(scope="module")
def ours():
    """What the recorder of old Rays records here."""
    legacy.activate()
    rock_paper_scissors = imported("env.rock_paper_scissors", "RockPaperScissors")
    record = runpy.run_path(str(RECORDER), run_name="recorder")["record"]
    return json.loads(json.dumps(record(rock_paper_scissors)))


def close(found, expected):
    """Whether two records have the same shape, and numbers of six digits in common."""
    if isinstance(expected, dict):
        same = isinstance(found, dict) and found.keys() == expected.keys()
        return same and all(close(found[key], value) for key, value in expected.items())
    if isinstance(expected, list):
        same = isinstance(found, list) and len(found) == len(expected)
        return same and all(map(close, found, expected))
    if isinstance(expected, (str, type(None))):
        return found == expected
    return found == pytest.approx(expected, rel=2e-5, abs=2e-6)


@pytest.mark.parametrize("name", RECORDED["environments"])
def test_environments_do_what_they_did_in_ray_1_13_0(ours, name):
    found, expected = ours["environments"][name], RECORDED["environments"][name]
    if name in (*SPACES_BY_AGENT, *MORE_INFOS):
        for step in (*found["steps"], *expected["steps"]):
            if isinstance(step, list) and len(step) == 4:
                step[3] = None
    assert close(found["steps"], expected["steps"])
    if name not in SPACES_BY_AGENT:
        assert close(found["observation_space"], expected["observation_space"])
        assert close(found["action_space"], expected["action_space"])


@pytest.mark.parametrize("part", ["vectors", "lengths", "models", "policies"])
def test_models_and_policies_do_what_they_did_in_ray_1_13_0(ours, part):
    for name, expected in RECORDED[part].items():
        assert close(ours[part][name], expected), name


def modules():
    """The modules whose names may be imported."""
    parts = tuple(f"{EXAMPLES}.{part}." for part in ("env", "models", "policy"))
    return sorted(name for name in old_names.modules() if name.startswith(parts))


@pytest.mark.parametrize("module", modules())
def test_every_name_is_there_or_says_how_to_have_it(module):
    for name in old_names.names(module):
        try:
            found = run(f"from {module} import {name}")[name]
        except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
            assert re.search(LIBRARIES, str(error), re.I), error  # noqa: PT017
            pytest.skip(str(error))
        if type(found).__name__ == "_UsedWhenGone":
            with pytest.raises(GoneError, match=r"rllib-compat run --old-ray PATH"):
                found()


def test_a_class_of_todays_ray_has_the_old_api_and_can_be_derived_from():
    found = run(
        f"""
        from {EXAMPLES}.env.repeat_after_me_env import RepeatAfterMeEnv

        class Mine(RepeatAfterMeEnv):
            def reset(self):
                return super().reset() + 10

            def step(self, action):
                observation, reward, done, info = super().step(action)
                return observation, 2 * reward, done, info

        env = Mine({{"repeat_delay": 1, "episode_len": 5}})
        first = env.reset()
        steps = [env.step(env.action_space.sample())]
        while not steps[-1][2]:
            steps.append(env.step(env.action_space.sample()))
        """
    )
    assert found["first"] in (10, 11)
    assert all(len(step) == 4 and abs(step[1]) == 2 for step in found["steps"])
    assert found["steps"][-1][2:] == (True, {})  # nobody called its end a limit of time
    assert pickle.loads(pickle.dumps(found["RepeatAfterMeEnv"])) is found["RepeatAfterMeEnv"]


def test_a_wrapper_of_todays_ray_stands_around_old_environments():
    found = run(
        f"""
        from {EXAMPLES}.env.look_and_push import LookAndPush, OneHot

        env = OneHot(LookAndPush())
        first, second = env.reset(), env.step(0)
        """
    )
    assert found["first"].shape == found["second"][0].shape == found["env"].observation_space.shape
    assert len(found["second"]) == 4


def test_dones_of_several_agents_tell_an_end_of_any_kind():
    env = imported("env.random_env", "RandomMultiAgentEnv")(
        {"num_agents": 2, "max_episode_len": 2, "p_done": 0.0}
    )
    assert set(env.reset()) == {0, 1}
    for over in (False, True):
        _, _, dones, infos = env.step({0: 0, 1: 1})
        assert dones == {0: over, 1: over, "__all__": over}
    assert infos == {0: {}, 1: {}}


def test_code_that_imports_gymnasium_gets_todays_classes(monkeypatch):
    old = importlib.import_module(f"rllib_compat.legacy.old.{EXAMPLES}.env.debug_counter_env")
    monkeypatch.delitem(vars(old), "DebugCounterEnv", raising=False)  # another test's
    found = run(
        f"""
        import gymnasium
        from {EXAMPLES}.env.debug_counter_env import DebugCounterEnv as Counter
        """
    )
    assert found["Counter"].__module__.startswith(f"{EXAMPLES}.envs.classes.")


@pytest.mark.parametrize(
    ("module", "name", "config"),
    [
        ("env.debug_counter_env", "DebugCounterEnv", {}),
        ("env.simple_corridor", "SimpleCorridor", {"corridor_length": 2}),
        ("env.curriculum_capable_env", "CurriculumCapableEnv", {}),
    ],
)
def test_a_config_takes_the_class_of_one_agent(module, name, config):
    settings = EnvSettings(env=imported(module, name), env_config=config)
    assert isinstance(adapt_env(settings), type)
    env = make_env(settings, config)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    assert len(env.step(1)) == 5


@pytest.mark.parametrize(
    ("module", "name", "config", "agents"),
    [
        ("env.two_step_game", "TwoStepGame", {}, {0, 1}),
        ("env.two_step_game", "TwoStepGameWithGroupedAgents", {}, {"agents"}),
        ("env.rock_paper_scissors", "RockPaperScissors", {}, {"player1", "player2"}),
        (
            "env.matrix_sequential_social_dilemma",
            "IteratedChicken",
            {"players_ids": ["a", "b"]},
            {"a", "b"},
        ),
        ("env.multi_agent", "MultiAgentCartPole", {"num_agents": 3}, {0, 1, 2}),
    ],
)
def test_a_config_takes_the_class_of_several_agents(module, name, config, agents):
    cls = imported(module, name)
    space = cls.ACTION_SPACE if hasattr(cls, "ACTION_SPACE") else None
    spaces = (gymnasium.spaces.Discrete(5), space) if space else (None, None)
    settings = EnvSettings(
        env=cls,
        env_config=config,
        multi_agent=True,
        policy_spaces={"all": spaces},
        policy_mapping_fn=lambda agent: "all",
    )
    env = make_env(settings, config)
    observations, _ = env.reset(seed=1)
    assert set(env.possible_agents) == set(observations) == agents
    actions = {agent: env.get_action_space(agent).sample() for agent in agents}
    assert len(env.step(actions)) == 5


def test_a_curriculum_moves_the_goal_with_the_next_episode():
    env = imported("env.curriculum_capable_env", "CurriculumCapableEnv")({"start_level": 2})
    env.set_task(3)
    assert env.get_task() == 3
    assert env.reset() == 0
    lake = env.frozen_lake.unwrapped.desc
    assert bytes(lake[5][6]) == b"G"
    assert np.sum(lake == b"H") == 6
    assert all(1 <= task <= 10 for task in env.sample_tasks(20))


def test_players_show_any_move_after_what_they_do_not_know():
    Beats = imported("policy.rock_paper_scissors_dummies", "BeatLastHeuristic")
    config = run("from ray.rllib.agents.trainer import COMMON_CONFIG as c")["c"]
    five = gymnasium.spaces.Discrete(5)
    moves, _, _ = Beats(five, five, {**config, "framework": "torch"}).compute_actions([3, 4])
    assert set(moves) <= {0, 1, 2}


def test_a_trainer_tells_how_to_have_a_policy_that_is_gone():
    policy = imported(
        "policy.bare_metal_policy_with_custom_view_reqs", "BareMetalPolicyWithCustomViewReqs"
    )
    trainer = SimpleNamespace(get_default_policy_class=lambda _: policy, algorithm_name=None)
    with pytest.raises(GoneError, match=r"rllib-compat run --old-ray PATH"):
        subclasses.own_policy(trainer, {})


OLD_FILES = {
    "env/__init__.py": "",
    "env/simple_corridor.py": """
        import gym
        from ray.rllib.agents.ppo import PPOTrainer
        from ray.rllib.examples.env.utils.mine import number

        class SimpleCorridor(gym.Env):
            def reset(self):
                return number, PPOTrainer.__name__
    """,
    "env/utils/__init__.py": "",
    "env/utils/mine.py": "number = 7",
    "models/__init__.py": "",
    "models/mine.py": "class Model: ...",
    "train.py": "raise AssertionError('a script')",
}


@pytest.fixture(params=["wheel", "old wheel", "site-packages", "ray", "unpacked wheel"])
def old_ray(request, tmp_path):
    """A Ray whose corridor is another one, as the user may name it."""
    inside = "ray-1.0.0.data/purelib/ray" if request.param.startswith(("old", "un")) else "ray"
    files = {f"{inside}/rllib/examples/{name}": text for name, text in OLD_FILES.items()}
    if request.param.endswith("d wheel") or request.param == "wheel":
        path = tmp_path / "ray-1.0.0-cp38-cp38-any.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, textwrap.dedent(text))
        if not request.param.startswith("un"):
            return path
        path = tmp_path / "unpacked"
    else:
        path = tmp_path / request.param
    for name, text in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    return path / "ray" if request.param == "ray" else path


def test_examples_come_out_of_the_ray_that_is_named(old_ray, monkeypatch):
    before = imported("env.simple_corridor", "SimpleCorridor")
    monkeypatch.chdir(old_ray.parent)
    legacy.activate(old_ray=old_ray.name)
    legacy.activate()  # as each import of the package does
    monkeypatch.chdir("/")
    there = imported("env.simple_corridor", "SimpleCorridor")
    assert there().reset() == (7, "PPOTrainer")
    assert run(f"import {EXAMPLES}.env.simple_corridor as m")["m"].SimpleCorridor is there
    by_name = importlib.import_module(f"{EXAMPLES}.env.simple_corridor")
    assert by_name.SimpleCorridor is there
    assert imported("models.mine", "Model").__name__ == "Model"
    # What it has not is where it was, and so is all when it is named no longer.
    assert imported("env.stateless_cartpole", "StatelessCartPole")().reset().shape == (2,)
    assert imported("policy.rock_paper_scissors_dummies", "PAPER") == 1
    legacy.deactivate()
    legacy.activate()
    assert imported("env.simple_corridor", "SimpleCorridor") is before
    with pytest.raises(ModuleNotFoundError):
        imported("models.mine", "Model")


@pytest.mark.parametrize(
    ("old_ray", "own_hook"), [("wheel", False), ("site-packages", True)], indirect=["old_ray"]
)
def test_worker_processes_have_the_same_examples(old_ray, own_hook, monkeypatch):
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    legacy.deactivate()
    own = {"runtime_env": {"worker_process_setup_hook": "mine.hook"}} if own_hook else {}
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps(own))
    legacy.activate(old_ray=old_ray)
    told = json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])["runtime_env"]
    pickled = pickle.dumps(imported("env.simple_corridor", "SimpleCorridor"))
    code = f"import pickle; print(pickle.loads({pickled!r})().reset())"
    if not own_hook:
        code = f"import rllib_compat.legacy.activation as a; a.activate_worker(); {code}"
    environment = {**os.environ, **told["env_vars"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "(7, 'PPOTrainer')\n", done.stderr
    legacy.deactivate()
    assert json.loads(os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")) == own


def test_a_path_that_is_no_old_ray_is_refused(tmp_path):
    (tmp_path / "text.whl").write_text("no wheel")
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("other/rllib/examples/env/x.py", "")
    todays = str(Path(importlib.util.find_spec("ray").origin).parent)
    for path in ("nowhere.whl", "text.whl", "other.whl", "", todays):
        with pytest.raises(CompatError, match=r"Ray 0\.8\.6 - 2\.10") as raised:
            legacy.activate(old_ray=tmp_path / path)
        assert raised.value.where == str(tmp_path / path)
    assert imported("env.simple_corridor", "SimpleCorridor")().reset() == [0.0]


def test_the_command_line_says_what_is_wrong_with_a_path(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print('runs')")
    done = start(tmp_path, "run", "--old-ray", "gone.whl", script)
    assert done.returncode == 2
    assert "gone.whl" in done.stderr
    assert "to do: name a wheel of Ray" in done.stderr
