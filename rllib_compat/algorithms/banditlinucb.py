"""BanditLinUCB: a linear bandit that adds a bonus for what is not known of an arm. See `bandit`."""

from __future__ import annotations

from rllib_compat.algorithms.bandit import Bandit, BanditConfig
from rllib_compat.algorithms.names import register


class BanditLinUCB(Bandit):
    """Chooses by what is expected, and a bonus for what is not known."""

    @classmethod
    def get_default_config(cls) -> BanditLinUCBConfig:
        """The config that it starts from."""
        return BanditLinUCBConfig()


class BanditLinUCBConfig(BanditConfig):
    """The config of BanditLinUCB.

    Args:
        algo_class: The algorithm, if it is a subclass of `BanditLinUCB`.
    """

    sampling = False

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or BanditLinUCB)


register(BanditLinUCB)
