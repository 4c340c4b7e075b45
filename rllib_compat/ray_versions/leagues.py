"""Frozen modules: which they are, their weights, their optimizers, and replaced env runners."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Protocol

from rllib_compat.ray_versions import renames
from rllib_compat.ray_versions.types import Algorithm, EnvRunnerGroup, Learner, RLModule


class _Learner(Learner, Protocol):
    """A learner that keeps the ids of modules whose optimizers went."""

    optimizers_that_went: set[str]


def frozen_and_trained(learner: _Learner) -> tuple[dict[str, Any], list[str]]:
    """The modules that a learner does not train, and those that it does.

    Optimizers of the frozen go, if they hold nothing yet, and come back when the learner is to
    train the module. One that has moments stays: to train on must give what Ray alone gives.

    Returns:
        The frozen modules with a version, which changes when a tensor is written to by torch or
        replaced; and the others.
    """
    if not hasattr(learner, "optimizers_that_went"):
        learner.optimizers_that_went = set()
        learner.should_module_be_updated = partial(
            _should_be_updated, learner, learner.should_module_be_updated
        )
        learner._set_optimizer_state = partial(
            _set_optimizer_state, learner, learner._set_optimizer_state
        )
    frozen: dict[str, Any] = {}
    trained = []
    for module_id, module in learner.module.items():
        if _is_frozen(learner, module_id):
            _drop_idle_optimizers(learner, module_id)
            tensors = module.state_dict(keep_vars=True).values() if _is_torch(module) else ()
            frozen[module_id] = [(t.data_ptr(), t._version) for t in tensors]
        else:
            trained.append(module_id)
    return frozen, trained


def _is_frozen(learner: _Learner, module_id: str) -> bool:
    policies = learner.config.policies_to_train
    if not callable(policies):
        return policies is not None and module_id not in policies
    try:
        return not policies(module_id, None)
    except Exception:  # it decides by the batch: unknown before
        return False


def _is_torch(module: RLModule) -> bool:
    from torch.nn import Module

    return isinstance(module, Module)


def _drop_idle_optimizers(learner: _Learner, module_id: str) -> None:
    """Does with optimizers what `Learner.remove_module` does; no supported Ray has a method."""
    optimizers = [optimizer for _, optimizer in learner.get_optimizers_for_module(module_id)]
    schedules = [learner._optimizer_lr_schedules.get(optimizer) for optimizer in optimizers]
    # A schedule would have moved on when the optimizer came back.
    moving = any(schedule is not None and schedule.use_schedule for schedule in schedules)
    if not optimizers or moving or any(optimizer.state for optimizer in optimizers):
        return
    for full_name in learner._module_optimizers.pop(module_id):
        optimizer = learner._named_optimizers.pop(full_name)
        for param in learner._optimizer_parameters.pop(optimizer):
            learner._params.pop(param, None)
        learner._optimizer_lr_schedules.pop(optimizer, None)
    learner.optimizers_that_went.add(module_id)


def _bring_optimizers_back(learner: _Learner, module_id: str) -> None:
    learner.optimizers_that_went.discard(module_id)
    if module_id in learner.module:
        config = learner.config.get_config_for_module(module_id)
        learner.configure_optimizers_for_module(module_id=module_id, config=config)


def _should_be_updated(
    learner: _Learner, asked: Callable[..., bool], module_id: str, *batch: object, **kwargs: object
) -> bool:
    answer = asked(module_id, *batch, **kwargs)
    if answer and module_id in learner.optimizers_that_went:
        _bring_optimizers_back(learner, module_id)
    return answer


def _set_optimizer_state(
    learner: _Learner, restore: Callable[..., None], state: Sequence[Any]
) -> None:
    """Ray until 2.40 knows no optimizer of a checkpoint that is not there."""
    for module_id in tuple(learner.optimizers_that_went):
        if any(name.startswith(f"{module_id}_") for name in state):
            _bring_optimizers_back(learner, module_id)
    restore(state)


def module_weights(
    source: Any, modules: Collection[str], inference_only: bool
) -> dict[str, dict[str, Any]]:
    """The weights of modules, as `sync_weights` gets them from a learner group or an env runner."""
    import ray
    from ray.rllib.core.learner.learner_group import LearnerGroup

    of_learners = isinstance(source, LearnerGroup)
    prefix = "learner/rl_module" if of_learners else "rl_module"
    asked: dict[str, Any] = {"components": [f"{prefix}/{module}" for module in modules]}
    asked["inference_only"] = inference_only
    if isinstance(source, ray.actor.ActorHandle):  # Ray 2.60 takes an env runner's
        state = ray.get(source.get_state.remote(**asked))
    else:
        state = source.get_state(**asked)
    return dict((state["learner"] if of_learners else state)["rl_module"])


def after_restores(algorithm: Algorithm, send: Callable[[Any], None]) -> None:
    """Calls `send(group)` whenever env runners of a group were replaced and have their state."""
    name = renames.name_of(algorithm, "restore_env_runners")
    restore = getattr(algorithm, name)

    def restore_and_tell(group: EnvRunnerGroup, *args: object, **kwargs: object) -> Any:
        before = algorithm._counters["total_num_restored_workers"]
        result = restore(group, *args, **kwargs)
        if algorithm._counters["total_num_restored_workers"] != before:
            send(group)
        return result

    setattr(algorithm, name, restore_and_tell)
