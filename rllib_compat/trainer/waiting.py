"""Compares the resources that an algorithm needs with those of Ray, while it is built.

Ray waits for missing resources forever and silently, since nodes may join; Ray 1.x named them
within seconds. Where no node can join, the missing ones are an error.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import startup
from rllib_compat.ray_versions.algorithms import resource_request

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

logger = logging.getLogger(__name__)

#: The seconds between two warnings.
_EVERY = 30.0
#: Resource → the keys that ask for it; the first one is named where a config has none of them.
_KEYS = {
    "GPU": (
        *("num_gpus", "gpu", "num_learners", "num_gpus_per_learner"),
        *("num_gpus_per_learner_worker", "num_gpus_per_worker", "num_gpus_per_env_runner"),
    ),
    "CPU": (
        *("num_workers", "num_rollout_workers", "num_env_runners", "num_cpus_per_worker"),
        *("num_cpus_per_env_runner", "num_learners", "evaluation_num_workers"),
    ),
}


@contextmanager
def with_resources(config: AlgorithmConfig, legacy: Mapping[str, Any]) -> Iterator[None]:
    """Checks, before the block, that Ray has the resources that a config asks for.

    Where nodes may join that have them, it warns, and again until the block ends. In a trial there
    is neither: Tune has reserved all of them.

    Args:
        config: The translated config.
        legacy: The config whose keys an error names.

    Raises:
        ConfigError: Ray lacks resources, and no node can join; or it was started with GPUs that
            are not there.
    """
    available = available_resources()
    lack = describe_missing_resources(_asked_by(config), available, legacy)
    if lack is None:
        _require_devices(config, legacy)
        yield
        return
    if not startup.may_grow():
        raise lack
    text = f"{lack.found} It waits until nodes with more join; if none will: {lack.fix}"
    logger.warning("%s", text)
    done = Event()
    Thread(target=_repeat, args=(text, done), name="rllib_compat: waiting", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def describe_missing_resources(
    asked: Mapping[str, float], available: Mapping[str, float] | None, legacy: Mapping[str, Any]
) -> ConfigError | None:
    """An error about missing resources, and the keys that ask for them; None if there are none.

    Args:
        asked: How much of each resource is asked for, beside the algorithm's own process.
        available: How much Ray has; None if that is unknown.
        legacy: The config whose keys are named.
    """
    lacking = [] if available is None else [n for n in asked if asked[n] > available.get(n, 0)]
    if available is None or not lacking:
        return None
    parts, fixes, named = [], [], []
    for name in lacking:
        keys = _said(name, legacy)
        there, said = available.get(name, 0), ", ".join(f"{key}={legacy.get(key)}" for key in keys)
        parts.append(f"{asked[name]:g} {name}s ({said}), and Ray has {there:g}")
        fixes.append(_fix(name, keys, asked[name], there, legacy))
        named += keys
    return ConfigError(
        f"The config asks for {' and '.join(parts)}.", where=named[0], fix=" ".join(fixes)
    )


def _said(resource: str, legacy: Mapping[str, Any]) -> list[str]:
    """The keys of a config that ask for a resource."""
    known = _KEYS.get(resource, (f"custom_resources ({resource})",))
    return [key for key in known if legacy.get(key)] or [known[0]]


def _fix(
    resource: str, keys: list[str], asked: float, there: float, legacy: Mapping[str, Any]
) -> str:
    """What to set the key that asks for most to, so that what is asked for is there."""
    key, each = max(keys, key=lambda name: float(legacy.get(name) or 0)), 1.0
    given = legacy.get(key)
    if resource == "CPU":
        each = float(legacy.get("num_cpus_per_worker") or 1)
    number = given if isinstance(given, (int, float)) else asked
    most = max(int(number - (asked - there) / each), 0)
    more = f"start Ray with more: ray.init(num_{resource.lower()}s={asked:g})"
    return f"Set {key} to {most}" + (f", or {more}." if resource == "CPU" else ".")


def _require_devices(config: AlgorithmConfig, legacy: Mapping[str, Any]) -> None:
    """Checks that there is a device where Ray was started with GPUs.

    Raises:
        ConfigError: A GPU is asked for, and torch sees none.
    """
    if not startup.lacks_promised_gpus() or not total(resource_request(config).bundles).get("GPU"):
        return
    keys = _said("GPU", legacy)
    said = ", ".join(f"{key}={legacy.get(key)}" for key in keys)
    raise ConfigError(
        f"The config asks for a GPU ({said}). Ray was started with GPUs, and torch finds no CUDA "
        "device.",
        where=keys[0],
        fix=f"Set {keys[0]} to 0. If there is a GPU, check torch.cuda.is_available().",
    )


def _asked_by(config: AlgorithmConfig) -> Mapping[str, float]:
    """The resources of an algorithm's actors; its own process needs none."""
    request = resource_request(config)
    return total(request.bundles if request.head_bundle_is_empty else request.bundles[1:])


def total(bundles: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The resources of all bundles."""
    asked: Counter[str] = Counter()
    for bundle in bundles:
        asked.update(bundle)
    return {**asked}


def available_resources() -> dict[str, float] | None:
    """The resources of all nodes; None without Ray, and in a trial, which has reserved its own."""
    import ray

    if not ray.is_initialized() or ray.util.get_current_placement_group() is not None:
        return None
    return dict(ray.cluster_resources())


def free_cpus() -> float | None:
    """The CPUs of the running Ray; None in a trial, and where nodes may join."""
    available = available_resources()
    return None if available is None or startup.may_grow() else available.get("CPU", 0)


def _repeat(text: str, done: Event) -> None:
    while not done.wait(_EVERY):
        logger.warning("Still waiting. %s", text)
