"""Rewrites old code for good: `rllib-compat upgrade`.

A rule is a file in `rules/`; its name is the rule's id in reports, in `--only` and `--skip`, and
its heading in the guide. A rule changes what it is sure of. Where it is not, it writes
`# TODO(rllib-compat: rule) …` above the statement, and a row in the report. Formatting and comments
stay as they are, and a second run changes nothing.
"""

from rllib_compat.upgrade.engine import Upgraded, upgrade
from rllib_compat.upgrade.rule import Change, Target
from rllib_compat.upgrade.rules import RULES

__all__ = ["RULES", "Change", "Target", "Upgraded", "upgrade"]
