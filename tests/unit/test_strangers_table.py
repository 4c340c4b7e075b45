"""The table of strangers' scripts is whole."""

from collections import Counter

from tests.strangers.cases import CASES, FOLDER, recorded

_HELPERS = {"facts.py"}


def test_each_script_is_a_case_with_a_source_and_facts():
    scripts = {p.name for p in (FOLDER / "scripts").iterdir() if p.suffix in (".py", ".ipynb")}
    assert sorted(case.script for case in CASES) == sorted(scripts - _HELPERS)
    assert Counter(case.source for case in CASES).most_common(1)[0][1] <= 2
    told = {case.script for case in CASES if case.recorder}
    assert told == recorded().keys()
