"""What each old network is, and how it maps to an RLModule.

`read` finds the network of a policy's weights. `to_canonical` and `from_canonical` rename arrays by
the table of a naming scheme; `plan_optimizers` says which optimizers go on.
"""

from rllib_compat.networks.custom import CustomModel
from rllib_compat.networks.mapping import from_canonical, to_canonical
from rllib_compat.networks.network import (
    DEFAULT,
    TARGET_PREFIX,
    AnyNetwork,
    CustomNetwork,
    Network,
    Outputs,
    Reading,
    known,
)
from rllib_compat.networks.optimizers import plan as plan_optimizers
from rllib_compat.networks.read import read
from rllib_compat.networks.settings import ModelSettings

__all__ = [
    "DEFAULT",
    "TARGET_PREFIX",
    "AnyNetwork",
    "CustomModel",
    "CustomNetwork",
    "ModelSettings",
    "Network",
    "Outputs",
    "Reading",
    "from_canonical",
    "known",
    "plan_optimizers",
    "read",
    "to_canonical",
]
