"""What each legacy network is, and how it maps to an RLModule."""

from rllib_compat.networks.fcnet import FullyConnected, Outputs
from rllib_compat.networks.identify import ModelSettings, identify

__all__ = ["FullyConnected", "ModelSettings", "Outputs", "identify"]
