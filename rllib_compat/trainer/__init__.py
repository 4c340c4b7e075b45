"""The legacy Trainer API over the installed Ray.

`rllib_compat.Trainer`, `load` and the trainers by their old names are the whole API; the names here
are for the packages that replace Ray's old modules.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "": ("checkpoints", "defaults", "subclasses"),
    "classes": (
        "build_trainer",
        "class_of_algorithm",
        "keep_era",
        "raise_if_removed",
        "trainer_class",
    ),
    "defaults": ("defaults_of",),
    "fluent": ("LegacyConfig", "config_class"),
    "preparation": ("with_extra",),
    "rollout_worker": ("RolloutWorker",),
    "stock_policies": ("policy_class", "policy_modules", "policy_names"),
    "workers": ("LegacyOptimizer", "LegacyWorkers"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
