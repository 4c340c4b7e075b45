"""Leagues: the weights of frozen policies once on each node, for all of its env runners."""

from rllib_compat.neutral.public import lazy_exports

_FILES = {"memory": ("share_frozen",)}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
