"""The lines that a conversion ends with, copied and run: training goes on, or the policy acts."""

import numpy as np
import pytest

from rllib_compat import convert, registry
from rllib_compat.ray_versions import algorithms
from tests.legacy.cases import all_cases, find, one_of_each
from tests.legacy.networks import given_if_asked
from tests.marks import CONVERSIONS, marked
from tests.support import REFUSED
from tests.trained import environment, record, spaces_of

pytestmark = CONVERSIONS
CPUS = 4

CASES = one_of_each(
    [case for case in all_cases() if str(case) not in REFUSED],
    lambda c: (c.algorithm, c.features, c.layout),
)
TEAM = next(c for c in find(ray="0.8.5") if c.variant == "multiagent")
CASES = list(dict.fromkeys([TEAM, *CASES]))


@pytest.mark.parametrize("case", marked(CASES, [TEAM]), ids=str)
def test_the_lines_run_as_they_are(case, tmp_path):
    done = convert(case.checkpoint, tmp_path / "new", given=given_if_asked(case), inputs=2)
    spaces = spaces_of(done.checkpoint)
    lines = "\n".join(line.strip() for line in done.next_step.splitlines()[1:])
    if registry.of(case.algorithm).offline:
        ((observations, actions),) = spaces.values()
        (tmp_path / "recordings").mkdir()
        record(tmp_path / "recordings", observations, actions)
        lines = lines.replace("/path/to/recordings", str(tmp_path / "recordings"))
    scope = {
        "MyEnv": environment(spaces),
        "policy_of": lambda agent_id, *_, **__: agent_id,
        "observation": next(iter(spaces.values()))[0].sample(),
    }
    try:
        exec(lines, scope)
    finally:
        if algorithm := scope.get("algorithm"):
            algorithms.stop_algorithm(algorithm)
    if done.trains_on:
        assert algorithm.iteration == (done.checkpoint.counters.iteration or 0) + 1
    else:
        assert np.isfinite(np.asarray(scope["action"][0], float)).all()
