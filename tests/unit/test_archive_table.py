"""The guide's figures about a million checkpoints are what the benchmark calculates."""

import importlib
import json
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_page_shows_what_was_calculated(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    bench = importlib.import_module("bench_archive")
    made = bench.million(json.loads(bench.FIGURES.read_text("utf-8")))
    shown = bench.guide_tables.begin("bench_archive") + made
    assert shown in bench.PAGE.read_text("utf-8"), "run benchmarks/bench_archive.py --write"
