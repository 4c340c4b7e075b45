"""A2C and A3C, which this package has for the new API stack."""

from __future__ import annotations

from rllib_compat.config.rule import kept
from rllib_compat.config.values import common as v

FAMILY = "a2c"

RULES = (
    *kept(FAMILY, "training", {v.FLAG: "use_gae use_critic"}, algorithms=("A2C", "A3C")),
    *kept(FAMILY, "training", {v.SOME: "microbatch_size"}, algorithms=("A2C",)),
)
