"""A value of a translation that only the installed Ray can make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Later(ABC):
    """A value that is made when the `AlgorithmConfig` is built."""

    @abstractmethod
    def build(self) -> Any:
        """Makes the object."""

    @abstractmethod
    def code(self, imports: set[str]) -> str | None:
        """How it is written, or None where it can't be; adds the import lines that it needs."""
