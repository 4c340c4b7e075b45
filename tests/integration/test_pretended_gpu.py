"""Every algorithm learns on a GPU that is not there: nothing mixes what is there and on the CPU."""

import pytest
from ray.rllib.core.learner.torch import torch_learner

from tests import training_matrix
from tests.integration.test_gpu import OTHERS, case_of
from tests.marks import TRAINERS
from tests.pretended_gpu import pretended_gpu
from tests.training_matrix import SMALL

pytestmark = [
    *TRAINERS,
    pytest.mark.newest,
    pytest.mark.usefixtures("one_ray"),
    pytest.mark.skipif(
        not hasattr(torch_learner, "get_device"), reason="Learners find their device elsewhere."
    ),
]

#: Two that failed: targets, and what bandits learn from, were on the CPU.
PUSH = ("SAC", "BanditLinTS")
CASES = [*(case_of(name) for name in SMALL), *(case for case in OTHERS if case.is_quick)]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=str(case),
            marks=() if case.algorithm in PUSH and case.says == "default" else pytest.mark.nightly,
        )
        for case in CASES
    ],
)
def test_nothing_mixes_two_devices(case, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pretended_gpu() as gpu:
        assert training_matrix.train(case, str(tmp_path / "saved")) is None
    new = "custom model" not in case.says and "curiosity" not in case.says
    assert gpu.was_used is (new and case.algorithm != "Random")
