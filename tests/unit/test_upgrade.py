"""`rllib-compat upgrade`: what becomes of old code, and what is left alone."""

import json
import subprocess
import sys
import textwrap
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_compat.errors import CompatError
from rllib_compat.neutral import install_command
from rllib_compat.upgrade import RULES, Target, upgrade


def rewritten(source, target="compat", **how):
    """The new source of a snippet, and what has to be done by hand."""
    before = textwrap.dedent(source).lstrip("\n").encode()
    done = upgrade(before, Target(target), **how)
    compile(done.after, "<after>", "exec")
    again = upgrade(done.after, Target(target), **how)
    assert again.after == done.after, "a second run changes nothing"
    assert not [change for change in again.changes if change.done]
    return done.after.decode(), [change for change in done.changes if not change.done]


def check(source, expected, target="compat", **how):
    after, left = rewritten(source, target, **how)
    assert after == textwrap.dedent(expected).lstrip("\n")
    assert left == []


@pytest.mark.parametrize("target", ["compat", "native"])
@pytest.mark.parametrize(
    "source",
    [
        "",
        "# nothing but a comment\n",
        "import ray\n\nray.init()\n",
        "from ray.rllib.algorithms.ppo import PPOConfig\n\nconfig = PPOConfig().training(lr=0.1)\n",
        "from . import gym\nfrom .ray import tune\n",
        "import numpy as np\n\nx = np.float32(0)\nfloat = np.mean([1])\n",
        "def step(self):\n    return 1, 2, 3, 4\n",
    ],
)
def test_code_of_today_is_left_alone(source, target):
    check(source, source, target)


def test_what_only_the_old_imports_have_stays_with_one_import_more():
    check(
        """
        import ray._private.utils
        from ray.air import RunConfig
        """,
        """
        import rllib_compat.legacy
        import ray._private.utils
        from ray.air import RunConfig
        """,
    )


def test_algorithms_made_of_dicts_get_their_old_classes_back_and_those_of_today_stay():
    check(
        """
        import ray.rllib.algorithms.ppo as ppo
        algo = ppo.PPO(config=ppo.DEFAULT_CONFIG, env="CartPole-v0")
        """,
        """
        import rllib_compat.legacy
        import ray.rllib.algorithms.ppo as ppo
        algo = ppo.PPO(config=ppo.DEFAULT_CONFIG, env="CartPole-v0")
        """,
    )
    today = """
    from ray.rllib.algorithms.ppo import PPO, PPOConfig
    algo = PPO(config=PPOConfig().environment("CartPole-v1"))
    """
    check(today, today)


def test_a_result_read_inside_an_f_string_is_still_a_string():
    check(
        """
        print(f"R={result['episode_reward_mean']}")
        """,
        """
        print(f"R={result['env_runners']['episode_return_mean']}")
        """,
        "native",
    )


def test_imports_for_this_package():
    check(
        """
        # training
        import gym  # the old one
        import ray.rllib.agents.ppo as ppo
        from gym.spaces import Box, Discrete
        from ray import tune
        from ray.rllib.agents.callbacks import DefaultCallbacks
        from ray.rllib.agents.dqn import DQNTrainer as DQN, DQNTorchPolicy
        from ray.rllib.utils import try_import_torch
        """,
        """
        # training
        from rllib_compat import gym  # the old one
        from rllib_compat.agents import ppo
        from gymnasium.spaces import Box, Discrete
        from rllib_compat import tune
        from rllib_compat import DefaultCallbacks
        from rllib_compat import DQNTrainer as DQN
        from rllib_compat.agents.dqn import DQNTorchPolicy
        from ray.rllib.utils import try_import_torch
        import rllib_compat

        rllib_compat.written_for(last="1.13.0")
        """,
    )


@pytest.mark.parametrize(
    ("source", "asked", "said"),
    [
        ("from ray.rllib.agents.sac import SACTrainer", "auto", 'written_for(last="1.13.0")'),
        ("from ray.rllib.contrib.bandits.envs import discrete", "auto", 'last="1.13.0")'),
        (
            "from ray.rllib.agents.sac import SACTrainer",
            "1.0.1",
            'for(first="1.0.1", last="1.0.1")',
        ),
        ("from ray.rllib.agents.sac import SACTrainer", "today", None),
        ("import gym", "auto", None),
    ],
)
def test_rewritten_imports_say_which_ray_they_were_of(source, asked, said):
    """Else what a config leaves out would have today's default."""
    after, _ = rewritten(f"{source}\n", legacy_ray=asked)
    assert ("written_for" in after) is (said is not None)
    assert (said or "") in after


def test_imports_for_today_alone():
    check(
        """
        import gym
        from ray import tune
        from ray.rllib.agents.ppo import PPOTrainer
        """,
        """
        import gymnasium as gym
        from ray import tune
        from ray.rllib.algorithms.ppo import PPO as PPOTrainer
        """,
        "native",
    )


def test_who_upgrades_code_has_no_old_imports_afterwards():
    code = """
        import builtins
        from rllib_compat.upgrade import Target, upgrade

        before = builtins.__import__
        upgrade(b"from ray.air import RunConfig\\nimport ray.utils", Target.COMPAT)
        assert builtins.__import__ is before
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_what_only_legacy_has_is_brought_back():
    after, left = rewritten("from ray.rllib.evaluation import MultiAgentEpisode\n")
    assert after.splitlines() == [
        "import rllib_compat.legacy",
        "from ray.rllib.evaluation import MultiAgentEpisode",
    ]
    assert left == []


@pytest.mark.parametrize("target", ["compat", "native"])
def test_what_is_gone_gets_a_note_and_a_row(target):
    after, left = rewritten(
        "from ray.rllib.optimizers import AsyncReplayOptimizer\n", target=target
    )
    note = "# TODO(rllib-compat: imports) ray.rllib.optimizers.AsyncReplayOptimizer is gone"
    assert after.count(note) == 1
    assert [(change.rule, change.line) for change in left] == [("imports", 1)]


@pytest.mark.parametrize("target", ["compat", "native"])
@pytest.mark.parametrize(
    "line",
    [
        "from ray.rllib.examples.self_play_with_open_spiel import ask_user_for_action",
        "from ray.rllib.utils import Nothing",
        "import ray.rllib.nothing as nothing",
    ],
)
def test_what_is_not_there_and_was_in_no_ray_of_the_tables_gets_a_note(line, target):
    after, left = rewritten(f"{line}\n", target=target)
    note, *rest = after.splitlines()
    assert "is not in the Ray that is here" in note
    assert rest == [line]
    assert len(left) == 1


def test_names_of_numpy():
    check(
        """
        import numpy as np
        a = np.zeros(3, dtype=np.bool)
        b = np.product([1, 2]) + np.NINF
        c = np.float(1)
        """,
        """
        import numpy as np
        a = np.zeros(3, dtype=bool)
        b = np.prod([1, 2]) + -np.inf
        c = float(1)
        """,
    )


ENV = """
    import gym

    class Corridor(gym.Env):
        def __init__(self, config):
            self.end = config["end"]

        def reset(self):
            self.at = 0
            return [self.at]  # where it begins

        def step(self, action):
            key = lambda: 3
            done = self.at >= self.end
            return [self.at], 1.0 if done else -0.1, done, {}
    """


def test_environments_become_gymnasiums():
    check(
        ENV,
        """
        import gymnasium as gym

        class Corridor(gym.Env):
            def __init__(self, config):
                self.end = config["end"]

            def reset(self, *, seed=None, options=None):
                self.at = 0
                return [self.at], {}  # where it begins

            def step(self, action):
                key = lambda: 3
                done = self.at >= self.end
                return [self.at], 1.0 if done else -0.1, done, False, {}
        """,
        "native",
    )


def test_environments_stay_as_they_are_for_this_package():
    after, _ = rewritten(ENV)
    assert "return [self.at]  # where" in after
    assert "done, {}" in after


def test_loops_over_environments():
    check(
        """
        import gym
        env = gym.make("CartPole-v1")
        obs = env.reset()
        done = False
        while not done:
            obs, reward, done, info = env.step(env.action_space.sample())
        """,
        """
        import gymnasium as gym
        env = gym.make("CartPole-v1")
        obs, _ = env.reset()
        done = False
        while not done:
            obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
            done = terminated or truncated
        """,
        "native",
    )


def test_environments_with_many_agents():
    after, left = rewritten(
        """
        from ray.rllib.env.multi_agent_env import MultiAgentEnv

        class Team(MultiAgentEnv):
            def reset(self):
                return {"a": 0}

            def step(self, actions):
                return {"a": 0}, {"a": 1}, {"__all__": True}, {}
        """,
        "native",
    )
    assert 'return {"a": 0}, {}' in after
    assert '{"__all__": True}, {"__all__": False}, {}' in after
    assert "possible_agents" in left[0].message


def test_keys_of_results():
    check(
        """
        print(result["episode_reward_mean"], result["mine"])
        stop = {"timesteps_total": 10, "training_iteration": 3}
        best = analysis.get_best_config("episode_reward_mean")
        """,
        """
        print(result["env_runners"]["episode_return_mean"], result["mine"])
        stop = {"num_env_steps_sampled_lifetime": 10, "training_iteration": 3}
        best = analysis.get_best_config("env_runners/episode_return_mean")
        """,
        "native",
    )


def test_columns_of_data_frames_are_flat_and_lists_of_keys_are_seen():
    check(
        """
        df = analysis.dataframe()
        print(df[["episode_reward_mean", "mine"]])
        print(f"{df.episode_reward_mean.max()}")
        for _, trial in analysis.trial_dataframes.items():
            plot(trial.iloc[-3:]["episode_reward_mean"])
        self.log = pd.read_csv("progress.csv", usecols=["episode_len_mean"])
        self.log.loc[:, "episodes_total"]
        unknown[["episode_reward_max"]].plot()
        print(result.get("episode_reward_mean", 0))
        print(f"{result.get('timesteps_total')}")
        """,
        """
        df = analysis.dataframe()
        print(df[["env_runners/episode_return_mean", "mine"]])
        print(f"{df['env_runners/episode_return_mean'].max()}")
        for _, trial in analysis.trial_dataframes.items():
            plot(trial.iloc[-3:]["env_runners/episode_return_mean"])
        self.log = pd.read_csv("progress.csv", usecols=["env_runners/episode_len_mean"])
        self.log.loc[:, "env_runners/num_episodes_lifetime"]
        unknown[["env_runners/episode_return_max"]].plot()
        print(result.get("env_runners", {}).get("episode_return_mean", 0))
        print(f"{result.get('num_env_steps_sampled_lifetime')}")
        """,
        "native",
    )


def test_a_name_for_a_key_and_a_loop_over_keys_get_a_note():
    source = """
    METRIC = "episode_reward_mean"
    for key in ("episode_len_mean", "timesteps_total", "mine"):
        print(result.get(key))
    """
    after, left = rewritten(source, "native")
    assert [change.line for change in left] == [1, 2]
    assert after.count("# TODO(rllib-compat: result-keys) episode_") == 2


def test_configs_become_chains_of_calls_and_what_is_computed_stays():
    check(
        """
        from ray.rllib.agents.ppo import PPOTrainer

        def main(args):
            trainer = PPOTrainer(env="CartPole-v1", config={
                "lr": 0.001,  # small
                "num_workers": args.workers,
                "model": {"fcnet_hiddens": [32]},
            })
        """,
        """
        from ray.rllib.algorithms.ppo import PPOConfig, PPO as PPOTrainer

        def main(args):
            # small
            trainer = (
                PPOConfig()
                .environment(env="CartPole-v1")
                .env_runners(num_env_runners=args.workers)
                .training(lr=0.001)
                .rl_module(model_config={"fcnet_hiddens": [32]})
            ).build_algo()
        """,
        "native",
        legacy_ray="today",
    )


def test_what_a_config_leaves_out_is_the_default_of_the_ray_that_the_imports_show():
    check(
        """
        from ray.rllib.agents.sac import SACTrainer

        trainer = SACTrainer(env="Pendulum-v1", config={"gamma": seen})
        """,
        """
        from ray.rllib.algorithms.sac import SACConfig, SAC as SACTrainer

        trainer = (
            SACConfig()
            .environment(env="Pendulum-v1")
            .env_runners(rollout_fragment_length=1, sample_timeout_s=None)
            .training(
                actor_lr=0.0003,
                replay_buffer_config={"capacity": 1000000, "type": "EpisodeReplayBuffer"},
                gamma=seen,
            )
            .rl_module(model_config={"fcnet_activation": "relu"})
            .evaluation(evaluation_sample_timeout_s=86400.0)
            .reporting(metrics_episode_collection_timeout_s=180)
            .fault_tolerance(restart_failed_env_runners=False)
        ).build_algo()
        """,
        "native",
    )


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("{'num_gpus': count()}", "num_gpus is computed"),
        ("{'gama': 0.9}", "no Ray from 0.5 on had"),
        ("{**base, 'lr': 1}", "not all of its keys are written out"),
    ],
)
def test_a_config_that_is_left_says_why(config, text):
    source = f"from ray.rllib.agents.ppo import PPOTrainer\nt = PPOTrainer(config={config})\n"
    after, left = rewritten(source, "native", skip=["trainers"])
    assert source.splitlines()[1] in after
    assert text in left[0].message or "key(s)" in left[0].message


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("trainer = PPOTrainer(config=config)", "PPOConfig() calls"),
        ("tune.run('PPO', config={})", "Tuner("),
        ("a = trainer.compute_action(obs)", "forward_inference"),
        ("w = trainer.workers.local_worker()", "env_runner"),
        ("class Mine(DefaultCallbacks):\n    pass", "custom_data"),
    ],
)
def test_what_is_not_rewritten_for_today_alone_is_told(line, text):
    head = """\
from ray import tune
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents.ppo import PPOTrainer
"""
    after, left = rewritten(head + line + "\n", "native")
    assert [text in change.message for change in left] == [True]
    assert f"# TODO(rllib-compat: {left[0].rule}) {left[0].message}\n{line}" in after


PIECES = [
    *(textwrap.dedent(text) for text in (ENV,)),
    "import gym, os\n",
    "from ray.rllib.agents.ppo import PPOTrainer, DEFAULT_CONFIG\n",
    "from ray.rllib.execution.train_ops import TrainOneStep, UpdateTargetNetwork\n",
    "from ray.rllib.evaluation import MultiAgentEpisode, RolloutWorker\n",
    "if True:\n    import gym\n    env = gym.make('x')\n    o = env.reset()\n",
    "def f(env):\n    o, r, d, i = env.step(0)\n    return {'episode_reward_mean': d}\n",
    "try:\n    import gym.spaces\nexcept ImportError: pass\n",
    "x = result['custom_metrics']; y = result['timesteps_total']\n",
    "df = read_csv('x')\ny = df[['episode_len_mean']], f'{df.episodes_total}'\n",
    "tune.run(PPOTrainer, config={'a': lambda s: trainer.compute_action(s)}, stop={})\n",
]


@settings(max_examples=5, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=4), st.sampled_from(list(Target)))
def test_any_code_still_compiles_and_a_second_run_changes_nothing(pieces, target):
    rewritten("".join(pieces), target.value)


def test_line_endings_and_encodings_stay():
    source = "# -*- coding: latin-1 -*-\r\nimport gym\r\nname = 'ä'\r\n".encode("latin-1")
    after = upgrade(source, Target.COMPAT).after
    assert after == source.replace(b"import gym", b"from rllib_compat import gym")


def test_every_rule_is_a_file_of_its_name_and_a_heading_of_the_guide():
    from tests.docs import ROOT

    guide = (ROOT / "migration_guide" / "upgrade.md").read_text("utf-8")
    for rule in RULES:
        assert rule.__module__.endswith(rule.id.replace("-", "_"))
        assert f"### `{rule.id}`" in guide


def test_rules_are_chosen_by_name():
    source = b"import gym\nimport numpy as np\nx = np.bool\n"
    assert b"np.bool" in upgrade(source, Target.COMPAT, skip=["numpy-names"]).after
    assert b"import gym\n" in upgrade(source, Target.COMPAT, only=["numpy-names"]).after
    with pytest.raises(CompatError, match="no rule 'nothing'"):
        upgrade(source, Target.COMPAT, only=["nothing"])


@pytest.fixture
def run(run):
    return partial(run, "upgrade")


def test_check_and_diff_write_nothing(run, tmp_path):
    file = tmp_path / "train.py"
    file.write_text("import gym\n")
    code, out, _ = run(file, "--check")
    assert (code, out.splitlines()[0]) == (1, f"would change {file}")
    code, out, _ = run(file, "--diff")
    assert code == 0
    assert "-import gym\n+from rllib_compat import gym\n" in out
    assert file.read_text() == "import gym\n"
    assert run(file)[0] == 0
    assert file.read_text() == "from rllib_compat import gym\n"
    assert run(file, "--check")[0] == 0


def test_a_folder_is_rewritten_but_not_what_belongs_to_others(run, tmp_path):
    for name in ("a.py", "sub/b.py", "venv/c.py", ".hidden/d.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("import gym\n")
    code, out, _ = run(tmp_path, "--json")
    assert code == 0
    assert [file["changed"] for file in json.loads(out)] == [True, True]
    unchanged = ("venv/c.py", ".hidden/d.py", "notes.txt")
    assert all((tmp_path / name).read_text() == "import gym\n" for name in unchanged)


def test_what_is_left_is_exit_code_1_and_a_broken_file_2(run, tmp_path):
    (tmp_path / "a.py").write_text("from ray.rllib.optimizers import AsyncReplayOptimizer\n")
    code, out, _ = run(tmp_path)
    assert code == 1
    assert "1 to do by hand" in out
    (tmp_path / "old.py").write_text("print 'python 2'\n")
    code, _, err = run(tmp_path)
    assert code == 2
    assert "old.py cannot be parsed" in err


@pytest.mark.parametrize("name", ["RolloutWorker", "collect_episodes"])
def test_what_ray_has_with_other_arguments_is_that_of_old(name):
    old = f"from ray.rllib.evaluation import {name}\n"
    made = upgrade(old.encode(), Target.COMPAT).after.decode()
    assert "import rllib_compat.legacy" in made
    assert old in made
    assert upgrade(made.encode(), Target.COMPAT).after.decode() == made


def test_modules_of_ray_that_need_what_is_not_installed_are_read_all_the_same():
    # Ray's module of OpenSpiel raises when it is imported without OpenSpiel.
    there = "from ray.rllib.env.wrappers.open_spiel import OpenSpielEnv\n"
    for target in Target:
        assert rewritten(there, target) == (there, [])
    _, left = rewritten("from ray.rllib.env.wrappers.open_spiel import SpielTrainer\n")
    assert len(left) == 1  # no Ray is known to have had it


@pytest.mark.parametrize("missing", ["ray", "libcst"])
def test_without_ray_nothing_is_called_gone_that_ray_has(missing, monkeypatch, tmp_path, run):
    from importlib import util

    find_spec = util.find_spec
    monkeypatch.setattr(
        util, "find_spec", lambda name: (name != missing and find_spec(name)) or None
    )
    file = tmp_path / "env.py"
    file.write_text("from ray.rllib.env.multi_agent_env import MultiAgentEnv\n")
    code, _, told = run(file)
    assert code == 2
    assert missing in told
    assert install_command("ray", "upgrade") in told
    assert file.read_text() == "from ray.rllib.env.multi_agent_env import MultiAgentEnv\n"


def test_several_files_are_upgraded_at_once(run, tmp_path):
    files = [tmp_path / name for name in ("a.py", "b.py")]
    for file in files:
        file.write_text("from ray.rllib.agents.ppo import PPOTrainer\n")
    code, _, _ = run(*files)
    assert code == 0
    assert all("rllib_compat" in file.read_text() for file in files)


def test_a_line_that_ends_with_keep_is_left_alone():
    source = b"from ray.rllib.agents.ppo import PPOTrainer  # rllib-compat: keep\nimport gym\n"
    after = upgrade(source, Target.COMPAT).after.decode()
    assert after.startswith(source.decode().partition("import gym")[0])
    assert "from rllib_compat import gym" in after


def test_the_rules_are_listed_and_changes_may_end_with_0(run, tmp_path):
    (tmp_path / "old.py").write_text("import gym\n")
    code, out, _ = run("--list-rules")
    assert (code, "\ngym-api" in out) == (0, True)
    check = (tmp_path / "old.py", "--check")
    assert [run(*check)[0], run(*check, "--exit-zero-even-if-changed")[0]] == [1, 0]


def test_a_reset_among_other_values_gives_the_observation():
    source = b"import gym\nenv = gym.make('CartPole-v0')\nobs, done = env.reset(), False\n"
    after = upgrade(source, Target.NATIVE).after
    assert b"obs, done = env.reset()[0], False" in after
    assert upgrade(after, Target.NATIVE).after == after
