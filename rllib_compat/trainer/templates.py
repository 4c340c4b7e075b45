"""`with_updates` and Trainer subclasses: what of them can work, and what can't."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rllib_compat import registry
from rllib_compat.neutral.errors import GoneError
from rllib_compat.ray_versions import old_policies
from rllib_compat.registry import keys
from rllib_compat.trainer import overridable
from rllib_compat.trainer.defaults import common_config, defaults_of, merge

if TYPE_CHECKING:
    from rllib_compat.trainer.trainer import Trainer

# What a built trainer calls, and with what.
HOOKS: Mapping[str, str] = {
    "validate_config": "(config)",
    "before_init": "(trainer)",
    "after_init": "(trainer)",
    "before_train_step": "(trainer)",
    "after_train_result": "(trainer, result)",
    "before_evaluate_fn": "(trainer)",
}

# Functions that the class keeps: what chooses a policy class of one's own, and what steps the
# trainer takes. The old API stack trains by them. → the name that the class has for it.
KEPT: Mapping[str, str] = {
    "get_policy_class": "choose_policy_class",
    "execution_plan": "execution_plan",
}

_STEP = "subclass ray.rllib.algorithms.Algorithm and override training_step()"
_LEARNER = "subclass the algorithm's Learner, override compute_loss_for_module() and set "
_LEARNER += "config.learners(learner_class=…)"
# What was given to templates or overridden in subclasses and belonged to another architecture.
GONE: Mapping[str, str] = {
    "make_policy_optimizer": _STEP,
    "after_optimizer_step": _STEP,
    "_train": _STEP,
    "_init": "do it after super().__init__(), or in setup() after super().setup()",
    "make_workers": "config.env_runners(env_runner_cls=…)",
    "_make_workers": "config.env_runners(env_runner_cls=…)",
    "collect_metrics_fn": "callbacks.on_train_result may change the result",
    "get_initial_state": "keep it in the callbacks object",
    "_policy": _LEARNER,
    "_policy_graph": _LEARNER,
    "_policy_class": _LEARNER,
    "loss_fn": _LEARNER,
}

_STOCK_POLICY = re.compile(r"(\w+?)(TF|Torch|Jax|Eager|Dynamic|Static|1|2)*Policy(Graph)?")


def updated(
    base: type[Trainer],
    *,
    name: str | None = None,
    default_config: Mapping[str, Any] | None = None,
    default_policy: Any = None,
    mixins: list[type] | None = None,
    **more: Any,
) -> type[Trainer]:
    """Derives a class with other defaults and hooks.

    Args:
        base: The class to derive from.
        name: The new class's name; None for the old one's.
        default_config: What its config starts from; None for what the old one's does.
        default_policy: The policies' class, or None for the algorithm's own.
        mixins: Classes to derive from as well.
        **more: `HOOKS`, `get_policy_class(config)` and `execution_plan(workers, config)`.

    Raises:
        GoneError: Something that belonged to another architecture was given.
    """
    where = f"{base.__name__}.with_updates()"
    given = {key: value for key, value in more.items() if value is not None}
    lost = [key for key in given if key not in HOOKS and key not in KEPT]
    if lost:
        raise gone(lost, where)
    hooks = {key: value for key, value in given.items() if key in HOOKS}
    members: dict[str, Any] = {"hooks": {**base.hooks, **hooks}}
    if default_policy is not None:
        members["policy_class"] = default_policy
    members |= {KEPT[key]: staticmethod(value) for key, value in given.items() if key in KEPT}
    if default_config is not None:
        members["_default_config"] = default_config  # so it was called in classes of their time
    return type(name or base.__name__, (*(mixins or ()), base), members)


def check_subclass(cls: type[Trainer], ours: type[Trainer]) -> None:
    """Raises where a subclass overrides what is never called any more.

    Raises:
        GoneError: It does.
    """
    written = {name for part in cls.__mro__ if part not in ours.__mro__ for name in vars(part)}
    lost = [name for name in GONE if name in written]
    if lost:
        raise gone(lost, cls.__name__)


def own_policy(trainer: Trainer, config: dict[str, Any]) -> type | None:
    """The policy class that a trainer's class asks for, if it is none of RLlib's own.

    Raises:
        GoneError: It is none that the old API stack can train: one of TensorFlow's, mostly.
    """
    given = trainer.get_default_policy_class(config)
    if given is None:
        return None
    of = algorithm_of(given)
    if of is not None and of == trainer.algorithm_name and not getattr(given, "is_own", False):
        return None
    if not old_policies.is_policy_class(given):
        getattr(given, "raise_gone", lambda: None)()  # a name of old Rays knows where it went
        raise gone(["loss_fn"], f"{type(trainer).__name__}: {given.__name__}")
    return given


def own_defaults(cls: type[Trainer]) -> Mapping[str, Any]:
    """What a trainer class's config starts from, beside the algorithm's defaults."""
    if not overridable.is_overridden(cls, "get_default_config"):
        return cls._default_config
    asked: Any = cls.get_default_config()
    given = asked if isinstance(asked, Mapping) else asked.to_dict()
    usual = defaults_of(cls.algorithm_name) if cls.algorithm_name else common_config()
    return {k: v for k, v in given.items() if k not in usual or _differ(v, usual[k])}


def own_keys(cls: type[Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a config only the class itself reads: keys of its defaults that no Ray ever had."""
    return {k: v for k, v in config.items() if k in own_defaults(cls) and not keys.homes(k)}


def checks(trainer: Trainer) -> list[Callable[..., Any]]:
    """What is called with the config before anything is built."""
    overridden = overridable.is_overridden(type(trainer), "validate_config")
    given = [trainer.hooks.get("validate_config"), trainer.validate_config if overridden else None]
    return [check for check in given if check is not None]


def validated(
    check: Callable[..., Any], defaults: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, Any]:
    """A config after `validate_config`, which sees all defaults and may change the config."""
    complete = merge(defaults, config)
    before = copy.deepcopy(complete)
    check(complete)
    changed = {k: v for k, v in complete.items() if k not in before or _differ(v, before[k])}
    return {**config, **changed}


def _differ(one: Any, other: Any) -> bool:
    try:
        return bool(one != other)
    except ValueError:  # arrays, whose comparison is no answer
        return True


def algorithm_of(policy: Any) -> str | None:
    """The algorithm of one of RLlib's own policy classes, or None."""
    match = _STOCK_POLICY.fullmatch(getattr(policy, "__name__", str(policy)))
    return registry.class_names().get(match[1]) if match else None


def gone(names: list[str], where: str) -> GoneError:
    """The error for parts of classes that nothing calls any more."""
    todo = "; ".join(f"{name}: {GONE[name]}" for name in names if name in GONE)
    return GoneError(f"Nothing calls {', '.join(names)} any more.", where=where, fix=todo or _STEP)
