"""BanditLinTS: a linear bandit that draws the weights from the posterior. See `bandit`."""

from __future__ import annotations

from rllib_compat.algorithms.bandit import Bandit, BanditConfig
from rllib_compat.algorithms.names import register


class BanditLinTS(Bandit):
    """Chooses by what weights drawn from the posterior expect."""

    @classmethod
    def get_default_config(cls) -> BanditLinTSConfig:
        """The config that it starts from."""
        return BanditLinTSConfig()


class BanditLinTSConfig(BanditConfig):
    """The config of BanditLinTS.

    Args:
        algo_class: The algorithm, if it is a subclass of `BanditLinTS`.
    """

    sampling = True

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or BanditLinTS)


register(BanditLinTS)
