"""What an algorithm asks of Ray, held against what there is, while it is built.

Ray waits for resources without end and without a word, since nodes may join; Ray 1.x said within
seconds what was lacking.
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

#: How long it waits between two warnings, in seconds.
_EVERY = 30.0
_KEYS = {
    "GPU": "num_gpus (and num_gpus_per_worker)",
    "CPU": "num_workers (and num_cpus_per_worker)",
}


@contextmanager
def warn_of_missing_resources(config: AlgorithmConfig) -> Iterator[None]:
    """Warns before the block, and as long as it takes, where Ray lacks what a config asks for.

    In a trial of Tune, which has reserved all of it, nothing is said.
    """
    text = describe_missing_resources(_asked_by(config), _there())
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
    asked: Mapping[str, float], there: Mapping[str, float] | None
) -> str | None:
    """A sentence on what is lacking, and the keys of a config that ask for it; None if nothing is.

    Args:
        asked: How much of each resource is asked for, beside the algorithm's own process.
        there: How much Ray has; None where it is not known.
    """
    lacking = [] if there is None else [n for n in asked if asked[n] > there.get(n, 0)]
    if there is None or not lacking:
        return None
    parts = [f"{asked[name]:g} {name}s, where Ray has {there.get(name, 0):g}" for name in lacking]
    keys = ", ".join(_KEYS.get(name, f"what asks for {name}") for name in lacking)
    return (
        f"The config asks for {' and '.join(parts)}. It waits until nodes with more join; if none "
        f"will, lower {keys}."
    )


def _asked_by(config: AlgorithmConfig) -> Mapping[str, float]:
    """What the actors of an algorithm ask for; its own process asks for nothing."""
    request = resource_request(config)
    asked: Counter[str] = Counter()
    for bundle in request.bundles if request.head_bundle_is_empty else request.bundles[1:]:
        asked.update(bundle)
    return asked


def _there() -> dict[str, float] | None:
    """What all nodes of Ray have; None without Ray, and in a trial, whose part is reserved."""
    import ray

    if not ray.is_initialized() or ray.util.get_current_placement_group() is not None:
        return None
    return dict(ray.cluster_resources())


def _repeat(text: str, done: Event) -> None:
    while not done.wait(_EVERY):
        logger.warning("Still waiting. %s", text)
