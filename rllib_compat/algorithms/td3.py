"""TD3 (`rllib/agents/ddpg/td3.py` of Ray 0.6 – 1.13, `algorithms/td3` until 2.10).

It is DDPG with other defaults: twin critics, delayed updates of the actor, smoothed targets, and
Gaussian noise.
"""

from __future__ import annotations

from rllib_compat.algorithms.base import register
from rllib_compat.algorithms.ddpg import DDPG, DDPGConfig


class TD3(DDPG):
    """Learns a deterministic policy from the smaller of two critics' values."""


class TD3Config(DDPGConfig):
    """The config of TD3; it has the settings of DDPG."""


register(TD3, TD3Config)
