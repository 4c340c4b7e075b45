"""Every difference between the supported Ray releases, and every touch of Ray's private names.

No other package asks which Ray is installed. Each function here has one meaning for all releases,
and its comment says which release changed what. A file for one idea; what the rest of the code
uses is named here.
"""

from rllib_compat.ray_versions.algorithms import (
    build_algorithm,
    load_algorithm,
    local_learner,
    take_learning_rates_of_config,
)
from rllib_compat.ray_versions.callbacks import callback_class, callbacks_of
from rllib_compat.ray_versions.checkpoints import (
    keep_optimizers_through_restores,
    save,
    state_files,
    state_to_restore,
    unpatched_msgpack,
    writes_checkpoint_version,
)
from rllib_compat.ray_versions.configs import (
    has_setting,
    is_multi_agent,
    keep_env_runners,
    learner_method,
    set_cache_of_module_configs,
    set_learner_class,
    todays_config,
    vectorizes_multi_agent_envs,
    whole_model_config,
)
from rllib_compat.ray_versions.connectors import (
    env_to_module,
    env_to_module_factory,
    frozen_statistics,
    look_spaces_up_in,
    made_connectors,
    module_to_env,
    module_to_env_factory,
    running_stat_state,
)
from rllib_compat.ray_versions.episodes import to_numpy
from rllib_compat.ray_versions.external import news, ongoing_episodes
from rllib_compat.ray_versions.metrics import (
    count_once,
    items,
    log_item,
    mark_steps_as_counted,
    set_lifetime_counters,
    set_steps_of_env_runner,
    start_counting,
    take_evaluation_items,
)
from rllib_compat.ray_versions.modules import (
    BC_MODULE_NAMES,
    action_distribution,
    bc_module_names,
    dqn_module,
    network_forward,
    q_values,
    soft_actor_critic_modules,
    target_network_logits,
    torch_distributions,
    trains_discrete_sac,
)
from rllib_compat.ray_versions.old_stack import set_state_of_old_stack
from rllib_compat.ray_versions.old_workers import TakesOldPolicies
from rllib_compat.ray_versions.own_policies import (
    called_as_of_old,
    is_policy_class,
    learn_once_on_the_old_stack,
    torch_policy_with,
    with_policy,
)
from rllib_compat.ray_versions.releases import NEWEST, OLDEST, at_least, installed
from rllib_compat.ray_versions.replay import old_replay_buffer, weigh_replayed, weighted_buffer
from rllib_compat.ray_versions.runners import (
    earlier_chunks,
    foreach_env_runner,
    remote_env_runners,
    resets_at_the_next_step,
    seed_env_runner,
    send_weights,
    sub_environments,
)
from rllib_compat.ray_versions.sessions import quiet_logs, quiet_ray
from rllib_compat.ray_versions.startup import without_cluster
from rllib_compat.ray_versions.timers import log_sampler_times, untimed
from rllib_compat.ray_versions.trainables import (
    folder_of,
    has_storage,
    mark_restored,
    mark_restored_by_tune,
    trainable_arguments,
    without_logger,
)
from rllib_compat.ray_versions.training import (
    sample_episodes,
    send_new_weights,
    update_learners,
)
from rllib_compat.ray_versions.tune import (
    give_trials_their_old_names,
    is_registered_env,
    is_registered_trainable,
    registered_env,
    tune_checkpoint_config,
    tune_report,
)

__all__ = [
    "BC_MODULE_NAMES",
    "NEWEST",
    "OLDEST",
    "TakesOldPolicies",
    "action_distribution",
    "at_least",
    "bc_module_names",
    "build_algorithm",
    "callback_class",
    "callbacks_of",
    "called_as_of_old",
    "count_once",
    "dqn_module",
    "earlier_chunks",
    "env_to_module",
    "env_to_module_factory",
    "folder_of",
    "foreach_env_runner",
    "frozen_statistics",
    "give_trials_their_old_names",
    "has_setting",
    "has_storage",
    "installed",
    "is_multi_agent",
    "is_policy_class",
    "is_registered_env",
    "is_registered_trainable",
    "items",
    "keep_env_runners",
    "keep_optimizers_through_restores",
    "learn_once_on_the_old_stack",
    "learner_method",
    "load_algorithm",
    "local_learner",
    "log_item",
    "log_sampler_times",
    "look_spaces_up_in",
    "made_connectors",
    "mark_restored",
    "mark_restored_by_tune",
    "mark_steps_as_counted",
    "module_to_env",
    "module_to_env_factory",
    "network_forward",
    "news",
    "old_replay_buffer",
    "ongoing_episodes",
    "q_values",
    "quiet_logs",
    "quiet_ray",
    "registered_env",
    "remote_env_runners",
    "resets_at_the_next_step",
    "running_stat_state",
    "sample_episodes",
    "save",
    "seed_env_runner",
    "send_new_weights",
    "send_weights",
    "set_cache_of_module_configs",
    "set_learner_class",
    "set_lifetime_counters",
    "set_state_of_old_stack",
    "set_steps_of_env_runner",
    "soft_actor_critic_modules",
    "start_counting",
    "state_files",
    "state_to_restore",
    "sub_environments",
    "take_evaluation_items",
    "take_learning_rates_of_config",
    "target_network_logits",
    "to_numpy",
    "todays_config",
    "torch_distributions",
    "torch_policy_with",
    "trainable_arguments",
    "trains_discrete_sac",
    "tune_checkpoint_config",
    "tune_report",
    "unpatched_msgpack",
    "untimed",
    "update_learners",
    "vectorizes_multi_agent_envs",
    "weigh_replayed",
    "weighted_buffer",
    "whole_model_config",
    "with_policy",
    "without_cluster",
    "without_logger",
    "writes_checkpoint_version",
]
