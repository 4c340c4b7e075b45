"""The guide says of each network what becomes of it, and the museum's files say the same."""

from tests import support


def test_the_guides_support_table_is_what_the_real_files_show():
    assert support.in_guide() == support.table(), "run `python -m tests.support`"


def test_a_case_that_is_refused_is_in_the_museum():
    assert set(support.REFUSED) <= {str(case) for case in support.all_cases()}
