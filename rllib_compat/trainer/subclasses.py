"""Parts that trainer classes define: defaults, hooks, policies, execution plans and steps."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeVar

from rllib_compat import registry
from rllib_compat.config.evidence import Evidence
from rllib_compat.neutral.errors import GoneError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import old_policies, old_stack
from rllib_compat.registry import keys
from rllib_compat.runtime.callbacks import RunningPlan
from rllib_compat.trainer.defaults import common_config, defaults_of, merge

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    from rllib_compat.config.translator import Stack
    from rllib_compat.trainer.workers import LegacyWorkers

# The hooks of a trainer → their arguments.
HOOKS: Mapping[str, str] = {
    "validate_config": "(config)",
    "validate_env": "(env, env_context)",
    "before_init": "(trainer)",
    "after_init": "(trainer)",
    "before_train_step": "(trainer)",
    "after_optimizer_step": "(trainer, learner_info)",
    "after_train_result": "(trainer, result)",
    "before_evaluate_fn": "(trainer)",
}

# Functions that choose a custom policy class, or define the trainer's steps, on the old API stack
# → the class's attribute for it.
KEPT: Mapping[str, str] = {
    "get_policy_class": "choose_policy_class",
    "execution_plan": "execution_plan",
}

_STEP = "subclass ray.rllib.algorithms.Algorithm and override training_step()"
_LEARNER = "subclass the algorithm's Learner, override compute_loss_for_module() and set "
_LEARNER += "config.learners(learner_class=…)"
# Arguments of templates and methods of subclasses that belong to the old architecture → what to do.
GONE: Mapping[str, str] = {
    "make_policy_optimizer": _STEP,
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

#: Defaults of trainers without an algorithm, beside the common config.
PLAIN: Mapping[str, int] = {"rollout_fragment_length": 200, "train_batch_size": 200}

#: Methods that define an iteration; the newer name first.
_STEPS = ("training_step", "training_iteration")

_STOCK_POLICY = re.compile(r"(\w+?)(TF|Torch|Jax|Eager|Dynamic|Static|1|2)*Policy(Graph)?")

Class = TypeVar("Class", bound="LegacyTrainer")


class LegacyTrainer(Protocol):
    """The interface of a trainer and its class; subclasses and templates override it.

    Attributes: See `Trainer`.
    """

    algorithm_name: ClassVar[str | None]
    legacy_ray: ClassVar[str]
    api_stack: ClassVar[Stack]
    evidence: ClassVar[tuple[Evidence, ...] | None]
    learns_once: bool
    replay_columns: bool | None
    _default_config: ClassVar[Mapping[str, object]]
    hooks: ClassVar[Mapping[str, Callable[..., object]]]
    policy_class: ClassVar[type | None]
    execution_plan: ClassVar[Callable[..., object]]
    config: dict[str, Any]

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm that does the work."""

    @property
    def workers(self) -> LegacyWorkers:
        """All workers."""

    @classmethod
    def get_default_config(cls) -> Mapping[str, object] | AlgorithmConfig:
        """The config that the class starts from."""

    def get_default_policy_class(self, config: dict[str, Any]) -> type | None:
        """The class of policies that name none; None for the algorithm's own."""

    def validate_config(self, config: dict[str, Any]) -> None:
        """Checks a config with all defaults, and may change it."""

    @staticmethod
    def validate_env(env: object, env_context: object) -> None:
        """Checks an environment."""


@frozen
class StockPlan:
    """The execution plan of one of RLlib's algorithms; it selects Ray's present steps.

    Attributes:
        algorithm: The algorithm's name.
    """

    algorithm: str

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raises an error: there is no plan to call.

        Raises:
            GoneError: Always.
        """
        raise GoneError(
            f"The execution plan of {self.algorithm} can be given to trainers, but not called.",
            where="execution_plan()",
            fix="write the plan out, with the operators of ray.rllib.execution",
        )


# Classes that are made of others


def derive(
    base: type[Class],
    *,
    name: str | None = None,
    default_config: Mapping[str, object] | None = None,
    default_policy: type | None = None,
    mixins: list[type] | None = None,
    **more: Callable[..., object] | None,
) -> type[Class]:
    """Derives a class with other defaults and hooks, as `with_updates` did.

    Args:
        base: The class to derive from.
        name: The new class's name; None for the old one's.
        default_config: The first values of its config; None for the old class's.
        default_policy: The policies' class, or None for the algorithm's own.
        mixins: Classes to derive from as well.
        **more: `HOOKS`, `get_policy_class(config)` and `execution_plan(workers, config)`.

    Raises:
        GoneError: An argument belongs to the old architecture.
    """
    where = f"{base.__name__}.with_updates()"
    given = {key: value for key, value in more.items() if value is not None}
    lost = [key for key in given if key not in HOOKS and key not in KEPT]
    if lost:
        raise _gone(lost, where)
    hooks = {key: value for key, value in given.items() if key in HOOKS}
    members: dict[str, object] = {"hooks": {**base.hooks, **hooks}}
    if default_policy is not None:
        members["policy_class"] = default_policy
    members |= {KEPT[key]: staticmethod(value) for key, value in given.items() if key in KEPT}
    if default_config is not None:
        members["_default_config"] = default_config  # its name in old classes
    if name is not None:
        members["_name"] = name
    return type(name or base.__name__, (*(mixins or ()), base), members)


def check_subclass(cls: type[LegacyTrainer], ours: type[LegacyTrainer]) -> None:
    """Raises an error if a subclass overrides a method that is never called any more.

    Raises:
        GoneError: It does.
    """
    written = {name for part in cls.__mro__ if part not in ours.__mro__ for name in vars(part)}
    lost = [name for name in GONE if name in written]
    if lost:
        raise _gone(lost, cls.__name__)


def _gone(names: list[str], where: str) -> GoneError:
    """The error for parts of classes that nothing calls any more."""
    todo = "; ".join(f"{name}: {GONE[name]}" for name in names if name in GONE)
    return GoneError(f"Nothing calls {', '.join(names)} any more.", where=where, fix=todo or _STEP)


def is_overridden(cls: type[LegacyTrainer], name: str) -> bool:
    """Whether a method of a trainer class is the user's own.

    The package that it was written in decides, as Ray wraps each method of an actor's class.
    """
    found = getattr(cls, name)
    written_in = getattr(getattr(found, "fget", found), "__module__", None) or ""
    return bool(written_in.rpartition(".")[0] != __name__.rpartition(".")[0])


# Configs


class AllDefaults:
    """`_default_config` of a class that has none of its own: all defaults, as old code reads it."""

    def __get__(self, trainer: object, cls: type[LegacyTrainer]) -> Mapping[str, object]:
        """The defaults of the class."""
        found = cls.get_default_config()
        return found if isinstance(found, Mapping) else found.to_dict()


def added_defaults(cls: type[LegacyTrainer]) -> Mapping[str, object]:
    """The `_default_config` of a class, where it has one of its own."""
    found: Any = inspect.getattr_static(cls, "_default_config")
    return {} if isinstance(found, AllDefaults) else found


def own_defaults(cls: type[LegacyTrainer]) -> Mapping[str, object]:
    """The first values of a trainer class's config, beside the algorithm's defaults."""
    if not is_overridden(cls, "get_default_config"):
        return added_defaults(cls)
    asked = cls.get_default_config()
    given = asked if isinstance(asked, Mapping) else asked.to_dict()
    usual = defaults_of(cls.algorithm_name) if cls.algorithm_name else common_config()
    return {k: v for k, v in given.items() if k not in usual or _differ(v, usual[k])}


def own_keys(cls: type[LegacyTrainer], config: Mapping[str, object]) -> dict[str, object]:
    """Keys of a config that only the class itself reads: those of its defaults that no Ray had."""
    own = own_defaults(cls)
    return {k: v for k, v in config.items() if k in own and not keys.homes(k)}


def without_own_keys(cls: type[LegacyTrainer], config: Mapping[str, object]) -> dict[str, object]:
    """A config without them."""
    own = own_keys(cls, config)
    return {key: config[key] for key in config if key not in own}


def config_validators(trainer: LegacyTrainer) -> list[Callable[[dict[str, Any]], object]]:
    """The functions that check the config before anything is built."""
    overridden = is_overridden(type(trainer), "validate_config")
    given = [trainer.hooks.get("validate_config"), trainer.validate_config if overridden else None]
    return [check for check in given if check is not None]


def is_rllibs_own(hook: Callable[..., object]) -> bool:
    """Whether a hook is a function of RLlib, such as `update_kl`."""
    written_in = str(getattr(hook, "__module__", None))
    return written_in.partition(".")[0] == __name__.partition(".")[0]


def env_validator(cls: type[LegacyTrainer]) -> Callable[[Any, Any], object] | None:
    """The function of a trainer class that checks each environment, or None."""
    return cls.validate_env if is_overridden(cls, "validate_env") else cls.hooks.get("validate_env")


def validated(
    check: Callable[[dict[str, Any]], object],
    defaults: Mapping[str, object],
    config: Mapping[str, object],
) -> dict[str, Any]:
    """A config after `validate_config`, which sees all defaults and may change the config."""
    complete = merge(defaults, config)
    before = copy.deepcopy(complete)
    check(complete)
    changed = {k: v for k, v in complete.items() if k not in before or _differ(v, before[k])}
    return {**config, **changed}


def _differ(one: object, other: object) -> bool:
    try:
        return bool(one != other)
    except ValueError:  # arrays, whose comparison is an array
        return True


# Policies


def own_policy(trainer: LegacyTrainer, config: dict[str, Any]) -> type | None:
    """The policy class that a trainer's class asks for, if it is none of RLlib's own.

    Raises:
        GoneError: The old API stack can't train it: most are for TensorFlow.
    """
    given = trainer.get_default_policy_class(config)
    if given is None:
        return None
    algorithm = algorithm_of(given)
    is_own = getattr(given, "is_own", False)
    if algorithm is not None and algorithm == trainer.algorithm_name and not is_own:
        return None
    if not old_policies.is_policy_class(given):
        getattr(
            given, "raise_gone", lambda: None
        )()  # a removed name raises an error with its replacement
        raise _gone(["loss_fn"], f"{type(trainer).__name__}: {given.__name__}")
    return given


def algorithm_of(policy: object) -> str | None:
    """The algorithm of one of RLlib's own policy classes, or None."""
    match = _STOCK_POLICY.fullmatch(getattr(policy, "__name__", str(policy)))
    return registry.class_names().get(match[1]) if match else None


# Steps


def plan_of(cls: type[LegacyTrainer]) -> Callable[..., object] | None:
    """The execution plan that a trainer class has written itself, or None."""
    own = is_overridden(cls, "execution_plan") and algorithm_of_plan(cls.execution_plan) is None
    return cls.execution_plan if own else None


def algorithm_of_plan(plan: object) -> str | None:
    """The algorithm whose steps an execution plan selects, or None."""
    if isinstance(plan, StockPlan):
        return plan.algorithm
    owner = getattr(plan, "__self__", None)
    return getattr(owner, "algorithm_name", None) if isinstance(owner, type) else None


def has_steps(cls: type[LegacyTrainer]) -> bool:
    """Whether a trainer class defines its own iteration."""
    return plan_of(cls) is not None or any(is_overridden(cls, name) for name in _STEPS)


def has_overrides(cls: type[LegacyTrainer]) -> bool:
    """Whether a trainer class defines its own policy or iteration."""
    return has_steps(cls) or is_overridden(cls, "get_default_policy_class")


def set_policy_and_steps(
    config: AlgorithmConfig, cls: type[LegacyTrainer], policy: type | None, *, plain: bool
) -> None:
    """Gives an algorithm's config a trainer class's own policy and steps."""
    if policy is not None:
        config.algo_class = old_policies.with_policy(config.algo_class, policy, plain=plain)
    if has_steps(cls):
        config.algo_class = old_stack.with_steps(config.algo_class)
        if plan_of(cls) is not None:  # which decides when an iteration is over
            config.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
        # Such steps have their own buffer; DQN's policies read whether workers set priorities.
        if not hasattr(config, "replay_buffer_config"):
            config.replay_buffer_config = {}


def start_steps(trainer: LegacyTrainer) -> None:
    """Makes the trainer's algorithm take the steps of its class, if it has any."""
    if (plan := plan_of(type(trainer))) is not None:
        trainer.algorithm.legacy_step = RunningPlan(
            plan, trainer.workers, trainer.config, trainer.algorithm
        )
        return
    overridden = [name for name in _STEPS if is_overridden(type(trainer), name)]
    if overridden:
        trainer.algorithm.legacy_step = getattr(trainer, overridden[0])
