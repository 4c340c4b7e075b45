"""The breaks that the tests have to notice, a row each.

To add one: name what would be broken for a user, the line, the line with the mistake in it, and
the tests that should see it. `tests/unit/test_mutants.py` tells when a row no longer fits.
"""

from __future__ import annotations

from dataclasses import dataclass


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


MUTANTS: tuple[Mutant, ...] = ()
