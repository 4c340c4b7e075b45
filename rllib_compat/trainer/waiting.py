"""Compares the resources that an algorithm needs with those of Ray, while it is built.

Ray waits for missing resources forever and silently, since nodes may join; Ray 1.x named them
within seconds.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from rllib_compat.ray_versions.algorithms import resource_request

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

logger = logging.getLogger(__name__)

#: The seconds between two warnings.
_EVERY = 30.0
_KEYS = {
    "GPU": "num_gpus (and num_gpus_per_worker)",
    "CPU": "num_workers (and num_cpus_per_worker)",
}


@contextmanager
def warn_of_missing_resources(config: AlgorithmConfig) -> Iterator[None]:
    """Warns before the block, and until its end, if Ray lacks resources that a config asks for.

    In a trial there is no warning: Tune has reserved all of them.
    """
    text = describe_missing_resources(_asked_by(config), _available())
    if text is None:
        yield
        return
    logger.warning("%s", text)
    done = Event()
    Thread(target=_repeat, args=(text, done), name="rllib_compat: waiting", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def describe_missing_resources(
    asked: Mapping[str, float], available: Mapping[str, float] | None
) -> str | None:
    """A sentence about missing resources, and the keys that ask for them; None if there are none.

    Args:
        asked: How much of each resource is asked for, beside the algorithm's own process.
        available: How much Ray has; None if that is unknown.
    """
    lacking = [] if available is None else [n for n in asked if asked[n] > available.get(n, 0)]
    if available is None or not lacking:
        return None
    parts = [f"{asked[name]:g} {name}s, and Ray has {available.get(name, 0):g}" for name in lacking]
    keys = ", ".join(_KEYS.get(name, f"what asks for {name}") for name in lacking)
    return (
        f"The config asks for {' and '.join(parts)}. It waits until nodes with more join; if none "
        f"will, lower {keys}."
    )


def _asked_by(config: AlgorithmConfig) -> Mapping[str, float]:
    """The resources of an algorithm's actors; its own process needs none."""
    request = resource_request(config)
    asked: Counter[str] = Counter()
    for bundle in request.bundles if request.head_bundle_is_empty else request.bundles[1:]:
        asked.update(bundle)
    return asked


def _available() -> dict[str, float] | None:
    """The resources of all nodes; None without Ray, and in a trial, which has reserved its own."""
    import ray

    if not ray.is_initialized() or ray.util.get_current_placement_group() is not None:
        return None
    return dict(ray.cluster_resources())


def _repeat(text: str, done: Event) -> None:
    while not done.wait(_EVERY):
        logger.warning("Still waiting. %s", text)
