"""Files that configs are kept in, the verb that reads them, and the code that is written."""

import json
import pickle
import subprocess
import sys
from functools import partial

import pytest

from rllib_compat.config import Era, read_experiments, translate
from rllib_compat.errors import ConfigError

TUNED = """
pong:
    env: PongNoFrameskip-v4
    run: PPO
    config:
        lambda: 0.95
        lr: {grid_search: [0.1, 0.2]}
cartpole:
    env: CartPole-v1
    run: DQN
    stop: {episode_reward_mean: 150}
    config: {n_step: 3}
"""


@pytest.fixture
def run(run):
    return partial(run, "config")


class TestFiles:
    def test_tuned_examples(self, tmp_path):
        path = tmp_path / "tuned.yaml"
        path.write_text(TUNED)
        pong, cartpole = read_experiments(str(path))
        assert (pong.name, pong.algorithm, pong.env) == ("pong", "PPO", "PongNoFrameskip-v4")
        assert cartpole.config == {"n_step": 3}
        assert cartpole.stop == {"episode_reward_mean": 150}

    def test_params(self, tmp_path):
        (tmp_path / "params.json").write_text(json.dumps({"env": "E", "lr": 0.1}))
        (tmp_path / "params.pkl").write_bytes(pickle.dumps({"env": "E", "callbacks": print}))
        (plain,) = read_experiments(str(tmp_path / "params.json"))
        (pickled,) = read_experiments(str(tmp_path / "params.pkl"))
        assert plain.config == {"env": "E", "lr": 0.1}
        assert not callable(pickled.config["callbacks"])

    def test_python_that_is_written_out_is_not_run(self, tmp_path):
        path = tmp_path / "train.py"
        path.write_text("raise SystemExit\nCONFIG = {'lr': 0.1}\n")
        (experiment,) = read_experiments(f"{path}:CONFIG")
        assert experiment.config == {"lr": 0.1}

    def test_python_that_is_computed_is_run(self, tmp_path):
        path = tmp_path / "train.py"
        path.write_text("CONFIG = dict(lr=0.1)\n")
        (experiment,) = read_experiments(f"{path}:CONFIG")
        assert experiment.config == {"lr": 0.1}

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("a.json", "{"),
            ("a.json", "[1]"),
            ("a.yaml", "a: ["),
            ("a.txt", ""),
            ("a.py:X", "Y = 1"),
            ("a.py:X", "("),
        ],
    )
    def test_what_is_no_config(self, tmp_path, name, text):
        (tmp_path / name.partition(":")[0]).write_text(text)
        with pytest.raises(ConfigError):
            read_experiments(str(tmp_path / name))

    def test_what_is_not_there(self, tmp_path):
        with pytest.raises(ConfigError, match="can't be read"):
            read_experiments(str(tmp_path / "no.json"))


class TestVerb:
    @pytest.fixture
    def tuned(self, tmp_path):
        path = tmp_path / "tuned.yaml"
        path.write_text(TUNED)
        return path

    def test_prints_report_and_code(self, tuned, run):
        code, out, _ = run(tuned)
        assert code == 0
        for told in ("$.lambda", "lr=tune.grid_search([0.1, 0.2])", "DQNConfig()"):
            assert told in out

    def test_json(self, tuned, run):
        pong, _ = json.loads(run(tuned, "--json")[1])
        assert pong["algorithm"] == "PPO"
        assert pong["report"]["findings"]

    def test_rules_can_be_chosen(self, tuned, run):
        only = run(tuned, "--only", "training")[1]
        assert "$.lr" in only
        assert "$.lambda" not in only
        assert "$.lambda" not in run(tuned, "--skip", "ppo.lambda")[1]

    @pytest.mark.parametrize(
        ("config", "code"),
        [
            ({"gamma": 0.9, "framework": "tf", "monitor": False}, 0),
            ({"model": {"custom_preprocessor": "p"}}, 1),
            ({"monitor": True}, 1),
        ],
        ids=["nothing lost", "refused", "dropped"],
    )
    def test_the_exit_code_tells_whether_something_is_lost(self, tmp_path, run, config, code):
        path = tmp_path / "a.json"
        path.write_text(json.dumps(config))
        assert run(path)[0] == code
        assert run(path, "--skip", "environment", "--check")[0] == code

    def test_unknown_keys(self, tmp_path, run):
        path = tmp_path / "a.json"
        path.write_text(json.dumps({"gama": 1}))
        assert "did you mean" in run(path)[2]
        assert run(path, "--on-unknown", "warn")[0] == 1


class TestCode:
    def test_reads_like_a_persons(self):
        config = {
            "num_workers": 2,
            "lambda": 0.95,
            "observation_filter": "MeanStdFilter",
            "model": {"fcnet_hiddens": [64, 64]},
            "train_batch_size": 4000,
            "sgd_minibatch_size": 256,
            "num_sgd_iter": 10,
            "lr": 1e-4,
        }
        how = {"algorithm": "PPO", "env": "CartPole-v1", "legacy_ray": Era(None)}
        code = translate(config, **how).to_python()
        assert code == (
            "from ray.rllib.algorithms.ppo import PPOConfig\n"
            "from rllib_compat.adapters import MeanStdFilter\n"
            "\n"
            "config = (\n"
            "    PPOConfig()\n"
            '    .environment(env="CartPole-v1")\n'
            "    .env_runners(\n"
            "        env_to_module_connector="
            "lambda env=None, spaces=None, device=None: "
            'MeanStdFilter(clip_by_value=float("inf")),\n'
            "        num_env_runners=2,\n"
            "    )\n"
            "    .training(\n"
            "        lambda_=0.95,\n"
            "        lr=0.0001,\n"
            "        minibatch_size=256,\n"
            "        num_epochs=10,\n"
            "        train_batch_size_per_learner=4000,\n"
            "    )\n"
            '    .rl_module(model_config={"fcnet_hiddens": [64, 64]})\n'
            ")\n"
        )

    def test_values_without_a_source_form_are_named(self):
        config = {"multiagent": {"policies": {"a"}, "policy_mapping_fn": lambda agent: "a"}}
        code = translate(config, algorithm="PPO").to_python()
        assert "# policy_mapping_fn: " in code
        compile(code, "code", "exec")

    def test_policies(self):
        import gymnasium

        space = gymnasium.spaces.Box(-1, 1, (3,))
        own = {"lr": 0.1, "model": {"fcnet_hiddens": [4]}}
        policies = {"a": (None, space, gymnasium.spaces.Discrete(2), own), "b": ()}
        code = translate({"multiagent": {"policies": policies}}, algorithm="PPO").to_python()
        namespace = {}
        exec(compile(code, "code", "exec"), namespace)
        assert namespace["config"].policies["a"].action_space.n == 2
        assert "RLModuleSpec(model_config=" in code


def test_code_is_printed_without_gymnasium(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    code = translate({"env": "CartPole-v0"}, algorithm="PPO").to_python()
    assert "adapt_env(EnvSettings(env='CartPole-v0'))" in code.replace('"', "'")


def test_configs_are_translated_and_printed_without_ray_and_torch():
    """Also where they are installed: importing Ray takes seconds, and so a command would."""
    code = """
import sys

class Blocked:
    def find_spec(self, name, path, target=None):
        if name in ("ray", "torch", "tensorflow"):
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Blocked())
from rllib_compat.config import translate
from rllib_compat.config.values.validator import Origin
from tests.unit.config.samples import FILES, first_of_grids, read

for file in FILES:
    told = read(file)
    config = first_of_grids(told["config"])
    for given in (config, {**config, "env": "CartPole-v1"}, {**config, "env": "Blackjack-v1"}):
        for origin in Origin:
            how = {"algorithm": told["run"], "on_unknown": "pass", "origin": origin}
            translate(given, **how).to_python()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
