"""Prepares a trainer's config for its algorithm, and computes the resources that Tune reserves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from packaging.version import Version
from ray.tune import PlacementGroupFactory  # noqa: TID253 - its class is one of Ray's

from rllib_compat.config import find_algorithm, translate
from rllib_compat.config.era import resolve
from rllib_compat.config.rules.offline import learns_on_old_stack
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.ray_versions import algorithms, startup, tune
from rllib_compat.registry.keys import TODAY
from rllib_compat.runtime.envs import resolve_env_name, with_default_policy
from rllib_compat.trainer import refusals, subclasses
from rllib_compat.trainer.build import AlgorithmBuilder
from rllib_compat.trainer.defaults import Origin, common_config, defaults_of, merge

if TYPE_CHECKING:
    from rllib_compat.trainer.subclasses import LegacyTrainer

#: The keys of a trial's resources.
RESOURCES = (
    "num_workers",
    "num_cpus_per_worker",
    "num_gpus_per_worker",
    "num_cpus_for_driver",
    "num_gpus",
)


def prepare(
    trainer: LegacyTrainer,
    config: Mapping[str, Any],
    legacy_ray: str,
    origin: Origin,
    logdir: str,
) -> AlgorithmBuilder:
    """Completes, checks and translates a trainer's config, written for a Ray, "auto" or "today".

    The config of the builder that it returns has the keys of the class's own, too.

    Raises:
        ConfigError: It can't be translated.
    """
    cls, learns_once = type(trainer), trainer.learns_once
    checks, has_steps = subclasses.config_validators(trainer), subclasses.has_steps(cls)
    given = with_default_policy(merge(subclasses.own_defaults(cls), config))
    if given.get("output") == "logdir":
        given["output"] = logdir
    algorithm, how = find_algorithm(given, origin.algorithm)
    era = resolve(legacy_ray, given, algorithm, cls.evidence)
    era.log()
    origin = replace(origin, ray=era.ray)
    if how == "assumed" and subclasses.has_overrides(cls):
        learns_once = True
        given = {**subclasses.PLAIN, **given}
    of_none = learns_once and not trainer.algorithm_name
    defaults = common_config() if of_none else defaults_of(algorithm, origin.legacy_ray)
    for check in checks:
        given = subclasses.validated(check, defaults, given)
    own_policy = subclasses.own_policy(trainer, merge(defaults, given))
    own = subclasses.own_keys(cls, given)
    asked = origin.arguments
    if has_steps or own_policy is not None or learns_on_old_stack(algorithm, given):
        asked["api_stack"] = "old"
    ray, gpus, cpus = origin.legacy_ray, startup.count_gpus(), refusals.free_cpus()
    given, findings = fit_gpus(given, defaults, legacy_ray=ray, gpus=gpus)
    given, fewer = fit_workers(given, defaults, legacy_ray=ray, cpus=cpus)
    translation = translate({key: given[key] for key in given if key not in own}, **asked)
    translation.report.extend([*era.findings(), *findings, *fewer])
    env = translation.env_settings.env
    if isinstance(env, str) and (note := resolve_env_name(env)[1]):
        translation.report.add("env.name", Verdict.NOTE, "$.env", note)
    complete = merge(defaults, translation.legacy_config | own)
    return AlgorithmBuilder(
        translation=translation,
        origin=origin,
        config=complete,
        given=dict(config),
        trainer=cls,
        own_policy=own_policy,
        learns_once=learns_once,
        replay_columns=trainer.replay_columns,
        logdir=logdir,
    )


def resource_request(cls: type[LegacyTrainer], config: Mapping[str, Any]) -> TrialResources:
    """What Tune reserves for a trial of a trainer class.

    Raises:
        ConfigError: Ray lacks that, and no node can join: the trial would wait forever.
    """
    given = merge(subclasses.own_defaults(cls), _without_drawn(config))
    era = resolve(cls.legacy_ray, given, cls.algorithm_name, cls.evidence)
    alone = startup.is_running() and not startup.may_grow()
    if alone and cls.algorithm_name:
        ray = Origin(cls.algorithm_name, era.ray).legacy_ray
        defaults = defaults_of(cls.algorithm_name, ray)
        given, _ = fit_gpus(given, defaults, legacy_ray=ray, gpus=startup.count_gpus())
    translation = translate(
        subclasses.without_own_keys(cls, given),
        algorithm=cls.algorithm_name,
        legacy_ray=era,
        api_stack=cls.api_stack,
        old_networks=cls.legacy_ray != TODAY,
        on_unknown="warn",  # a function around a trainer may have keys of its own
    )
    request = algorithms.resource_request(translation.algorithm_config)
    if alone:
        asked, available = refusals.total(request.bundles), refusals.available_resources()
        lack = refusals.describe_missing_resources(asked, available, translation.legacy_config)
        if lack is not None:
            raise lack
    return TrialResources.of(request)


def _without_drawn(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without the values that Tune has yet to draw."""
    return {
        key: _without_drawn(value) if type(value) is dict else value
        for key, value in config.items()
        if not tune.is_sampled(value)
    }


def resource_help(cls: type[LegacyTrainer], config: Mapping[str, Any]) -> str:
    """The text that Tune shows if there are too few resources for a trainer class."""
    asked = {key: config[key] for key in RESOURCES if key in config}
    return (
        f"{cls.__name__} needs a CPU for itself and for each worker, and what its config asks for: "
        f"{asked}. Lower {', '.join(RESOURCES)}, or start Ray with more."
    )


_NAMES = {"cpu": "CPU", "gpu": "GPU"}
_EXTRA = "extra_"
_OWN_FIELDS = ("CPU", "GPU", "memory", "object_store_memory")


class TrialResources(PlacementGroupFactory):  # type: ignore[misc]  # Ray has no types
    """The bundles of a trial: the trainer's own first, then those of its workers."""

    @classmethod
    def of(cls, request: PlacementGroupFactory) -> TrialResources:
        """The same request as an object of this class."""
        own: list[dict[str, float]] = [{}] if request.head_bundle_is_empty else []
        return cls([*own, *request.bundles], request.strategy)

    #: The fields of the tuple `Resources`, which `default_resource_request` gave until Ray 1.x.
    _fields: ClassVar[tuple[str, ...]] = tuple(
        prefix + name
        for name in ("cpu", "gpu", "memory", "object_store_memory", "custom_resources")
        for prefix in ("", _EXTRA)
    )

    def __getattr__(self, name: str) -> Any:
        """A field of the tuple: of the trainer itself, or with `extra_` of its workers."""
        if name not in type(self)._fields:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.to_json()[name]

    def to_json(self) -> dict[str, Any]:
        """The form of `tune.run(resources_per_trial=…)` of Ray 0.5 – 1.x, and of ours."""
        bundles = self.bundles
        own: dict[str, float] = {} if self.head_bundle_is_empty else bundles.pop(0)
        extra: dict[str, float] = {}
        for bundle in bundles:
            for name, amount in bundle.items():
                extra[name] = extra.get(name, 0) + amount
        return {
            **_as_json(own, ""),
            **_as_json(extra, _EXTRA),
        }


def with_extra(resources: object) -> Any:
    """Tune's present form of `{"cpu": …, "extra_cpu": …}`; anything else is returned as it is.

    Ray would wait forever for nodes with a resource called `extra_cpu`.
    """
    if not isinstance(resources, Mapping) or not any(k.startswith(_EXTRA) for k in resources):
        return resources
    own = {name: value for name, value in resources.items() if not name.startswith(_EXTRA)}
    extra = {k.removeprefix(_EXTRA): v for k, v in resources.items() if k not in own}
    bundles = [_bundle(own), _bundle(extra)]
    return TrialResources(bundles if any(bundles[1].values()) else bundles[:1])


def _bundle(resources: Mapping[str, Any]) -> dict[str, float]:
    named = {_NAMES.get(k, k): v for k, v in resources.items() if k != "custom_resources"}
    return {name: v for name, v in (named | (resources.get("custom_resources") or {})).items() if v}


def _as_json(bundle: Mapping[str, float], prefix: str) -> dict[str, Any]:
    custom = {name: bundle[name] for name in bundle if name not in _OWN_FIELDS}
    return {
        f"{prefix}cpu": _whole(bundle.get("CPU", 0)),
        f"{prefix}gpu": _whole(bundle.get("GPU", 0)),
        f"{prefix}memory": bundle.get("memory", 0),
        f"{prefix}object_store_memory": bundle.get("object_store_memory", 0),
        f"{prefix}custom_resources": custom,
    }


def _whole(amount: float) -> float:
    """A whole number of CPUs or GPUs as an integer, as the config has it."""
    return int(amount) if amount == int(amount) else amount


def fit_workers(
    given: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    legacy_ray: str | None,
    cpus: float | None,
) -> tuple[dict[str, Any], list[Finding]]:
    """A config with no more workers than there are CPUs for, and rows of the report about it.

    APEX had 32 by default. A number that the config itself says is not changed.

    Args:
        given: The config, as it was given.
        defaults: Those of its Ray.
        legacy_ray: That Ray, if it is known; if it is not, no default of an old Ray counts.
        cpus: How many there are; None if that is unknown, or more may come.
    """
    if cpus is None or legacy_ray is None or _COUNTS & given.keys():
        return dict(given), []
    key = next((key for key in sorted(_COUNTS) if defaults.get(key)), None)
    each = given.get("num_cpus_per_worker", defaults.get("num_cpus_per_worker", 1)) or 1
    if key is None or defaults[key] * each <= cpus:
        return dict(given), []
    most = max(int(cpus / each) - 1, 1)  # one for what learns
    message = f"there are {cpus:g} CPUs; it was {defaults[key]}"
    finding = Finding.warning("resources.cpus", Verdict.RESET, f"$.{key}", message)
    return {**given, key: most}, [finding]


#: The names of the number of workers.
_COUNTS = frozenset({"num_workers", "num_rollout_workers", "num_env_runners"})


#: The keys that ask for GPUs, and their values that ask for none.
_NO_GPUS: dict[str, Any] = {"num_gpus": 0, "gpu": False, "num_gpus_per_worker": 0}
#: Until this Ray, GPUs were only reserved: without any, networks were computed by CPUs.
_COUNTED = Version("1.3")


def fit_gpus(
    given: Mapping[str, Any], defaults: Mapping[str, Any], *, legacy_ray: str | None, gpus: float
) -> tuple[dict[str, Any], list[Finding]]:
    """A config that asks for no GPUs if there are none, and rows of the report about it.

    IMPALA, APPO, APEX and DD-PPO had one by default; without a Ray, no default counts.

    Raises:
        ConfigError: It asks for a GPU for its networks, and its own Ray would have failed, too.
    """
    if gpus or given.get("_fake_gpus"):
        return dict(given), []
    reserved_only = legacy_ray is not None and Version(legacy_ray) < _COUNTED
    fitted, findings = dict(given), []
    for key, none in _NO_GPUS.items():
        asked = given.get(key) if key in given else legacy_ray and defaults.get(key)
        if not isinstance(asked, (int, float)) or not asked:
            continue
        if key in given and key == "num_gpus_per_worker":
            continue  # nodes that have some may join
        if key in given and not reserved_only:
            raise ConfigError(
                f"The config asks for a GPU ({key}={asked}), and there is none.",
                where=key,
                fix=f"Set {key} to {none}. If there is one, check torch.cuda.is_available() and"
                " the num_gpus of ray.init().",
            )
        fitted[key] = none
        message = f"there is no GPU; it was {asked}"
        findings.append(Finding.warning("resources.gpus", Verdict.RESET, f"$.{key}", message))
    return fitted, findings
