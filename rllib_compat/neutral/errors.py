"""Everything that this package raises on purpose.

::

    CompatError                       exit code 2
    ├── ConfigError                   a legacy config can't be translated
    │   ├── UnknownKeysError          keys that no Ray ever had, all of them at once
    │   └── RefusedKeysError          keys that have no meaning on the target, all of them at once
    ├── CheckpointError               something about a checkpoint on disk
    │   ├── UnknownLayoutError        no layout recognises the path
    │   ├── CorruptCheckpointError    a file is damaged, truncated or contradicts itself
    │   │   ├── MissingFileError      a file is not there, or something else is in its place
    │   │   └── BudgetExceededError   a file asks for more than any honest checkpoint does
    │   ├── NotYetError               read, but its network or algorithm can't be converted yet
    │   ├── MissingInformationError   something the checkpoint does not hold has to be given
    │   ├── TargetExistsError         the output is there already
    │   ├── FileSystemError           the disk is full or read-only, a name too long, …
    │   └── VerificationError         old and new compute different numbers
    ├── LegacyEnvError                an environment does not behave as any known API
    ├── RayNotSupportedError          the installed Ray is missing or out of range
    └── GoneError (AttributeError)    a legacy attribute that can't exist any more

An error says three things: what was found, where (a path inside the config or the checkpoint),
and what to do about it: its `fix`, or the `advice` of its class. The CLI prints them on three lines
and ends with `exit_code`. Advice names options of the command line (`--algorithm PPO`); `str` has
the arguments of Python in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rllib_compat.neutral.advice import for_python
from rllib_compat.neutral.origins import with_addresses
from rllib_compat.neutral.text import indented, printable

if TYPE_CHECKING:
    from rllib_compat.neutral.checkpoint import LegacyCheckpoint
    from rllib_compat.neutral.report import Finding


class CompatError(Exception):
    """The root of the tree.

    Args:
        found: What was found, in one sentence.
        where: The place: a path like `$.model.fcnet_hiddens` or `checkpoint-2 → worker → state`.
        fix: What the reader can do about it.
    """

    exit_code = 2
    #: What to do about errors of this class that come without a `fix`.
    advice: str | None = None

    def __init__(self, found: str, *, where: str | None = None, fix: str | None = None) -> None:
        super().__init__(found, where, fix)
        self.found = with_addresses(found)
        self.where = where and with_addresses(where)
        self.fix = with_addresses(fix) if fix else self.advice

    def __reduce__(self) -> tuple[Any, ...]:
        # Ray carries errors between processes; the default would call the class with `args` only.
        return _remake, (type(self), self.args), self.__dict__

    def __str__(self) -> str:
        return self._text(for_python)

    def for_command_line(self) -> str:
        """What `str` says, with options of the command line."""
        return self._text(str)

    def _text(self, advise: Callable[[str], str]) -> str:
        # Text of a file in it can neither steer a terminal nor pass for a line of ours.
        lines = [indented(self.found)]
        if self.where:
            lines.append(f"  where: {printable(advise(self.where))}")
        if self.fix:
            lines.append(f"  to do: {printable(advise(self.fix))}")
        return "\n".join(lines)


def _remake(kind: type[CompatError], args: tuple[Any, ...]) -> CompatError:
    return kind.__new__(kind, *args)


class ConfigError(CompatError):
    """A legacy config can't be translated.

    Args:
        found: What was found, in one sentence.
        where: The path inside the config.
        fix: What the reader can do about it.
        findings: The report's rows behind this error, one a key.
    """

    def __init__(
        self,
        found: str,
        *,
        where: str | None = None,
        fix: str | None = None,
        findings: Sequence[Finding] = (),
    ) -> None:
        super().__init__(found, where=where, fix=fix)
        self.findings = tuple(findings)

    def _text(self, advise: Callable[[str], str]) -> str:
        rows = []
        for finding in self.findings:
            hint = f" ({advise(finding.hint)})" if finding.hint else ""
            rows.append(f"  {finding.path}: {finding.message}{hint}")
        return "\n".join([super()._text(advise), *rows])


class UnknownKeysError(ConfigError):
    """Keys that no Ray from 0.5 on had, with their nearest known neighbours."""


class RefusedKeysError(ConfigError):
    """Keys that are known, but can't mean anything on the installed Ray."""

    advice = "Remove these keys from the config, or change them as their lines say."


class CheckpointError(CompatError):
    """Something about a checkpoint on disk."""


class UnknownLayoutError(CheckpointError):
    """No layout recognises the path; the message says what each of them missed."""


class CorruptCheckpointError(CheckpointError):
    """A file is damaged, truncated or contradicts itself; `where` holds the file and the offset."""

    advice = (
        "Copy the file again from where it was written. If it is the same there, use another file: "
        "damaged data cannot be repaired."
    )


class MissingFileError(CorruptCheckpointError):
    """A file is not there, or something else (a Git-LFS pointer, a web page) is in its place.

    Attributes:
        rest: What could be read of the checkpoint without it, or None.
    """

    rest: LegacyCheckpoint | None = None


class BudgetExceededError(CorruptCheckpointError):
    """A file asks for more bytes, depth or objects than any honest checkpoint does."""

    advice = "Check the path: what RLlib writes is smaller and less deep."


class NotYetError(CheckpointError):
    """The checkpoint was read, but its network or algorithm can't be converted yet."""


class NotConvertibleError(CheckpointError):
    """No conversion will ever be exact: what the old policy computed is not in the checkpoint."""


class MissingInformationError(CheckpointError):
    """Something that the checkpoint does not hold (a space, a config) has to be given."""


class TargetExistsError(CheckpointError):
    """The output is there already, and it was not said to overwrite it."""


class FileSystemError(CheckpointError):
    """The file system refuses: the disk is full or read-only, a name is too long, ….

    The output is as it was before: whole or absent.
    """


class VerificationError(CheckpointError):
    """The old and the new network compute different numbers."""

    advice = (
        "Compare a checkpoint with its own conversion. If a conversion ends with this, it has "
        "written nothing: please report the checkpoint's network and Ray version."
    )


class LegacyEnvError(CompatError):
    """An environment does not behave as any API of gym, gymnasium or RLlib ever did."""


class UnknownPolicyError(CompatError, KeyError):
    """There is no such policy."""


class ObservationError(CompatError, ValueError):
    """An observation is not of the space of the policy that is to act on it."""


class RayNotSupportedError(CompatError):
    """Ray is not installed, or its version is out of the supported range."""


class GoneError(CompatError, AttributeError):
    """A legacy attribute or method that can't exist on the installed Ray.

    It is an `AttributeError`, so that `getattr(trainer, name, default)` and `hasattr` behave.
    """
