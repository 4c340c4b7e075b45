"""`convert --recursive` of an archive: in processes, on a Ray cluster, and in a store like S3.

The archive has copies of the museum's checkpoints of all layouts. One in fifty is cut short, one is
a bomb (some kilobytes that stand for gigabytes), and one takes longer than `--limit` seconds. Each
way has to account for every checkpoint and write the same arrays; a driver and a node are killed on
the way. What a conversion costs by itself is what its process measured; the rest is overhead.

    python benchmarks/bench_archive.py --checkpoints 10000
    python benchmarks/bench_archive.py --checkpoints 500 --sections processes ray
    python benchmarks/bench_archive.py --write     # figures to archive.json, and into the guide

`memory` has the driver list and log up to 100,000 checkpoints that nothing converts: rows of the
log are made in the place of conversions, all else is what `convert --recursive` runs. The store, in
which `--stored` checkpoints are converted, is S3rver's (`npm install s3rver`, with `NODE_PATH` at
its node_modules): it answers ten times as fast as moto, whose time would be all that is measured.
`paper` calculates a million checkpoints from the figures that were written last.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import guide_tables
import numpy as np

ROOT = Path(__file__).parents[1]
FIGURES = Path(__file__).with_name("archive.json")
PAGE = guide_tables.GUIDE / "whole_archive.md"
CLI = [sys.executable, "-m", "rllib_compat", "convert", "--recursive", "--json"]
LOG, MANIFEST = "conversions.jsonl", "rllib_compat_manifest.json"
SECTIONS = ("processes", "driver", "trainable", "ray", "store", "memory", "paper")
#: Of the checkpoint that takes too long: how many policies it has.
MANY = 5000
#: How a file gets into the archive; what is cut short is a copy.
COPY = {False: os.link, True: shutil.copy2}
#: How many jobs that do nothing a cluster gets.
IDLE_JOBS = 2000
#: The server of the store; it prints each request.
SERVER = """
const [folder, port] = process.argv.slice(1);
const options = {directory: folder, silent: true, vhostBuckets: false};
const answer = new (require('s3rver'))(options).callback();
require('http').createServer((request, response) => {
    console.log(request.method, request.url);
    answer(request, response);
}).listen(port, '127.0.0.1');
"""
#: How the names of files end in which it has its objects.
OBJECT = "._S3rver_object"
CHECKSUMS = ("AWS_REQUEST_CHECKSUM_CALCULATION", "AWS_RESPONSE_CHECKSUM_VALIDATION")
#: How many checkpoints the driver lists and logs.
LISTED = (1_000, 10_000, 100_000)


def make_archive(folder: Path, count: int) -> None:
    """Links checkpoints of the museum, in turn; one in fifty is a copy that is cut short."""
    cases = sorted(path.parent for path in ROOT.glob("tests/legacy/*/*/case.json"))
    cases = [case for case in cases if not case.name.endswith("tunerun")]  # two checkpoints each
    for number in range(count - 2):
        case = cases[number % len(cases)]
        copy = folder / f"trial_{number // 10:05d}" / f"{number:06d}-{case.parent.name}-{case.name}"
        damaged = number % 50 == 7
        both = (case / "ckpt_msgpack").exists()  # one checkpoint in two formats
        leave = shutil.ignore_patterns(("ckpt", "ckpt_msgpack")[number % 2] if both else "")
        shutil.copytree(case, copy, ignore=leave, copy_function=COPY[damaged])
        for file in copy.rglob("*") if damaged else ():
            if file.is_file() and file.suffix in ("", ".pkl", ".msgpck"):
                os.truncate(file, file.stat().st_size // 2)
    shared: list[Any] = ["x"]
    for _ in range(40):
        shared = [shared, shared]
    policies = {str(number): {"w": np.zeros(3, np.float32)} for number in range(MANY)}
    for name, state in (("bomb", {"default_policy": shared}), ("slow", policies)):
        (folder / name).mkdir()
        data = pickle.dumps({"worker": pickle.dumps({"state": state}, 4)}, 4)
        (folder / name / "checkpoint-1").write_bytes(data)


def link_files(folder: Path, target: Path, rename: Callable[[str], str]) -> None:
    """Links all files of a folder in another one, under other names; with an empty one, not."""
    for path in folder.rglob("*"):
        if path.is_file() and (name := rename(path.name)):
            place = target / path.relative_to(folder).with_name(name)
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, place)


def rows(new: Path) -> dict[str, dict[str, Any]]:
    """The last row of the log for each checkpoint; none is converted twice."""
    found: dict[str, dict[str, Any]] = {}
    for line in (new / LOG).read_text().splitlines():
        row = json.loads(line)
        if row["status"] == "already converted":  # a driver that was killed may not have logged it
            found.setdefault(row["name"], row)
            continue
        assert found.get(row["name"], {}).get("status") != "converted", row
        found[row["name"]] = row
    return found


def digests(new: Path) -> dict[str, str]:
    """The digests of all that was written, by path; the time of a conversion is in none of them."""
    return {
        f"{manifest.parent.relative_to(new)}/{name}": digest
        for manifest in sorted(new.rglob(MANIFEST))
        for name, digest in json.loads(manifest.read_text())["sha256"].items()
    }


@dataclass
class Bench:
    """An archive, the ways to convert it, and what they took."""

    folder: Path
    count: int
    stored: int
    limit: float
    figures: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def old(self) -> Path:
        """The archive."""
        make_archive(self.folder / "old", self.count)
        return self.folder / "old"

    @cached_property
    def expected(self) -> dict[str, str]:
        """What one process writes."""
        self.convert(self.old, new := self.folder / "one")
        self.check("1 process", new, 1)
        return digests(new)

    def command(self, old: object, new: object, *arguments: str) -> list[str]:
        """A run of this package."""
        to = () if "--to" in arguments else ("--to", "msgpack")
        return [*CLI, str(old), str(new), *to, "--limit", str(self.limit), *arguments]

    def convert(
        self, old: object, new: object, *arguments: str, meanwhile: Callable[[], object] = int
    ) -> None:
        """Converts, and keeps the seconds that it took."""
        began = time.perf_counter()
        with tempfile.TemporaryFile("w+") as errors:
            command = self.command(old, new, *arguments)
            run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
            meanwhile()
            if run.wait() not in (1, 2):  # some were refused, one has failed
                errors.seek(0)
                sys.exit(errors.read()[-2000:])
        self.seconds = time.perf_counter() - began

    def check(self, way: str, new: Path, workers: int, before: float = 0) -> None:
        """Holds a run against the archive and against what one process has written.

        Args:
            way: What it is called.
            new: What it wrote.
            workers: How many it had.
            before: Seconds of the runs before it into the same folder.
        """
        found, seconds = rows(new), self.seconds + before
        assert len(found) == self.count, (way, len(found))
        assert way == "1 process" or digests(new) == self.expected, way
        failed = {name: row["reason"] for name, row in found.items() if row["status"] == "failed"}
        assert list(failed) == ["slow/checkpoint-1"], (way, failed)
        assert "longer than" in failed["slow/checkpoint-1"], failed
        assert found["bomb/checkpoint-1"]["status"] == "refused"
        work = sum(row["seconds"] or self.limit for row in found.values())
        self.note(
            way,
            seconds=seconds,
            rate=self.count / seconds / workers,
            overhead=seconds * workers / work - 1,
            refused=sum(row["status"] == "refused" for row in found.values()),
        )

    def note(self, way: str, **figures: float) -> None:
        """Keeps and prints figures."""
        self.figures[way] = {name: round(value, 3) for name, value in figures.items()}
        said = ", ".join(f"{name} {value:,.3g}" for name, value in self.figures[way].items())
        print(f"{way}: {said}", flush=True)

    def processes(self) -> None:
        """One process, and two."""
        assert self.expected
        self.convert(self.old, self.folder / "two", "--jobs", "2")
        self.check("2 processes", self.folder / "two", 2)
        one, two = (self.figures[way]["seconds"] for way in ("1 process", "2 processes"))
        self.note("1 -> 2 processes", times=one / two)
        self.convert(self.old, self.folder / "two", "--jobs", "2")
        self.note("2 processes, once more", seconds=self.seconds, rate=self.count / self.seconds)

    def driver(self) -> None:
        """A driver that is killed with its processes, and the run that goes on."""
        assert self.expected
        first, new = self.figures["1 process"]["seconds"] / 4, self.folder / "killed"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = self.command(self.old, new, "--jobs", "2")
        run = subprocess.Popen(command, start_new_session=True, **quiet)
        time.sleep(first)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        there = len(digests(new))
        assert 0 < there < len(self.expected)
        self.convert(self.old, new, "--jobs", "2")
        self.check("a driver killed, and the rest", new, 2, first)

    def trainable(self) -> None:
        """To checkpoints that the installed Ray trains on, each with a proof."""
        some = self.folder / "some"
        make_archive(some, max(min(self.count // 5, 160), 50))
        for name in ("bomb", "slow"):
            shutil.rmtree(some / name)
        self.convert(some, new := self.folder / "trainable", "--to", "checkpointable")
        made = [row["seconds"] for row in rows(new).values() if row["status"] == "converted"]
        self.note("trainable, 1 process", converted=len(made), rate=len(made) / sum(made))

    def ray(self) -> None:
        """Two nodes with a CPU each, of which one is killed; and jobs that have nothing to do."""
        from rllib_compat.conversion import run_on_ray

        assert self.expected
        with cluster(self.folder) as (address, kill):
            on_ray = ["--ray-address", address]
            self.convert(self.old, self.folder / "ray", *on_ray)
            self.check("Ray, 2 nodes", self.folder / "ray", 2)
            third = self.seconds / 3
            idle = run_on_ray(abs, range(IDLE_JOBS + 1), lambda *_: None, address=address, limit=60)
            next(idle)  # the workers have started
            began = time.perf_counter()
            assert len(list(idle)) == IDLE_JOBS
            self.note("Ray, jobs that do nothing", rate=IDLE_JOBS / (time.perf_counter() - began))

            def kill_later() -> None:
                time.sleep(third)
                kill()

            self.convert(self.old, self.folder / "node", *on_ray, meanwhile=kill_later)
            self.check("Ray, a node killed on the way", self.folder / "node", 1)

    def store(self) -> None:
        """From a store into the same one: by two processes, and on two nodes of Ray."""
        if subprocess.run(["node", "-e", "require('s3rver')"], capture_output=True).returncode:
            print("store: left out, S3rver is not installed, or NODE_PATH does not have it")
            return
        part = Bench(self.folder / "store", min(self.count, self.stored), 0, self.limit)
        assert part.expected
        part.limit *= 5  # a store answers later, above all while one process lists the archive
        bucket = part.folder / "objects" / "archive"
        link_files(part.old, bucket / "old", lambda name: name + OBJECT)
        for folder in [path for path in bucket.rglob("*") if path.is_dir()]:
            (folder / OBJECT).touch()  # it lists no folder that has only folders without them
        with (
            store(bucket.parent) as (query, requests),
            cluster(part.folder) as (address, _),
        ):
            ways = {
                "a store, 2 processes": ["--jobs", "2"],
                "a store, Ray, 2 nodes": ["--ray-address", address],
            }
            for number, (way, how) in enumerate(ways.items()):
                before = requests()
                old, new = (f"s3://archive/{n}{query}" for n in ("old", f"new{number}"))
                part.convert(old, new, *how)
                asked = requests() - before
                back = part.folder / str(number)
                link_files(bucket / f"new{number}", back, lambda name: name.removesuffix(OBJECT))
                logs = sorted(back.glob("conversions-*.jsonl"))
                (back / LOG).write_text("".join(log.read_text() for log in logs))
                part.check(way, back, 2)
                each = {name: asked[name] / part.count for name in sorted(asked)}
                part.note(f"{way}, requests of each", **each)
        self.figures |= {way: f for way, f in part.figures.items() if way.startswith("a store")}

    def memory(self) -> None:
        """The most that a driver takes that lists, logs and sums up so many checkpoints."""
        most = dict[int, float]()
        for count in LISTED:
            old, new = self.folder / f"listed_{count}", self.folder / f"logged_{count}"
            for number in range(count):
                place = old / f"trial_{number // 10}" / f"checkpoint_{number}"
                place.mkdir(parents=True)
                (place / f"checkpoint-{number}").touch()
            command = [sys.executable, __file__, "--drive", str(old), str(new)]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            most[count], seconds = map(float, said.splitlines()[-1].split())
            size = (new / LOG).stat().st_size / count
            self.note(f"a driver of {count:,}", MB=most[count], rate=count / seconds, row=size)
            shutil.rmtree(old)
            shutil.rmtree(new)
        self.note("1,000 -> 100,000 checkpoints", MB=most[LISTED[-1]] - most[LISTED[0]])

    def paper(self) -> None:
        """Prints a million checkpoints on 100 nodes, by the figures that were written last."""
        print(million({**json.loads(FIGURES.read_text()), **self.figures}))


def drive(old: str, new: str) -> None:
    """Runs the driver with rows of the log in the place of conversions; prints its memory in MB."""
    from rllib_compat.cli import main as command_line
    from rllib_compat.conversion import workers

    facts = dict.fromkeys(("algorithm", "ray", "layout", "environment", "policies"), "as usual")
    curve = [(1000.0 * step, 20.5 * step) for step in range(60)]

    def run_in_processes(work: object, jobs: Any, *_: object, **options: object) -> Iterator[Any]:
        del work, options
        for number, job in enumerate(jobs):
            if number % 50 == 7:
                yield job.outcome("refused", "cut short " * 20, reason="cut short", fix="None.")
            else:
                details = [f"assumed: a layer of policy {i} is as usual" for i in range(8)]
                facts_of = {**facts, "number": number}
                yield job.outcome(
                    "converted", "as usual", facts=facts_of, details=details, curve=curve
                )

    workers.run_in_processes = run_in_processes
    began = time.perf_counter()
    with suppress(SystemExit):
        command_line(["convert", "--recursive", old, new, "--to", "msgpack"])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(most, time.perf_counter() - began)


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Two nodes of Ray, each with a CPU and a temporary folder; their address, what kills one."""
    from ray.cluster_utils import Cluster

    def own(name: str) -> dict[str, dict[str, str]]:
        (folder / name).mkdir()
        return {"env_vars": {"TMPDIR": str(folder / name)}}

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **own("node_1")})
    second = made.add_node(num_cpus=1, **own("node_2"))
    try:
        yield made.address, lambda: made.remove_node(second, allow_graceful=False)
    finally:
        made.shutdown()


@contextmanager
def store(objects: Path) -> Iterator[tuple[str, Callable[[], Counter[str]]]]:
    """A store: what follows a path in its addresses, and how often it was asked what until now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = objects.with_name("requests")
    with log.open("wb") as requests:
        command = ["node", "--openssl-legacy-provider", "-e", SERVER, str(objects), str(port)]
        server = subprocess.Popen(command, stdout=requests)
    os.environ |= {"AWS_ACCESS_KEY_ID": "S3RVER", "AWS_SECRET_ACCESS_KEY": "S3RVER"}
    # Without them pyarrow sends checksums behind the data, which this server does not take.
    os.environ |= dict.fromkeys(CHECKSUMS, "WHEN_REQUIRED")

    def count() -> Counter[str]:
        asked = (line.split() for line in log.read_text().splitlines())
        return Counter("LIST" if "list-type" in path else verb for verb, path in asked)

    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.2)
        # Delayed opening puts small files whole.
        yield (
            f"?endpoint_override=127.0.0.1:{port}&scheme=http&allow_bucket_creation=true"
            "&allow_delayed_open=true",
            count,
        )
    finally:
        server.kill()
        server.wait()


def million(figures: dict[str, Any]) -> str:
    """A million checkpoints on 100 nodes: the table of the guide."""
    nodes, cpus, checkpoints = 100, 8, 1_000_000
    folders, answer = 1.1 * checkpoints, 0.025  # a trial has ten; seconds
    cpu_hour, write, read = 0.05, 5e-6, 4e-7  # dollars; LIST costs as much as PUT
    most_writes, most_reads = 3500, 5500  # a second, below one prefix of S3
    asked = figures["a store, Ray, 2 nodes, requests of each"]
    tasks = figures["Ray, jobs that do nothing"]["rate"]
    writes, reads = asked["PUT"] + asked["LIST"], asked["GET"] + asked["HEAD"]
    forms = {
        "msgpack": figures["2 processes"]["rate"],
        "a checkpoint to train on": figures["trainable, 1 process"]["rate"],
    }
    steps = {
        "list the folders, ten at a time": [folders * answer / 10] * 2,
        "hand out the jobs, from one driver": [
            checkpoints / figures["Ray, jobs that do nothing"]["rate"]
        ]
        * 2,
        "write the log, in one driver": [checkpoints / figures["a driver of 100,000"]["rate"]] * 2,
        f"convert, on {nodes * cpus} CPUs": [
            checkpoints / rate / nodes / cpus for rate in forms.values()
        ],
        "the store's writes, below one prefix": [checkpoints * asked["PUT"] / most_writes] * 2,
        "the store's reads, below one prefix": [checkpoints * reads / most_reads] * 2,
    }
    listing = steps["list the folders, ten at a time"]
    # The cluster waits for the list; all else happens at the same time.
    totals = [one + max(times) for one, *times in zip(*steps.values(), strict=True)]
    slowest = [max(list(steps)[1:], key=lambda step: steps[step][i]) for i in range(len(forms))]
    rent = [total / 3600 * nodes * cpus * cpu_hour for total in totals]
    requests = checkpoints * (writes * write + reads * read)
    log = checkpoints * figures["a driver of 100,000"]["row"] / 1e9
    memory = [figures[f"a driver of {count:,}"]["MB"] for count in (LISTED[0], LISTED[-1])]
    rows = [
        f"| {step} | {' | '.join(f'{time / 60:,.0f} min' for time in times)} |"
        for step, times in steps.items()
    ]
    return "\n".join(
        [
            f"| a million checkpoints | {' | '.join(forms)} |",
            f"|---|{'---|' * len(forms)}",
            *rows,
            f"| **together** | {' | '.join(f'{total / 3600:.1f} hours' for total in totals)} |",
            f"| rent of {nodes} nodes | {' | '.join(f'{dollars:,.0f} $' for dollars in rent)} |",
            f"| requests of the store | {' | '.join([f'{requests:,.0f} $'] * len(forms))} |",
            "",
            f"Measured on two cores: {forms['msgpack']:.0f} checkpoints a second a core to "
            f"msgpack, {forms['a checkpoint to train on']:.1f} with a proof to train on; "
            f"{tasks:,.0f} jobs handed out a second; {writes:.0f} requests that "
            f"write or list and {reads:.0f} that read, for each checkpoint. The driver takes "
            f"{memory[0]:.0f} MB for 1,000 checkpoints and {memory[1]:.0f} MB for 100,000; the log "
            f"of a million has {log:.1f} GB. Assumed: {nodes} nodes of {cpus} CPUs at {cpu_hour} $ "
            f"a CPU and hour, {1000 * answer:.0f} ms to list a folder, ten checkpoints a trial, "
            "and S3's prices and limits.",
            "",
            f"**What breaks first**: listing takes {listing[0] / 60:.0f} minutes, in which the "
            "nodes wait; several runs, each with a part of the archive, list at the same time. "
            f"Then this takes longest: to msgpack, *{slowest[0]}*; to train on, *{slowest[1]}*. "
            "More nodes shorten only the conversions.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkpoints", type=int, default=400)
    parser.add_argument("--stored", type=int, default=200)
    parser.add_argument("--limit", type=float, default=8)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--drive", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        drive(*options.drive)
        return
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.checkpoints, options.stored, options.limit)
        for section in options.sections:
            getattr(bench, section)()
    if options.write:
        before = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        figures = {**before, **bench.figures}
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
        with suppress(KeyError):  # until all sections have run once
            guide_tables.put("bench_archive", million(figures), PAGE)


if __name__ == "__main__":
    main()
