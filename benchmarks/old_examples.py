"""Runs RLlib's own examples of old Rays, unchanged, with `rllib-compat run`, and writes a table.

The scripts come out of the wheels of their Rays. Each runs for one iteration where it can be told
so, and within a limit of time. What came of it is recorded, so that a later call goes on where an
earlier one stopped; a script whose text is that of another release is run once::

    python benchmarks/old_examples.py 0.8.7 1.0.1 1.2.0 --write
    python benchmarks/old_examples.py 1.2.0 --only 'custom_.*' --again
    python benchmarks/old_examples.py 1.13.0 --imports

A script that needs a part of RLlib's examples which is gone is run once more with `--old-ray` and
the wheel that it came out of; the table says so.

Not eligible, and named with the reason, are scripts that need something that is not part of Ray,
and those whose models or policies are TensorFlow's alone. The table is a page of the guide.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

_HERE = Path(__file__).parent
RECORD = _HERE / "old_examples.json"
PAGE = _HERE.parent / "migration_guide" / "old_examples.md"

_EXAMPLE = re.compile(r"(?:^|/)ray/rllib/examples/(\w+)\.py$")
_LIBRARIES = (
    "deepmind_lab pettingzoo supersuit vizdoom recsim pyspiel mlagents stable_baselines sumo"
)
#: What else a script needs → the words in its text that show it.
_NEEDS = {
    "Box2D": "LunarLander",
    "files of Ray's repository": '"../tests/data',
    "a file of the reader's own": '"/path/to/',
    "a network from torch.hub": "mobilenet_v2",
    "Unity": "unity3d",
}
_TENSORFLOW_ALONE = re.compile(
    r"^\s*(from tensorflow|import tensorflow)|build_tf_policy|TFModelV2\)", re.M
)
#: Those that name torch, too, and go through TensorFlow whatever they are told.
_TENSORFLOW_ANYWAY = re.compile(
    r"^    tf1?\.enable_eager|^from rllib\.models\.tf|[Tt]orch not supported", re.M
)
#: Flags that make a script short, and let it run without a GPU, if it has them.
_SHORT = {
    "--stop-iters": ("1",),
    "--num-iters": ("1",),
    "--train-iterations": ("1",),
    "--pre-training-iters": ("1",),
    "--stop-timesteps": ("500",),
    "--num-gpus": ("0",),
    "--torch": (),
    "--framework": ("torch",),
}
#: What a script looks for in vain with a flag in its own Ray, too → the flag that it is not told:
#: what `on_learn_on_batch` sets is in no result of Ray 1.13.0's PG, which the script asks of torch.
_NOT_TOLD = {'custom_metrics["default_policy"]': "--framework"}
RUNS = "runs"
WITH_OLD_RAY = "runs with --old-ray"
#: What Tune tells where a trial failed, which a script's exit code need not.
_INCOMPLETE = "Trials did not complete"
#: Scripts count on the machines of their authors; a trial that asks for more would wait for ever.
_CPUS = 6


@dataclass
class Row:
    """What became of one script.

    Attributes:
        ray: Its release.
        script: Its name.
        text: The hash of its text.
        outcome: `RUNS` or `WITH_OLD_RAY` (exit code 0), "not eligible: …", or what went wrong.
        seconds: How long it took.
        arguments: What it was told.
    """

    ray: str
    script: str
    text: str
    outcome: str = ""
    seconds: int = 0
    arguments: str = ""


def scripts(release: str, folder: Path) -> Iterator[Path]:
    """The example scripts of a release, out of its wheel."""
    command = [sys.executable, "-m", "pip", "download", f"ray=={release}", "--no-deps", "-q"]
    command += ["--only-binary", ":all:", "--python-version", "3.7", "-d", str(folder)]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob(f"ray-{release}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            match = _EXAMPLE.search(name)
            if match and match[1] != "__init__":
                path = folder / release / f"{match[1]}.py"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(archive.read(name))
                yield path


def reason_against(source: str) -> str | None:
    """Why a script is not eligible, or None."""
    if "This file has been renamed" in source:
        return "not eligible: only says where it went"
    for library in _LIBRARIES.split():
        if library in source.lower():
            return f"not eligible: needs {library}"
    for what, words in _NEEDS.items():
        if words in source:
            return f"not eligible: needs {what}"
    if "torch" not in source and _TENSORFLOW_ALONE.search(source):
        return "not eligible: TensorFlow alone"
    return "not eligible: TensorFlow alone" if _TENSORFLOW_ANYWAY.search(source) else None


def run(path: Path, *, limit: int, imports: bool = False, plain: bool = False) -> Row:
    """Runs one script, or only its imports and definitions; `plain` by Python alone."""
    source = path.read_text("utf-8")
    text = hashlib.sha256(source.encode()).hexdigest()[:16]
    row = Row(path.parent.name, path.stem, text, reason_against(source) or "")
    if row.outcome:
        return row
    untold = {flag for words, flag in _NOT_TOLD.items() if words in source}
    short = [
        word
        for flag, values in _SHORT.items()
        if f'"{flag}"' in source and flag not in untold
        for word in (flag, *values)
    ]
    row.arguments = " ".join(short)
    runner = [] if plain else ["-m", "rllib_compat", "run"]
    command = [sys.executable, *runner, str(path), *short]
    (wheel,) = path.parents[1].glob(f"ray-{row.ray}-*.whl")
    with_old_ray = [sys.executable, *runner, "--old-ray", str(wheel), str(path), *short]
    if imports:
        code = (
            f"import rllib_compat.legacy, runpy; runpy.run_path({str(path)!r}, run_name='imported')"
        )
        command = [sys.executable, "-c", code]
    started = time.monotonic()
    row.outcome, told = outcome_of(command, limit)
    if "--old-ray" in told:
        started = time.monotonic()
        again, _ = outcome_of(with_old_ray, limit)
        row.outcome = WITH_OLD_RAY if again == RUNS else f"with --old-ray: {again}"
    row.outcome = row.outcome.replace(f"{path.parent}/", "")
    row.seconds = round(time.monotonic() - started)
    return row


def outcome_of(command: list[str], limit: int) -> tuple[str, str]:
    """What became of a command, and what it told."""
    environment = {**os.environ, "RAY_OVERRIDE_RESOURCES": json.dumps({"CPU": _CPUS})}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"took more than {limit} s", ""
    told = done.stdout + done.stderr
    runs = done.returncode == 0 and _INCOMPLETE not in told
    return RUNS if runs else last_error(told), told


def last_error(told: str) -> str:
    """The last line of what went wrong that names an error of more than Tune's summary."""
    lines = re.findall(r"^[\w.]*(?:Error|Exception)(?:\(\w+\))?(?::.*|$)", told, re.M)
    telling = [line for line in lines if _INCOMPLETE not in line]
    return (telling or lines or ["failed without a word"])[-1][:160]


def recorded() -> list[Row]:
    """What earlier calls have found."""
    return [Row(**row) for row in json.loads(RECORD.read_text("utf-8"))] if RECORD.exists() else []


def record(rows: list[Row]) -> None:
    """Writes what is known, in the order of releases and names."""
    rows = sorted(rows, key=lambda r: (tuple(map(int, r.ray.split("."))), r.script))
    text = ",\n".join(json.dumps(asdict(row)) for row in rows)
    RECORD.write_text(f"[\n{text}\n]\n", "utf-8")


def page(rows: list[Row]) -> str:
    """The page of the guide: counts, and a row a script with a column a release."""
    releases = sorted({row.ray for row in rows}, key=lambda r: tuple(map(int, r.split("."))))
    by_place = {(row.script, row.ray): row for row in rows}
    lines = [
        "# Examples of old Rays",
        "",
        "RLlib's own example scripts, unchanged, through `rllib-compat run`, for one iteration "
        "where they can be told so. `benchmarks/old_examples.py` runs them and writes this page.",
        "",
    ]
    for release in releases:
        mine = [r for r in rows if r.ray == release]
        eligible = [r for r in mine if not r.outcome.startswith("not eligible")]
        tried = [r for r in eligible if r.outcome != "not run"]
        ends = sum(r.outcome in (RUNS, WITH_OLD_RAY) for r in eligible)
        helped = sum(r.outcome == WITH_OLD_RAY for r in eligible)
        lines.append(
            f"- Ray {release}: {len(mine)} scripts, {len(eligible)} eligible, {len(tried)} of "
            f"those run, {ends} ran to exit code 0"
            + (f", {helped} of them with `--old-ray` and the wheel." if helped else ".")
        )
    lines += ["", f"| script | {' | '.join(releases)} |", "|---" * (len(releases) + 1) + "|"]
    for script in sorted({row.script for row in rows}):
        cells = [_cell(by_place.get((script, release))) for release in releases]
        lines.append(f"| `{script}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    told = row.outcome.removeprefix("not eligible: ")
    return told.translate(str.maketrans({"|": "\\|", "\n": " ", "<": "&lt;", "`": "'"}))


def main() -> None:
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--only", default="", help="a regular expression for the scripts' names")
    parser.add_argument("--imports", action="store_true", help="only import, and record nothing")
    parser.add_argument("--again", action="store_true", help="run what is recorded already, too")
    parser.add_argument("--list", action="store_true", help="run nothing; record what there is")
    parser.add_argument("--write", action="store_true", help="write the page of the guide")
    parser.add_argument("--limit", type=int, default=600, help="seconds for each")
    args = parser.parse_args()
    known = {(row.ray, row.script): row for row in recorded()}
    with tempfile.TemporaryDirectory() as folder:
        for release in args.releases:
            for path in scripts(release, Path(folder)):
                place = (release, path.stem)
                if args.imports:
                    if re.fullmatch(args.only or ".*", path.stem):
                        print(run(path, limit=args.limit, imports=True), flush=True)
                    continue
                here = _without_running(path)
                if not here.outcome.startswith("not eligible"):
                    same = [r for r in known.values() if r.text == here.text]
                    ran = [r for r in same if r.outcome != "not run"]
                    wanted = re.fullmatch(args.only or ".*", path.stem) and not args.list
                    if wanted and (not ran or args.again):
                        here = run(path, limit=args.limit)
                        known |= {(r.ray, r.script): _as(here, r) for r in same}
                        print(here, flush=True)
                    elif ran:
                        here = _as(ran[0], here)
                known[place] = here
                record(list(known.values()))
    if args.write:
        PAGE.write_text(page(list(known.values())), "utf-8")


def _without_running(path: Path) -> Row:
    source = path.read_text("utf-8")
    text = hashlib.sha256(source.encode()).hexdigest()[:16]
    return Row(path.parent.name, path.stem, text, reason_against(source) or "not run")


def _as(row: Row, other: Row) -> Row:
    return Row(**{**asdict(row), "ray": other.ray, "script": other.script})


if __name__ == "__main__":
    main()
