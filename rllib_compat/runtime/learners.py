"""Learner mixins for what old policies did during training.

They call `on_learn_on_batch` before each update, create optimizers that no setting of
`AlgorithmConfig` can create, and log the rates and steps of each update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import configs, learners, releases
from rllib_compat.runtime.policies import LegacyPolicy

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    from rllib_compat.ray_versions.types import Learner

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
        from rllib_compat.runtime.discrete_sac import DiscreteSACLearner

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
            if not np.array_equal(legacy[name], column[real]):
                column = column.copy()
                column[real] = legacy[name]
                batch[name] = _like(batch[name], column)
        for name, value in result.items():
            self.metrics.log_value((module_id, name), value, window=1)


def _array(column: object) -> Any:
    if hasattr(column, "detach"):
        return column.detach().cpu().numpy()
    return column if isinstance(column, np.ndarray) else None


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

    def after_gradient_based_update(self, *, timesteps: object) -> None:
        """Logs the rates of this update, then lets Ray advance them."""
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
