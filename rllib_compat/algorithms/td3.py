"""TD3 (`rllib/agents/ddpg/td3.py` of Ray 0.6 – 1.13, `algorithms/td3` until 2.10).

It is DDPG with other defaults: twin critics, delayed updates of the actor, smoothed targets, and
Gaussian noise.
"""

from __future__ import annotations

from rllib_compat.algorithms.base import register
from rllib_compat.algorithms.ddpg import DDPG, DDPGConfig


class TD3(DDPG):
    """Learns a deterministic policy from the smaller of two critics' values."""

    @classmethod
    def get_default_config(cls) -> TD3Config:
        """The config that it starts from."""
        return TD3Config()


class TD3Config(DDPGConfig):
    """The config of TD3; it has the settings of DDPG.

    Args:
        algo_class: The algorithm, if it is a subclass of `TD3`.
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or TD3)


register(TD3)
