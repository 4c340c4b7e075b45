"""The guide says of each network what becomes of it, and the museum's files say the same."""

import pytest

from rllib_compat.ray_versions import releases
from tests import support


def test_the_guides_support_table_is_what_the_real_files_show():
    if not releases.trains_discrete_sac():
        pytest.skip("the table is that of the newest Ray")
    assert support.in_guide() == support.table(), "run `python -m tests.support`"


def test_a_case_that_is_refused_is_in_the_museum():
    assert set(support.REFUSED) <= {str(case) for case in support.all_cases()}


def test_what_became_of_training_was_recorded_for_every_case_that_is_there():
    """A new file's iteration is seen before the guide says that it trains on."""
    cases = {str(case) for case in support.all_cases()}
    gone = set(support.trained.recorded()) - cases
    assert not gone, "run `python -m tests.trained`"
