"""What `rllib_compat.tune` makes of the arguments of old."""

import inspect
import logging
import pickle
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import gymnasium
import pytest
from ray import tune as ray_tune
from ray.train import Checkpoint
from ray.train._internal.storage import StorageContext
from ray.tune.experiment import Trial
from ray.tune.search import Searcher

import rllib_compat as compat
import tests.legacy
from rllib_compat import tune
from rllib_compat.config import era
from rllib_compat.config.evidence import of_import
from rllib_compat.errors import RefusedKeysError
from rllib_compat.tune import searchers
from rllib_compat.tune.loggers import LegacyLoggerCallback, Logger


@pytest.fixture
def ran(monkeypatch):
    """What reaches Ray, in the place of a run."""
    calls = []

    class Analysis:
        trials = ("a trial",)
        default_metric = default_mode = None

    def run(what, **arguments):
        calls.append((what, arguments))
        return Analysis()

    monkeypatch.setattr(ray_tune, "run", run)
    monkeypatch.setattr(tune, "ExperimentAnalysis", type("Ours", (Analysis,), {}))
    return calls


@pytest.mark.parametrize(
    ("name", "trainer"),
    [("PPO", "PPOTrainer"), ("APEX", "ApexTrainer"), ("DQNTrainer", "DQNTrainer")],
)
def test_names_of_algorithms_are_our_trainers(ran, name, trainer):
    tune.run(name)
    assert ran[0][0] is getattr(compat, trainer)


def test_what_is_no_algorithm_is_rays_business(ran):
    def train(config):
        return None

    for given in ("my own trainable", train):
        tune.run(given)
        assert ran.pop()[0] is given


def test_a_name_that_the_user_has_registered_is_the_users(ran, monkeypatch):
    from ray.tune import registry

    class Random(ray_tune.Trainable):
        pass

    known = {"random": Random, "DQNTrainer": compat.DQNTrainer, "PPO": Random}
    monkeypatch.setattr(registry._global_registry, "contains", lambda _, name: name in known)
    monkeypatch.setattr(registry, "get_trainable_cls", known.get)
    tune.run("random")  # RLlib once had an algorithm of this name
    tune.run("DQNTrainer")  # registered by a run of ours
    tune.run("PPO")  # RLlib registers its own there
    assert [call[0] for call in ran] == ["random", compat.DQNTrainer, compat.PPOTrainer]


def test_a_removed_algorithm_is_told_before_any_trial(ran):
    with pytest.raises(RefusedKeysError, match="MAML was removed"):
        tune.run("MAML")
    with pytest.raises(RefusedKeysError, match="SlateQ was removed"):
        tune.Tuner("SlateQ")
    assert not ran


def test_checkpoint_arguments_of_old(ran):
    tune.run(
        "PPO",
        checkpoint_freq=2,
        checkpoint_at_end=True,
        keep_checkpoints_num=3,
        checkpoint_score_attr="min-episode_len_mean",
    )
    config = ran[0][1]["checkpoint_config"]
    assert (config.checkpoint_frequency, config.checkpoint_at_end, config.num_to_keep) == (
        2,
        True,
        3,
    )
    assert config.checkpoint_score_attribute == "episode_len_mean"
    assert config.checkpoint_score_order == "min"


def test_folders_and_resources_by_their_old_names(ran):
    tune.run("PPO", "name", local_dir="~/results", trial_resources={"cpu": 1})
    arguments = ran[0][1]
    assert arguments["storage_path"] == str(Path.home() / "results")
    assert arguments["resources_per_trial"] == {"cpu": 1}
    assert arguments["name"] == "name"
    tune.run("PPO", local_dir="results", restore="~/checkpoint_1")
    assert ran[1][1]["storage_path"] == str(Path("results").absolute())
    assert ran[1][1]["restore"] == str(Path.home() / "checkpoint_1")
    tune.run("PPO", upload_dir="s3://bucket/folder")
    assert ran[2][1]["storage_path"] == "s3://bucket/folder"


def test_what_tune_has_no_more_is_told(ran, caplog):
    with caplog.at_level(logging.WARNING):
        tune.run("PPO", queue_trials=True, sync_to_cloud=None, sync_on_checkpoint=False)
    assert [record.message.split("`")[1] for record in caplog.records] == ["queue_trials"]
    assert not {"queue_trials", "sync_to_cloud", "sync_on_checkpoint"} & ran[0][1].keys()


def test_stop_criteria_of_2_0(ran):
    tune.run("PPO", stop={"sampler_results/episode_reward_mean": 1, "timesteps_total": 2})
    assert ran[0][1]["stop"] == {"episode_reward_mean": 1, "timesteps_total": 2}


def test_a_checkpoint_that_is_a_file_is_restored_from_its_folder(ran, tmp_path):
    file = tmp_path / "checkpoint_5" / "checkpoint-5"
    file.parent.mkdir()
    file.touch()
    tune.run("PPO", restore=str(file))
    assert ran[0][1]["restore"] == str(file.parent)


def test_code_for_ray_1_13_has_a_file_in_a_checkpoint_as_its_path(ran, tmp_path):
    (tmp_path / "algorithm_state.pkl").touch()
    tune.run("PPO")
    assert Checkpoint(str(tmp_path)).value == str(tmp_path)
    era.note(of_import("ray.rllib.agents.registry", ["get_trainer_class"]))
    assert Path(Checkpoint(str(tmp_path)).value).parent == tmp_path
    era.forget()


def test_the_folder_of_an_experiment_is_called_as_its_algorithm_was_asked_for(ran):
    tune.run("PPO")
    era.note(of_import("ray.rllib.agents.registry", ["get_trainer_class"]))
    tune.run("PPO")
    tune.run("PPO", name="mine")
    tune.run(compat.PPOTrainer)
    era.forget()
    assert [arguments["name"] for _, arguments in ran] == [None, "PPO", "mine", None]


def test_a_trial_without_a_checkpoint_has_none_as_its_value(ran, tmp_path):
    tune.run("PPO")
    trial = Trial("PPO", stub=True, storage=StorageContext(str(tmp_path), "experiment"))
    assert not trial.checkpoint
    assert trial.checkpoint.value is None
    assert not trial.has_checkpoint()


def test_a_trial_that_starts_again_numbers_checkpoints_on_from_its_last_one(ran, tmp_path):
    tune.run("PPO")
    trial = Trial("PPO", stub=True, storage=StorageContext(str(tmp_path), "experiment"))
    metrics = {"training_iteration": 5}
    saved = SimpleNamespace(checkpoint=Checkpoint(f"{tmp_path}/checkpoint_000005"), metrics=metrics)
    trial.on_checkpoint(saved)
    assert trial.storage.checkpoint_dir_name == "checkpoint_000005"


def test_trials_where_they_are_asked_for(ran):
    assert tune.run("PPO", return_trials=True) == ("a trial",)
    assert tune.run("PPO").default_mode is None


def test_specs_of_old_experiments(ran, tmp_path):
    spec = {
        "run": "PPO",
        "env": "CartPole-v0",
        "stop": {"training_iteration": 3},
        "config": {"lr": tune.grid_search([1, 2])},
        "checkpoint_freq": 1,
        "local_dir": str(tmp_path),
        "repeat": 2,
    }
    assert tune.run_experiments({"mine": spec}, queue_trials=False) == ["a trial"]
    (experiment,) = ran[0][0]
    assert experiment.spec["config"]["env"] == "CartPole-v0"
    assert experiment.spec["num_samples"] == 2
    assert experiment.checkpoint_config.checkpoint_frequency == 1
    assert "repeat" in spec
    assert spec["run"] == "PPO", "the caller's dict is left alone"
    tune.run_experiments([experiment, experiment], concurrent=False)
    assert len(ran) == 3


def test_functions_in_configs_are_left_alone():
    assert tune.function(print) is print


def test_spaces_in_a_config_stay_spaces(ran):
    space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)})
    tune.run("PPO", config={"env_config": {"space": space}})
    assert ran[0][1]["config"]["env_config"]["space"] == space


def test_functions_of_a_spec_are_drawn_and_others_stay(ran):
    def mapping(agent_id):
        return agent_id

    config = {"lr": lambda spec: 0.5, "multiagent": {"policy_mapping_fn": mapping}}
    tune.run("PPO", config=config)
    given = ran[0][1]["config"]
    assert given["lr"].func is config["lr"]
    assert given["multiagent"]["policy_mapping_fn"] is mapping


def test_schedulers_without_a_metric_take_the_mean_return_as_until_ray_1_0():
    mutations = {"hyperparam_mutations": {"lr": [1]}}
    for name in ("AsyncHyperBandScheduler", "MedianStoppingRule", "PopulationBasedTraining"):
        more = mutations if name.startswith("Population") else {}
        scheduler = getattr(tune.schedulers, name)(**more)
        assert scheduler.set_search_properties(None, None)
        assert scheduler.metric == "episode_reward_mean"
        scheduler = getattr(tune.schedulers, name)(reward_attr="mine", **more)
        assert scheduler.set_search_properties(None, None)
        assert scheduler.metric == "mine"
    assert tune.schedulers.FIFOScheduler is ray_tune.schedulers.FIFOScheduler


def test_searchers_take_the_arguments_of_ray_0_8():
    class Guess(Searcher):
        def __init__(self, space=None, metric=None, mode=None):
            super().__init__(metric=metric, mode=mode)

    made = searchers.with_legacy_arguments(Guess)
    assert (made({}).metric, made({}).mode) == ("episode_reward_mean", "max")
    assert (made({}, "loss", "min").metric, made().metric) == ("loss", None)
    limited = made({}, max_concurrent=3, reward_attr="mine", use_early_stopped_trials=True)
    assert (limited.max_concurrent, limited.searcher.metric, limited.searcher.mode) == (
        *(3, "mine", "max"),
    )
    assert pickle.loads(pickle.dumps(searchers.HyperOptSearch)) is searchers.HyperOptSearch


def test_everything_else_is_rays():
    assert tune.grid_search is ray_tune.grid_search
    assert tune.register_env is ray_tune.register_env
    assert issubclass(tune.Tuner, ray_tune.Tuner)
    with pytest.raises(AttributeError):
        _ = tune.nothing


def test_a_logger_class_may_stand_alone():
    class Mine(Logger):
        """One of a user's own."""

    assert LegacyLoggerCallback(Mine)._classes == LegacyLoggerCallback([Mine])._classes == [Mine]


def test_a_function_learns_of_its_trial_and_saves_as_until_ray_2_7(tmp_path, monkeypatch):
    context = SimpleNamespace(get_trial_dir=lambda: str(tmp_path), get_trial_id=lambda: "a1")
    monkeypatch.setattr("rllib_compat.ray_versions.tune.tune_context", lambda: context)
    saved = []

    def taken(metrics, checkpoint):
        with checkpoint.as_directory() as folder:
            saved.append((metrics, [path.name for path in Path(folder).iterdir()]))

    monkeypatch.setattr("rllib_compat.ray_versions.tune.tune_report", taken)
    with tune.checkpoint_dir(step=3) as folder:
        (Path(folder) / "weights").touch()
    tune.report(loss=1)
    assert saved == [({"loss": 1}, ["weights"])]
    assert (tune.get_trial_id(), tune.get_trial_dir()) == ("a1", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_functions_of_config_and_reporter_report(ran, monkeypatch):
    reported = []
    monkeypatch.setattr(
        "rllib_compat.ray_versions.tune.tune_report",
        lambda metrics, checkpoint: reported.append((metrics, checkpoint)),
    )

    def train(config, reporter):
        reporter(loss=config["x"], done=True)
        tune.report({"today": 1}, checkpoint="here")
        tune.report(3)

    tune.run(train, resources_per_trial={"cpu": 1, "extra_cpu": 2})
    function, arguments = ran[0]
    function({"x": 5})
    assert function.__name__ == "train"
    assert reported == [
        ({"loss": 5, "done": True}, None),
        ({"today": 1}, "here"),
        ({"_metric": 3}, None),
    ]
    assert arguments["resources_per_trial"].bundles == [{"CPU": 1}, {"CPU": 2}]


def test_a_function_of_the_config_stays_as_it_is(ran):
    function = lambda config: None  # noqa: E731
    tune.run(function)
    assert ran.pop()[0] is function


def test_a_function_gets_the_folder_that_it_goes_on_from(ran, monkeypatch, tmp_path):
    def train(config, checkpoint_dir=None):
        return checkpoint_dir and Path(checkpoint_dir, "state").read_text("utf-8")

    (tmp_path / "state").write_text("7", "utf-8")
    tune.run(train)
    function = ran[0][0]
    for checkpoint, state in ((None, None), (Checkpoint(str(tmp_path)), "7")):
        monkeypatch.setattr(
            "rllib_compat.ray_versions.tune.checkpoint_to_resume", lambda found=checkpoint: found
        )
        assert function({}) == state
    assert (function.__name__, [*inspect.signature(function).parameters]) == ("train", ["config"])


def test_a_function_counts_on_from_the_checkpoint_of_an_old_ray(ran):
    def train(config, checkpoint_dir=None):
        """Goes on from it."""

    class Trial:
        def load_checkpoint(self, saved):
            """What Tune's class does is tested with Ray."""

    tune.run(train)
    trial = type("Mixed", (*ran[0][0].__mixins__, Trial), {})()
    folder = Path(tests.legacy.__file__).parent / "2.0.1/ppo-torch-meanstd/ckpt/checkpoint_000002"
    trial.load_checkpoint(SimpleNamespace(metrics={}, checkpoint=Checkpoint(str(folder))))
    assert trial._iteration == 2
    assert trial._time_total > 0


def test_results_of_a_trial_go_to_weights_and_biases(monkeypatch):
    import ray.air.integrations.wandb as of_ray

    from rllib_compat.legacy import lookup

    sent = []

    class Recorder:
        def __init__(self, **told):
            sent.append(told)

        def __getattr__(self, name):
            return lambda *given: sent.append((name, *given))

    monkeypatch.setattr(of_ray, "WandbLoggerCallback", Recorder)
    logger = lookup("ray.tune.integration.wandb", "WandbLogger")
    config = {"lr": 1, "logger_config": {"wandb": {"project": "lines", "excludes": ["pid"]}}}
    running = LegacyLoggerCallback(logger)
    trial = mock.Mock(config=config, local_path="")
    running.log_trial_start(trial)
    running.log_trial_result(3, trial, {"training_iteration": 3})
    running.log_trial_end(trial)
    assert sent == [
        {"project": "lines", "excludes": ["pid", "wandb", "logger_config"]},
        ("setup",),
        ("log_trial_start", trial),
        ("log_trial_result", 3, trial, {"training_iteration": 3}),
        ("log_trial_end", trial),
        ("on_experiment_end", [trial]),
    ]


def test_the_progress_of_whoever_learns_from_records_is_that_of_its_evaluation():
    from rllib_compat.tune.progress import numbers

    played = {"episode_reward_mean": 40.0, "episode_len_mean": 40.0}
    offline = {"training_iteration": 3, "episode_reward_mean": float("nan"), "evaluation": played}
    assert numbers(offline) == ("3", "–", "–", "40.0", "–", "–", "40.0")
    sampled = {"episode_reward_mean": 20.0, "evaluation": played}
    assert numbers(sampled)[3] == "20.0"
