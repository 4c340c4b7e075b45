"""Adapters that run environments, callbacks and filters of old Rays in the installed one.

`rllib_compat.adapters` has those that converted checkpoints and generated code name; these are
the others that packages above import.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "adapted_config": ("limit_overrides_cache", "share_parts_of_policies"),
    "atari": ("is_atari_name", "may_be_atari"),
    "batches": ("postprocess",),
    "callbacks": ("RunningPlan", "with_trainer"),
    "connectors": (
        "add_preprocessors",
        "may_need_preprocessors",
        "remove_preprocessors",
        "set_previous_steps",
    ),
    "env_runners": ("use_compat_env_runners",),
    "envs": ("find_creator", "resolve_env_name", "with_default_policy"),
    "episodes": ("LegacyEpisode",),
    "evaluation": ("RemoteWorker",),
    "gym_api": ("adapt_single_agent",),
    "learners": ("use_reporting_learner",),
    "models": ("LegacyModel",),
    "offline.fit": ("Extremes", "require_fit"),
    "placeholders": ("placeholder_env", "placeholder_multi_agent_env"),
    "policies": ("LegacyPolicies", "LegacyPolicy"),
    "policy_mapping": ("ONLY_AGENT", "ONLY_POLICY", "resolve_policy_id"),
    "preprocessors": ("LegacyPreprocessor", "flatten_value"),
    "policy_inputs": ("flatten_state", "nest_state"),
    "results": ("RECORDS", "LegacyResults", "complete_evaluation"),
    "user_envs": ("LegacyBaseEnv", "user_env", "with_user_api"),
    "workers": ("LegacyWorker", "as_legacy"),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
