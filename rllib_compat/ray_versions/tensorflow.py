"""TensorFlow, whose custom models Ray's old API stack still trains (2.40 – 2.60)."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from typing import Any

import numpy as np

#: The algorithms whose policies Ray still has for TensorFlow.
ALGORITHMS = ("APPO", "BC", "CQL", "DQN", "IMPALA", "MARWIL", "PPO", "SAC")

#: What makes `tf.keras` of TensorFlow 2.16 and later Keras 2, which its package `tf-keras` has.
_LEGACY_KERAS = "TF_USE_LEGACY_KERAS"
#: Names of the catalog's registry, and the base class of what they name.
_KINDS = {
    "custom_model": ("RLLIB_MODEL", "ray.rllib.models.tf.tf_modelv2", "TFModelV2"),
    "custom_action_dist": (
        "RLLIB_ACTION_DIST",
        "ray.rllib.models.tf.tf_action_dist",
        "TFActionDistribution",
    ),
}


def is_for_tensorflow(key: str, value: object) -> bool:
    """Whether a class of the user's, or what is registered by its name, is TensorFlow's.

    Nothing is imported: a class that derives from Ray's has imported that.

    Args:
        key: The key of a model config, `custom_model` or `custom_action_dist`.
        value: The key's value.
    """
    _, module, base = _KINDS[key]
    value = _registered(key, value) if isinstance(value, str) else value
    bases = (getattr(sys.modules.get(module), base, None), getattr(_keras(), "Model", None))
    return isinstance(value, type) and issubclass(value, tuple(filter(None, bases)))


def is_unknown(key: str, value: object) -> bool:
    """Whether it is the name of what is not registered in this process."""
    return isinstance(value, str) and _registered(key, value) is None


def _registered(key: str, name: str) -> Any:
    catalog: Any = sys.modules.get("ray.rllib.models.catalog")
    if catalog is None:
        return None
    category, registry = getattr(catalog, _KINDS[key][0]), catalog._global_registry
    return registry.get(category, name) if registry.contains(category, name) else None


def what_is_missing() -> str:
    """What this process lacks to train a model of TensorFlow; empty: nothing.

    Ray's policies need Keras 2.
    """
    if importlib.util.find_spec("tensorflow") is None:
        return "TensorFlow is not installed"
    version = str(getattr(_keras(), "__version__", "2"))
    return "" if version.startswith("2") else f"TensorFlow has Keras {version} in this process"


def make_optimizer_variables(policy: Any, state: dict[str, Any]) -> None:
    """Makes the variables of an eager policy's optimizer, to which Ray sets those of a state.

    Ray leaves a state out where a new optimizer has no variables yet. Those of another number or
    shape are left out of the state, with a warning.
    """
    optimizer: Any = getattr(policy, "_optimizer", None)
    stored = state.get("_optimizer_variables")
    if not stored or not hasattr(optimizer, "build"):
        return
    if not any(tuple(variable.shape) for variable in optimizer.variables()):
        trained = policy.model.trainable_variables
        optimizer.build(list(trained() if callable(trained) else trained))
    if [tuple(v.shape) for v in optimizer.variables()] != [np.shape(v) for v in stored]:
        state["_optimizer_variables"] = []
        message = "The optimizer of a TensorFlow policy starts from zero: it has other variables."
        logging.getLogger(__name__).warning(message)


def _keras() -> Any:
    """Keras of a TensorFlow that is imported, or None."""
    try:
        return getattr(sys.modules.get("tensorflow"), "keras", None)
    except ImportError:  # it loads its Keras here
        return None


def prefer_legacy_keras() -> None:
    """Lets a TensorFlow that is imported later have Keras 2, where that is installed."""
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ.setdefault(_LEGACY_KERAS, "1")
