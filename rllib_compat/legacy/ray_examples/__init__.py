"""Ray's own examples of old, which old projects import; see the README."""

import rllib_compat.legacy  # noqa: F401 - their imports are old ones
