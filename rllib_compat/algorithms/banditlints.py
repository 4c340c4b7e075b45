"""BanditLinTS: a linear bandit that draws the weights around what it expects. See `bandit`."""

from __future__ import annotations

from typing import Any, ClassVar

from ray.rllib.algorithms.algorithm_config import NotProvided

from rllib_compat.algorithms.banditlinucb import Bandit, BanditConfig
from rllib_compat.algorithms.base import register
from rllib_compat.networks.modules.bandit import POSTERIOR, PRIOR
from rllib_compat.neutral.errors import ConfigError


class BanditLinTS(Bandit):
    """Chooses by what weights expect that are drawn around the posterior's mean."""

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
    module_settings: ClassVar[tuple[str, ...]] = (*BanditConfig.module_settings, "drawn_from")

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or BanditLinTS)
        self.drawn_from = PRIOR

    def training(self, *, drawn_from: Any = NotProvided, **kwargs: Any) -> BanditLinTSConfig:
        """Sets how it learns.

        Args:
            drawn_from: With whose covariance weights are drawn: the `prior`'s, as in every Ray that
                had it, or the `posterior`'s, which explores less the more it has learned.
            **kwargs: What every linear bandit has.

        Returns:
            The config itself.
        """
        super().training(**kwargs)
        self.set_given(locals())
        return self

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: It can't run so.
        """
        super().validate()
        if self.drawn_from not in (PRIOR, POSTERIOR):
            raise ConfigError(
                f"drawn_from is {PRIOR!r} or {POSTERIOR!r}, not {self.drawn_from!r}.",
                where="drawn_from",
                fix=f"drawn_from={PRIOR!r}",
            )


register(BanditLinTS)
