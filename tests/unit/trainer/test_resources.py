"""GPUs that a config asks for, where there are none."""

import pytest

pytest.importorskip("ray")

from rllib_compat.errors import ConfigError
from rllib_compat.registry import keys
from rllib_compat.trainer.resources import fit_gpus
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

ASKED = [
    ("IMPALA", "0.5.3", "gpu"),
    ("APEX", "0.6.6", "num_gpus"),
    ("IMPALA", "1.13.0", "num_gpus"),
]


@pytest.mark.parametrize(("algorithm", "ray", "key"), ASKED)
def test_a_gpu_that_an_old_default_asks_for_is_left_out_with_a_row(algorithm, ray, key):
    defaults = keys.default_config(algorithm, ray)
    assert defaults[key]
    fitted, (finding,) = fit_gpus({"lr": 1}, defaults, legacy_ray=ray, gpus=0)
    assert fitted == {"lr": 1, key: 0}
    assert finding.path == f"$.{key}"
    assert fit_gpus({}, defaults, legacy_ray=ray, gpus=1) == ({}, [])
    assert fit_gpus({}, defaults, legacy_ray=None, gpus=0) == ({}, [])


def test_until_ray_1_3_a_gpu_was_only_reserved_and_a_trainer_went_on_without():
    fitted, findings = fit_gpus({"num_gpus": 1}, {}, legacy_ray="1.2.0", gpus=0)
    assert fitted == {"num_gpus": 0}
    assert len(findings) == 1
    for ray in ("1.3.0", None):
        with pytest.raises(ConfigError, match="there is none"):
            fit_gpus({"num_gpus": 1}, {}, legacy_ray=ray, gpus=0)


@pytest.mark.parametrize("given", [{"num_gpus_per_worker": 1}, {"num_gpus": 2, "_fake_gpus": True}])
def test_gpus_of_workers_may_come_with_a_node_and_fake_ones_need_none(given):
    assert fit_gpus(given, {}, legacy_ray="1.13.0", gpus=0) == (given, [])
