"""What tests on a running Ray share: one Ray for a process, which nothing else starts."""

import threading

import pytest

import rllib_compat as compat
from rllib_compat.ray_versions import algorithms, startup
from tests.training_matrix import are_free

CPUS = 8


@pytest.fixture(scope="session")
def shared_ray():
    """The Ray of this process; it ends with the tests."""
    import ray

    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def one_ray(shared_ray):
    """A Ray of 8 CPUs without work: the last file's, unless it left something that still runs."""
    if shared_ray.is_initialized() and not are_free(CPUS):
        shared_ray.shutdown()
    if not shared_ray.is_initialized():
        shared_ray.init(
            num_cpus=CPUS, include_dashboard=False, log_to_driver=False, configure_logging=False
        )
    yield
    assert shared_ray.is_initialized()


@pytest.fixture(scope="module")
def quiet_ray(one_ray):
    """The same, of which errors alone are logged."""
    with startup.quiet_logs():
        yield


@pytest.fixture
def load():
    """Ray's `Algorithm.from_checkpoint`; what it loads is stopped at the end."""
    from ray.rllib.algorithms.algorithm import Algorithm

    loaded = []

    def load(path):
        loaded.append(Algorithm.from_checkpoint(str(path)))
        return loaded[-1]

    yield load
    for algorithm in loaded:
        algorithms.stop_algorithm(algorithm)
    learning = [t for t in threading.enumerate() if type(t).__name__ == "_LearnerThread"]
    for thread in learning:
        thread.join(10)
    assert not any(thread.is_alive() for thread in learning), "it keeps a core busy"


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
