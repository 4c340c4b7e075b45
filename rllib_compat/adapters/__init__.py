"""What checkpoints and printed code name of the old world inside the new one; it stays here.

`rllib-compat config` prints code that imports from here, and configs inside checkpoints name these
classes and functions, wherever their files are.
"""

from typing import Any

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "runtime.adapted_config": ("OverridesCache", "adapt_config"),
    "runtime.callbacks": (
        "CallbackAdapter",
        "DefaultCallbacks",
        "SteppingAdapter",
        "adapt_callbacks",
    ),
    "runtime.connectors": (
        "mean_std_filter",
        "multi_agent_mean_std_filter",
        "with_preprocessors",
        "with_previous_steps",
    ),
    "runtime.env_settings": ("EnvSettings",),
    "runtime.env_runners": ("CompatRolloutWorker",),
    "runtime.envs": ("LegacyEnv", "adapt_env", "make_env"),
    "runtime.results": ("EpisodeRecord",),
    "runtime.evaluation": ("EvaluationFunction",),
    "runtime.exploration": ("ParameterNoise", "RandomActions", "with_parameter_noise"),
    "runtime.external.envs": ("LoggedActions", "with_logged_actions"),
    "runtime.learners": (
        "OneBatchLearner",
        "OptimizerLearner",
        "ReportingLearner",
        "CallbackLearner",
    ),
    "runtime.observation_connectors": (
        "FlattenObservations",
        "FloatSpace",
        "GroupedObservations",
        "LegacyObservations",
        "MeanStdFilter",
        "OriginalSpace",
        "PolicyMeanStdFilter",
        "PreviousSteps",
    ),
    "runtime.offline.drawn": ("PreLearner",),
    "runtime.offline.files": ("Recording",),
    "runtime.offline.inputs": ("Readers", "as_parquet"),
    "runtime.placeholders": ("LegacyEnvByName",),
    "runtime.policy_mapping": ("MappingFn", "PolicyOfSameName", "policy_by_number"),
    "runtime.vector_envs": ("VectorEnvRunner",),
    "ray_versions.learners": ("ArrayBatchLearner", "ThreadErrorLearner"),
    "ray_versions.multi_agent_runner": ("CompatMultiAgentEnvRunner",),
    "ray_versions.single_agent_runner": ("CompatEnvRunner",),
    "ray_versions.replay": ("old_replay_buffer",),
}

#: Names that checkpoints of version 0.2.0 have, and what they are called now.
_RENAMED = {
    "LegacyEnvRunner": "VectorEnvRunner",
    "TellingEnvRunner": "CompatEnvRunner",
    "TellingLearner": "CallbackLearner",
    "TellingMultiAgentEnvRunner": "CompatMultiAgentEnvRunner",
    "TellingRolloutWorker": "CompatRolloutWorker",
}

_get, __dir__, __all__ = lazy_exports(__name__, _FILES, package="rllib_compat")


def __getattr__(name: str) -> Any:
    return _get(_RENAMED.get(name, name))
