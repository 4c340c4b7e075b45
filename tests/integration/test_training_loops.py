"""Loops around workers of a trainer and Tune functions give what they gave in the old Rays."""

import pytest

from tests.legacy.api import loops_here
from tests.marks import TRAINERS

pytestmark = TRAINERS

CASES = loops_here.recorded(loops_here.WITH_PROCESSES.__contains__, ["1.13.0-a_plan_of_workers"])


@pytest.mark.parametrize(("release", "name", "told"), CASES)
def test_a_loop_takes_the_same_steps_and_its_results_have_the_same_keys(
    one_ray, release, name, told, tmp_path
):
    loops_here.check(told, loops_here.play(release, name, tmp_path))
