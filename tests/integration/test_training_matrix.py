"""Old configs, others for each Ray and each night: they train, are saved, restored, and act."""

import datetime

import pytest
import ray

from tests import training_matrix
from tests.marks import TRAINERS

pytestmark = [*TRAINERS, pytest.mark.usefixtures("one_ray")]

TODAY = datetime.datetime.now(datetime.timezone.utc).date()
#: A push runs the same ones until its Ray changes, so that what fails there is the push's own; no
#: process starts for them. Each night asks others.
PUSH = training_matrix.drawn(ray.__version__, count=8, quick=True)
NIGHT = training_matrix.drawn(f"{ray.__version__} {TODAY}", count=80)
#: Cases that failed once.
MENDED = [
    training_matrix.Case(*parts, tells=True)
    for parts in (
        ("A2C", "lstm, steps before, then + curiosity", "bits", "discrete", "1.0.1"),
        ("PG", "curiosity", "tuple", "discrete", "1.13.0"),
        ("SAC", "soft", "nested", "discrete", "2.10.0"),
        ("MADDPG", "two policies", "nested", "discrete", "0.8.5"),
        ("PPO", "two policies with filters + spaces", "bits", "discrete", "1.13.0"),
        ("PPO", "spaces + worker", "nested", "discrete", "1.13.0"),
        ("ES", "default", "nested", "discrete", "0.8.5"),
        ("APPO", "filter of all + remote environments + rates", "vector", "discrete", "0.6.6"),
        ("BC", "curiosity + fake GPUs", "bits", "discrete", "1.13.0"),
        ("BC", "lstm + random", "tuple", "discrete", "1.13.0"),
        ("A3C", "post + lstm + curiosity", "bits", "discrete", "1.13.0"),
        ("DDPPO", "lstm + in order", "vector", "discrete", "1.13.0"),
    )
]


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, id=str(case)) for case in PUSH),
        *(
            pytest.param(case, id=f"nightly-{case}", marks=pytest.mark.nightly)
            for case in (*MENDED, *NIGHT)
            if case not in PUSH
        ),
    ],
)
def test_a_config_trains_saves_restores_and_acts_or_is_refused_by_name(case, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    refused = training_matrix.train(case, str(tmp_path / "saved"))
    assert refused is None or training_matrix.says_what_to_do(refused), refused
