"""Names that are gone, and functions of algorithms' modules that own trainers gave on."""

import pytest

from rllib_compat.errors import CompatError
from rllib_compat.legacy import deactivate, lookup

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
