"""From the config that a trainer is given to what its algorithm is built of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rllib_compat.config import Translation, find_algorithm, translate
from rllib_compat.config.era import resolve
from rllib_compat.config.rules.offline import learns_on_old_stack
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Verdict
from rllib_compat.ray_versions import algorithms, startup
from rllib_compat.registry.keys import TODAY
from rllib_compat.runtime.default_policy import with_default_policy
from rllib_compat.runtime.envs import resolve_env_name
from rllib_compat.trainer import subclasses
from rllib_compat.trainer.build import Origin
from rllib_compat.trainer.defaults import common_config, defaults_of, merge
from rllib_compat.trainer.resources import TrialResources, fit_gpus

if TYPE_CHECKING:
    from rllib_compat.trainer.subclasses import LegacyTrainer

#: The keys that say how much a trial takes.
RESOURCES = (
    "num_workers",
    "num_cpus_per_worker",
    "num_gpus_per_worker",
    "num_cpus_for_driver",
    "num_gpus",
)


@frozen
class Preparation:
    """What a trainer's algorithm is built of.

    Attributes:
        origin: Where the config comes from, with the Ray that it was written for.
        translation: The translated config.
        config: The legacy config with the defaults of its Ray, and the keys of the class's own.
        own_policy: The policy class that the trainer asks for, or None for the algorithm's own.
        learns_once: Whether it samples and learns once from each batch, as no algorithm does.
    """

    origin: Origin
    translation: Translation
    config: dict[str, Any]
    own_policy: type | None
    learns_once: bool


def prepare(
    trainer: LegacyTrainer,
    config: Mapping[str, Any],
    legacy_ray: str,
    origin: Origin,
    logdir: str,
) -> Preparation:
    """Completes, checks and translates a trainer's config.

    Args:
        trainer: The trainer, whose class has defaults, checks, policies and steps.
        config: The legacy config as it was given.
        legacy_ray: The Ray that it was written for, "auto" or "today".
        origin: Where it comes from, as far as the trainer knows.
        logdir: Where the trainer's files go.

    Raises:
        ConfigError: It can't be translated.
    """
    cls, learns_once = type(trainer), trainer.learns_once
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
    for check in subclasses.config_validators(trainer):
        given = subclasses.validated(check, defaults, given)
    own_policy = subclasses.own_policy(trainer, merge(defaults, given))
    own = subclasses.own_keys(cls, given)
    asked = origin.arguments
    own_parts = own_policy is not None or subclasses.has_steps(cls)
    if own_parts or learns_on_old_stack(algorithm, given):
        asked["api_stack"] = "old"
    given, findings = fit_gpus(
        given, defaults, legacy_ray=origin.legacy_ray, gpus=startup.count_gpus()
    )
    translation = translate(without(own, given), **asked)
    translation.report.extend([*era.findings(), *findings])
    env = translation.env_settings.env
    if isinstance(env, str) and (note := resolve_env_name(env)[1]):
        translation.report.add("env.name", Verdict.NOTE, "$.env", note)
    complete = merge(defaults, translation.legacy_config | own)
    return Preparation(origin, translation, complete, own_policy, learns_once)


def without(keys: Collection[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without some keys."""
    return {key: config[key] for key in config if key not in keys}


def resource_request(cls: type[LegacyTrainer], config: Mapping[str, Any]) -> TrialResources:
    """What Tune reserves for a trial of a trainer class."""
    given = merge(subclasses.own_defaults(cls), config)
    translation = translate(
        without(subclasses.own_keys(cls, given), given),
        algorithm=cls.algorithm_name,
        legacy_ray=resolve(cls.legacy_ray, given, cls.algorithm_name, cls.evidence),
        old_networks=cls.legacy_ray != TODAY,
        on_unknown="warn",  # a function around a trainer may have keys of its own
    )
    return TrialResources.of(algorithms.resource_request(translation.algorithm_config))


def resource_help(cls: type[LegacyTrainer], config: Mapping[str, Any]) -> str:
    """What Tune says when there are too few resources for a trainer class."""
    asked = {key: config[key] for key in RESOURCES if key in config}
    return (
        f"{cls.__name__} needs a CPU for itself and for each worker, and what its config says: "
        f"{asked}. Lower {', '.join(RESOURCES)}, or start Ray with more."
    )
