"""Simulators that run outside of the trainer and ask it for actions.

`envs.py` has those in a thread of a worker, `server.py` those that connect to a server: the clients
of Ray 0.5 – 2.x, which today's Ray has no server for any more.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "envs": ("PolledEnv", "ServedEnv", "is_external", "record_logged_actions"),
    "messages": ("read_request", "write_answer"),
    "server": ("PolicyServer", "PolicyServerInput"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
