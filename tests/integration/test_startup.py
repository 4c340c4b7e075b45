"""A conversion must not start what it does not need: that takes longer than the conversion."""

import pytest

from tests.legacy.cases import find
from tests.marks import marked
from tests.processes import start, start_python
from tests.security import planted

SCRIPT = """
import sys
import ray

def started(*args, **kwargs):
    raise AssertionError("a conversion started Ray")

ray.init = ray._private.worker.init = started
from rllib_compat import convert
put = ray.put
conversion = convert(sys.argv[1], sys.argv[2], inputs=10)
assert conversion.target is not None
assert ray.put is put, "what was taken out for the conversion is not back"
assert not ray.is_initialized()
assert "torch._dynamo" not in sys.modules, "torch's compiler was imported"
"""

CASES = [
    next(c for c in find(ray="1.13.0", framework="torch", algorithm="SAC")),
    next(c for c in find(ray="1.13.0", framework="torch", algorithm="DQN")),
    next(c for c in find(ray="0.8.5") if c.variant == "worker1"),
]


@pytest.mark.ray
@pytest.mark.newest
@pytest.mark.parametrize("case", marked(CASES, CASES[:1]), ids=str)
def test_a_conversion_starts_neither_ray_nor_torchs_compiler(case, tmp_path):
    done = start_python(tmp_path, "-c", SCRIPT, case.checkpoint, tmp_path / "new")
    assert done.returncode == 0, done.stderr


@pytest.mark.ray
@pytest.mark.newest
def test_what_ray_says_about_its_own_old_parts_is_not_printed_with_the_report(tmp_path):
    gone = next(c for c in find(ray="0.8.5") if c.algorithm == "TD3" or c.algorithm == "DDPG")
    told = ("--algorithm", gone.algorithm, "--env", "Pendulum-v1")
    done = start(tmp_path, "convert", *told, gone.checkpoint, tmp_path / "new")
    assert (tmp_path / "new").is_dir(), done.stderr
    assert "DeprecationWarning" not in done.stdout + done.stderr


@pytest.mark.ray
@pytest.mark.nightly
@pytest.mark.slow("a command of its own, which starts Ray")
@pytest.mark.parametrize("verb", planted.WITH_RAY)
def test_workers_import_no_module_of_the_folder_but_those_that_are_named(verb, tmp_path):
    """Ray's workers looked for everything in the folder first, for numpy as for TensorFlow."""
    code, imported, asked = planted.start(planted.plant(tmp_path), verb, "rllib-compat")
    assert (code, imported, asked) == (0, set(), verb == "train")
