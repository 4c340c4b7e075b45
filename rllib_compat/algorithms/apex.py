"""APEX: DQN with distributed, prioritized replay (`agents/dqn/apex.py`, `algorithms/apex_dqn`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import tree
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.base import register
from rllib_compat.algorithms.distributed_replay import (
    DistributedReplayAlgorithm,
    DistributedReplayConfig,
)
from rllib_compat.algorithms.dqn import DQN, DQNConfig
from rllib_compat.algorithms.objectives import td_targets
from rllib_compat.algorithms.sampling import set_epsilon_of_worker
from rllib_compat.algorithms.transitions import N_STEP
from rllib_compat.ray_versions import modules, replay

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import RLModule


class APEX(DistributedReplayAlgorithm, DQN):
    """DQN whose env runners sample without being waited for, and whose replay is distributed."""


class APEXConfig(DistributedReplayConfig, DQNConfig):
    """The config of APEX: that of Ray's DQN, and the settings of distributed replay."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        replay.use_weighted_buffer(self)

    def explore_as_worker(self, module: RLModule, worker: int) -> None:
        """Lets a module act at random as often as its env runner should; noisy ones never do."""
        set_epsilon_of_worker(module, worker, self.num_env_runners)

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def errors_of_worker(self, module: RLModule, rows: object) -> Any:
        """The TD errors of transitions; the network is its own target, as it was in old workers.

        Where it learns distributions, they are those of the expected values.
        """
        if not modules.has_q_values(module):
            return None
        device = next(module.parameters()).device
        batch = tree.map_structure(lambda column: torch.as_tensor(column, device=device), rows)
        values = modules.q_values(module, {Columns.OBS: batch[Columns.OBS]})
        following = modules.q_values(module, {Columns.OBS: batch[Columns.NEXT_OBS]})
        actions = batch[Columns.ACTIONS].long().unsqueeze(-1)
        target = td_targets(
            batch[Columns.REWARDS],
            batch[Columns.TERMINATEDS],
            following.max(-1).values,
            self.gamma ** batch[N_STEP],
        )
        return (values.gather(-1, actions).squeeze(-1) - target).cpu().numpy()


register(APEX, APEXConfig)
