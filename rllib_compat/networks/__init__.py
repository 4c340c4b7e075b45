"""What each legacy network is, and how it maps to an RLModule."""

from rllib_compat.networks.network import Network, Outputs
from rllib_compat.networks.read import identify
from rllib_compat.networks.settings import ModelSettings

__all__ = ["ModelSettings", "Network", "Outputs", "identify"]
