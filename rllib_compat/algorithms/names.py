"""The names by which Ray's own Tune finds the algorithms."""

from __future__ import annotations

from ray.tune import register_trainable

from rllib_compat.ray_versions import tune


def register(algorithm: type) -> None:
    """Registers an algorithm with Ray's Tune by its name, which `Tuner("A2C")` then finds.

    Ray keeps the names for the whole cluster, so its workers find them, too. It pickles what it
    registers: this is called at the end of the algorithm's file, where pickle finds the class by
    its place. A name that somebody has registered already stays as it is.
    """
    if not tune.is_registered_trainable(algorithm.__name__):
        register_trainable(algorithm.__name__, algorithm)
