"""What trials of any Ray have logged: read from their folders, and drawn."""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "draw": ("combine", "draw as draw_curves", "smooth"),
    "read": ("Trial", "find_trials", "read_returns", "read_trial"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
