"""The rule pages of the guide say what the rules say."""

import runpy
from pathlib import Path

from rllib_compat.config import translate
from rllib_compat.config.rules import every_rule

GUIDE = Path(__file__).parents[3] / "migration_guide"
PAGES = runpy.run_path(str(GUIDE / "generate_rules.py"))["pages"]()


def test_pages_are_not_stale():
    written = {path.name: path.read_text("utf-8") for path in (GUIDE / "rules").glob("*.md")}
    assert written == PAGES, "run migration_guide/generate_rules.py"


def headings():
    lines = (line for text in PAGES.values() for line in text.splitlines())
    return {line[3:] for line in lines if line.startswith("## ")}


def test_every_rule_has_a_heading():
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
