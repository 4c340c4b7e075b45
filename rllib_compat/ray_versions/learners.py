"""Learners: what they are given, what they compute with, and target networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import renames, schedules
from rllib_compat.ray_versions.configs import is_multi_agent
from rllib_compat.ray_versions.metrics import add_up, log_directly, log_item
from rllib_compat.ray_versions.modules import have_hooks, training_pass
from rllib_compat.ray_versions.releases import at_least
from rllib_compat.ray_versions.tensors import as_tensor, target_of

if TYPE_CHECKING:
    import torch

    from rllib_compat.ray_versions.types import (
        Algorithm,
        AlgorithmConfig,
        ConnectorPipeline,
        EnvRunner,
        Learner,
        MultiAgentBatch,
    )

#: The column that says which rows of a batch were sampled.
LOSS_MASK = "loss_mask"


def add_next_observations(pipeline: ConnectorPipeline) -> None:
    """Adds the piece that adds the next observations to batches, unless it is there."""
    from ray.rllib.connectors.common.add_observations_from_episodes_to_batch import (
        AddObservationsFromEpisodesToBatch,
    )
    from ray.rllib.connectors.learner import (
        AddNextObservationsFromEpisodesToTrainBatch as NextObservations,
    )

    if not any(isinstance(piece, NextObservations) for piece in pipeline.connectors):
        pipeline.insert_after(AddObservationsFromEpisodesToBatch, NextObservations())


def learns_directly(learner: Any) -> bool:
    """Whether `learn_directly` does what `update` does: no subclass has another."""
    from ray.rllib.core.learner.learner import Learner

    names = ("update", "_create_iterator_if_necessary", "_log_metrics")
    direct = isinstance(learner, DirectLearner) and at_least("2.53")
    return direct and _has_methods_of(learner, Learner, names)


def batch_of_episodes(learner: Any, episodes: list[Any]) -> MultiAgentBatch:
    """What a learner's connectors make of episodes, which they change."""
    from ray.rllib.core.learner.training_data import TrainingData

    data = TrainingData(episodes=episodes)
    batch: MultiAgentBatch = learner._make_batch_if_necessary(training_data=data)
    return batch


def batch_of_arrays(learner: Any, batches: Mapping[str, Mapping[str, Any]], steps: int) -> Any:
    """The columns of each module's batch as tensors, on the learner's device."""
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

    device = device_of(learner)
    tensors = {
        module_id: SampleBatch({name: as_tensor(v, device) for name, v in columns.items()})
        for module_id, columns in batches.items()
    }
    return MultiAgentBatch(tensors, steps)


def log_td_errors(learner: Any, module_id: str, errors: object) -> None:
    """Logs the TD errors of a batch, one a transition, from which priorities are made."""
    from ray.rllib.utils.metrics import TD_ERROR_KEY

    if getattr(learner, "reports_later", False):
        learner.td_errors[module_id] = errors
    else:
        log_item(learner.metrics, (module_id, TD_ERROR_KEY), errors)


def log_terms(
    learner: Any, module_id: str, terms: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
) -> None:
    """Logs what a loss is made of, or what a function computes of it.

    A learner that reports later logs what was last, and only then is it computed.
    """
    if getattr(learner, "reports_later", False):
        learner.last_terms[module_id] = terms
    else:
        learner.metrics.log_dict(terms() if callable(terms) else terms, key=module_id, window=1)


class GradientClippingLearner:
    """The first base of a torch learner some of whose modules may have no part in a batch.

    Those are frozen, or their agents were not there; they have an optimizer, and no gradient.
    """

    #: In an update: how many gradients clipping has found finite.
    _finite: int | None = None

    def postprocess_gradients(self, gradients_dict: Mapping[Any, Any]) -> dict[Any, Any]:
        """Clips gradients; where a Ray clips none, some releases give none back."""
        there = {ref: grad for ref, grad in gradients_dict.items() if grad is not None}
        return {**there, **super().postprocess_gradients(gradients_dict)}  # type: ignore[misc]

    def postprocess_gradients_for_module(
        self, *, module_gradients_dict: object, **of: object
    ) -> Any:
        """Clips a module's gradients; Ray 2.40 fails where there are none."""
        if not module_gradients_dict:
            return {}
        return super().postprocess_gradients_for_module(  # type: ignore[misc]
            module_gradients_dict=module_gradients_dict, **of
        )

    def _get_clip_function(self) -> Any:
        """What clips gradients: by their norm, all of them at once, to the same numbers."""
        from ray.rllib.core.learner.torch.torch_learner import TorchLearner

        function = super()._get_clip_function  # type: ignore[misc]
        rays = function is TorchLearner._get_clip_function and at_least("2.60")
        return self._clip if rays else function()

    def _clip(self, gradients_dict: dict[Any, Any], **how: Any) -> Any:
        norm, finite = clip_gradients(gradients_dict, **how)
        if finite and self._finite is not None:
            self._finite += len(gradients_dict)
        return norm


def clip_gradients(
    gradients_dict: dict[Any, Any], *, grad_clip: float | None = None, grad_clip_by: str = "value"
) -> tuple[Any, bool]:
    """Clips gradients in place, as Ray's function does.

    Returns:
        Their norm, if that is limited, and whether all their numbers are known to be finite.
    """
    import torch
    from ray.rllib.utils import torch_utils

    gradients = list(gradients_dict.values())
    plain = all(isinstance(gradient, torch.Tensor) for gradient in gradients)
    if grad_clip is None or grad_clip_by != "global_norm" or not gradients or not plain:
        how = {"grad_clip": grad_clip, "grad_clip_by": grad_clip_by}
        return torch_utils.clip_gradients(gradients_dict, **how), False
    norms = torch.stack(torch._foreach_norm(gradients))
    norm = torch.linalg.vector_norm(norms)
    if norm.is_cpu and math.isfinite(norm):
        if norm + 1e-6 > grad_clip:
            torch._foreach_mul_(gradients, (norm + 1e-6).reciprocal() * grad_clip)
        return norm, True
    finite = {"neginf": -10e8, "posinf": 10e8}
    norm = torch.linalg.vector_norm(norms.nan_to_num(**finite)).nan_to_num(**finite)
    torch._foreach_mul_(gradients, (grad_clip / (norm + 1e-6).clamp(min=grad_clip)).clamp(max=1.0))
    return norm, False


class DirectLearner(GradientClippingLearner):
    """The first base of a torch learner whose updates do nothing that decides nothing."""

    config: Any
    module: Any
    metrics: Any
    _grad_scalers: Any
    _params: dict[Any, Any]
    _temp_losses: dict[Any, Any]
    #: Whether it is in an update that reports nothing yet.
    reports_later = False

    def build(self) -> None:
        """Builds the learner."""
        super().build()  # type: ignore[misc]  # of the real learner
        log_directly(self.metrics)
        #: Module → all modules in it, and itself; and what computes its training pass.
        self._passes: dict[Any, tuple[list[Any], Any]] = {}
        #: Module → what its last loss is made of, its TD errors, and the loss: not yet logged.
        self.last_terms: dict[str, Any] = {}
        self.td_errors: dict[str, Any] = {}
        self._losses: dict[str, Any] = {}
        #: The steps that were learned from, and of modules: not yet counted for Prometheus.
        self._env_steps = self._module_steps = 0

    def learn_directly(
        self, make_batch: Callable[[], MultiAgentBatch], timesteps: Mapping[str, int]
    ) -> None:
        """Learns once from a batch of tensors, and reports nothing until `report`.

        It is what `update` does, without looking for what else it may have been given.
        """
        self._check_is_built()  # type: ignore[attr-defined]
        self.before_gradient_based_update(timesteps=timesteps)  # type: ignore[attr-defined]
        self._weights_seq_no += 1  # type: ignore[attr-defined]
        batch = make_batch()
        for module_id in list(batch.policy_batches):
            if not self.should_module_be_updated(module_id, batch):  # type: ignore[attr-defined]
                del batch.policy_batches[module_id]
        self.td_errors.clear()
        self.reports_later = True
        try:
            if batch.policy_batches:
                _, losses, _ = self._update(batch.policy_batches)
                self._losses.update(losses)
                self._env_steps += batch.env_steps()
                self._module_steps += batch.agent_steps()
                self._log_steps_trained_metrics(batch)  # type: ignore[attr-defined]
            self.after_gradient_based_update(timesteps=timesteps)  # type: ignore[attr-defined]
        finally:
            self.reports_later = False

    def report(self) -> Any:
        """What was measured in updates since the last report."""
        import torch

        with torch.no_grad():
            for module_id, terms in self.last_terms.items():
                log_terms(self, module_id, terms)
        for module_id, loss in self._losses.items():
            self.metrics.log_value((module_id, "total_loss"), loss, window=1)
        self.last_terms.clear()
        self._losses.clear()
        for name, steps in (("env", self._env_steps), ("module", self._module_steps)):
            if steps:
                getattr(self, f"_metrics_all_modules_num_{name}_steps_trained").inc(value=steps)
        self._env_steps = self._module_steps = 0
        return self.metrics.reduce()

    def _update(self, batch: Mapping[str, Any], **kwargs: object) -> Any:
        """One update; Ray puts every layer into training mode before each, where it is already."""
        from ray.rllib.core.learner.torch.torch_learner import TorchLearner

        rays = super()._update  # type: ignore[misc]
        if (
            not at_least("2.53")  # before, metrics of an update were tensors, and collected
            or rays.__func__ is not TorchLearner._update
            or type(self)._uncompiled_update is not TorchLearner._uncompiled_update  # type: ignore[attr-defined]
            or self.config.torch_compile_learner
            or self.config.num_learners > 1
        ):
            return rays(batch, **kwargs)
        self._compute_off_policyness(batch)  # type: ignore[attr-defined]
        out = self._forward_train(batch)
        losses = self.compute_losses(fwd_out=out, batch=batch)  # type: ignore[attr-defined]
        gradients = self.compute_gradients(losses)
        self._finite = 0
        try:
            self.apply_gradients(self.postprocess_gradients(gradients))  # type: ignore[attr-defined]
        finally:
            self._finite = None
        return out, losses, {}

    def compute_gradients(self, loss_per_module: Mapping[str, Any], **kwargs: object) -> Any:
        """The gradients of all losses; Ray asks each optimizer to forget those of before.

        SAC's parts have losses of their own, none of which has a gradient in what another one
        trains: one backward pass goes through the sum of all, where Ray makes one for each.
        """
        from ray.rllib.algorithms.sac.torch.sac_torch_learner import SACTorchLearner
        from ray.rllib.core.learner.torch.torch_learner import TorchLearner

        rays = super().compute_gradients  # type: ignore[misc]
        total: Any = None
        if rays.__func__ is TorchLearner.compute_gradients and self._grad_scalers is None:
            total = sum(loss_per_module.values())
        elif rays.__func__ is SACTorchLearner.compute_gradients and self._trains_apart():
            total = sum(self._temp_losses.values())
            self._temp_losses.clear()
        if getattr(total, "grad_fn", None) is None:
            return rays(loss_per_module, **kwargs)
        for parameter in self._params.values():
            parameter.grad = None
        total.backward()
        return {ref: parameter.grad for ref, parameter in self._params.items()}

    def _trains_apart(self) -> bool:
        """Whether the losses of SAC's parts are kept, and its modules known to share nothing."""
        known = ("ray.rllib.", "rllib_compat.")
        modules = [self.module[name].unwrapped() for name in self.module.keys()]  # noqa: SIM118
        kept = bool(getattr(self, "_temp_losses", None))
        return kept and all(type(module).__module__.startswith(known) for module in modules)

    def _forward_train(self, batch: Mapping[str, Any]) -> Any:
        from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
        from ray.rllib.core.rl_module.torch import TorchRLModule

        if not _has_methods_of(self.module, MultiRLModule, ("forward_train", "_forward_train")):
            return self.module.forward_train(batch)
        outputs = {}
        for module_id in batch:
            if module_id not in self.module:
                continue
            module = self.module[module_id]
            forward = module.forward_train
            if _has_methods_of(module, TorchRLModule, ("forward_train",)):
                if module not in self._passes:
                    self._passes[module] = list(module.modules()), training_pass(module)
                parts, through_layers = self._passes[module]
                if all(part.training for part in parts) and not have_hooks(parts):
                    forward = through_layers
            outputs[module_id] = forward(batch[module_id])
        return outputs


def _has_methods_of(found: Any, base: type, names: Iterable[str]) -> bool:
    """Whether an object has the methods of a base, and not others in their place."""
    own, kind = vars(found), type(found)
    return all(name not in own and getattr(kind, name) is getattr(base, name) for name in names)


class OptimizerStepLearner(DirectLearner):
    """The first base of a torch learner whose optimizers make a step where they have gradients."""

    def apply_gradients(self, gradients_dict: Any) -> None:
        """One step of each optimizer; Ray looks at every number of every gradient twice before.

        Where one is not finite, or more than a step is to be done, Ray does it. What was clipped
        was looked at.
        """
        import torch
        from ray.rllib.core.learner.torch.torch_learner import TorchLearner

        rays = super().apply_gradients  # type: ignore[misc]
        gradients_dict = {ref: grad for ref, grad in gradients_dict.items() if grad is not None}
        plain = (
            bool(gradients_dict)
            and rays.__func__ is TorchLearner.apply_gradients
            and self._lr_scheduler_classes is None  # type: ignore[attr-defined]
            and self._grad_scalers is None
        )
        if plain and (self._finite or 0) < len(gradients_dict):
            norms = torch._foreach_norm(list(gradients_dict.values()))
            plain = bool(torch.isfinite(torch.stack(norms)).all())
        if not plain:
            rays(gradients_dict)
            return
        for key, gradient in gradients_dict.items():
            self._params[key].grad = gradient
        for module_id, names in self._module_optimizers.items():  # type: ignore[attr-defined]
            for name in names:
                make_step(self.get_optimizer(module_id, name))  # type: ignore[attr-defined]


@public("rllib_compat.adapters")
class ArrayBatchLearner(OptimizerStepLearner):
    """The first base of a torch learner that is given batches of arrays, not episodes.

    Ray 2.40 – 2.43 leave it to a learner's connectors to make tensors, which only see episodes.
    Ray 2.44 – 2.47 make them where observations are one array, and not where they are a dict.
    """

    def _make_batch_if_necessary(self, training_data: object) -> Any:
        batch = super()._make_batch_if_necessary(training_data=training_data)  # type: ignore[misc]
        return batch if at_least("2.48") else self._convert_batch_type(batch)  # type: ignore[attr-defined]

    def after_gradient_based_update(self, *, timesteps: Any) -> None:
        """Lets targets follow, when it is time.

        What follows is counted and dated as in Ray's DQN, which makes a `state_dict` of each.
        """
        base = renames.resolve("DQNLearner")
        rays = super().after_gradient_based_update  # type: ignore[misc]
        if rays.__func__ is not base.after_gradient_based_update:
            rays(timesteps=timesteps)
            return
        super(base, self).after_gradient_based_update(timesteps=timesteps)  # type: ignore[misc]
        follow_targets(self, timesteps)

    def update_from_batch(self, batch: object, **kwargs: object) -> Any:
        """Makes tensors of a batch and learns from it; those Rays' learner groups call it."""
        tensors = self._convert_batch_type(batch)  # type: ignore[attr-defined]
        return super().update_from_batch(batch=tensors, **kwargs)  # type: ignore[misc]


def make_step(optimizer: torch.optim.Optimizer) -> None:
    """Lets an optimizer make a step, if it has gradients; Adam goes through its numbers once."""
    import torch

    moved = [[p for p in group["params"] if p.grad is not None] for group in optimizer.param_groups]
    if not any(moved):
        return
    if not _is_plain_adam(optimizer, moved):
        optimizer.step()
        return
    for group, parameters in zip(optimizer.param_groups, moved, strict=True):
        slots = [optimizer.state[parameter] for parameter in parameters]
        steps = [slot["step"] for slot in slots]
        first, second = group["betas"]
        with torch.no_grad():
            torch._foreach_add_(steps, 1.0)
            torch._fused_adam_(
                parameters,
                [parameter.grad for parameter in parameters],
                [slot["exp_avg"] for slot in slots],
                [slot["exp_avg_sq"] for slot in slots],
                [],
                steps,
                lr=group["lr"],
                beta1=first,
                beta2=second,
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
            )


#: Settings of Adam that change what a step computes.
_SPECIAL = ("amsgrad", "maximize", "capturable", "differentiable", "decoupled_weight_decay")


def _is_plain_adam(optimizer: torch.optim.Optimizer, moved: list[list[Any]]) -> bool:
    """Whether torch's function that goes through Adam's numbers once makes an optimizer's step.

    It takes them as they lie in memory, whatever the strides say, so all have to lie there in the
    same order. It takes no setting that is a tensor, as restored ones are on Ray 2.44 – 2.52. The
    first step makes the numbers, and hooks are called by the optimizer alone.
    """
    import torch

    if type(optimizer) is not torch.optim.Adam or not _fuses_on_cpu() or _has_hooks(optimizer):
        return False
    for group in optimizer.param_groups:
        settings = (*group.values(), *group["betas"])
        if any(isinstance(value, torch.Tensor) for value in settings):
            return False
        if any(group.get(name) for name in _SPECIAL):
            return False
    return all(
        len(slots := optimizer.state.get(parameter, ())) == 3
        and all(
            part.is_contiguous() and part.dtype is torch.float32 and part.is_cpu
            for part in (parameter, parameter.grad, *slots.values())
        )
        for parameters in moved
        for parameter in parameters
    )


def _has_hooks(optimizer: torch.optim.Optimizer) -> bool:
    """Whether somebody hears of an optimizer's steps, or has put a method in their place."""
    from torch.optim import optimizer as of_all

    return bool(
        "step" in vars(optimizer)
        or optimizer._optimizer_step_pre_hooks
        or optimizer._optimizer_step_post_hooks
        or of_all._global_optimizer_pre_hooks
        or of_all._global_optimizer_post_hooks
    )


@cache
def _fuses_on_cpu() -> bool:
    """Whether the installed torch's Adam can do so on a CPU."""
    import torch

    return bool(torch.__version__ >= "2.4")  # it is no string


def follow_targets(learner: Any, timesteps: Mapping[str, int]) -> None:
    """Lets the target networks of a learner's modules follow, of those for which it is time."""
    from ray.rllib.core.rl_module.apis import TargetNetworkAPI
    from ray.rllib.utils.metrics import (
        LAST_TARGET_UPDATE_TS,
        NUM_ENV_STEPS_SAMPLED_LIFETIME,
        NUM_TARGET_UPDATES,
    )
    from ray.rllib.utils.torch_utils import update_target_network

    now = timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0)
    dates = getattr(learner, "last_update_ts_by_mid", None)  # since Ray 2.53
    for module_id in learner.module.keys():  # noqa: SIM118 - it is no dict
        config = learner.config.get_config_for_module(module_id)
        module, dated = learner.module[module_id].unwrapped(), (module_id, LAST_TARGET_UPDATE_TS)
        last = learner.metrics.peek(dated, default=0) if dates is None else dates[module_id]
        if now - last < config.target_network_update_freq:
            continue
        if not isinstance(module, TargetNetworkAPI):
            continue
        for net, target in module.get_target_network_pairs():
            if tensors := target_of(target, net):
                tensors.go_towards(config.tau)
            else:
                update_target_network(main_net=net, target_net=target, tau=config.tau)
        updates = (module_id, NUM_TARGET_UPDATES)
        if dates is None:
            learner.metrics.log_value(updates, 1, reduce="sum")
            learner.metrics.log_value(dated, now, window=1)
            continue
        dates[module_id] = now
        learner.metrics.log_value(updates, 1, reduce="lifetime_sum")
        learner.metrics.log_value(dated, now, reduce="max")


@cache
def array_batch_learner(learner_class: type, *before: type) -> type:
    """A learner class of Ray's that is given batches of arrays, with bases before it."""
    name = f"Arrays{learner_class.__name__}"
    return type(name, (*before, ArrayBatchLearner, learner_class), {"__module__": __name__})


@public("rllib_compat.adapters")
class ThreadErrorLearner:
    """Raises what was raised in the thread that a learner of IMPALA or APPO learns in.

    Ray lets the thread end, and the algorithm waits for it without end (2.60), or continues without
    learning. The first base of a learner class.
    """

    _error: Exception | None = None

    def _update(self, *args: object, **kwargs: object) -> Any:
        try:
            return super()._update(*args, **kwargs)  # type: ignore[misc]  # of the real learner
        except Exception as error:
            self._error = error
            if (waiting := getattr(self, "_agg_event", None)) is not None:
                waiting.set()
            raise

    def update(self, *args: object, **kwargs: object) -> Any:
        """Hands a batch to the thread."""
        return self._unless_failed("update", args, kwargs)

    def update_from_episodes(self, *args: object, **kwargs: object) -> Any:
        """Hands episodes to the thread; what Ray 2.40 calls."""
        return self._unless_failed("update_from_episodes", args, kwargs)

    def _unless_failed(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        if self._error is None:
            result = getattr(super(), name)(*args, **kwargs)
        if self._error is not None:
            raise self._error
        return result


def learns_in_thread(config: AlgorithmConfig) -> bool:
    """Whether the learner of a config learns in a thread of its own."""
    from ray.rllib.algorithms.impala.impala_learner import IMPALALearner

    return issubclass(config.learner_class, IMPALALearner)


class StepCountingLearner:
    """The first base of a learner that counts as learned what was sampled, once.

    Ray counts the step that it adds to each chunk of an episode, and the padding of sequences; of
    policies that are not trained it counts nothing, where the old Rays counted all of a batch.
    """

    config: Any
    metrics: Any
    #: The steps of policies that are not trained, in the batch that is learned from.
    _steps_left_out = 0

    def should_module_be_updated(
        self, module_id: str, multi_agent_batch: MultiAgentBatch | None = None
    ) -> bool:
        """Whether a module learns from a batch; Ray asks it once of each before it does."""
        updated: bool = super().should_module_be_updated(module_id, multi_agent_batch)  # type: ignore[misc]
        if not updated and multi_agent_batch is not None:
            columns = multi_agent_batch.policy_batches.get(module_id)
            self._steps_left_out += 0 if columns is None else len(_real(columns))
        return updated

    def _log_steps_trained_metrics(self, batch: MultiAgentBatch) -> None:
        """Logs how many steps of the environment and of each module a batch has.

        Of recordings Ray counts rows as read, and they stay as they are.
        """
        if self.config.input_ != "sampler":
            super()._log_steps_trained_metrics(batch)  # type: ignore[misc]
            return
        from ray.rllib.policy.sample_batch import MultiAgentBatch

        real = {name: _real(columns) for name, columns in batch.policy_batches.items()}
        steps = batch.env_steps() if is_multi_agent(self.config) else sum(map(len, real.values()))
        super()._log_steps_trained_metrics(MultiAgentBatch(real, steps))  # type: ignore[misc]
        if self._steps_left_out:
            for name in ("num_module_steps_trained", "num_module_steps_trained_lifetime"):
                add_up(self.metrics, ("__all_modules__", name), self._steps_left_out)
            self._steps_left_out = 0


def _real(columns: Mapping[str, Any]) -> Any:
    """The steps of a module's batch that were sampled."""
    from ray.rllib.policy.sample_batch import SampleBatch

    mask = columns.get(LOSS_MASK)
    return columns if mask is None else SampleBatch({LOSS_MASK: mask[mask]})


def rates_in_use(learner: Any) -> dict[tuple[str, str], float]:
    """What a learner's next update is made with, where it may change from one to the next.

    Returns:
        By the module and what old results called it: the learning rate, of a module with one
        optimizer, the weight of the entropy, and that of PPO's KL penalty.
    """
    found: dict[tuple[str, str], float] = {}
    for module_id, names in learner._module_optimizers.items():
        schedules = [
            learner._optimizer_lr_schedules.get(learner._named_optimizers[n]) for n in names
        ]
        if len(schedules) == 1 and schedules[0] is not None and schedules[0].use_schedule:
            found[module_id, "cur_lr"] = float(schedules[0].get_current_value())
    weights = getattr(learner, "entropy_coeff_schedulers_per_module", {})
    for module_id, weight in weights.items():
        if weight.use_schedule:
            found[module_id, "entropy_coeff"] = float(weight.get_current_value())
    for module_id, weight in getattr(learner, "curr_kl_coeffs_per_module", {}).items():
        found[module_id, "cur_kl_coeff"] = float(weight)
    return found


def make_batches_in_learners(config: AlgorithmConfig) -> None:
    """Lets learners make batches of episodes by themselves, and no actors beside them, in place."""
    for name in ("num_aggregator_actors_per_learner", "num_aggregation_workers"):
        if getattr(config, name, 0):
            setattr(config, name, 0)


def keep_rates_of_optimizers(learner: Any) -> None:
    """Makes a rate that was set in an optimizer that of its scheduler, unless that has a schedule.

    Ray would set the rate of the config again after the update.
    """
    for optimizer, scheduler in learner._optimizer_lr_schedules.items():
        if not scheduler.use_schedule:
            scheduler._curr_value = learner._get_optimizer_lr(optimizer)


@contextmanager
def loading_no_rates(learner: Any) -> Iterator[None]:
    """Lets states that are loaded into optimizers leave their rates, unless these have schedules.

    A state may be that of another trainer, whose config has another rate. It holds for those that
    are registered meanwhile, which may be others than the given ones.
    """
    before = set(learner._optimizer_lr_schedules)
    yield
    for optimizer, scheduler in learner._optimizer_lr_schedules.items():
        if optimizer not in before:
            reset = partial(_set_rate_of_scheduler, learner, scheduler)
            optimizer.register_load_state_dict_post_hook(reset)


def _set_rate_of_scheduler(learner: Any, scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
    if not scheduler.use_schedule:
        learner._set_optimizer_lr(optimizer, float(scheduler.get_current_value()))


def set_rate(learner: Any, rate: float) -> None:
    """Lets a learner's optimizers learn at a rate until its schedules are asked for the next."""
    for optimizer in learner._named_optimizers.values():
        for group in optimizer.param_groups:
            group["lr"] = rate


def hand_over_batch(training_data: Any) -> None:
    """Puts a train batch where learners look for one, if it is in the place of an iterator."""
    from ray.rllib.policy.sample_batch import MultiAgentBatch

    if isinstance(training_data.data_iterators, MultiAgentBatch):
        training_data.batch = training_data.data_iterators
        training_data.data_iterators = None


def parameters_of(learner: Learner) -> dict[tuple[str, str], Any]:
    """The parameters of all modules of a learner, by the module and their name in it."""
    return {
        (module_id, name): parameter
        for module_id in learner.module.keys()  # noqa: SIM118 - it is no dict
        for name, parameter in learner.module[module_id].unwrapped().named_parameters()
    }


def apply_gradients(
    learner: Learner, gradients: Mapping[tuple[str, str], Any], timesteps: Mapping[str, int]
) -> None:
    """Lets a learner make one step with gradients by the keys of `parameters_of`; others stay."""
    import torch

    timesteps = dict(timesteps)
    learner.before_gradient_based_update(timesteps=timesteps)
    parameters = parameters_of(learner)
    for parameter in parameters.values():
        parameter.grad = None
    given = {}
    for key, gradient in gradients.items():
        parameter = parameters[key]
        tensor = torch.tensor(gradient, device=parameter.device)
        given[learner.get_param_ref(parameter)] = tensor
    learner._weights_seq_no += 1  # else evaluation's env runners would keep the weights they have
    learner.apply_gradients(given)
    learner.after_gradient_based_update(timesteps=timesteps)


def step(learner: Learner, gradients: Mapping[Any, Any]) -> None:
    """Lets a learner's optimizers make a step, and nothing else: no schedule, no target moves."""
    learner._weights_seq_no += 1  # else env runners would keep the weights they have
    learner.apply_gradients(gradients)


@contextmanager
def separate_statistics(learner: Learner, module_id: str) -> Iterator[dict[str, Any]]:
    """Keeps what a learner logs within this context out of the metrics of its updates.

    A logger that has been reduced once gives all names of before, with NaN or 0 for what was not
    logged again; so there is another one in its place meanwhile.

    Yields:
        A dict, which in the end has the numbers that were logged of the module.
    """
    from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

    logs: dict[str, Any] = {}
    kept, learner.metrics = learner.metrics, MetricsLogger()
    try:
        yield logs
    finally:
        logged, learner.metrics = learner.metrics.reduce().get(module_id, {}), kept
        if (take := getattr(learner, "take_terms", None)) is not None:
            logs.update(take(module_id))
    for name, value in logged.items():
        number = value.peek() if hasattr(value, "peek") else value
        logs[name] = number.item() if getattr(number, "ndim", None) == 0 else number


def copy_weights_seq_no(learner: Learner, env_runner: EnvRunner) -> None:
    """Lets a learner take its weights for those that an env runner has sampled with.

    It logs by how many updates its own are newer (`diff_num_grad_updates_vs_sampler_policy`).
    """
    learner._weights_seq_no = env_runner._weights_seq_no


def set_learner_state(learner: Learner, state: Mapping[str, Any]) -> None:
    """Gives a learner the state of another one, however old its own weights are.

    A learner, and then env runners, ignore weights with a lower number than their own.
    """
    learner.set_state({**state, "weights_seq_no": learner._weights_seq_no + 1})


def device_of(learner: Any) -> Any:
    """The device that a torch learner computes on; Ray 2.40 has no public name for it."""
    return learner._device


def local_learner(algorithm: Algorithm) -> Any:
    """The learner of an algorithm without remote ones."""
    return algorithm.learner_group._learner  # no public name in any supported Ray


def take_learning_rates_of_config(learner: Learner) -> None:
    """Sets a learner's rates to those of its config: optimizers' states carry what they had.

    Ray does it itself, but only after the next iteration; a schedule it does at each.
    """
    for optimizer, schedule in learner._optimizer_lr_schedules.items():
        if not schedule.use_schedule:
            learner._set_optimizer_lr(optimizer, schedule.get_current_value())


def coefficients(learner: Learner, names: Iterable[str]) -> dict[str, dict[str, float]]:
    """Numbers that losses are computed with and that are in no state, by attribute and module."""
    modules = list(learner.module.keys())
    return {
        name: {module_id: float(held[module_id].data) for module_id in modules}
        for name in names
        if (held := getattr(learner, name, None)) is not None
    }


def set_coefficients(learner: Learner, values: Mapping[str, Mapping[str, float]]) -> None:
    """Sets those numbers."""
    for attribute, by_module in values.items():
        held = getattr(learner, attribute, None)
        for module_id, value in by_module.items():
            if held is not None and module_id in learner.module:
                held[module_id].data.fill_(value)


#: What policies called a coefficient → what the learner has it in, by module.
_COEFFICIENTS = {
    "kl_coeff": "curr_kl_coeffs_per_module",
    "entropy_coeff": "entropy_coeff_schedulers_per_module",
}


def temperature(learner: Learner, module_id: str) -> dict[str, Any]:
    """The weight of the entropy that SAC learns, as its logarithm, and the entropy it aims at."""
    names = {"log_alpha": "curr_log_alpha", "target_entropy": "target_entropy"}
    found = {old: getattr(learner, new, None) for old, new in names.items()}
    return {old: held[module_id] for old, held in found.items() if held is not None}


def move_targets(module: Any, tau: float) -> None:
    """Moves the target networks of a module towards the others; 1 makes them equal."""
    from ray.rllib.utils.torch_utils import update_target_network

    for net, target in module.get_target_network_pairs():
        update_target_network(main_net=net, target_net=target, tau=tau)


def coefficient(learner: Learner, module_id: str, name: str) -> float | None:
    """A coefficient of a module's loss by its old name; None where the learner has none."""
    held = getattr(learner, _COEFFICIENTS[name], None)
    if held is None:
        return None
    value = held[module_id]
    return float(value.get_current_value() if hasattr(value, "get_current_value") else value)


def set_coefficient(learner: Learner, module_id: str, name: str, value: float) -> None:
    """Sets a coefficient by its old name; a schedule gives the next one after an update."""
    if (found := scheduler(learner, module_id, name)) is not None:
        schedules.set_value(found, value)
    else:
        set_coefficients(learner, {_COEFFICIENTS[name]: {module_id: value}})


def scheduler(learner: Learner, module_id: str, name: str) -> Any:
    """Ray's scheduler of a module's learning rate (`lr`), or of a coefficient by its old name.

    Returns:
        None for what a learner does not schedule, and for the rates of several optimizers.
    """
    if name == "lr":
        optimizers = [optimizer for _, optimizer in learner.get_optimizers_for_module(module_id)]
        schedulers = learner._optimizer_lr_schedules
        return schedulers.get(optimizers[0]) if len(optimizers) == 1 else None
    held = getattr(learner, _COEFFICIENTS[name], {module_id: None})[module_id]
    return held if hasattr(held, "use_schedule") else None


def set_learning_rate(learner: Learner, module_id: str, rate: float) -> None:
    """Sets the rate of a module's only optimizer; a schedule gives the next one after an update."""
    ((_, optimizer),) = learner.get_optimizers_for_module(module_id)
    learner._set_optimizer_lr(optimizer, rate)
    if (found := scheduler(learner, module_id, "lr")) is not None:
        schedules.set_value(found, rate)


def replace_loss(learner: object, module_id: str, name: str, loss: object) -> None:
    """Lets SAC's learner take the gradient of another loss, which its metrics get as well.

    Early releases (2.40) take it of what was logged last; later ones keep losses.
    """
    if (kept := getattr(learner, "_temp_losses", None)) is not None:
        kept[module_id, name] = loss
