"""The rule pages of the guide say what the rules say."""

import re
import runpy
from pathlib import Path

import pytest

from rllib_compat.config import every_rule, translate
from rllib_compat.ray_versions import releases

GUIDE = Path(__file__).parents[3] / "migration_guide"
PAGES = runpy.run_path(str(GUIDE / "generate_rules.py"))["pages"]()


@pytest.mark.skipif(
    not releases.at_least("2.52"), reason="the pages' code is that of the newest Ray"
)
def test_pages_are_not_stale():
    written = {path.name: path.read_text("utf-8") for path in (GUIDE / "rules").glob("*.md")}
    assert written == PAGES, "run migration_guide/generate_rules.py"


def headings():
    lines = (line for text in PAGES.values() for line in text.splitlines())
    anchors = {m for text in PAGES.values() for m in re.findall(r'<a id="([^"]+)"></a>', text)}
    return anchors | {line[3:] for line in lines if line.startswith("## ")}


def test_rows_of_tables_have_four_cells():
    for name, text in PAGES.items():
        rows = [line for line in text.splitlines() if line.startswith('| <a id="')]
        for row in rows:
            assert len(re.findall(r"(?<!\\)\|", row)) == 5, (name, row)


def test_every_rule_has_a_row():
    assert {rule.id for rule in every_rule()} <= headings()


def test_every_row_of_a_report_has_a_heading():
    config = {
        "rollout_fragment_length": 20,
        "num_workers": 32,
        "train_batch_size": 4000,
        "sgd_minibatch_size": 9000,
        "gama": 1,
        "n_step": 3,
        "evaluation_parallel_to_training": True,
        "evaluation_config": {"lr": 0.1},
    }
    for algorithm in ("PPO", "DDPPO", "SAC", "CQL", "A3C", None):
        report = translate(config, algorithm=algorithm, on_unknown="warn").report
        assert {finding.rule for finding in report} <= headings()
