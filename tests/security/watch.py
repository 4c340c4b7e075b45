"""Sees what Python does while something hostile is read: imports, files, processes.

An audit hook can't be taken away again, so there is one for the whole run; it notes nothing unless
`watched()` is on.
"""

import sys
from contextlib import contextmanager

#: The name that all payloads have in them.
MARK = "evilmod"

#: What must not happen at all while a config is read.
FORBIDDEN = (
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen"),
    *("pickle.find_class", "shutil.rmtree"),
)
_on = False
_seen = []


def _hook(event, arguments):
    if not _on:
        return
    if event in FORBIDDEN or (event in ("import", "open") and MARK in str(arguments[0])):
        _seen.append((event, str(arguments)[:200]))


sys.addaudithook(_hook)


@contextmanager
def watched():
    """Fails if anything of a payload was imported, opened or run."""
    global _on
    _seen.clear()
    _on = True
    try:
        yield
    finally:
        _on = False
    assert not _seen, _seen
    assert not [name for name in sys.modules if MARK in name], "imported"
