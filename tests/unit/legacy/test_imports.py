"""Old imports: what user code gets, and that nobody else notices."""

import builtins
import importlib
import os
import pickle
import sys
import textwrap
from operator import attrgetter

import pytest

from rllib_compat import legacy
from rllib_compat.errors import GoneError
from rllib_compat.legacy import activation, import_hooks, redirected
from rllib_compat.registry import old_names
from tests import old_imports

legacy.deactivate()  # to import it is to activate it; each test asks for it


@pytest.fixture(autouse=True)
def activated():
    legacy.activate()
    yield
    legacy.deactivate()


def run(code, name="__main__", file="/home/me/project/train.py"):
    namespace = {"__name__": name, "__file__": file, "__builtins__": builtins}
    exec(textwrap.dedent(code), namespace)
    return namespace


def test_old_modules_are_there_for_user_code():
    found = run(
        """
        import ray.rllib.agents.ppo as ppo
        from ray.rllib.agents.callbacks import DefaultCallbacks
        from ray.rllib.agents.registry import get_trainer_class
        from ray.rllib.utils.torch_ops import convert_to_torch_tensor
        from ray.rllib.utils.tf_ops import explained_variance
        from ray.rllib.examples.env.simple_corridor import SimpleCorridor
        """
    )
    from rllib_compat import DefaultCallbacks as Ours
    from rllib_compat import PPOTrainer

    assert found["ppo"].PPOTrainer is PPOTrainer
    assert found["get_trainer_class"]("PPO") is PPOTrainer
    assert found["DefaultCallbacks"] is Ours
    assert found["ppo"].DEFAULT_CONFIG["train_batch_size"] == 4000


@pytest.mark.parametrize("module", ["classic_control", "classic_control.cartpole"])
def test_old_environments_derive_from_gyms_own_with_the_old_reset(module):
    found = run(f"from gym.envs.{module} import CartPoleEnv\nobs = CartPoleEnv().reset()")
    assert found["obs"].shape == (4,)


def test_a_dotted_import_and_attributes_lead_to_the_same_module():
    found = run("import ray\nimport ray.rllib.agents.dqn\nfrom ray.rllib import agents")
    assert found["ray"].rllib.agents.dqn is found["agents"].dqn


def test_a_function_is_not_hidden_by_the_module_of_its_name():
    found = run("from gym.utils.colorize import color2num\nfrom gym.utils import colorize")
    assert "\x1b[31m" in found["colorize"]("text", "red")


def test_a_changed_default_config_stays_changed():
    first = run("from ray.rllib.agents.pg import DEFAULT_CONFIG as c\nc['num_workers'] = 77")
    second = run("import ray.rllib.agents.pg as pg")
    assert second["pg"].DEFAULT_CONFIG is first["c"]
    first["c"]["num_workers"] = 2


@pytest.mark.parametrize(
    ("name", "same", "key", "value"),
    [
        (
            "agents.a3c.a2c.A2C_DEFAULT_CONFIG",
            "agents.a3c.A2C_DEFAULT_CONFIG",
            "min_time_s_per_reporting",
            10,
        ),
        ("agents.dqn.apex.APEX_DEFAULT_CONFIG", "agents.dqn.APEX_DEFAULT_CONFIG", "n_step", 3),
        ("agents.dqn.simple_q.DEFAULT_CONFIG", "agents.dqn.SIMPLE_Q_DEFAULT_CONFIG", "lr", 5e-4),
        ("agents.ddpg.td3.TD3_DEFAULT_CONFIG", None, "twin_q", True),
        ("agents.dqn.dqn.DEFAULT_CONFIG", "agents.dqn.DEFAULT_CONFIG", "dueling", True),
        ("agents.qmix.qmix.DEFAULT_CONFIG", "agents.qmix.DEFAULT_CONFIG", "mixer", "qmix"),
        ("agents.qmix.apex.APEX_QMIX_DEFAULT_CONFIG", None, "mixer", "qmix"),
        (
            "agents.maml.maml.DEFAULT_CONFIG",
            "agents.maml.DEFAULT_CONFIG",
            "maml_optimizer_steps",
            5,
        ),
        ("contrib.maddpg.DEFAULT_CONFIG", "contrib.maddpg.maddpg.DEFAULT_CONFIG", "tau", 0.01),
        ("algorithms.td3.TD3_DEFAULT_CONFIG", "algorithms.td3.td3.TD3_DEFAULT_CONFIG", "tau", 5e-3),
    ],
)
def test_every_algorithm_has_its_default_config_once(name, same, key, value):
    found = old_imports.by_statement(*f"ray.rllib.{name}".rpartition(".")[::2])
    assert found[key] == value
    if same is not None:
        assert old_imports.by_importlib(*f"ray.rllib.{same}".rpartition(".")[::2]) is found


@pytest.mark.parametrize(
    ("name", "today"),
    [
        ("ray.tune.function_runner.wrap_function", "trainable.function_trainable.wrap_function"),
        ("ray.tune.progress_reporter.trial_progress_str", "progress_reporter._trial_progress_str"),
        ("ray.tune.sample.loguniform", "search.sample.loguniform"),
        ("ray.tune.suggest.suggestion.ConcurrencyLimiter", "search.ConcurrencyLimiter"),
        ("ray.tune.trial.Trial", "experiment.trial.Trial"),
    ],
)
def test_what_tune_has_moved_or_made_private_is_its_own(name, today):
    module, _, attribute = f"ray.tune.{today}".rpartition(".")
    todays = getattr(sys.modules.get(module) or importlib.import_module(module), attribute)
    assert old_imports.by_statement(*name.rpartition(".")[::2]) is todays


def test_rllibs_wrappers_take_and_give_the_old_api():
    found = run(
        """
        from gym.envs.classic_control import CartPoleEnv
        from ray.rllib.env.atari_wrappers import ClipRewardEnv, MonitorEnv

        env = ClipRewardEnv(MonitorEnv(CartPoleEnv()))
        obs, step = env.reset(), env.step(0)
        """
    )
    assert found["obs"].shape == found["step"][0].shape == (4,)
    assert found["step"][1:3] == (1.0, False)


def test_a_pickle_that_old_code_reads_finds_todays_classes_and_old_ones():
    name = "ray.rllib.agents.callbacks"
    named = b"".join(
        b"c%s\n%s\n" % (module.encode(), attribute)
        for module, attribute in (
            ("ray.rllib.utils.filter", b"NoFilter"),
            ("gym.spaces.discrete", b"Discrete"),
            (name, b"DefaultCallbacks"),
        )
    )
    code = f"import pickle\nfound = pickle.loads({b'(' + named + b't.'!r})"
    try:
        found = run(code)["found"]
    finally:
        for module in ("gym.spaces.discrete", "ray.rllib.agents", name):
            sys.modules.pop(module, None)
    from rllib_compat import DefaultCallbacks

    assert [each.__name__ for each in found] == ["NoFilter", "Discrete", "DefaultCallbacks"]
    assert found[2] is DefaultCallbacks
    assert "gym" not in sys.modules


def test_ray_itself_and_installed_libraries_get_todays_modules():
    library = "/usr/lib/python3/site-packages/other/__init__.py"
    found = run("from ray.rllib.algorithms.ppo import PPO\nimport ray", "other", library)
    from ray.rllib.algorithms.algorithm import Algorithm

    assert issubclass(found["PPO"], Algorithm)
    assert found["ray"] is sys.modules["ray"]
    with pytest.raises(ModuleNotFoundError):
        run("import ray.rllib.agents", "other", library)
    assert "ray.rllib.agents" not in sys.modules
    assert "gym" not in sys.modules


def test_todays_module_of_the_same_name_is_the_old_one_for_user_code_alone():
    found = run("from ray.rllib.algorithms.ppo import PPO, DEFAULT_CONFIG\nfrom ray import tune")
    from rllib_compat import Trainer, tune

    assert issubclass(found["PPO"], Trainer)
    assert found["tune"].run is tune.run
    assert found["tune"].grid_search is sys.modules["ray.tune"].grid_search


@pytest.mark.parametrize("way", old_imports.WAYS.values(), ids=old_imports.WAYS)
@pytest.mark.parametrize(
    "name",
    [
        "ray.rllib.agents.ppo.PPOTrainer",
        "ray.rllib.algorithms.ppo.DEFAULT_CONFIG",
        "ray.rllib.evaluation.MultiAgentEpisode",
        "ray.rllib.optimizers.AsyncSamplesOptimizer",
        "ray.tune.logger.UnifiedLogger",
    ],
)
def test_however_a_name_is_loaded_the_same_comes(way, name):
    place = name.rpartition(".")[::2]
    assert way(*place) is old_imports.by_statement(*place)


def test_what_libraries_load_is_todays():
    def load(name, file):
        code = "import importlib\nfound = importlib.import_module('ray.rllib.algorithms.ppo')"
        return run(code, name, file)["found"]

    todays = sys.modules["ray.rllib.algorithms.ppo"]
    assert load("ray.rllib.other", "/v/site-packages/ray/rllib/other.py") is todays
    assert load("mine", "/home/me/mine.py") is not todays
    assert load("hydra.utils", "/v/site-packages/hydra/utils.py") is not todays  # the user asks it


def test_an_installed_package_can_be_called_old_code():
    library = "/usr/lib/python3/site-packages/flow/train.py"
    legacy.activate(["flow"])
    assert "PPOTrainer" in run("from ray.rllib.agents.ppo import PPOTrainer", "flow.train", library)


def test_without_activation_there_are_no_old_modules():
    legacy.deactivate()
    with pytest.raises(ModuleNotFoundError, match=r"ray\.rllib\.agents"):
        run("import ray.rllib.agents.ppo")


def test_what_no_ray_had_is_missing_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"'ray\.rllib\.nonsense'"):
        run("import ray.rllib.nonsense")
    with pytest.raises(ImportError, match="NoSuchName"):
        run("from ray.rllib.agents.ppo import NoSuchName")


def test_what_is_gone_is_imported_and_raises_when_it_is_used():
    found = run("from ray.rllib.optimizers import AsyncSamplesOptimizer")
    gone = found["AsyncSamplesOptimizer"]
    subclass = type("Mine", (gone,), {})
    for use in (gone, subclass, lambda: gone.make, lambda: subclass.make()):
        with pytest.raises(GoneError, match="training_step"):
            use()
    assert redirected["ray.rllib.optimizers", "AsyncSamplesOptimizer"].startswith("gone after")


def test_functions_that_became_methods_are_there():
    found = run(
        """
        from ray.rllib.agents.ppo.ppo_torch_policy import PPOTorchPolicy, ppo_surrogate_loss
        from ray.rllib.policy.torch_policy_template import build_torch_policy
        from ray.rllib.execution.common import _get_shared_metrics
        import ray.utils
        """
    )
    assert issubclass(build := found["build_torch_policy"]("Mine", loss_fn=print), object)
    assert build.__name__ == "Mine"
    assert callable(found["ppo_surrogate_loss"])
    assert found["ray"].utils.get_user_temp_dir()


def test_old_modules_and_what_is_gone_survive_pickling():
    found = run("import ray\nfrom ray.rllib.optimizers import AsyncSamplesOptimizer as gone")
    assert pickle.loads(pickle.dumps(found["ray"].rllib)) is found["ray"].rllib
    assert pickle.loads(pickle.dumps(found["gone"])) is found["gone"]


def test_an_environment_of_several_agents_counts_them_itself():
    found = run(
        """
        from abc import ABC
        from ray.rllib import MultiAgentEnv as Same
        from ray.rllib.env.multi_agent_env import MultiAgentEnv, make_multi_agent

        class Mine(MultiAgentEnv):
            def __init__(self, config):
                self.num_agents = config["num_agents"]

        class Agents(MultiAgentEnv):
            agents = ["a", "b"]

        class Other(ABC, MultiAgentEnv):
            pass

        mine, agents, made = Mine({"num_agents": 3}), Agents(), make_multi_agent("CartPole-v1")
        assert Same is MultiAgentEnv
        assert isinstance(mine, MultiAgentEnv) and not isinstance(mine, Other)
        assert issubclass(made, MultiAgentEnv) and not issubclass(dict, MultiAgentEnv)
        """
    )
    from ray.rllib.env.multi_agent_env import MultiAgentEnv

    assert (found["mine"].num_agents, found["agents"].num_agents) == (3, 2)
    assert isinstance(found["mine"], MultiAgentEnv)


def test_whoever_looks_at_all_modules_does_not_import_ray_through_an_old_one():
    old = importlib.import_module(f"{old_names.OLD_PACKAGE}.ray.rllib.optimizers")
    assert not hasattr(old, "__file__")
    assert not hasattr(old, "__wrapped__")


def test_removed_names_of_numpy_and_python_are_back_and_leave_again():
    found = run("import numpy as np\nfrom collections import Iterable\nx = np.zeros(2, np.float)")
    assert found["x"].dtype == "float64"
    legacy.deactivate()
    with pytest.raises(ImportError):
        run("from collections import Iterable")


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        ({"__name__": "__main__"}, True),  # a notebook
        ({"__name__": "train", "__file__": "/home/me/train.py"}, True),
        ({"__name__": "pickle", "__file__": pickle.__file__}, False),
        ({"__name__": "x", "__file__": "/v/lib/python3.11/site-packages/x.py"}, False),
        ({"__name__": "rllib_compat.tune", "__file__": legacy.__file__}, False),
        ({"__name__": "namedtuple_X"}, False),
    ],
)
def test_who_the_user_is(namespace, expected):
    assert import_hooks.is_user_code(namespace) is expected


def test_workers_are_told_and_the_users_own_hook_stays(monkeypatch):
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    activation.configure_workers(["flow"])
    assert "activate_worker" in os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"]
    activation.reset_workers()
    assert "RAY_JOB_CONFIG_JSON_ENV_VAR" not in os.environ
    own = '{"runtime_env": {"worker_process_setup_hook": "mine"}}'
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", own)
    activation.configure_workers()
    activation.reset_workers()
    assert os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"] == own


def test_every_row_of_the_table_names_something_that_is_there():
    named = [*old_names.NAMES.values(), *old_names.IN_RLLIB.values()]
    for target in (*named, *old_names.MOVED.values()):
        module, _, name = target.partition(":")
        attrgetter(name)(importlib.import_module(module))  # or an error that names it
    for module in old_names.MODULES.values():
        assert importlib.import_module(module).__all__


@pytest.mark.parametrize("module", ["ray.rllib.agents.ppo.ppo", "ray.rllib.env", "ray.tune.logger"])
def test_every_name_that_a_module_had_can_be_imported(module):
    for name in old_names.names(module):
        run(f"from {module} import {name}")


def test_functions_of_old_policies_get_what_they_got():
    seen = {}

    def postprocess(policy, batch, other_agent_batches=None, episode=None):
        seen.update(other_agent_batches)
        return batch

    def loss(policy, model, dist_class, train_batch):
        return model.from_batch(train_batch)

    from ray.rllib.policy.sample_batch import SampleBatch

    from rllib_compat.ray_versions import old_policies

    class Model:
        def __call__(self, batch):
            return "logits", [batch.is_training]

    called = old_policies.adapt_policy_functions({"postprocess_fn": postprocess, "loss_fn": loss})
    others = {"other": ("policy id", "policy", "batch")}
    assert called["postprocess_fn"](None, "mine", others) == "mine"
    assert seen == {"other": ("policy", "batch")}
    batch = SampleBatch({"obs": [1.0]})
    assert called["loss_fn"](None, Model(), None, batch) == ("logits", [True])


def test_a_policy_template_takes_what_it_took_and_makes_others_of_itself(caplog):
    from rllib_compat.legacy.policies.template import build_torch_policy

    def loss(policy, model, dist_class, train_batch):
        raise NotImplementedError

    mine = build_torch_policy("Mine", loss_fn=loss, training_view_requirements_fn=loss)
    assert "training_view_requirements_fn" in caplog.text
    assert mine.with_updates(name="Other").__name__ == "Other"


def test_ppos_loss_as_an_object_is_that_of_todays_policy():
    import torch
    from ray.rllib.models.torch.torch_action_dist import TorchCategorical

    from rllib_compat.legacy.policies.ppo import PPOLoss

    class Model:
        tower_stats: dict = {}  # noqa: RUF012

    logits, before = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.zeros(2, 2)
    actions, old_values = torch.tensor([0, 1]), torch.tensor([0.0, 1.0])
    made = PPOLoss(
        TorchCategorical,
        Model(),
        torch.tensor([1.0, 3.0]),  # value targets
        torch.tensor([1.0, -1.0]),  # advantages
        actions,
        before,
        TorchCategorical(before).logp(actions),
        old_values,
        TorchCategorical(logits),
        torch.tensor([0.5, 2.0]),  # values
        0.2,
        None,
        entropy_coeff=0.01,
        clip_param=0.3,
        vf_clip_param=0.2,
    )
    # By hand: ratios 1.462 (clipped to 1.3) and 1.762 (not, the advantage is negative);
    # values are clipped to 0.2 and 1.2, so the losses are 0.64 and 3.24.
    policy, value = -(1.3 - 1.7616) / 2, (0.64 + 3.24) / 2
    kl = float(TorchCategorical(before).kl(TorchCategorical(logits)).mean())
    entropy = float(TorchCategorical(logits).entropy().mean())
    expected = policy + 0.2 * kl + value - 0.01 * entropy
    assert float(made.loss) == pytest.approx(expected, abs=1e-4)
    assert float(Model.tower_stats["mean_vf_loss"]) == pytest.approx(value)


def test_schedulers_take_the_metric_by_its_first_name():
    found = run(
        """
        from ray.air import Checkpoint
        from ray.air.checkpoint import Checkpoint as Same
        from ray.tune.schedulers import AsyncHyperBandScheduler, PopulationBasedTraining
        from ray.tune.schedulers.pbt import PopulationBasedTraining as Again
        from ray.tune import schedulers

        asha = AsyncHyperBandScheduler(time_attr="t", reward_attr="episode_reward_mean")
        pbt = PopulationBasedTraining(
            time_attr="t", reward_attr="r", hyperparam_mutations={"lr": [1.0, 2.0]}
        )
        assert Again is PopulationBasedTraining is schedulers.PopulationBasedTraining
        assert Same is Checkpoint
        """
    )
    assert (found["asha"].metric, found["pbt"].metric) == ("episode_reward_mean", "r")
    assert found["asha"]._mode == "max"
    assert type(pickle.loads(pickle.dumps(found["pbt"]))) is type(found["pbt"])


def test_an_experiment_takes_the_arguments_of_its_time():
    found = run(
        """
        from ray.tune import Experiment

        made = Experiment("mine", run="PPO", checkpoint_at_end=True, local_dir="/tmp/there")
        """
    )
    spec = found["made"].spec
    assert spec["checkpoint_config"].checkpoint_at_end
    assert found["made"].path.startswith("/tmp/there")


@pytest.mark.parametrize("name", ["Mine", "Renamed"])
def test_trainables_of_ones_own_have_the_methods_of_their_time(name, tmp_path):
    found = run(
        """
        import os
        from ray.tune import Trainable
        from ray.tune.trainable import Trainable as Same

        class Mine(Trainable):
            def _setup(self, config):
                self.n = config["n"]

            def _train(self):
                self.n += 1
                return {"n": self.n, "done": self.n > 2}

            def _save(self, checkpoint_dir):
                path = os.path.join(checkpoint_dir, "mine.txt")
                open(path, "w").write(str(self.n))
                return path

            def _restore(self, path):
                self.n = int(open(path).read())

            def _stop(self):
                self.n = None

        class Renamed(Mine):
            setup, step = Mine._setup, Mine._train
            save_checkpoint, load_checkpoint = Mine._save, Mine._restore

        class Todays(Trainable):
            def step(self):
                return {"today": True}

        assert Same is Trainable
        """
    )
    mine = found[name]({"n": 1})
    assert mine.train()["n"] == 2
    assert mine.save_checkpoint(str(tmp_path)) is None
    again = found[name]({"n": 0})
    again.load_checkpoint(str(tmp_path))
    assert again.train()["done"]
    again.stop()
    assert again.n is None
    assert found["Todays"]().train()["today"]


def test_a_default_config_is_a_dict_that_has_the_methods_of_ray_2():
    found = run(
        """
        from ray.rllib.algorithms.registry import get_algorithm_class
        from ray.tune.registry import get_trainable_cls

        config = get_trainable_cls("PPO").get_default_config()
        config["gamma"] = 0.5
        config.lr = 0.25
        made = config.copy().environment("CartPole-v1").rollouts(num_rollout_workers=0)
        cls, also = get_algorithm_class("DQN", return_config=True)
        """
    )
    assert isinstance(found["config"], dict)
    told = {"env": "CartPole-v1", "gamma": 0.5, "lr": 0.25, "num_workers": 0}
    assert found["made"].to_dict() == told
    assert found["cls"].algorithm_name == "DQN"
    assert found["also"]["dueling"] is True


def test_methods_that_have_moved_are_overridden_and_constructors_take_what_is_behind_them():
    found = run(
        """
        from ray.rllib.agents.trainer import Trainer
        from ray.rllib.env.multi_agent_env import MultiAgentEnv
        from ray.rllib.utils.annotations import override

        class Game:
            def __init__(self, config):
                self.size = config["size"]

        class Env(MultiAgentEnv, Game):
            def __init__(self, config):
                super().__init__(config)

        class Alone(MultiAgentEnv):
            def __init__(self, config):
                super().__init__(config)

            @override(Trainer)
            def _moved(self):
                return 1

        env, alone = Env({"size": 3}), Alone({})
        """
    )
    assert found["env"].size == 3
    assert found["alone"]._moved() == 1
