"""Values of a translation that only the installed Ray can make.

A translation needs no Ray. Where a setting is an object of Ray (a connector, a `PolicySpec`, a
callbacks class), it holds one of these instead: `build()` makes the object, `code()` says how a
person would write it. A file for each kind of object.
"""

from rllib_compat.config.deferred.callbacks import AdaptedCallbacks, AdaptedEvaluation, adapted
from rllib_compat.config.deferred.connectors import MeanStdConnector, PreviousStepsConnector
from rllib_compat.config.deferred.environments import AdaptedEnv, EnvSpace
from rllib_compat.config.deferred.policies import AdaptedMapping, ModelPerPolicy, PolicyLater
from rllib_compat.config.deferred.ray_classes import Imported, OldReplayBuffer
from rllib_compat.config.deferred.spaces import SpaceLater

__all__ = [
    "AdaptedCallbacks",
    "AdaptedEnv",
    "AdaptedEvaluation",
    "AdaptedMapping",
    "EnvSpace",
    "Imported",
    "MeanStdConnector",
    "ModelPerPolicy",
    "OldReplayBuffer",
    "PolicyLater",
    "PreviousStepsConnector",
    "SpaceLater",
    "adapted",
]
