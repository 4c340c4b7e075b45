"""What all tests share: hypothesis' profiles, and a msgpack that Ray has not patched."""

import inspect
import os
import sys

import pytest
from hypothesis import settings

from rllib_compat.ray_versions import checkpoints

# CI tries the same examples each time, people's machines look further.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default")
)

# Ray 2.60 keeps a token in the home directory, which tests of result files move away.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")


# Tables are as wide as where there is no terminal; xdist tells its processes a width of its own.
os.environ.pop("COLUMNS", None)


def pytest_collection_modifyitems(items):
    """Reports tell which tests start Ray, and why one of them may be slow (`tests.durations`)."""
    for item in items:
        for mark in (*item.iter_markers("ray"), *item.iter_markers("slow")):
            item.user_properties.append((mark.name, *(mark.args or ("",))))
        starts_ray = item.get_closest_marker("ray") is not None
        where = f"{item.nodeid}: tests that start Ray, and only those, are in tests/integration"
        assert starts_ray is ("tests/integration/" in item.nodeid), where


def pytest_runtest_logreport(report):
    """Tells at once what fails in another process: no summary comes if a test hangs."""
    if report.failed and hasattr(report, "node"):
        print(f"\n{report.nodeid} ({report.when}): {report.longreprtext[-3000:]}", file=sys.stderr)


@pytest.fixture
def run(capsys):
    """Runs the command line in this process; returns exit code, stdout and stderr."""
    from rllib_compat.cli import main

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return ended.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture(autouse=True, scope="session")
def stacks_have_no_lines_of_source():
    """Each of Ray's connectors asks for the whole stack, to look at its caller's arguments.

    With the lines of source that nobody looks at, that is most of a conversion's time where
    stacks are as deep as pytest's.
    """
    whole = inspect.stack
    inspect.stack = lambda context=0: inspect.getouterframes(sys._getframe(1), context)
    yield
    inspect.stack = whole


@pytest.fixture(autouse=True, scope="session")
def disks_keep_what_they_get_when_they_like():
    """What is written in a test need not outlive a power cut; `test_atomic` watches the calls."""
    really = os.fsync
    os.fsync = lambda _: None
    yield
    os.fsync = really


@pytest.fixture(autouse=True)
def no_call_starts_a_ray():
    """Only `ray.init` does; otherwise any call would, where none runs.

    A conversion that is killed in a fork takes the connections of its parent's Ray with it. In Ray
    2.40 a thread of Ray Data calls its actor every five seconds as long as an iterator is open, for
    good: between two files it would start a Ray beside the one that a file is starting.
    """
    if (hook := sys.modules.get("ray._private.auto_init_hook")) is not None:
        hook.enable_auto_connect = False


@pytest.fixture(autouse=True)
def stopped_algorithms_are_not_waited_for():
    """`Algorithm.stop` waits for Ray's monitor, which sleeps for 0.7 seconds at a time."""
    if (ray := sys.modules.get("ray.tune.utils.util")) is not None:
        ray.UtilMonitor.join = lambda monitor, timeout=None: None


@pytest.fixture(autouse=True)
def what_ray_does_to_msgpack_ends_with_the_test():
    with checkpoints.unpatched_msgpack():
        yield


@pytest.fixture(autouse=True)
def old_imports_end_with_the_test():
    yield
    if (legacy := sys.modules.get("rllib_compat.legacy")) is not None:
        legacy.deactivate()


@pytest.fixture(autouse=True)
def what_code_has_shown_of_its_ray_ends_with_the_test():
    yield
    if (era := sys.modules.get("rllib_compat.config.era")) is not None:
        era.forget()
    # Default configs are those of the Ray that was shown, and modules keep them.
    for place in [name for name in sys.modules if name.startswith("rllib_compat.agents.")]:
        kept = vars(sys.modules[place])
        for config in [key for key in kept if key.endswith("DEFAULT_CONFIG")]:
            del kept[config]
    if (agents := sys.modules.get("rllib_compat.agents")) is not None:
        agents._default_config.cache_clear()


@pytest.fixture(autouse=True)
def the_worker_of_an_algorithm_ends_with_the_test():
    """An env runner in this process stays the one that mapping functions see, as in old Ray."""
    yield
    if (mapping := sys.modules.get("rllib_compat.runtime.policy_mapping")) is not None:
        mapping.MappingContext.worker = None
