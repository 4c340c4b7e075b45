"""Learner mixins for what old policies did during training.

They call `on_learn_on_batch` before each update, create optimizers that no setting of
`AlgorithmConfig` can create, and log the rates and steps of each update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from ray.rllib.core.columns import Columns
from torch.nn.functional import huber_loss

from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import configs, learners, releases
from rllib_compat.ray_versions.types import AlgorithmConfig, Learner
from rllib_compat.runtime.policies import LegacyPolicy

#: The key of `learner_config_dict`.
OPTIMIZER = "legacy_optimizer"


def use_callback_learner(config: AlgorithmConfig) -> None:
    """Adds `CallbackLearner`, if a config's callbacks handle `on_learn_on_batch`."""
    if getattr(config.callbacks_class, "handles_learn_on_batch", False):
        prepend_learner_class(CallbackLearner, "Callback", config)


def use_legacy_optimizer(config: AlgorithmConfig) -> None:
    """Adds `OptimizerLearner`, if a config has a `legacy_optimizer`."""
    if config.learner_config_dict.get(OPTIMIZER):
        prepend_learner_class(OptimizerLearner, "Optimizer", config)


def use_one_batch_learner(config: AlgorithmConfig) -> None:
    """Adds `OneBatchLearner`, if a config is CQL's with a local learner."""
    from ray.rllib.algorithms.cql import CQLConfig

    if not config.num_learners and isinstance(config, CQLConfig):
        prepend_learner_class(OneBatchLearner, "OneBatch", config)


def use_discrete_learner(config: AlgorithmConfig) -> None:
    """Adds `DiscreteSACLearner` to SAC, if the installed Ray's SAC lacks discrete actions."""
    from ray.rllib.algorithms.sac import SAC

    if config.algo_class is SAC and not releases.trains_discrete_sac():
        prepend_learner_class(DiscreteSACLearner, "Discrete", config)


def use_reporting_learner(config: AlgorithmConfig) -> None:
    """Adds `ReportingLearner`."""
    prepend_learner_class(ReportingLearner, "Reporting", config)
    if learners.learns_in_thread(config):
        prepend_learner_class(learners.ThreadErrorLearner, "Open", config)


def prepend_learner_class(
    first: type, prefix: str, config: AlgorithmConfig, **members: object
) -> None:
    """Derives a config's learner class from `first` and its own, unless it is derived already."""
    base = config.learner_class
    if issubclass(base, first):
        return
    made = type(f"{prefix}{base.__name__}", (first, base), {"__module__": __name__, **members})
    configs.set_learner_class(config, made)


@public("rllib_compat.adapters")
class OptimizerLearner:
    """A mixin that creates the optimizers of a config; the first base of a learner class.

    `learner_config_dict["legacy_optimizer"]` holds the `name` of a class (Adam, which Ray makes by
    default, RMSprop, or TensorFlowRMSprop) and its arguments but for the learning rate.
    """

    config: Any

    def register_optimizer(
        self, *, optimizer: torch.optim.Optimizer, params: Iterable[Any], **kwargs: object
    ) -> None:
        """Registers the legacy optimizer instead of Ray's own."""
        arguments = dict(self.config.learner_config_dict[OPTIMIZER])
        kind = OPTIMIZERS[arguments.pop("name", "Adam")]
        rate = optimizer.param_groups[0]["lr"]
        super().register_optimizer(  # type: ignore[misc]  # of the real learner
            optimizer=kind(list(params), lr=rate, **arguments), params=params, **kwargs
        )


@public("rllib_compat.adapters")
class CallbackLearner:
    """A mixin that calls `on_learn_on_batch` before each update; the first base of a learner class.

    A learner in another process has its own callbacks objects there.
    """

    config: Any
    metrics: Any
    module: Any

    def _update(self, batch: Mapping[str, Any], **kwargs: object) -> Any:
        if not hasattr(self, "_legacy_callbacks"):
            self._legacy_callbacks = self.config.callbacks_class()
        for module_id in batch:
            self._call_callbacks(module_id, batch[module_id])
        return super()._update(batch, **kwargs)  # type: ignore[misc]  # of the real learner

    def _call_callbacks(self, module_id: str, batch: MutableMapping[str, Any]) -> None:
        from ray.rllib.policy.sample_batch import SampleBatch

        module, learner = self.module[module_id].unwrapped(), cast("Learner", self)
        policy = LegacyPolicy(module_id, module, self.config, learner=learner)
        # Structured columns (recurrent states) are left out.
        columns = {name: _array(column) for name, column in batch.items()}
        flat = {name: column for name, column in columns.items() if column is not None}
        # Ray appends a step to each chunk for its last value, and masks its loss.
        mask = flat.get(learners.LOSS_MASK)
        real: Any = slice(None) if mask is None or mask.ndim > 1 or mask.all() else mask
        legacy = SampleBatch({name: column[real].copy() for name, column in flat.items()})
        result: dict[str, Any] = {}
        self._legacy_callbacks.learn_on_batch(policy, legacy, result)
        for name, column in flat.items():
            if name not in legacy:
                del batch[name]
            elif not np.array_equal(legacy[name], column[real]):
                column = column.copy()
                column[real] = _fitting(name, legacy[name], column[real].shape)
                batch[name] = _like(batch[name], column)
        some, first = next(iter(flat.items()))
        rows = first.shape[:1] if mask is None else mask.shape
        for name in [name for name in legacy if name not in flat]:
            added = _fitting(name, legacy[name], np.empty(rows)[real].shape)
            dtype = np.float32 if added.dtype == np.float64 else added.dtype
            column = np.zeros(rows + added.shape[len(rows) :], dtype)
            column[real] = added
            kept = isinstance(batch[some], np.ndarray)
            batch[name] = column if kept else torch.as_tensor(column, device=batch[some].device)
        for name, value in result.items():
            self.metrics.log_value((module_id, name), value, window=1)


def _array(column: object) -> Any:
    if hasattr(column, "detach"):
        return column.detach().cpu().numpy()
    return column if isinstance(column, np.ndarray) else None


def _fitting(name: str, column: object, rows: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A column that a callback has set, which must have such rows."""
    array = np.asarray(column)
    if array.shape[: len(rows)] != rows or array.dtype.kind not in "biuf":
        raise CompatError(
            f"on_learn_on_batch() set the column {name!r} to {array.dtype} of the shape "
            f"{array.shape}, and the batch has rows of the shape {rows}.",
            where="callbacks.on_learn_on_batch",
            fix="set an array with a number for each row of train_batch",
        )
    return array


def _like(tensor: torch.Tensor | np.ndarray[Any, Any], array: np.ndarray[Any, Any]) -> Any:
    if isinstance(tensor, np.ndarray):
        return array

    return torch.as_tensor(array, dtype=tensor.dtype, device=tensor.device)


@public("rllib_compat.adapters")
class ReportingLearner(learners.StepCountingLearner):
    """A mixin that logs the rates of an update by their old names; a first base.

    Ray advances schedules and KL coefficients first, and logs those of the next update.
    """

    metrics: Any

    def register_optimizer(self, **of: object) -> None:
        """Registers an optimizer, whose rate is the config's until somebody sets another one."""
        with learners.loading_no_rates(self):
            super().register_optimizer(**of)  # type: ignore[misc]

    def after_gradient_based_update(self, *, timesteps: object) -> None:
        """Logs the rates of this update, then lets Ray advance them."""
        learners.keep_rates_of_optimizers(self)
        for key, rate in learners.rates_in_use(self).items():
            self.metrics.log_value(key, rate, window=1)
        super().after_gradient_based_update(timesteps=timesteps)  # type: ignore[misc]


@public("rllib_compat.adapters")
class OneBatchLearner:
    """A mixin that takes a train batch instead of an iterator over recordings; a first base.

    `CQL.training_step` of Ray 2.44 – 2.60 passes its sample as `data_iterators`, and raises
    `KeyError: 0` if an iteration is one batch.
    """

    def update(self, training_data: object = None, **kwargs: object) -> Any:
        """Updates the modules once with each minibatch."""
        if training_data is not None:
            learners.hand_over_batch(training_data)
        return super().update(training_data=training_data, **kwargs)  # type: ignore[misc]


class TensorFlowRMSprop(torch.optim.Optimizer):
    """RMSprop of TensorFlow (`tf.compat.v1.train`), or with a momentum that of Keras.

    Torch adds epsilon to the root, not below it, and multiplies the momentum by the rate, too.

    `first` is the initial mean of the squared gradients: 1 in `tf.compat.v1`, 0 in Keras.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        alpha: float = 0.9,
        momentum: float = 0.0,
        eps: float = 1e-10,
        first: float = 1.0,
    ) -> None:
        given = {"lr": lr, "alpha": alpha, "momentum": momentum, "eps": eps, "first": first}
        super().__init__(params, given)

    @torch.no_grad()
    def step(self, closure: Callable[..., Any] | None = None) -> Any:
        """Makes one optimizer step."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                slots = self.state[weight]
                if not slots:
                    slots["square_avg"] = torch.full_like(weight, group["first"])
                    slots["momentum_buffer"] = torch.zeros_like(weight)
                mean, moved = slots["square_avg"], slots["momentum_buffer"]
                mean.lerp_(weight.grad.square(), 1 - group["alpha"])
                moved.mul_(group["momentum"])
                moved.addcdiv_(weight.grad, (mean + group["eps"]).sqrt(), value=group["lr"])
                weight.sub_(moved)
        return loss


#: The name of an optimizer in a config → its class.
OPTIMIZERS = {
    "Adam": torch.optim.Adam,
    "RMSprop": torch.optim.RMSprop,
    "TensorFlowRMSprop": TensorFlowRMSprop,
}


#: The module's output with the log-probabilities at the next observations.
NEXT_LOGPS = "action_log_probs_next"


class DiscreteSACLearner:
    """A mixin that learns discrete actions as `agents/sac` did; the first base of a learner class.

    Ray's own learner supports them since 2.48. Its default target entropy is -1, which no policy
    reaches, so that the temperature only falls; and its actor uses the smaller value of both
    critics, where the old one used the first.
    """

    squares_errors = False
    module: Any
    metrics: Any
    curr_log_alpha: Mapping[str, torch.Tensor]

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: AlgorithmConfig,
        batch: Mapping[str, Any],
        fwd_out: Mapping[str, Any],
    ) -> Any:
        """Computes the losses of discrete actions; of others, Ray's."""
        if "action_probs" not in fwd_out:
            return super().compute_loss_for_module(  # type: ignore[misc]  # of the real learner
                module_id=module_id, config=config, batch=batch, fwd_out=fwd_out
            )
        losses, errors = self.critic_losses(module_id, config, batch, fwd_out)
        of_actor, stats = self._discrete_losses(module_id, config, fwd_out)
        losses |= of_actor
        learners.log_td_errors(cast("Learner", self), module_id, errors)
        self.take_losses(module_id, losses, stats | {"td_error_mean": errors.mean()})
        return sum(losses.values())

    def take_losses(
        self, module_id: str, losses: Mapping[str, Any], stats: Mapping[str, Any]
    ) -> None:
        """Replaces Ray's losses with these, and logs them with other statistics."""
        for name, value in losses.items():
            learners.replace_loss(self, module_id, name, value)
        self.metrics.log_dict({**stats, **losses}, key=module_id, window=1)

    def _alpha(self, module_id: str) -> torch.Tensor:
        """The weight of the entropy, without a gradient."""
        return self.curr_log_alpha[module_id].detach().exp()

    def critic_losses(
        self,
        module_id: str,
        config: AlgorithmConfig,
        batch: Mapping[str, Any],
        fwd_out: Mapping[str, Any],
    ) -> tuple[dict[str, Any], torch.Tensor]:
        """Computes the critics' losses by name, and the mean absolute TD error of each step."""
        discrete, actions = "action_probs" in fwd_out, batch[Columns.ACTIONS]
        if discrete:
            worth = fwd_out["q_target_next"] - self._alpha(module_id) * fwd_out[NEXT_LOGPS]
            after = (fwd_out["action_probs_next"] * worth).sum(-1)
        else:
            logp = fwd_out["logp_next_resampled"]
            after = fwd_out["q_target_next"] - self._alpha(module_id) * logp
        discount = config.gamma**config.n_step
        rewards, ended = batch[Columns.REWARDS], batch[Columns.TERMINATEDS]
        targets = (rewards + discount * (1.0 - ended.float()) * after).detach()
        losses, distances = {}, []
        for name in ("qf", "qf_twin") if config.twin_q else ("qf",):
            predicted = fwd_out[f"{name}_preds"]
            if discrete:
                predicted = torch.take_along_dim(
                    predicted, actions.long().view(-1, 1), dim=-1
                ).squeeze(-1)
            distances.append((predicted - targets).detach().abs())
            if self.squares_errors:
                each = (predicted - targets) ** 2 / 2
            else:
                each = batch["weights"] * huber_loss(predicted, targets, reduction="none")
            losses[f"{name}_loss"] = each.mean()
        return losses, torch.stack(distances).mean(0)

    def _discrete_losses(
        self, module_id: str, config: AlgorithmConfig, fwd_out: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Computes the losses of the policy and the temperature, and other statistics."""
        alpha, log_alpha = self._alpha(module_id), self.curr_log_alpha[module_id]
        probabilities, logps = fwd_out["action_probs"], fwd_out["action_log_probs"]
        target = target_entropy(self.module[module_id].unwrapped().action_space, config)
        worth = alpha * logps - fwd_out["qf_preds"].detach()
        entropy = -(probabilities * logps).sum(-1).detach()
        losses = {
            "policy_loss": (probabilities * worth).sum(-1).mean(),
            "alpha_loss": (log_alpha * (entropy - target)).mean(),
        }
        return losses, {
            "alpha_value": alpha[0],
            "log_alpha_value": log_alpha.detach()[0],
            "target_entropy": target,
            "logps": logps.detach().mean(),
        }


def target_entropy(space: gymnasium.Space[Any], config: AlgorithmConfig) -> float:
    """Returns the target entropy; the default for discrete actions is 98 % of the maximum."""
    if config.target_entropy not in (None, "auto"):
        return float(config.target_entropy)
    if isinstance(space, gymnasium.spaces.Discrete):
        return 0.98 * float(np.log(space.n))
    return -float(np.prod(space.shape or ()))
