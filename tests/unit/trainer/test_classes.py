"""The trainers' old names, and classes that are made from them."""

import importlib
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest

import rllib_compat as compat
from rllib_compat import agents, registry, tune
from rllib_compat.errors import ConfigError, GoneError, RefusedKeysError
from rllib_compat.ray_versions import old_policies
from rllib_compat.trainer import (
    build_trainer,
    checkpoints,
    class_of_algorithm,
    defaults,
    subclasses,
)


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, rllib_compat; rllib_compat.translate; import rllib_compat.agents.ppo as ppo; "
        "ppo.DEFAULT_CONFIG; print({'ray', 'torch', 'gymnasium', 'tensorflow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("PPOTrainer", "PPO"),
        ("PPOAgent", "PPO"),
        ("ImpalaTrainer", "IMPALA"),
        ("ApexTrainer", "APEX"),
        ("APEXTrainer", "APEX"),
        ("SimpleQTrainer", "SimpleQ"),
        ("SAC", "SAC"),
    ],
)
def test_one_class_a_name(name, algorithm):
    found = getattr(compat, name)
    assert found.algorithm_name == algorithm
    assert issubclass(found, compat.Trainer)
    assert pickle.loads(pickle.dumps(found)) is found
    assert getattr(compat, name) is found


def test_an_agent_is_a_trainer():
    assert compat.Agent is compat.Trainer


@pytest.mark.parametrize("algorithm", registry.ALGORITHMS)
def test_every_algorithm_has_a_class(algorithm):
    assert class_of_algorithm(algorithm).algorithm_name == algorithm
    assert algorithm in registry.class_names().values()


def test_a_trainer_takes_no_argument_that_none_took():
    with pytest.raises(TypeError, match="no argument legacyray, stack"):
        compat.Trainer({"env": "CartPole-v1"}, algorithm="PPO", legacyray="1.0", stack="old")


@pytest.mark.parametrize("name", ["MAMLTrainer", "SlateQTrainer"])
def test_what_ray_has_no_more_says_so_when_it_is_made(name):
    with pytest.raises(RefusedKeysError, match="was removed from RLlib") as error:
        getattr(compat, name)(config={})
    assert error.value.fix


def test_other_names_are_attribute_errors():
    for name in ("NoSuchTrainer", "PPOConfig", "PPOTFPolicy", "__path_of_nothing__"):
        assert not hasattr(compat, name)


def test_classes_with_other_defaults():
    mine = compat.PPOTrainer.with_updates(name="Mine", default_config={"num_sgd_iter": 3})
    assert (mine.__name__, mine.algorithm_name) == ("Mine", "PPO")
    assert mine.get_default_config()["num_sgd_iter"] == 3
    assert compat.PPOTrainer.get_default_config()["num_sgd_iter"] == 30
    named = type("Named", (compat.PPOTrainer,), {"_name": "my trainer"})  # what it was shown as
    assert named.algorithm_name == "PPO"
    with pytest.raises(GoneError, match="make_workers"):
        compat.PPOTrainer.with_updates(make_workers=print)


class PPOTorchPolicy:
    """As old code gives it; Ray's own has the same name."""


def test_a_built_trainer_knows_its_algorithm():
    for given in (
        {"name": "PPO"},
        {"name": "PPOTrainer"},
        {"name": "Mine", "default_policy": PPOTorchPolicy},
        {"name": "Mine", "default_config": defaults.defaults_of("PPO")},
    ):
        built = build_trainer(**given)
        assert built.algorithm_name == "PPO"
        assert built.__name__ == given["name"]
    with pytest.raises(ConfigError, match="is not known"):
        build_trainer("Mine", default_config={"lr": 1.0})


def test_mixins_and_hooks_of_built_trainers():
    class Mixin:
        def double(self):
            return 2

    calls = []
    built = build_trainer("PPO", mixins=[Mixin], after_init=calls.append)
    assert built.double(None) == 2
    again = built.with_updates(before_init=print)
    assert set(again.hooks) == {"after_init", "before_init"}


def test_a_built_trainer_takes_the_steps_of_its_plan():
    def plan(workers, config):
        return iter(())

    built = build_trainer("Mine", default_policy=None, execution_plan=plan)
    assert built.execution_plan is plan, "it is no method"
    assert built.with_updates(default_config={"lr": 1.0}).execution_plan is plan
    assert compat.PPOTrainer.with_updates(execution_plan=plan).execution_plan is plan


def test_the_plan_of_an_algorithm_means_its_steps():
    stock = importlib.import_module("rllib_compat.agents.dqn.dqn").execution_plan
    built = build_trainer("Mine", default_policy=PPOTorchPolicy, execution_plan=stock)
    assert built.algorithm_name == "PPO", "as the policy says"
    built = build_trainer("Mine", execution_plan=stock)
    assert built.algorithm_name == "DQN"
    assert subclasses.plan_of(built) is None
    with pytest.raises(GoneError, match="plan of DQN"):
        stock(None, {})


@pytest.mark.parametrize("hook", ["make_policy_optimizer", "_train"])
def test_what_belonged_to_another_architecture_says_where_it_went(hook):
    with pytest.raises(GoneError, match=hook) as error:
        build_trainer("PPO", **{hook: print})
    assert "subclass" in error.value.fix


def unbuilt(cls):
    return object.__new__(cls)


def test_a_policy_that_ray_can_not_train_is_refused_when_it_is_used():
    class MyPolicy:
        pass

    for made in (
        build_trainer("Mine", default_policy=MyPolicy),
        compat.PPOTrainer.with_updates(default_policy=MyPolicy),
        compat.PPOTrainer.with_updates(get_policy_class=lambda config: MyPolicy),
    ):
        with pytest.raises(GoneError, match="MyPolicy"):
            subclasses.own_policy(unbuilt(made), {})


def test_a_policy_of_ones_own_is_trained_by_the_algorithm_or_without_one():
    from ray.rllib.policy.policy import Policy

    class MyPolicy(Policy):
        pass

    mine = compat.PPOTrainer.with_updates(
        default_policy=PPOTorchPolicy,
        get_policy_class=lambda config: MyPolicy if config["framework"] == "torch" else None,
    )
    assert subclasses.own_policy(unbuilt(mine), {"framework": "torch"}) is MyPolicy
    assert subclasses.own_policy(unbuilt(mine), {"framework": "tf"}) is None
    plain = build_trainer("Mine", default_policy=MyPolicy)
    assert (plain.algorithm_name, plain.learns_once) == ("PPO", True)
    assert plain.get_default_config()["train_batch_size"] == 200


@pytest.mark.parametrize("wrap", [lambda method: method, classmethod])
def test_a_subclass_may_say_itself_which_policies_it_has(wrap):
    # `Trainer` of Ray 1.9 – 2.2 asks an instance, `Algorithm` of 2.3 on the class.
    from ray.rllib.policy.policy import Policy

    class MyPolicy(Policy):
        pass

    class Mine(compat.PPOTrainer):
        get_default_policy_class = wrap(lambda self, config: config["chosen"])

    chosen = {MyPolicy: MyPolicy, PPOTorchPolicy: None, None: None}
    for given, policy in chosen.items():
        assert subclasses.own_policy(unbuilt(Mine), {"chosen": given}) is policy


def test_the_policy_of_a_trainer_of_no_algorithm_is_not_replaced_by_ppos():
    from ray.rllib.policy.policy import Policy

    class Mine(compat.Trainer):
        def get_default_policy_class(self, config):
            return config["chosen"]

    policy = type("RandomPolicy", (Policy,), {})
    assert subclasses.own_policy(unbuilt(Mine), {"chosen": policy}) is policy
    assert subclasses.own_policy(unbuilt(Mine), {"chosen": None}) is None


def test_a_subclass_may_say_itself_what_its_config_starts_from():
    class Mine(compat.PPOTrainer):
        @classmethod
        def get_default_config(cls):
            return {**super().get_default_config(), "num_sgd_iter": 3, "my_own": 4}

    assert subclasses.own_defaults(Mine) == {"num_sgd_iter": 3, "my_own": 4}
    assert subclasses.own_keys(Mine, {"my_own": 5, "lr": 0.1}) == {"my_own": 5}
    assert subclasses.own_defaults(type("Plain", (Mine,), {})) == subclasses.own_defaults(Mine)
    assert subclasses.own_defaults(compat.PPOTrainer) == {}


def test_policies_get_the_batches_of_others_as_when_they_were_written():
    def written(expected):
        def postprocess_trajectory(self, batch, others=None, episode=None):
            ((*parts, last),) = others.values()
            assert last == "batch"
            if len(parts) + 1 != expected:
                _, _, _ = (*parts, last)  # as code for three does
            return expected

        return type("Written", (), {"postprocess_trajectory": postprocess_trajectory})

    for expected in (2, 3):
        policy = old_policies.as_written(written(expected))()
        assert policy.postprocess_trajectory({}, {0: ("id", object, "batch")}) == expected


def test_stock_policies_for_torch_take_other_parts():
    def loss(policy, model, dist_class, batch):
        return policy.mine

    prepared = []
    base = agents.ppo.PPOTorchPolicy
    made = base.with_updates(
        name="Mine", loss_fn=loss, before_init=lambda policy, *args: prepared.append(args)
    )
    again = made.with_updates(stats_fn=len)
    assert issubclass(made, base)
    assert (made.__name__, again.stats_fn) == ("Mine", len)
    assert made.loss.__wrapped__ is again.loss.__wrapped__ is loss


def test_keys_that_only_the_trainers_class_reads_are_no_mistakes():
    mine = compat.PPOTrainer.with_updates(default_config={"my_own": 3, "lr": 0.1})
    assert subclasses.own_keys(mine, {"my_own": 4, "gama": 1.0, "lr": 0.2}) == {"my_own": 4}
    assert mine.default_resource_request({"my_own": 4, "num_workers": 1}).bundles


def test_a_subclass_with_a_training_loop_of_its_own_is_refused():
    class Mine(compat.PPOTrainer):
        def _train(self):
            return {}

    with pytest.raises(GoneError, match="_train"):
        Mine(config={"env": "CartPole-v1"})


def test_validate_config_sees_all_defaults_and_may_change_the_config():
    def check(config):
        assert config["num_sgd_iter"] == 30
        config["lr"] = 7.0
        config["model"]["fcnet_hiddens"] = [1]

    found = subclasses.validated(check, defaults.defaults_of("PPO"), {"gamma": 0.5})
    assert (found["lr"], found["gamma"]) == (7.0, 0.5)
    assert found["model"]["fcnet_hiddens"] == [1]
    assert "num_sgd_iter" not in found


def test_merging_goes_into_dicts_and_leaves_the_base_alone():
    base = {"model": {"a": 1, "b": 2}, "exploration_config": {"type": "A", "epsilon": 1}}
    merged = defaults.with_base_config(base, {"model": {"b": 3}})
    assert merged["model"] == {"a": 1, "b": 3}
    assert base["model"] == {"a": 1, "b": 2}
    other = defaults.merge(base, {"exploration_config": {"type": "B"}})
    assert other["exploration_config"] == {"type": "B"}
    assert defaults.merge(base, {"model": None})["model"] is None
    assert defaults.with_common_config({"lr": 3.0})["num_workers"] == 2


@pytest.mark.parametrize(
    "algorithm", sorted({row.name for row in registry.todays()} - {"DreamerV3", "IQL"})
)
def test_default_configs_translate_as_they_are(algorithm):
    translation = compat.translate(defaults.defaults_of(algorithm), algorithm=algorithm)
    assert not translation.refused
    assert translation.api_stack == "new"


def test_defaults_are_those_of_the_first_ray_that_had_the_algorithm():
    assert "min_q_weight" in defaults.defaults_of("CQL")
    assert defaults.defaults_of("BC")["num_workers"] == 0
    assert defaults.defaults_of("PPO", "0.6.6")["num_sgd_iter"] == 30


@pytest.mark.parametrize("place", registry.modules())
def test_modules_of_agents(place):
    module = importlib.import_module(f"rllib_compat.agents.{place}")
    stem = registry.modules()[place][0].stems[0]
    assert getattr(module, f"{stem}Trainer") is getattr(compat, f"{stem}Trainer")
    assert isinstance(module.DEFAULT_CONFIG, dict)


def test_names_of_agents_are_imported_as_they_were():
    names = {}
    exec(
        "import rllib_compat.agents.ppo as ppo\n"
        "from rllib_compat import agents\n"
        "from rllib_compat.agents.trainer import COMMON_CONFIG, Trainer, with_common_config\n"
        "from rllib_compat.agents.trainer_template import build_trainer\n"
        "from rllib_compat.agents.registry import get_agent_class, get_trainer_class\n"
        "from rllib_compat.agents.callbacks import DefaultCallbacks\n"
        "from rllib_compat.agents.dqn.dqn import DQNTrainer, DEFAULT_CONFIG\n",
        names,
    )
    found = SimpleNamespace(**names)
    assert found.get_agent_class("contrib/MADDPG") is compat.MADDPGTrainer
    assert found.DEFAULT_CONFIG["dueling"] is True
    assert found.Trainer is found.agents.Trainer is compat.Trainer
    rate = found.ppo.DEFAULT_CONFIG["lr"]
    found.ppo.DEFAULT_CONFIG["lr"] = 7.0
    assert found.agents.ppo.DEFAULT_CONFIG["lr"] == 7.0
    assert found.agents.ppo.ppo.DEFAULT_CONFIG["lr"] == 7.0  # both modules had one dict
    found.ppo.DEFAULT_CONFIG["lr"] = rate
    with pytest.raises(AttributeError, match="nothing"):
        _ = found.ppo.nothing


def test_policies_can_be_named_where_they_stood():
    from ray.rllib.algorithms.ppo.ppo_torch_policy import PPOTorchPolicy
    from rllib_compat.agents.dqn.dqn_tf_policy import DQNTFPolicy
    from rllib_compat.agents.pg import PGTorchPolicy
    from rllib_compat.agents.ppo import PPOTorchPolicy as found

    assert issubclass(found, PPOTorchPolicy)  # which runs on the old API stack
    assert pickle.loads(pickle.dumps(found)) is found
    for policy in (DQNTFPolicy, PGTorchPolicy):
        assert pickle.loads(pickle.dumps(policy)) is policy
        config = {"multiagent": {"policies": {"a": (policy, None, None, {}), "b": (None,) * 4}}}
        translation = compat.translate(config, algorithm="PPO")
        assert translation.api_stack == "new"
        assert "what None means, too" in str(translation.report)


def test_a_policy_that_is_gone_says_so_when_it_is_used():
    from rllib_compat.agents.ppo.ppo_tf_policy import PPOTFPolicy

    for use in (
        lambda: PPOTFPolicy.with_updates(loss_fn=print)(None, None, {}),
        lambda: PPOTFPolicy(None, None, {}),
        lambda: type("Mine", (PPOTFPolicy,), {})(),
    ):
        with pytest.raises(GoneError, match=r"no (PPOTFPolicy|Mine) any more") as error:
            use()
        assert "compute_loss_for_module" in error.value.fix


@pytest.mark.parametrize(
    ("algorithm", "keys", "said"),
    [
        ("PPO", {"num_gpus": 1}, r"asks for a GPU \(num_gpus=1\), and there is none"),
        ("PPO", {"num_workers": 9}, r"asks for 10 CPUs \(num_workers=9\), and Ray has 4"),
        ("IMPALA", {}, None),  # a GPU by default, which is left out
    ],
)
def test_a_trial_whose_resources_no_node_will_bring_is_an_error(algorithm, keys, said, monkeypatch):
    """Tune waited for them without end."""
    from rllib_compat.trainer import preparation, refusals

    monkeypatch.setattr(preparation.startup, "is_running", lambda: True)
    monkeypatch.setattr(preparation.startup, "may_grow", lambda: False)
    monkeypatch.setattr(preparation.startup, "count_gpus", lambda: 0)
    monkeypatch.setattr(refusals, "available_resources", lambda: {"CPU": 4.0})
    trainer = getattr(compat, f"{algorithm}Trainer")
    monkeypatch.setattr(trainer, "legacy_ray", "1.13.0")
    config = {"env": "CartPole-v1", **keys}
    if said is None:
        assert not any("GPU" in b for b in trainer.default_resource_request(config).bundles)
        return
    with pytest.raises(ConfigError, match=said) as error:
        trainer.default_resource_request(config)
    assert error.value.fix.startswith("Set num_")


def test_resources_of_a_trial_in_both_forms():
    from rllib_compat.trainer import with_extra

    config = {"env": "CartPole-v1", "num_workers": 2, "num_cpus_for_driver": 3}
    request = compat.PPOTrainer.default_resource_request(config)
    assert [bundle["CPU"] for bundle in request.bundles[:3]] == [3, 1, 1]
    written = request.to_json()
    assert (written["cpu"], written["extra_cpu"], written["gpu"]) == (3, 2, 0)
    assert with_extra(written).bundles == [{"CPU": 3}, {"CPU": 2}]
    given = {"cpu": 0, "extra_cpu": 1, "extra_custom_resources": {"big": 2}}
    assert with_extra(given).to_json()["extra_custom_resources"] == {"big": 2}
    assert with_extra(given).head_cpus == 0
    assert with_extra({"cpu": 1, "extra_gpu": 0}).bundles == [{"CPU": 1}]
    for todays in ({"cpu": 1}, None, request):
        assert with_extra(todays) is todays


def test_the_help_about_resources_names_what_the_config_asks_for():
    told = compat.PPOTrainer.resource_help({"num_workers": 40, "lr": 1e-3, "num_gpus": 2})
    assert "{'num_workers': 40, 'num_gpus': 2}" in told


def test_the_config_of_a_trainer_is_a_dict_and_has_the_attributes_of_an_object():
    config = defaults.ReadableConfig({"num_workers": 2, "lambda": 0.9, "env_config": {"size": 3}})
    assert (config.num_rollout_workers, config.lambda_, config.env_config["size"]) == (2, 0.9, 3)
    other = pickle.loads(pickle.dumps(config)).copy(copy_frozen=False)
    other.num_rollout_workers = other.env_config["size"] = 4
    assert other.to_dict() == {"num_workers": 4, "lambda": 0.9, "env_config": {"size": 4}}
    assert config["env_config"]["size"] == 3
    assert not hasattr(config, "nothing_of_the_kind")


def test_classes_have_the_names_of_their_templates():
    mine = compat.PPOTrainer.with_updates(name="Mine")
    assert (compat.PPOTrainer._name, mine._name, type("Own", (mine,), {})._name) == (
        *("PPO", "Mine", "Mine"),
    )


def test_a_class_has_all_defaults_as_old_code_reads_them():
    class Mine(compat.PPOTrainer):
        _default_config = {"lr": 1.0}  # noqa: RUF012 - as old code has it

    assert compat.PPOTrainer._default_config["model"]["fcnet_hiddens"] == [256, 256]
    assert Mine._default_config == {"lr": 1.0}
    assert (Mine.get_default_config()["lr"], Mine.get_default_config()["gamma"]) == (1.0, 0.99)


def test_resources_can_be_asked_for_before_tune_draws():
    model = {"fcnet_hiddens": tune.grid_search([[4], [8]])}
    config = {"num_workers": 1, "lr": tune.uniform(0, 1), "model": model}
    assert len(compat.PPOTrainer.default_resource_request(config).bundles) == 2


def test_what_was_saved_is_a_path_and_has_what_ray_2_7_returned(tmp_path):
    for number in (10, 2):  # the second one is newer
        folder = tmp_path / f"checkpoint_{number:06d}"
        folder.mkdir()
        (folder / "algorithm_state.pkl").touch()
        os.utime(folder, (number == 2, number == 2))
    saved = checkpoints.named_as_by_code(str(folder), {"training_iteration": 2})
    assert (saved, saved.checkpoint.path) == (str(folder), str(folder))
    assert pickle.loads(pickle.dumps(saved)).metrics == {"training_iteration": 2}
    assert checkpoints.path_in_code(tmp_path) == folder
    assert checkpoints.path_in_code(folder / "algorithm_state.pkl") == folder
