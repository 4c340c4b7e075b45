"""Names that are gone, and functions of algorithms' modules that own trainers gave on."""

import pytest

from rllib_compat.errors import CompatError, GoneError
from rllib_compat.legacy import deactivate, is_removed, lookup
from rllib_compat.registry import old_names
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

deactivate()  # importing it activates old imports, for all tests of this process


def test_what_is_gone_says_so_however_it_is_used():
    gone = lookup("ray.rllib.agents.dyna", "DEFAULT_CONFIG")
    uses = (dict, list, len, gone.__class__.__call__)
    for use in (*uses, lambda c: {**c}, lambda c: c["lr"], lambda c: "lr" in c, lambda c: c.copy()):
        with pytest.raises(CompatError, match="is not in the installed Ray"):
            use(gone)
    assert gone


@pytest.mark.parametrize("place", ["impala.impala", "dqn.r2d2", "cql.cql", "ppo.ppo"])
def test_what_own_trainers_gave_on_to_build_trainer_is_there(place):
    module = f"ray.rllib.agents.{place}"
    config = {"framework": "torch"}
    assert lookup(module, "get_policy_class")(config).__name__.endswith("Policy")
    assert lookup(module, "validate_config")(config) is None
    assert config == {"framework": "torch"}


@pytest.mark.parametrize(
    ("name", "todays"),
    [
        ("agents.a3c.a3c_torch_policy.view_requirements_fn", "Learner"),
        ("agents.cql.cql.after_init", "Learner"),
        ("agents.dqn.apex.apex_execution_plan", "training_step"),
        ("agents.dqn.apex.apex_validate_config", "get_default_config"),
        ("agents.dqn.dqn_policy.QNetwork", "TorchModelV2"),
        ("agents.dqn.r2d2_torch_policy.F", "own package"),
        ("agents.impala.impala.record_steps_trained", "training_step"),
        ("agents.ppo.appo_torch_policy.VTraceSurrogateLoss", "Learner"),
        ("agents.sac.rnnsac.get_policy_class", "RNNSAC"),
        ("agents.trainer_template.default_execution_plan", "training_step"),
        ("algorithms.ppo.ppo_learner.PPOLearnerHyperparameters", "Learner"),
        ("contrib.alpha_zero.core.alpha_zero_trainer.execution_plan", "tree search|training_step"),
    ],
)
def test_what_own_trainers_were_built_of_says_what_does_it_today(name, todays):
    module, _, last = f"ray.rllib.{name}".rpartition(".")
    with pytest.raises(GoneError, match=todays):
        lookup(module, last)()


def test_few_names_of_algorithms_only_point_to_the_guide():
    places = [m for m in old_names.modules() if m.startswith(("ray.rllib.a", "ray.rllib.contrib"))]
    names = [f"{module}.{name}" for module in places for name in old_names.names(module)]
    generic = [name for name in names if old_names.advice(name) == old_names.REMOVED["ray.rllib"]]
    assert len(names) > 2000
    assert len([name for name in generic if is_gone(name)]) < 70


def is_gone(name):
    module, _, last = name.rpartition(".")
    return not last.startswith("_") and is_removed(lookup(module, last))


@pytest.mark.parametrize(
    "name",
    [
        "agents.pg.default_config.DEFAULT_CONFIG",
        "contrib.bandits.agents.lin_ts.TS_CONFIG",
        "contrib.bandits.agents.lin_ucb.UCB_CONFIG",
    ],
)
def test_default_configs_have_other_names_and_places(name):
    module, _, last = f"ray.rllib.{name}".rpartition(".")
    assert lookup(module, last)["num_workers"] == 0
