"""What the `AlgorithmConfig` of each release takes and asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rllib_compat.ray_versions.releases import at_least

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

# Arguments of `AlgorithmConfig` that came after the oldest supported Ray, by release.
_SETTINGS_SINCE = {
    "2.44": (
        "env_runners.gym_env_vectorize_mode env_runners.episodes_to_numpy "
        "learners.num_aggregator_actors_per_learner "
        "learners.max_requests_in_flight_per_aggregator_actor training.burn_in_len "
        "offline_data.offline_data_class offline_data.output_write_remaining_data "
        "callbacks.on_algorithm_init callbacks.on_env_runners_recreated "
        "callbacks.on_checkpoint_loaded callbacks.on_environment_created "
        "callbacks.on_episode_created callbacks.on_episode_start callbacks.on_episode_step "
        "callbacks.on_episode_end callbacks.on_evaluate_start callbacks.on_evaluate_end "
        "callbacks.on_sample_end callbacks.on_train_result"
    ),
    "2.48": (
        "env_runners.create_local_env_runner env_runners.merge_env_runner_states "
        "env_runners.broadcast_env_runner_states offline_data.ignore_final_observation "
        "evaluation.evaluation_auto_duration_min_env_steps_per_sample "
        "evaluation.evaluation_auto_duration_max_env_steps_per_sample "
        "evaluation.offline_evaluation_interval evaluation.num_offline_eval_runners "
        "evaluation.offline_evaluation_type evaluation.offline_eval_runner_class "
        "evaluation.offline_loss_for_module_fn evaluation.offline_evaluation_timeout_s "
        "evaluation.num_cpus_per_offline_eval_runner evaluation.num_gpus_per_offline_eval_runner "
        "evaluation.custom_resources_per_offline_eval_runner "
        "evaluation.restart_failed_offline_eval_runners "
        "evaluation.ignore_offline_eval_runner_failures "
        "evaluation.max_num_offline_eval_runner_restarts "
        "evaluation.offline_eval_runner_restore_timeout_s "
        "evaluation.max_requests_in_flight_per_offline_eval_runner "
        "evaluation.validate_offline_eval_runners_after_construction "
        "evaluation.offline_eval_runner_health_probe_timeout_s "
        "evaluation.offline_eval_rl_module_inference_only "
        "evaluation.broadcast_offline_eval_runner_states "
        "evaluation.offline_eval_batch_size_per_runner "
        "evaluation.dataset_num_iters_per_offline_eval_runner "
        "callbacks.on_offline_eval_runners_recreated callbacks.on_evaluate_offline_start "
        "callbacks.on_evaluate_offline_end"
    ),
    "2.55": (
        "offline_data.prelearner_use_recorded_module_states reporting.custom_stats_cls_lookup "
        "training.use_circular_buffer training.simple_queue_size"
    ),
    "2.58": (
        "env_runners.use_env_runner_state_server "
        "env_runners.env_runner_state_server_max_concurrency "
        "resources.custom_resources_for_main_process learners.custom_resources_per_learner "
        "evaluation.evaluation_unhealthy_workers_timeout_s "
        "evaluation.evaluation_error_after_n_consecutive_skips"
    ),
}


_SETTING_SINCE = {name: since for since, names in _SETTINGS_SINCE.items() for name in names.split()}


def has_setting(setting: str) -> bool:
    """Whether the installed Ray's `AlgorithmConfig` takes a setting (`method.argument`)."""
    since = _SETTING_SINCE.get(".".join(setting.split(".")[:2]))
    return since is None or at_least(since)


def is_multi_agent(config: AlgorithmConfig) -> bool:
    """Whether a config is for many agents; a method until Ray 2.43, a property since."""
    answer = config.is_multi_agent
    return bool(answer() if callable(answer) else answer)


def vectorizes_multi_agent_envs() -> bool:
    """Whether an env runner steps several multi-agent environments; Ray 2.40 refuses to."""
    return at_least("2.44")


def keep_env_runners(config: AlgorithmConfig) -> None:
    """Lets an offline algorithm have env runners, if only local ones.

    Later releases make none for a config that is not online, and `Algorithm.from_checkpoint` then
    dies of sending them the weights (`restore_from_path` of Ray 2.60).
    """
    if not getattr(config, "_is_online", True):
        config._is_online = True


def whole_model_config(config: AlgorithmConfig, told: dict[str, Any]) -> dict[str, Any]:
    """What a module's spec has to say for the module to get an algorithm's own settings, too.

    Env runners of Ray 2.40 take a spec's model config as it stands; Ray 2.60 adds the algorithm's
    settings (DQN's epsilon, …). In between they are added here, which is right in any release.
    """
    if at_least("2.60"):
        return told
    whole: dict[str, Any] = config.model_config | told
    return whole


def set_cache_of_module_configs(config: AlgorithmConfig, cache: dict[str, Any]) -> None:
    """Gives a config another cache of the configs of its modules (Ray 2.40 – 2.60)."""
    config._per_module_overrides = cache
