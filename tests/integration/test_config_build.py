"""Real legacy configs, built and validated by the installed Ray."""

import logging

import pytest

from rllib_compat import registry
from rllib_compat.config import default_config, translate
from rllib_compat.errors import UnknownKeysError
from rllib_compat.neutral import Severity
from rllib_compat.ray_versions import releases
from tests.marks import OTHERS_WARNINGS
from tests.unit.config.samples import FILES, first_of_grids, read

pytestmark = [pytest.mark.ray, *OTHERS_WARNINGS]
LIVING = [path for path in FILES if registry.find(read(path)["run"]).becomes]


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def translated(path):
    experiment = read(path)
    return translate(
        first_of_grids(experiment["config"]),
        algorithm=experiment["run"],
        env=experiment["env"],
        on_unknown="warn",
    )


@pytest.mark.matrix
@pytest.mark.parametrize("path", LIVING, ids=lambda path: path.stem)
def test_builds_and_validates(path):
    config = translated(path).algorithm_config
    config.validate()
    assert not set(vars(config)) - set(vars(type(config)())), "attributes that Ray never reads"


@pytest.mark.matrix
@pytest.mark.parametrize(
    "config",
    [
        {},
        {"remote_worker_envs": True},
        {"gym_env_vectorize_mode": "SYNC"},
        {"gym_env_vectorize_mode": "async"},
    ],
    ids=str,
)
def test_modes_of_vector_environments_are_spelled_as_this_ray_wants_them(config):
    """By name, by value, and as the default of an earlier Ray, which may have the other one."""
    earlier = [ray for ray in ("2.46.0", "2.52.1") if releases.at_least(ray)]
    for legacy_ray in (None, *earlier):
        given = {**config, "env": "CartPole-v1"}
        translation = translate(given, algorithm="PPO", legacy_ray=legacy_ray)
        translation.algorithm_config.validate()


@pytest.mark.matrix
@pytest.mark.parametrize("path", LIVING, ids=lambda path: path.stem)
def test_the_code_builds_the_same(path):
    translation = translated(path)
    namespace = {}
    exec(compile(translation.to_python(), path.name, "exec"), namespace)
    built, written = translation.algorithm_config.to_dict(), namespace["config"].to_dict()
    # Each program makes classes and partial functions of its own; their kinds tell.
    made = ("env", "env_runner_cls", "_env_to_module_connector", "_module_to_env_connector")
    for key in made:
        assert kind(built[key]) == kind(written[key]), key
    for key in set(built) - {*made, "evaluation_config"}:
        assert repr(built[key]) == repr(written[key]), key


def kind(value):
    """What an object is, without its address: a class, a partial of a function, a function."""
    value = getattr(value, "func", value)
    name = getattr(value, "__qualname__", repr(value))
    return "mean_std_filter" if name == "<lambda>" else name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_key_is_in_the_report(path):
    told = {finding.path for finding in translated(path).report}
    for key, value in read(path)["config"].items():
        inner = value if isinstance(value, dict) and "grid_search" not in value else {}
        for where in [f"$.{key}", *(f"$.{key}.{name}" for name in inner)]:
            assert any(t == where or t.startswith(where) or where.startswith(t + ".") for t in told)


def test_the_typo_that_nobody_noticed():
    (path,) = (path for path in FILES if "observation_fliter" in path.read_text())
    experiment = read(path)
    with pytest.raises(UnknownKeysError, match="did you mean 'observation_filter'"):
        translate(experiment["config"], algorithm=experiment["run"])


@pytest.mark.parametrize("algorithm", ["PPO", "APPO", "IMPALA", "DQN", "SAC"])
def test_todays_own_configs_pass_through(algorithm):
    import ray.rllib.algorithms as algorithms

    today = getattr(algorithms, f"{algorithm}Config")().to_dict()
    translation = translate(today, algorithm=algorithm)
    assert not translation.report.at_least(Severity.ERROR)
    again = translation.algorithm_config.to_dict()
    for key in ("lr", "num_env_runners", "train_batch_size", "grad_clip", "num_epochs", "explore"):
        assert again[key] == today[key]


@pytest.mark.parametrize("ray", ["0.5.3", "0.8.5", "1.4.1", "1.13.0", "2.10.0"])
@pytest.mark.parametrize("algorithm", ["PPO", "DQN", "IMPALA", "SAC", "SimpleQ"])
def test_whole_dumped_configs_of_old_rays(algorithm, ray):
    translation = translate(default_config(algorithm, ray), algorithm=algorithm, env="CartPole-v1")
    translation.algorithm_config.validate()


@pytest.mark.parametrize("config", [{"noisy": True}, {"soft_q": True}, {"parameter_noise": True}])
def test_dqn_on_the_old_stack_validates_twice(config):
    """As building an algorithm does, after the first pass has put a class where a name was."""
    config = {**config, "batch_mode": "complete_episodes"}
    built = translate(config, algorithm="DQN", env="CartPole-v1", api_stack="old").algorithm_config
    built.validate()
    built.validate()
    assert "EpisodeReplayBuffer" not in built.replay_buffer_config["type"]
