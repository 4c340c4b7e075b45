"""Ray's DQN, which replays columns in the place of episodes; and Ray's configs that let it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from ray.rllib.algorithms import dqn, sac
from ray.rllib.core.columns import Columns

from rllib_compat.algorithms.base import Batch, OwnEnvRunnersConfig
from rllib_compat.algorithms.objectives import huber, td_targets
from rllib_compat.algorithms.off_policy import OffPolicyAlgorithm, reason_in_config
from rllib_compat.algorithms.sac import SAC
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import configs, learners, renames

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

_DQNTorchLearner: Any = renames.resolve("DQNTorchLearner")


class DQN(OffPolicyAlgorithm, dqn.DQN):  # type: ignore[misc]  # Ray has no types
    """Ray's DQN with a replay buffer of columns."""

    @classmethod
    def get_default_config(cls) -> DQNConfig:
        """The config that it starts from."""
        return DQNConfig()


class DQNConfig(OwnEnvRunnersConfig, dqn.DQNConfig):  # type: ignore[misc]
    """The config of Ray's DQN, with all its settings."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or DQN)

    def get_default_learner_class(self) -> Any:
        """Ray's learner, which takes columns."""
        return column_learner(super().get_default_learner_class())


class ExpectedValueLearner:
    """Computes the loss of Ray's DQN where it learns no distribution of values; a first base.

    Ray's asks whether there are sequences, and logs the mean values of each update.
    """

    def compute_loss_for_module(
        self, *, module_id: str, config: AlgorithmConfig, batch: Batch, fwd_out: Batch
    ) -> Any:
        """The loss of a module; that of distributions and of sequences is Ray's."""
        rays = super().compute_loss_for_module  # type: ignore[misc]  # of the real learner
        known = rays.__func__ is _DQNTorchLearner.compute_loss_for_module
        if not known or config.num_atoms > 1 or Columns.LOSS_MASK in batch:
            return rays(module_id=module_id, config=config, batch=batch, fwd_out=fwd_out)
        following = fwd_out["qf_target_next_preds"]
        chosen_next = (fwd_out["qf_next_preds"] if config.double_q else following).argmax(-1)
        values = _values_of(fwd_out["qf_preds"], batch[Columns.ACTIONS])
        targets = td_targets(
            batch[Columns.REWARDS],
            batch[Columns.TERMINATEDS],
            _values_of(following, chosen_next),
            torch.pow(config.gamma, batch["n_step"]),
        ).detach()
        errors = values - targets
        losses = huber(errors) if config.td_error_loss_fn == "huber" else errors.square()
        loss = (batch["weights"] * losses).mean()
        errors = errors.detach().abs()
        learners.log_td_errors(self, module_id, errors)
        learners.log_terms(
            self,
            module_id,
            lambda: {
                "qf_loss": loss,
                "qf_mean": values.mean(),
                "qf_max": values.max(),
                "qf_min": values.min(),
                "td_error_mean": errors.mean(),
            },
        )
        return loss


def _values_of(values: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """The values of some actions; a masked one has none."""
    found = values.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1)
    return found.nan_to_num(neginf=0.0)


def column_learner(learner_class: type) -> Any:
    """A learner class of Ray's that takes columns."""
    before = (ExpectedValueLearner,) if issubclass(learner_class, _DQNTorchLearner) else ()
    return learners.array_batch_learner(learner_class, *before)


#: An algorithm of Ray → the same one, which replays columns.
REPLAYING = {dqn.DQN: DQN, sac.SAC: SAC}


def may_replay_columns(config: AlgorithmConfig) -> bool:
    """Whether a config is one of Ray's DQN or SAC, and says nothing that takes episodes."""
    return config.algo_class in REPLAYING and reason_in_config(config) is None


def replay_columns(config: AlgorithmConfig) -> AlgorithmConfig:
    """Lets the algorithm of a config replay columns in the place of episodes, in place.

    What it learns is the same; how it is set up, too. DDPG and TD3 of this package do it anyway.

    Raises:
        ConfigError: Its algorithm is another one, or runs on the old API stack.
    """
    if issubclass(config.algo_class, OffPolicyAlgorithm):
        return config
    if config.algo_class not in REPLAYING or not config.enable_env_runner_and_connector_v2:
        raise ConfigError(
            "replay_columns=True is only for DQN, SAC, DDPG and TD3 on the new API stack, not for "
            f"this {config.algo_class.__name__}.",
            where="replay_columns",
            fix="set replay_columns=False",
        )
    learner_class = config.learner_class
    if not issubclass(learner_class, learners.ArrayBatchLearner):
        configs.set_learner_class(config, column_learner(learner_class))
    config.algo_class = REPLAYING[config.algo_class]
    return config
