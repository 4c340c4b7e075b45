"""What one job (an inspection, a conversion) may cost, from the first byte to the last.

A file of some hundred bytes can stand for gigabytes or hours. Whatever reads a file, or walks
through what came out of it, spends from the one `Budget` of the job. The bounds grow with the bytes
that are read, so that large honest files pass: memory stays below 20 times the input and 100 MB,
time below 5 seconds for 10 MB. Both are measured by `tests/security/`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from rllib_compat.neutral.errors import BudgetExceededError

_MB = 1 << 20


@dataclass
class Budget:
    """What is left to spend. All files of a checkpoint, and all that lies in them, share one.

    The defaults are far above what honest checkpoints ask for: the largest seen take a few hundred
    thousand opcodes and a nesting of thirty.

    Attributes:
        bytes: Input that is read.
        copies: Bytes that are copied because the input asks for it. Each file adds twice its size,
            which is what honest ones take.
        made: Bytes of memory that small objects take: an empty set takes 216, and one byte of a
            pickle asks for it. Each file adds twelve times its size.
        unpacked: Bytes that come out of compressed data.
        opcodes: Steps of the pickle machine. Each byte of input adds one.
        memo: Entries of the memo of one pickle. Not spent, a limit.
        depth: The nesting of a value. Not spent, a limit; low enough that code which recurses
            through a value stays within Python's recursion limit.
        elements: Elements of containers and arrays that are made by copying or broadcasting.
        collisions: Comparisons of keys whose hashes a file can choose, as many as if all of them
            in one dict or set collided.
        nested: Pickles inside of pickles.
        policies: Policies of a checkpoint.
        values: Values that a finished state unfolds to, where shared parts count as often as they
            are met. Every 32 bytes of input add one.
        unfolded: Bytes of text and arrays, counted likewise. Each file adds four times its size.
        outputs: Values that are written; Ray's form repeats the config with each policy. Every
            eight bytes of input add one.
        written: Bytes that are written. Each file adds six times its size.
        seconds: Time of the processor, of the thread that does the job: on a busy machine no honest
            file takes longer. Each megabyte of input adds three; the other bounds end hostile files
            long before.
    """

    bytes: int = 8 << 30
    copies: int = 64 * _MB
    made: int = 48 * _MB
    unpacked: int = 256 * _MB
    opcodes: int = 2_000_000
    memo: int = 1_000_000
    depth: int = 400
    elements: int = 4_000_000
    collisions: int = 50_000_000
    nested: int = 10_000
    policies: int = 10_000
    values: int = 200_000
    unfolded: int = 48 * _MB
    outputs: int = 320_000
    written: int = 64 * _MB
    seconds: float = 60.0
    _start: float = field(default_factory=time.thread_time, init=False, repr=False)

    def take_input(self, size: int, where: str | None = None) -> None:
        """Notes that a file of `size` bytes is read; what it may cost grows with it.

        Raises:
            BudgetExceededError: There is too much of it.
        """
        self.spend("bytes", size, where)
        self.copies += 2 * size
        self.made += 12 * size
        self.opcodes += size
        self.values += size // 32
        self.unfolded += 4 * size
        self.outputs += size // 8
        self.written += 6 * size
        self.seconds += 3 * size / _MB
        self.check_time(where)

    def spend(self, what: str, amount: int, where: str | None = None) -> None:
        """Takes `amount` off the attribute `what`.

        Raises:
            BudgetExceededError: There is not that much left.
        """
        left: int = getattr(self, what) - amount
        if left < 0:
            raise budget_error(what, where)
        setattr(self, what, left)

    def start_clock(self) -> None:
        """Counts time from here: what was computed up to now is no reading or writing."""
        self._start = time.thread_time()

    def check_time(self, where: str | None = None) -> None:
        """Ends a job that takes too long.

        Raises:
            BudgetExceededError: It does.
        """
        if time.thread_time() - self._start > self.seconds:
            raise budget_error("seconds", where)


_MEANING = {
    "outputs": "values to be written",
    "written": "bytes to be written",
    "seconds": "time",
    "copies": "copies of bytes",
    "made": "memory for small objects",
    "unpacked": "bytes out of compressed data",
    "collisions": "comparisons of keys",
    "values": "values, when shared parts are written out,",
    "unfolded": "bytes, when shared parts are written out,",
}


def budget_error(what: str, where: str | None = None) -> BudgetExceededError:
    """The error for a budget that is used up."""
    meaning = _MEANING.get(what, what.replace("_", " "))
    return BudgetExceededError(
        f"it needs more {meaning} than a valid checkpoint does (budget: {what})",
        where=where,
        fix="If you trust the file, read it with a larger `Budget` (Python only).",
    )
