"""What everything else speaks of: reports, spaces, records and the neutral checkpoint.

A leaf of the house: nothing here imports anything of this package but its own neighbours. The
errors are in `rllib_compat.errors`.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "": ("digests", "frozen", "policy_id", "public", "spaces"),
    "budget": ("Budget",),
    "checkpoint": (
        "Counters",
        "LegacyCheckpoint",
        "ObservationFilter",
        "PolicyState",
        "RunningStat",
        "Source",
    ),
    "deferred": ("Deferred",),
    "extras": ("import_optional", "install_command"),
    "records": ("GlobalRef", "StandIn", "is_stand_in"),
    "report": ("Finding", "Report", "Severity", "Verdict"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
