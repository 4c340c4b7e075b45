"""Every difference between the supported Ray releases, and every touch of Ray's private names.

No other package asks which Ray is installed. Each function here has one meaning for all releases,
and its comment says which release changed what. A file for one idea; what the rest of the code
uses is named here.
"""

from rllib_compat.ray_versions.algorithms import build_algorithm, local_learner
from rllib_compat.ray_versions.callbacks import callback_class, callbacks_of
from rllib_compat.ray_versions.checkpoints import save, unpatched_msgpack, writes_checkpoint_version
from rllib_compat.ray_versions.configs import (
    has_setting,
    is_multi_agent,
    keep_env_runners,
    vectorizes_multi_agent_envs,
    whole_model_config,
)
from rllib_compat.ray_versions.connectors import running_stat_state
from rllib_compat.ray_versions.episodes import to_numpy
from rllib_compat.ray_versions.metrics import (
    log_item,
    mark_steps_as_counted,
    set_lifetime_counters,
    set_steps_of_env_runner,
)
from rllib_compat.ray_versions.modules import (
    BC_MODULE_NAMES,
    bc_module_names,
    dqn_module,
    network_forward,
    q_values,
    soft_actor_critic_modules,
    torch_distributions,
    trains_discrete_sac,
)
from rllib_compat.ray_versions.releases import NEWEST, OLDEST, at_least, installed
from rllib_compat.ray_versions.replay import old_replay_buffer, weigh_replayed, weighted_buffer
from rllib_compat.ray_versions.runners import (
    foreach_env_runner,
    remote_env_runners,
    resets_at_the_next_step,
    seed_env_runner,
    send_weights,
    sub_environments,
)
from rllib_compat.ray_versions.sessions import quiet_logs, quiet_ray
from rllib_compat.ray_versions.timers import log_sampler_times, untimed
from rllib_compat.ray_versions.trainables import trainable_arguments, without_logger
from rllib_compat.ray_versions.tune import tune_checkpoint_config, tune_report

__all__ = [
    "BC_MODULE_NAMES",
    "NEWEST",
    "OLDEST",
    "at_least",
    "bc_module_names",
    "build_algorithm",
    "callback_class",
    "callbacks_of",
    "dqn_module",
    "foreach_env_runner",
    "has_setting",
    "installed",
    "is_multi_agent",
    "keep_env_runners",
    "local_learner",
    "log_item",
    "log_sampler_times",
    "mark_steps_as_counted",
    "network_forward",
    "old_replay_buffer",
    "q_values",
    "quiet_logs",
    "quiet_ray",
    "remote_env_runners",
    "resets_at_the_next_step",
    "running_stat_state",
    "save",
    "seed_env_runner",
    "send_weights",
    "set_lifetime_counters",
    "set_steps_of_env_runner",
    "soft_actor_critic_modules",
    "sub_environments",
    "to_numpy",
    "torch_distributions",
    "trainable_arguments",
    "trains_discrete_sac",
    "tune_checkpoint_config",
    "tune_report",
    "unpatched_msgpack",
    "untimed",
    "vectorizes_multi_agent_envs",
    "weigh_replayed",
    "weighted_buffer",
    "whole_model_config",
    "without_logger",
    "writes_checkpoint_version",
]
