"""What reading one checkpoint may cost."""

from __future__ import annotations

from dataclasses import dataclass

from rllib_compat.neutral.errors import BudgetExceededError


@dataclass
class Budget:
    """What is left to spend. All pickles of a checkpoint, nested ones too, share one.

    The defaults are far above what honest checkpoints ask for: the largest seen take a few hundred
    thousand opcodes and a nesting of thirty. What they must stop are files of some hundred bytes
    that stand for gigabytes or hours.

    Attributes:
        bytes: Input that is read.
        copies: Bytes that are copied because the input asks for it. Each file adds twice its size,
            which is what honest ones take.
        opcodes: Steps of the machine.
        memo: Entries of the memo of one pickle. Not spent, a limit.
        depth: The nesting of a value. Not spent, a limit; low enough that code which recurses
            through a value stays within Python's recursion limit.
        elements: Elements of containers and arrays that are made by copying or broadcasting.
        awkward_keys: Keys of dicts and sets whose hashes a file can choose to collide.
        nested: Pickles inside of pickles.
    """

    bytes: int = 8 << 30
    copies: int = 1 << 26
    opcodes: int = 10_000_000
    memo: int = 3_000_000
    depth: int = 400
    elements: int = 20_000_000
    awkward_keys: int = 10_000
    nested: int = 100_000

    def spend(self, what: str, amount: int) -> None:
        """Takes `amount` off the attribute `what`.

        Raises:
            BudgetExceededError: There is not that much left.
        """
        left: int = getattr(self, what) - amount
        if left < 0:
            raise exceeded(what)
        setattr(self, what, left)


def exceeded(what: str) -> BudgetExceededError:
    """The error for a budget that is used up."""
    return BudgetExceededError(
        f"reading it takes more {what.replace('_', ' ')} than any honest checkpoint does",
        fix="If you trust the file, read it with a larger `Budget`.",
    )
