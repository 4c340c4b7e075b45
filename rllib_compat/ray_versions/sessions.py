"""A small local Ray for one piece of work, and one that says no more than errors."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_ray(*, num_cpus: int) -> Iterator[None]:
    """A small local Ray for as long as the block runs, unless one is running; errors only."""
    import ray

    started = not ray.is_initialized()
    try:
        with quiet_logs():
            if started:
                ray.init(
                    num_cpus=num_cpus,
                    include_dashboard=False,
                    configure_logging=False,
                    log_to_driver=False,
                    object_store_memory=128 * 1024 * 1024,
                )
            yield
    finally:
        if started:
            ray.shutdown()


#: What Ray logs through. Algorithms set the level of `ray.rllib` anew when they are built, so those
#: that deprecations are logged by have one of their own: until Ray 2.48, and since 2.50.
_LOGGERS = (
    "ray",
    "ray.rllib",
    "ray.tune",
    "ray.rllib.utils.deprecation",
    "ray._common.deprecation",
)


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Of what Ray says in the block, errors only: the rest is about its own old parts."""
    import ray.rllib  # noqa: F401  its import sets levels, so it comes before ours

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
