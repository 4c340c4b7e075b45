"""What each old network is, and how it maps to an RLModule."""

from rllib_compat.networks.custom import CustomModel
from rllib_compat.networks.network import (
    AnyNetwork,
    CustomNetwork,
    Network,
    Outputs,
    Reading,
    known,
)
from rllib_compat.networks.read import read
from rllib_compat.networks.settings import ModelSettings

__all__ = [
    "AnyNetwork",
    "CustomModel",
    "CustomNetwork",
    "ModelSettings",
    "Network",
    "Outputs",
    "Reading",
    "known",
    "read",
]
