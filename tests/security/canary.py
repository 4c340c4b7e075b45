"""What a door must not do with a stranger's file, watched by Python's own audit events.

The payloads name a module that leaves a mark when it is imported, and again when one of its
functions is called. It lies on the path, so that an import would succeed. `watched` also sees
every file that is opened for writing, moved or made, every process, and every socket.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODULE = "stranger_code"
CALLED = "touch"

_SOURCE = """
from pathlib import Path
HERE = Path(__file__).parent
(HERE / "imported").touch()
def touch(*args, **kwargs):
    (HERE / "executed").touch()
class Env:
    def __init__(self, *args, **kwargs):
        touch()
"""
_WRITES = {"os.mkdir": 0, "os.rename": 1, "os.symlink": 1, "os.link": 1, "os.remove": 0}
_NEVER = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "socket.connect",
          "pickle.find_class")  # fmt: skip
_events: list[tuple[str, str]] | None = None


def _hook(event: str, args: tuple[object, ...]) -> None:
    if _events is None:
        return
    if event == "import" and str(args[0]).partition(".")[0] == MODULE:
        _events.append(("import", str(args[0])))
    elif event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR):
        _events.append(("write", str(args[0])))
    elif event in _WRITES:
        # With a third argument, the name is below a folder that was opened before.
        if not (event == "os.remove" and args[-1] != -1):
            _events.append(("write", str(args[_WRITES[event]])))
    elif event in _NEVER:
        _events.append((event, str(args[:1])))


sys.addaudithook(_hook)


class Seen:
    """What was seen.

    Attributes:
        imported: Modules of strangers that were imported.
        executed: What was run: their functions, processes, `pickle`'s own look-ups.
        outside: Paths outside of the allowed folder that were written, made or moved.
    """

    def __init__(self) -> None:
        self.imported: list[str] = []
        self.executed: list[str] = []
        self.outside: list[str] = []

    def assert_clean(self) -> None:
        """Nothing of it may have happened."""
        assert not self.imported, self.imported
        assert not self.executed, self.executed
        assert not self.outside, self.outside


@contextmanager
def watched(code: Path, *allowed: Path) -> Iterator[Seen]:
    """Watches a door.

    Args:
        code: A folder for the module that must not be imported.
        allowed: The only folders that may be written to.
    """
    global _events
    code.mkdir(exist_ok=True)
    (code / f"{MODULE}.py").write_text(_SOURCE)
    sys.path.insert(0, str(code))
    seen = Seen()
    _events = events = []
    try:
        yield seen
    finally:
        _events = None
        sys.path.remove(str(code))
        loaded = sys.modules.pop(MODULE, None)
        seen.imported += [name for kind, name in events if kind == "import"]
        if loaded is not None or (code / "imported").exists():
            seen.imported.append(MODULE)
        seen.executed += [f"{kind} {name}" for kind, name in events if kind in _NEVER]
        if (code / "executed").exists():
            seen.executed.append(CALLED)
        inside = tuple(map(os.fspath, allowed))
        seen.outside += [
            name
            for kind, name in events
            # A descriptor, or what has no name, was opened by its path before.
            if kind == "write"
            and not name.startswith((*inside, "/dev/null"))
            and not name.removeprefix("-").isdigit()
        ]
        for mark in ("imported", "executed"):
            (code / mark).unlink(missing_ok=True)
