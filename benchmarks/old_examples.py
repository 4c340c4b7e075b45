"""Runs RLlib's own examples of old Rays, unchanged, with `rllib-compat run`, and writes a table.

The scripts come out of the wheels of their Rays. Each runs for one iteration where it can be told
so, and within a limit of time::

    python benchmarks/old_examples.py 0.8.7 1.0.1 1.2.0 --only 'custom_.*' --out table.md
    python benchmarks/old_examples.py 1.13.0 --imports

Not eligible, and named with the reason, are scripts that need a library that is not part of Ray,
and those whose models or policies are TensorFlow's alone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_EXAMPLE = re.compile(r"(?:^|/)ray/rllib/examples/(\w+)\.py$")
_LIBRARIES = (
    "deepmind_lab pettingzoo supersuit vizdoom recsim pyspiel mlagents stable_baselines3 sumo"
)
_TENSORFLOW_ALONE = re.compile(
    r"^\s*(from tensorflow|import tensorflow)|build_tf_policy|TFModelV2\)", re.M
)
#: Flags that make a script short, if it has them, and its trials fit on a small machine.
_SHORT = {
    "--num-cpus": ("4",),
    "--stop-iters": ("1",),
    "--num-iters": ("1",),
    "--stop-timesteps": ("500",),
    "--torch": (),
    "--framework": ("torch",),
}


@dataclass
class Row:
    """What became of one script."""

    ray: str
    script: str
    outcome: str
    seconds: float = 0.0


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
    for library in _LIBRARIES.split():
        if re.search(rf"^\s*(from|import) {library}|{library}", source, re.M):
            return f"not eligible: needs {library}"
    if "torch" not in source and _TENSORFLOW_ALONE.search(source):
        return "not eligible: TensorFlow alone"
    return None


def run(path: Path, *, limit: int, imports: bool) -> Row:
    """Runs one script, or only its imports and definitions."""
    source = path.read_text("utf-8")
    row = Row(path.parent.name, path.stem, reason_against(source) or "")
    if row.outcome:
        return row
    short = [
        word for flag, values in _SHORT.items() if f'"{flag}"' in source for word in (flag, *values)
    ]
    command = [sys.executable, "-m", "rllib_compat", "run", str(path), *short]
    if imports:
        code = (
            f"import rllib_compat.legacy, runpy; runpy.run_path({str(path)!r}, run_name='imported')"
        )
        command = [sys.executable, "-c", code]
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        row.outcome = "ran" if done.returncode == 0 else last_error(done.stderr)
    except subprocess.TimeoutExpired:
        row.outcome = f"took more than {limit} s"
    row.seconds = time.monotonic() - started
    return row


def last_error(told: str) -> str:
    """The last line of what went wrong that names an error."""
    lines = [
        line for line in told.splitlines() if re.match(r"[\w.]*(Error|Exception|Warning)\b", line)
    ]
    return (lines or ["failed without a word"])[-1][:160]


def table(rows: list[Row]) -> str:
    """The rows in Markdown, with the counts above them."""
    eligible = [row for row in rows if not row.outcome.startswith("not eligible")]
    ran = sum(row.outcome == "ran" for row in eligible)
    lines = [
        f"{ran} of {len(eligible)} eligible scripts ran.",
        "",
        "| Ray | script | outcome | s |",
    ]
    lines.append("|---|---|---|---|")
    cell = str.maketrans({"|": "\\|", "\n": " "})
    lines += [
        f"| {r.ray} | `{r.script}` | {r.outcome.translate(cell)} | {r.seconds:.0f} |" for r in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--only", default="", help="a regular expression for the scripts' names")
    parser.add_argument("--imports", action="store_true", help="only import what they import")
    parser.add_argument("--limit", type=int, default=600, help="seconds for each")
    parser.add_argument("--out", type=Path, help="where the table goes")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for release in args.releases:
            for path in scripts(release, Path(folder)):
                if re.fullmatch(args.only or ".*", path.stem):
                    rows.append(run(path, limit=args.limit, imports=args.imports))
                    print(*vars(rows[-1]).values(), sep="\t", flush=True)
                    if args.out:
                        args.out.write_text(table(rows), "utf-8")


if __name__ == "__main__":
    main()
