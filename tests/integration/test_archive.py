"""An archive is converted by tasks of Ray, and none of them takes the others along."""

import os
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import ray
from ray import cloudpickle

from rllib_compat.conversion import convert_folder, find_jobs, run_on_ray
from tests.legacy.cases import find
from tests.marks import OTHERS_WARNINGS

pytestmark = [pytest.mark.ray, pytest.mark.nightly, *OTHERS_WARNINGS]
# Workers can't import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
SMALL = next(c for c in find(ray="0.8.5") if c.variant == "worker1")


def work(job):
    if job == "dies":
        os._exit(3)
    if job == "eats":
        taken = [bytearray(100 << 20) for _ in range(50) if time.sleep(0.1) is None]
        assert len(taken) == 50
        return
    time.sleep(job)


def test_what_takes_too_long_or_dies_costs_only_itself():
    done = run_on_ray(work, [0, 600, "dies", 0], lambda *why: why, address="local", limit=1)
    found = dict(filter(None, done))
    assert found[600] == "it took longer than 1 seconds"
    assert "WorkerCrashedError" in found["dies"]
    assert len(found) == 2


def assigned_memory(job):
    assert isinstance(job, int)
    return ray.get_runtime_context().get_assigned_resources()["memory"]


def test_a_task_has_the_memory_of_its_largest_job_or_all_of_a_node():
    jobs = [300 << 20, 1 << 60]
    run = partial(run_on_ray, assigned_memory, jobs, lambda *why: why, address="local", limit=60)
    one, whole = sorted(run(memory=lambda job: job))
    assert one == 512 << 20
    assert one < whole < 1 << 60


def test_what_takes_all_memory_costs_only_itself(monkeypatch):
    """Ray by itself would try it again without end."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    memory = {name: int(size) for name, size, *_ in lines}
    taken = 1 - memory["MemAvailable:"] / memory["MemTotal:"]
    monkeypatch.setenv("RAY_memory_usage_threshold", f"{taken + 0.1:.2f}")
    done = run_on_ray(work, [0, 0, "eats", 0], lambda *why: why, address="local", limit=60)
    (why,) = filter(None, done)
    assert why[0] == "eats"
    assert why[1].startswith("OutOfMemoryError")


def test_checkpoints_are_converted_once(tmp_path):
    folder = SMALL.checkpoint if SMALL.checkpoint.is_dir() else SMALL.checkpoint.parent
    for name in ("a", "b"):
        shutil.copytree(folder, tmp_path / "old" / name)
    (tmp_path / "old/b/checkpoint-2").write_bytes(b"\x80\x02damaged")

    def run():
        jobs = find_jobs(tmp_path / "old", tmp_path / "new")
        log = tmp_path / "new/conversions.jsonl"
        done = convert_folder(jobs, log, ray_address="local", to="msgpack", inputs=5)
        return {outcome.name.split("/")[0]: outcome.status for outcome in done}

    assert run() == {"a": "converted", "b": "refused"}
    assert run() == {"a": "already converted", "b": "refused"}
