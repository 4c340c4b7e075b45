"""What whole files of integration tests are marked with, and how far properties look."""

import os

import pytest

#: Warnings of Ray, gymnasium and torch are not ours to mend; those of this package are errors.
OTHERS_WARNINGS = [pytest.mark.filterwarnings("ignore", "error:::rllib_compat")]

#: They build trainers.
TRAINERS = [pytest.mark.ray, *OTHERS_WARNINGS]

#: They convert checkpoints and load them, all in one Ray; a conversion alone would start its own.
CONVERSIONS = [pytest.mark.ray, pytest.mark.usefixtures("quiet_ray"), *OTHERS_WARNINGS]


def marked(cases, on_each_push, others=pytest.mark.nightly):
    """The cases as parameters; those that not each push runs have a mark of their own."""
    return [c if c in on_each_push else pytest.param(c, marks=others) for c in cases]


def examples(count: int) -> int:
    """How many examples a property tries: `count`, or twenty times that where one asks for it."""
    return 20 * count if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else count
