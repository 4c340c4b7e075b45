"""Algorithms that Ray removed, on the new API stack of the installed Ray.

Each has a file of its own, written as Ray's examples write theirs: an `AlgorithmConfig` with the
old keys' meanings, an `Algorithm` with a `training_step`, and a torch `Learner` with a loss. What
they compute is held against numbers that the old Rays computed (`tests/legacy/losses/`).

`dqn` and `sac` are Ray's own algorithms, which replay columns here (`off_policy`). `ppo`, `vtrace`
and `sac` have what Ray's own learners computed in the old Rays, and compute otherwise now
(`legacy_learners`).

`registry.rows` says which there are; `ray_versions.configs.todays_config` makes their configs.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "catalogs": ("set_catalogs", "use_legacy_networks"),
    "defaults": ("DEFAULTS", "MODEL_DEFAULTS"),
    "dqn": ("may_replay_columns", "replay_columns"),
    "legacy_learners": ("use_legacy_learners",),
    "legacy_training": ("LegacyTraining", "uses_simple_optimizer"),
    "off_policy": ("make_replay_buffer",),
    "replay": ("MultiAgentReplayBuffer", "TransitionReplayBuffer"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
