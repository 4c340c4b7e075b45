"""What tests on a running Ray share: a Ray for each file, which nothing else starts."""

import logging

import pytest

import rllib_compat as compat
from rllib_compat.ray_versions import startup


@pytest.fixture(scope="module")
def small_ray(request):
    """One small Ray for a file; a conversion alone would start its own. `CPUS` is its size."""
    import ray

    ray.shutdown()
    logging.getLogger("ray").setLevel(logging.ERROR)
    with startup.quiet_ray(num_cpus=getattr(request.module, "CPUS", 2)):
        yield
    assert not ray.is_initialized()


@pytest.fixture(scope="module")
def one_ray(request):
    """One Ray for a file that builds trainers, with workers; `CPUS` is its size."""
    import ray

    ray.shutdown()
    ray.init(
        num_cpus=getattr(request.module, "CPUS", 2),
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )
    yield
    ray.shutdown()


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes trainers that are stopped at the end, and keeps their files here."""
    made = []

    def make(name="PPOTrainer", **arguments):
        made.append(getattr(compat, name)(**arguments))
        return made[-1]

    monkeypatch.setenv("HOME", str(tmp_path))
    yield make
    for trainer in made:
        trainer.stop()
