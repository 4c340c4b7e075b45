"""Old policies without Ray: a checkpoint's network, computed in numpy, from observation to action.

`policy.py` reads a checkpoint and puts a `Policy` together from the parts beside it: what
preprocessors made of observations, the network's graph, the action distribution, what exploring
meant, and how actions were fitted to their space. `rllib_compat.load_policy` is the whole of it.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {"observations": ("preprocessor",), "policy": ("Policy",)}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
