"""`convert --recursive` of an archive: in processes, on a Ray cluster, and in a store like S3.

The archive has copies of the museum's checkpoints, one in fifty of them cut short. Each way has to
account for every checkpoint and write the same arrays; a driver and a node are killed on the way.
What a conversion costs by itself is what its process measured; the rest is overhead. The store is
moto's server (`pip install 'moto[server,s3]'`), which is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Meanwhile = Callable[[], object] | None
CASES = Path(__file__).parents[1] / "tests/legacy"
CLI = [sys.executable, "-m", "rllib_compat", "convert", "--recursive", "--to", "msgpack", "--json"]
LOG = "conversions.jsonl"


def make_archive(folder: Path, count: int) -> None:
    """Copies checkpoints of the museum, in turn, and cuts one in fifty short."""
    cases = sorted(path.parent for path in CASES.glob("*/*/case.json"))
    for number in range(count):
        case = cases[number % len(cases)]
        copy = folder / f"trial_{number // 10:05d}" / f"{number:06d}-{case.parent.name}-{case.name}"
        shutil.copytree(case, copy)
        if number % 50 == 7:
            for file in copy.rglob("*"):
                if file.is_file() and file.suffix in ("", ".pkl", ".msgpck"):
                    os.truncate(file, file.stat().st_size // 2)


def convert(old: object, new: object, *arguments: str, meanwhile: Meanwhile = None) -> float:
    """Seconds that one run took."""
    began = time.perf_counter()
    command = [*CLI, str(old), str(new), *arguments]
    with tempfile.TemporaryFile("w+") as errors:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        if meanwhile is not None:
            meanwhile()
        if run.wait() not in (0, 1):
            errors.seek(0)
            sys.exit(errors.read()[-2000:])
    return time.perf_counter() - began


def rows(new: Path) -> dict[str, dict]:
    """The last row of the log for each checkpoint."""
    found = {}
    for line in (new / LOG).read_text().splitlines():
        row = json.loads(line)
        if row["status"] != "already converted":
            assert row["name"] not in found or found[row["name"]]["status"] != "converted", row
            found[row["name"]] = row
    return found


def digests(new: Path) -> dict[str, str]:
    """The digests of all that was written, by path; the time of a conversion is in none of them."""
    return {
        f"{manifest.parent.relative_to(new)}/{name}": digest
        for manifest in sorted(new.rglob("rllib_compat_manifest.json"))
        for name, digest in json.loads(manifest.read_text())["sha256"].items()
    }


@contextmanager
def cluster() -> Iterator[tuple[str, Callable[[], object]]]:
    """A Ray of two nodes with a CPU each: its address, and what kills the second node."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = made.add_node(num_cpus=1)
    try:
        yield made.address, lambda: made.remove_node(second, allow_graceful=False)
    finally:
        made.shutdown()


def kill_driver(old: Path, new: Path, seconds: float) -> None:
    """Starts a run and kills it with all its processes."""
    run = subprocess.Popen(
        [*CLI, str(old), str(new), "--jobs", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(seconds)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()


@contextmanager
def store() -> Iterator[str]:
    """The server of a store; yields what follows a path in its addresses."""
    port = 5177
    server = subprocess.Popen(
        [shutil.which("moto_server") or "", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    try:
        time.sleep(5)
        # pyarrow's uploads in parts never end with moto; delayed opening puts small files whole.
        yield (
            f"?endpoint_override=127.0.0.1:{port}&scheme=http&allow_bucket_creation=true"
            "&allow_delayed_open=true"
        )
    finally:
        server.kill()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=int, default=400)
    parser.add_argument("--no-ray", action="store_true")
    options = parser.parse_args()
    count = options.checkpoints
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old = folder / "old"
        make_archive(old, count)

        def report(way: str, new: Path, seconds: float, workers: int) -> None:
            found = rows(new)
            assert len(found) == count, (way, len(found))
            assert digests(new) == expected, way
            work = sum(row["seconds"] for row in found.values())
            rate, overhead = count / seconds / workers, seconds * workers / work - 1
            failed = sum(row["status"] != "converted" for row in found.values())
            print(
                f"{way}: {seconds:.1f} s, {rate:.1f} checkpoints a second a worker, "
                f"{overhead:.0%} beside the conversions, {failed} refused"
            )

        one = convert(old, folder / "one")
        expected = digests(folder / "one")
        report("1 process", folder / "one", one, 1)
        two = convert(old, folder / "two", "--jobs", "2")
        report("2 processes", folder / "two", two, 2)
        print(f"1 -> 2 processes: {one / two:.2f} times")
        kill_driver(old, folder / "killed", one / 4)
        rest = convert(old, folder / "killed", "--jobs", "2")
        report("a driver killed, and the rest", folder / "killed", one / 4 + rest, 2)
        if not options.no_ray:
            with cluster() as (address, kill):
                on_ray = ["--ray-address", address]
                took = convert(old, folder / "ray", *on_ray)
                report("Ray, 2 nodes", folder / "ray", took, 2)

                def kill_later() -> None:
                    time.sleep(took / 3)
                    kill()

                left = convert(old, folder / "node", *on_ray, meanwhile=kill_later)
                report("Ray, a node killed on the way", folder / "node", left, 1)
        if shutil.which("moto_server"):
            from pyarrow import fs

            with store() as query:
                s3, _ = fs.FileSystem.from_uri(f"s3://archive/old{query}")
                s3.create_dir("archive")
                fs.copy_files(
                    str(old),
                    "archive/old",
                    source_filesystem=fs.LocalFileSystem(),
                    destination_filesystem=s3,
                )
                stored = convert(f"s3://archive/old{query}", f"s3://archive/new{query}", "--jobs=2")
                back = folder / "store"
                fs.copy_files(
                    "archive/new",
                    str(back),
                    source_filesystem=s3,
                    destination_filesystem=fs.LocalFileSystem(),
                )
                (log,) = back.glob("conversions-*.jsonl")
                log.rename(back / LOG)
                report("a store, 2 processes", back, stored, 2)


if __name__ == "__main__":
    main()
