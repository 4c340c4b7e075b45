"""The errors of this package, for `except`: all of them are `CompatError`s."""

from rllib_compat.neutral.errors import *  # noqa: F403 - all errors
