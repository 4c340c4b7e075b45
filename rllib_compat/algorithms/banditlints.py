"""BanditLinTS: a linear bandit that draws the weights around what it expects. See `bandit`."""

from __future__ import annotations

from rllib_compat.algorithms.banditlinucb import Bandit, BanditConfig
from rllib_compat.algorithms.base import register
from rllib_compat.networks.modules.bandit import POSTERIOR, PRIOR


class BanditLinTS(Bandit):
    """Chooses by what weights expect that are drawn around the posterior's mean."""


class BanditLinTSConfig(BanditConfig):
    """The config of BanditLinTS."""

    sampling = True
    choices = {"drawn_from": (PRIOR, POSTERIOR)}
    module_settings = {
        "drawn_from": "With whose covariance weights are drawn: the `prior`'s, as in every Ray "
        "that had it, or the `posterior`'s, which explores less the more it has learned."
    }


register(BanditLinTS, BanditLinTSConfig)
