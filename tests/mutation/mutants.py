"""The breaks that the tests have to notice, as `mutants.diff` beside this file has them.

To add one there: below the file and the tests that should see it (a name of here, or tests as
pytest takes them, one a line), name what would be broken for a user, and give the lines with the
mistake as a diff. A line may be given in part. `tests/unit/test_mutants.py` tells when one no
longer fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """A break.

    Attributes:
        breaks: What it breaks for a user.
        file: Where.
        old: Text that stands there exactly once.
        new: What stands there instead.
        tests: The tests that have to notice, as pytest takes them.
    """

    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The file's text with the break in it.

        Raises:
            ValueError: The old text stands there never, or more than once.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {text.count(self.old)} times, not once")
        return text.replace(self.old, self.new)


# The tests of a part of the code, quick ones first: the first that fails ends a run.
PICKLES = tuple(
    f"tests/unit/pickles/test_{name}.py"
    for name in ("calls", "stack", "exhaustion", "records", "arrays", "hostile")
)
NAMES = (
    "tests/unit/test_networks.py",
    *(f"tests/unit/networks/test_{name}.py" for name in ("algorithms", "vision", "recurrent")),
)
CONFIG = ("tests/unit/config",)
VALIDATION = (
    *(
        f"tests/security/test_config_text.py::{name}"
        for name in (
            "TestTrust",
            "test_configs_inside_of_configs_end",
            "test_keys_that_are_no_text_stay_behind",
        )
    ),
    *CONFIG,
)
ENGINE = (*CONFIG, "tests/properties/test_config.py")
PROOF = tuple(
    f"tests/unit/test_convert.py::test_{name}"
    for name in (
        "an_output_that_the_new_module_lacks_is_an_error",
        "a_wrong_number_is_never_within_the_tolerance",
        "a_policy_that_the_new_checkpoint_lacks_is_an_error",
        "a_number_may_be_off_by_ten_times_the_networks_own_error_and_no_more",
        "where_float32_overflows_the_new_network_may_and_nothing_else",
        "another_shape_is_an_error_and_not_broadcast",
        "random_inputs_stay_within_bounds_and_are_the_same_each_time",
        "a_network_that_gives_nan_is_the_same_network",
        "a_failed_proof_leaves_nothing_behind",
    )
)

ROUNDING = ("tests/unit/test_proof.py", *PROOF)
RECORDED = (
    *(
        f"tests/unit/test_proof.py::test_{name}"
        for name in (
            "a_recording_with_pickles_in_it_is_not_loaded",
            "a_recording_of_something_else_is_an_error_and_writes_nothing",
            "a_recording_that_is_no_npz_is_a_clear_error",
            "a_wrong_activation_is_refused_where_a_recording_is_given",
            "what_a_museum_ray_recorded_proves_that_its_file_was_read_rightly",
        )
    ),
    "tests/security/test_other_doors.py",
)


def _read(text: str) -> Iterator[Mutant]:
    for part in re.split(r"^--- ", text, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^@@ ", part, flags=re.MULTILINE)
        file, *named = head.splitlines()
        tests = tuple(test for name in named for test in _tests_of(name.removeprefix("by ")))
        for hunk in hunks:
            breaks, *lines = hunk.splitlines()
            old, new = ([line[1:] for line in lines if line[0] in kept] for kept in ("- ", "+ "))
            # Without a new line, whole lines are left out.
            yield Mutant(breaks, file, "\n".join(old + [""] * (not new)), "\n".join(new), tests)


def _tests_of(name: str) -> tuple[str, ...]:
    named: tuple[str, ...] = globals().get(name, (name,))
    return named


MUTANTS = tuple(_read(Path(__file__).with_suffix(".diff").read_text("utf-8")))
