"""What each old network is, and how it maps to an RLModule.

`read` finds the network of a policy's weights, and `draw_network` makes a new one. `to_canonical`
and `from_canonical` rename arrays by the table of a naming scheme; `plan_optimizers` says which
optimizers continue. `load_rl_modules` and `set_weights` are for the modules of the installed Ray;
`GraphNet` is a graph in torch.
"""

from rllib_compat.networks.custom import CustomModel
from rllib_compat.networks.graph import Graph
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
from rllib_compat.networks.read import draw_network, draw_policy, read
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.public import lazy_exports

__all__ = [
    "DEFAULT",
    "TARGET_PREFIX",
    "AnyNetwork",
    "CustomModel",
    "CustomNetwork",
    "Graph",
    "ModelSettings",
    "Network",
    "Outputs",
    "Reading",
    "draw_network",
    "draw_policy",
    "from_canonical",
    "known",
    "plan_optimizers",
    "read",
    "to_canonical",
]

#: These need Ray or torch, or more of this room, and are imported when they are asked for.
_FILES = {
    "": ("custom", "fresh"),
    "modules.grouped": ("grouped_space",),
    "modules.graph_module": ("GraphNet",),
    "observation_filter": ("can_hold", "with_filter"),
    "rl_modules": ("ModuleNetwork", "load as load_rl_modules", "set_weights"),
}

__getattr__, _, _lazy = lazy_exports(__name__, _FILES)
__all__ += _lazy
