"""The guide's tables say what the code does, and its blocks run."""

import re
from pathlib import Path

import pytest

from rllib_compat.runtime.learner_info import ACTOR_CRITIC_STATS, LEARNER_STATS
from rllib_compat.runtime.results import RENAMED, SAMPLER_PERF

GUIDE = Path(__file__).parents[3] / "migration_guide"
PAGES = (
    "trainer.md",
    "how_it_trains.md",
    "callbacks.md",
    "environments.md",
    "results.md",
    "tune.md",
)


def test_every_renamed_key_is_in_the_guide():
    rows = [line for line in (GUIDE / "results.md").read_text().splitlines() if line[:1] == "|"]
    for legacy, (today, *_), _ in (*RENAMED, *SAMPLER_PERF):
        name = legacy if legacy.startswith(("info", "timers", "sampler")) else legacy.split("/")[-1]
        (row,) = [row for row in rows if f"`{name}`" in row]
        assert f"`{today}`" in row or "fault_tolerance" in row
    for today, legacy in (LEARNER_STATS | ACTOR_CRITIC_STATS).items():
        assert any(f"`{legacy}`" in row and f"`{today}`" in row for row in rows)


def python_blocks():
    for page in PAGES:
        for number, body in enumerate(
            re.findall(r"^```python\n(.*?)^```$", (GUIDE / page).read_text(), re.M | re.S)
        ):
            yield pytest.param(body, id=f"{page}-{number}")


@pytest.mark.parametrize("body", list(python_blocks()))
def test_blocks_compile_and_what_they_import_is_there(body):
    code = compile(body, "<guide>", "exec")
    # Those that train are run with the integration tests.
    if "trainer = " not in body and "tune.run" not in body:
        exec(code, {"__name__": "guide"})
