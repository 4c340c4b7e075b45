"""External simulators, which ask the trainer for actions.

`envs.py` is for simulators in a thread of a worker, `server.py` for policy clients of Ray 0.5 –
2.x, which the installed Ray has no server for.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "envs": ("PolledEnv", "ServedEnv", "is_external", "record_logged_actions"),
    "messages": ("read_request", "write_answer"),
    "server": ("PolicyServer", "PolicyServerInput"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
