"""`rllib-compat evaluate` on checkpoints that real old Rays wrote."""

import json
import pickle
import shelve
import shutil
import sys
import textwrap
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from rllib_compat.errors import LegacyEnvError
from rllib_compat.neutral.spaces import Discrete
from rllib_compat.runtime.placeholders import placeholder_env
from rllib_compat.trainer import rollouts
from tests.legacy.cases import find

PPO = next(c for c in find(ray="0.8.5") if c.variant == "worker1")
A2C = next(c for c in find(ray="0.5.3", algorithm="A2C"))
DDPG = next(c for c in find(ray="0.8.5", algorithm="DDPG") if c.variant == "asym2")
TRIAL = next(c for c in find(ray="1.13.0") if c.variant == "tunerun")
AGENTS = next(c for c in find(ray="2.3.1") if c.variant == "ma-tuples")
RELU = {"fcnet_hiddens": [32, 32], "fcnet_activation": "relu"}
WITHOUT_ENV = next(c for c in find(ray="1.13.0") if c.variant == "meanstd-worker1")

# An environment of gym's old API, with spaces of any size, in a module beside the caller.
WALK = (PPO.path, "--run", "PPO", "--env", "walk:Walk")
ENV = """
import gymnasium
import numpy as np

class Walk(gymnasium.Env):
    metadata = {}
    seen = []

    def __init__(self, config):
        self.observation_space = gymnasium.spaces.Box(-1, 1, (config.get("obs", 4),), np.float32)
        act = config.get("act", ["discrete", 2])
        self.action_space = (
            gymnasium.spaces.Discrete(act[1]) if act[0] == "discrete"
            else gymnasium.spaces.Box(-2, 2, (act[1],), np.float32)
        )

    def reset(self):
        self.steps = 0
        return self.observation_space.sample()

    def step(self, action):
        assert self.action_space.contains(action), action
        self.steps += 1
        return self.observation_space.sample(), 0.5, self.steps == 7, {"at": self.steps}

    def render(self, mode="human"):
        self.seen.append(mode)
        return np.zeros((16, 16, 3), np.uint8)
"""


@pytest.fixture
def evaluate(run, tmp_path, monkeypatch):
    """Runs the verb where `walk:Walk` can be imported; returns exit code, stdout and stderr."""
    (tmp_path / "walk.py").write_text(textwrap.dedent(ENV))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    # A job that another test ran in this process has named its own folder.
    monkeypatch.setattr("rllib_compat.cli.named_modules._finder.folder", None)
    yield partial(run, "evaluate")
    sys.modules.pop("walk", None)


def test_an_old_checkpoint_plays_its_own_environment(evaluate):
    args = (PPO.path, "--no-explore", "--seed", 3, "--json", "--episodes")
    code, out, err = evaluate(*args, 2)
    told = json.loads(out)
    assert code == 0
    assert evaluate(*args, 1, "--strict")[0] == 1, "its algorithm was derived"
    assert told["episodes"] == 2
    assert told["rewards"] == [float(n) for n in told["lengths"]], "CartPole gives 1 a step"
    assert "episode 1: reward" in err
    again = json.loads(
        evaluate(PPO.path, "--episodes", 1, "--no-explore", "--seed", 3, "--json")[1]
    )
    assert again["rewards"] == told["rewards"][:1]


def test_steps_are_the_limit_and_the_last_episode_is_cut(evaluate):
    told = json.loads(evaluate(*WALK, "--steps", 10, "--json")[1])
    assert (told["steps"], told["episodes"], told["rewards"]) == (10, 1, [3.5])


def test_steps_are_written_as_they_were(evaluate, tmp_path):
    args = (*WALK, "--episodes", 2, "--out", "out.pkl")
    evaluate(*args, "--save-info", "--track-progress")
    episodes = pickle.loads((tmp_path / "out.pkl").read_bytes())
    assert [len(steps) for steps in episodes] == [7, 7]
    obs, action, following, reward, done, info = episodes[0][0]
    assert obs.shape == following.shape == (4,)
    assert action in (0, 1)
    assert (reward, done, info) == (0.5, False, {"at": 1})
    assert episodes[0][-1][4] is True
    assert np.array_equal(episodes[0][0][2], episodes[0][1][0]), "steps follow each other"
    assert not list(tmp_path.glob("__progress_*"))
    evaluate(*args)
    assert len(pickle.loads((tmp_path / "out.pkl").read_bytes())[0][0]) == 5


def test_a_shelf_holds_episodes_by_number(evaluate, tmp_path):
    evaluate(
        PPO.path,
        "--run",
        "PPO",
        "--env",
        "walk:Walk",
        "--episodes",
        2,
        "--out",
        "out",
        "--use-shelve",
    )
    with shelve.open(str(tmp_path / "out"), "r") as shelf:
        assert shelf["num_episodes"] == 2
        assert len(shelf["1"]) == 7


@pytest.mark.parametrize(
    ("case", "env_config"),
    [(A2C, {}), (DDPG, {"obs": 5, "act": ["box", 2]})],
    ids=["A2C", "DDPG"],
)
def test_algorithms_that_ray_has_removed_play_too(evaluate, case, env_config):
    _, out, err = evaluate(
        case.path, "--run", case.algorithm, "--env", "walk:Walk", "--episodes", 2, "--json",
        "--config", json.dumps({"env_config": env_config}),
    )  # fmt: skip
    assert json.loads(out)["rewards"] == [3.5, 3.5], err


@pytest.mark.parametrize(
    "config", ["params.json", '{"model": {"fcnet_hiddens": [32, 32], "fcnet_activation": "relu"}}']
)
def test_a_checkpoint_without_a_config_takes_the_given_one(evaluate, tmp_path, config):
    copied = tmp_path / "checkpoint-2"
    shutil.copy(next(TRIAL.path.rglob("checkpoint-2")), copied)
    beside = next(TRIAL.path.rglob("params.json"))
    given = beside if config == "params.json" else config
    given = ("--run", "PPO", "--env", "CartPole-v1", "--episodes", 1, "--config", given)
    code, _, err = evaluate(copied, *given, "-v")
    assert code == 0
    assert "relu (config: model.fcnet_activation)" in " ".join(err.split())


def test_agents_of_an_unknown_environment_are_named(evaluate):
    code, _, err = evaluate(AGENTS.checkpoint, "--episodes", 1)
    assert code == 2
    assert "The checkpoint's environment 'MAEnv' is not known on this machine." in err
    assert "to do: give its name, or module:Class of its class" in err


def test_keys_of_the_config_can_be_replaced(evaluate):
    _, out, _ = evaluate(
        *WALK, "--episodes", 1, "--json",
        "--config", '{"horizon": 3, "evaluation_config": {"explore": false}}',
    )  # fmt: skip
    assert json.loads(out)["lengths"] == [3]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--no-render", "--video-dir", "v"], "--no-render contradicts"),
        (["--use-shelve"], "--use-shelve needs --out"),
        (["--env", "Nothing-v0"], "Nothing-v0"),
        (["--policy-mapping-fn", "nowhere:f"], "can't be imported"),
    ],
)
def test_what_can_not_be_done_says_why(evaluate, args, text):
    code, out, err = evaluate(PPO.path, "--run", "PPO", *args, "--episodes", 1)
    assert code == 2
    assert out == ""
    assert text in err


@pytest.mark.parametrize(
    ("missing", "option"),
    [("moviepy", ["--video-dir", "v"]), ("pygame", ["--video-dir", "v"]), ("pygame", ["--render"])],
)
@pytest.mark.parametrize("env", [["--env", "CartPole-v1"], []], ids=["named", "its own"])
def test_a_missing_package_is_named_before_anything_is_read(
    evaluate, monkeypatch, missing, option, env
):
    for name in ("moviepy", "pygame"):  # which need not be installed for the tests
        monkeypatch.setitem(sys.modules, name, None if name == missing else sys)
    code, _, err = evaluate(PPO.path, *env, *option, "--episodes", 1)
    assert code == 2
    assert err.startswith(f"error: This needs the package {missing}, which is not installed.")
    assert "[video]" in err


def test_a_checkpoint_without_an_environment_asks_for_one(evaluate):
    _, _, err = evaluate(WITHOUT_ENV.checkpoint, "--episodes", 1)
    assert "error: The checkpoint does not name its environment.\n  where: --env" in err


def test_the_best_checkpoint_of_a_trial_is_that_of_the_highest_return(evaluate, tmp_path):
    trial = tmp_path / "trial"
    shutil.copytree(next(TRIAL.path.glob("ray_results/exp/PPO_*")), trial)
    results = [json.loads(line) for line in (trial / "result.json").read_text().splitlines()]
    results[0]["episode_reward_mean"] = 99.5
    (trial / "result.json").write_text("\n".join(map(json.dumps, results)) + "\n")
    code, _, err = evaluate(trial, "--best", "--episodes", 1)
    assert code == 0, err
    chosen, reading = err.splitlines()[:2]
    assert chosen.startswith("checkpoint_000001/checkpoint-1: of 2 checkpoints")
    assert chosen.endswith("return, 99.5")
    assert "checkpoint-1 (" in reading
    (trial / "result.json").unlink()
    (trial / "progress.csv").unlink()
    code, _, err = evaluate(trial, "--best", "--episodes", 1)
    assert (code, "Leave --best out" in err) == (2, True)


def test_flags_without_a_meaning_say_so(evaluate):
    _, _, err = evaluate(
        PPO.path,
        "--run",
        "PPO",
        "--env",
        "walk:Walk",
        "--episodes",
        1,
        "--no-render",
        "--local-mode",
    )
    assert "--no-render: nothing is rendered" in err
    assert "--local-mode: ignored" in err


def test_rollout_is_the_same_verb(run):
    assert "--track-progress" in run("rollout", "--help")[1]


def test_a_class_that_only_a_checkpoint_names_is_not_imported_and_the_option_names_it():
    placeholder, told = placeholder_env("walk:Walk", Discrete(3), Discrete(2))
    actor = SimpleNamespace(env=placeholder, env_config=told)
    with pytest.raises(LegacyEnvError, match='env="walk:Walk"'):
        rollouts.make_env(actor)
