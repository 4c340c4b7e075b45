"""APEX_DDPG: DDPG with distributed, prioritized replay (`agents/ddpg/apex.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rllib_compat.algorithms.base import register
from rllib_compat.algorithms.ddpg import DDPG, DDPGConfig
from rllib_compat.algorithms.distributed_replay import (
    DistributedReplayAlgorithm,
    DistributedReplayConfig,
)
from rllib_compat.algorithms.sampling import exploration_share

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import RLModule


class APEX_DDPG(DistributedReplayAlgorithm, DDPG):  # noqa: N801 - its name in every Ray
    """DDPG whose env runners sample without being waited for, and whose replay is distributed."""


class APEX_DDPGConfig(DistributedReplayConfig, DDPGConfig):  # noqa: N801
    """The config of APEX_DDPG: that of DDPG, and the settings of distributed replay."""

    def explore_as_worker(self, module: RLModule, worker: int) -> None:
        """Lets a module scale its noise as its env runner should, whatever was sampled."""
        if worker and hasattr(module, "scale_noise"):
            module.scale_noise(scale_of_worker(worker, self.num_env_runners))


def scale_of_worker(worker: int, workers: int) -> float:
    """What the noise of an env runner (1, 2, …) is multiplied by.

    Unlike an epsilon of APEX, the first one's is below 0.4: so it was in every Ray.
    """
    return exploration_share(worker / max(1, workers - 1))


register(APEX_DDPG, APEX_DDPGConfig)
