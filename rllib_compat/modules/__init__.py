"""The RLModules that converted checkpoints name; they stay here, wherever their files are.

Each computes a network that today's default modules cannot represent, and trains like any module of
Ray. `rllib_compat` has to be installed where such a checkpoint is loaded.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "bandit": ("LinearBanditModule",),
    "configured": ("ConfiguredModule",),
    "critics": ("CriticRegularizedModule", "DeterministicModule", "MADDPGModule"),
    "distributions": ("squashed_gaussian",),
    "graph_module": (
        "ActorCriticModule",
        "ActorModule",
        "AsynchronousModule",
        "PolicyModule",
        "RandomModule",
    ),
    "q": ("ExploringQModule", "QModule"),
    "qmix": ("QMIXModule",),
    "r2d2": ("R2D2GraphModule", "R2D2Module"),
    "rnnsac": ("RNNSACModule",),
    "sac": ("CQLModule", "NoCatalog", "SACModule"),
}

__getattr__, __dir__, __all__ = lazy_exports(
    __name__, _FILES, package="rllib_compat.networks.modules"
)
