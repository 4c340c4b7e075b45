"""The guide's table of what is supported, made from the museum's real files.

`python -m tests.support` writes it anew; a test holds the page against it. What trains on is what
did so: `tests.trained` has recorded it.
"""

from __future__ import annotations

import re
from collections import defaultdict

from rllib_compat.conversion import Form, prepare
from rllib_compat.formats import read_checkpoint
from tests import trained
from tests.docs import ROOT
from tests.legacy.cases import all_cases
from tests.legacy.networks import given_if_asked

PAGE = ROOT / "migration_guide/what_works.md"
BEGIN, END = "<!-- support table: python -m tests.support -->", "<!-- end of the support table -->"
_IN_PAGE = re.compile(f"{re.escape(BEGIN)}\n(.*?)\n{re.escape(END)}", re.DOTALL)

#: The museum's cases that are refused, and the reason.
REFUSED: dict[str, str] = {
    "1.13.0/ppo-torch-parts": "layers of the observation's parts 0, 2 are not in the checkpoint",
    "1.9.2/ppo-torch-custommodel": "custom model MyModel",
    "1.13.0/ppo-tf-custommodel": "custom model MyModel",
    "1.13.0/ppo-torch-custom-parts": "custom model museum_masked",
    "1.13.0/ppo-torch-custom-meanstd": "custom model museum_plain",
    "1.13.0/ppo-tf2-custom-keras": "custom model museum_keras",
    "2.0.1/ppo-torch-custommodel": "custom model MyModel",
    "2.3.1/ppo-torch-custommodel": "custom model MyModel",
    "0.8.5/dqn-tf-noisy": "noisy layers of the Q-head are not in this checkpoint",
}

_BY_NAME = "weights by name, with `--model`"
_INFERS = "exact, inference"


def rows() -> list[tuple[str, str, str, str, str]]:
    """Network, algorithm, framework, Rays with a file behind the row, and what becomes of it."""
    found, outcomes = defaultdict(set), trained.recorded()
    for case in all_cases():
        if reason := REFUSED.get(str(case)):
            kind, outcome = case.variant, f"refused: {reason}"
            if "custom model" in reason:
                kind, outcome = "custom model", _BY_NAME
        else:
            plan = prepare(read_checkpoint(case.checkpoint), given_if_asked(case))
            kind = " and ".join(sorted({network.kind for network in plan.networks.values()}))
            whole = plan.form is Form.ALGORITHM
            outcome = _trained(outcomes[str(case)]) if whole else f"{_INFERS}: {plan.reason}"
        framework = case.framework + ("" if case.stack == "old" else f", {case.stack} API")
        found[kind, case.algorithm, framework, outcome].add(case.version)
    return sorted((k, a, f, _span(versions), o) for (k, a, f, o), versions in found.items())


def _trained(outcome: str) -> str:
    return "exact, trains on" if outcome == trained.LEARNED else f"exact; {outcome}"


def _span(versions: set[tuple[int, ...]]) -> str:
    first, last = (".".join(map(str, pick(versions))) for pick in (min, max))
    return first if first == last else f"{first} – {last}"


def table() -> str:
    """The table in markdown."""
    lines = ["| network | algorithm | framework | Rays with a test file | becomes |"]
    lines.append("|---|---|---|---|---|")
    lines += [f"| {' | '.join(row)} |" for row in rows()]
    return "\n".join(lines)


def in_guide() -> str:
    """The table as it stands in the guide."""
    match = _IN_PAGE.search(PAGE.read_text("utf-8"))
    assert match, "the page has no support table"
    return match[1]


if __name__ == "__main__":
    written = _IN_PAGE.sub(f"{BEGIN}\n{table()}\n{END}", PAGE.read_text("utf-8"))
    PAGE.write_text(written, "utf-8")
