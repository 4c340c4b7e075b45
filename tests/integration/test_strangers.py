"""What strangers wrote for old Rays does here what it did there."""

import json
from itertools import groupby

import pytest

from tests.processes import start
from tests.strangers.cases import CASES, FOLDER, outcome

pytestmark = [pytest.mark.ray, pytest.mark.newest]

#: What a push runs, in one process; the others are nightly.
ON_A_PUSH = {"agents_plain_env.py", "callbacks_class.py", "models_torch_dict.py", "zoo_turns.py"}
_IN_ONE_PROCESS = 16


def groups():
    """Scripts of one time, since what one imports says of the process which Ray is meant."""
    left = sorted(
        (case for case in CASES if case.script not in ON_A_PUSH),
        key=lambda case: case.recorder or "",
    )
    for _, cases in groupby(left, key=lambda case: case.recorder):
        cases = list(cases)
        for first in range(0, len(cases), _IN_ONE_PROCESS):
            yield cases[first : first + _IN_ONE_PROCESS]


def play(folder, scripts):
    """What scripts have noted, run as old code in one process with one Ray."""
    out = folder / "facts.json"
    done = start(folder, "run", FOLDER / "play.py", out, *scripts)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text())


def compare(folder, cases):
    found = play(folder, [case.script for case in cases])
    wrong = {
        case.script: told for case in cases if (told := outcome(case, found[case.script]).wrong)
    }
    assert wrong == {}


@pytest.mark.slow("four scripts, each of which trains, in one Ray")
def test_some_of_each_kind_do_what_they_did(tmp_path):
    compare(tmp_path, [case for case in CASES if case.script in ON_A_PUSH])


@pytest.mark.nightly
@pytest.mark.slow("up to sixteen scripts, each of which trains, in one Ray")
@pytest.mark.parametrize("cases", list(groups()), ids=lambda cases: cases[0].script)
def test_the_others_do_what_they_did(tmp_path, cases):
    compare(tmp_path, cases)
