"""Every difference between the supported Ray releases, and every touch of Ray's private names.

No other package asks which Ray is installed. Each function here has one meaning for all releases,
and its comment says which release changed what. A file for one idea; what the rest of the code
uses is named here.
"""

from rllib_compat.ray_versions.algorithms import (
    build_algorithm,
    coefficients,
    load_algorithm,
    local_learner,
    restores_offline,
    stop_algorithm,
    take_coefficients,
    take_learning_rates_of_config,
)
from rllib_compat.ray_versions.asynchronous import (
    answers_of_env_runners,
    ask_env_runners,
    forget_requests,
    healthy_env_runners,
    wait_for_any,
    wait_for_samples,
)
from rllib_compat.ray_versions.callbacks import callback_class, callbacks_of
from rllib_compat.ray_versions.catalogs import ChangesEncoders
from rllib_compat.ray_versions.checkpoints import (
    is_asked_for,
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
    keep_connectors_of_local_runner,
    keep_env_runners,
    learn_in_this_process,
    learner_method,
    learns_elsewhere,
    learns_in_its_process,
    own_settings,
    plain_model_config,
    set_cache_of_module_configs,
    set_learner_class,
    takes_prelearners,
    tell_modules,
    tell_modules_nothing_of,
    todays_config,
    vectorize_mode,
    vectorizes_multi_agent_envs,
    whole_model_config,
)
from rllib_compat.ray_versions.connectors import (
    add_seen,
    env_to_module,
    env_to_module_factory,
    flatten_observations,
    frozen_statistics,
    has_learner_connectors,
    look_spaces_up_in,
    made_connectors,
    module_to_env,
    module_to_env_factory,
    observation_filter,
    running_stat_state,
    seen_since,
)
from rllib_compat.ray_versions.direct_agents import AgentsDirectly
from rllib_compat.ray_versions.direct_steps import StepsDirectly, forward_of
from rllib_compat.ray_versions.ended_episodes import ReadsEndedOnce
from rllib_compat.ray_versions.episodes import agents_that_stepped, to_numpy
from rllib_compat.ray_versions.external import news, ongoing_episodes
from rllib_compat.ray_versions.leagues import (
    after_restores,
    frozen_and_trained,
    module_weights,
)
from rllib_compat.ray_versions.learners import (
    ClipsGradients,
    CountsRealSteps,
    MakesStepsOnce,
    TakesArrays,
    TellsErrorsOfThread,
    add_next_observations,
    apply_gradients,
    hand_over_batch,
    learner_with_targets,
    learns_in_thread,
    log_td_errors,
    make_batches_in_learners,
    number_weights_as,
    parameters_of,
    rates_in_use,
    set_learner_state,
    set_rate,
    taking_arrays,
)
from rllib_compat.ray_versions.metrics import (
    count_once,
    count_steps_read,
    items,
    log_item,
    log_that_a_sample_ended,
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
    changed_specs,
    dqn_catalog,
    dqn_module,
    explore,
    explore_zeros,
    has_q_values,
    model_configs,
    network_forward,
    q_outputs,
    q_values,
    set_catalog,
    set_module_class,
    soft_actor_critic_modules,
    target_network_logits,
    told_model_configs,
    torch_distributions,
    trains_discrete_sac,
)
from rllib_compat.ray_versions.old_episodes import tell_as_of_old
from rllib_compat.ray_versions.old_stack import set_state_of_old_stack
from rllib_compat.ray_versions.old_workers import TakesOldPolicies, agent_steps
from rllib_compat.ray_versions.own_policies import (
    as_written,
    called_as_of_old,
    is_policy_class,
    learn_once_on_the_old_stack,
    torch_policy_with,
    with_policy,
)
from rllib_compat.ray_versions.plans import (
    counters_of,
    give_batches_their_old_names,
    next_of_plan,
    not_ready,
    own_step,
    plan_iterator,
    plan_metrics,
    sample_synchronously,
    timers_of,
    train_one_step,
    with_steps,
)
from rllib_compat.ray_versions.releases import NEWEST, OLDEST, at_least, installed
from rllib_compat.ray_versions.replay import old_replay_buffer, weigh_replayed, weighted_buffer
from rllib_compat.ray_versions.runners import (
    copy_weights,
    count_sampled,
    earlier_chunks,
    environments_of,
    foreach_env_runner,
    go_on_exploring,
    has_only_a_local_one,
    is_in_this_process,
    numbered_env_runners,
    remote_env_runners,
    reset_at_the_next_sample,
    resets_at_the_next_step,
    seed_env_runner,
    send_weights,
    sub_environments,
)
from rllib_compat.ray_versions.sessions import quiet_logs, quiet_ray
from rllib_compat.ray_versions.startup import without_cluster
from rllib_compat.ray_versions.timers import (
    log_sampler_times,
    pass_over_connector_timers,
    untimed,
)
from rllib_compat.ray_versions.trainables import (
    folder_of,
    has_storage,
    mark_restored,
    mark_restored_by_tune,
    trainable_arguments,
    trial_storage,
    without_logger,
)
from rllib_compat.ray_versions.training import (
    agent_steps_sampled,
    foreach_learner,
    log_of_env_runners,
    log_of_learners,
    reset_noise,
    sample_episodes,
    sample_here,
    send_new_weights,
    tell_what_was_measured,
    trains_in_this_process,
    update_learner,
    update_learners,
    update_learners_with_arrays,
)
from rllib_compat.ray_versions.tune import (
    checkpoint_of,
    give_trials_their_old_names,
    is_in_trial,
    is_registered_env,
    is_registered_trainable,
    registered_env,
    tune_checkpoint_config,
    tune_context,
    tune_report,
)
