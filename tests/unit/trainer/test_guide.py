"""The guide's tables say what the code does, and its blocks run."""

from pathlib import Path

import pytest

from rllib_compat.runtime.learner_info import ACTOR_CRITIC_STATS, LEARNER_STATS
from rllib_compat.runtime.results import RENAMED, SAMPLER_PERF
from tests import docs

GUIDE = Path(__file__).parents[3] / "migration_guide"
#: Blocks that no test can run by themselves, and why.
NOT_ALONE = {
    "convert_a_checkpoint": "it is for the old Ray, or about files of the reader",
    "custom_models": "a model of the old Ray",
    "policy_without_ray": "a checkpoint of the reader; tests/unit/test_export.py plays its episode",
    "run_my_old_project": "it changes the process; tests/unit/legacy does so",
    "upgrade": "code before and after it was rewritten",
}


def test_every_renamed_key_is_in_the_guide():
    rows = [line for line in (GUIDE / "results.md").read_text().splitlines() if line[:1] == "|"]
    for legacy, (today, *_), _ in (*RENAMED, *SAMPLER_PERF):
        name = legacy.rpartition("/")[2]
        named = [row for row in rows if f"`{name}`" in row or f"/{name}`" in row]
        assert any(f"`{today}`" in row or "fault_tolerance" in row for row in named), legacy
    for today, legacy in (LEARNER_STATS | ACTOR_CRITIC_STATS).items():
        assert any(f"`{legacy}`" in row and f"`{today}`" in row for row in rows)


def python_blocks():
    for page in docs.documents():
        for block in docs.blocks(page):
            alone = page.stem not in NOT_ALONE and "runnable" not in block.marks
            if block.language == "python" and alone and not docs.TRAINS.search(block.body):
                yield pytest.param(block, id=str(block))


@pytest.mark.parametrize("block", list(python_blocks()))
def test_a_block_that_does_not_train_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block.body, str(block), "exec"), {"__name__": "guide"})
