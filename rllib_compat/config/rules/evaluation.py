"""Evaluation: when, how long, with which changes to the config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.deferred import AdaptedEnv, AdaptedEvaluation
from rllib_compat.config.rule import (
    UNREAD,
    Outcome,
    Rule,
    dropped,
    kept,
    lost,
    needless,
    nested,
    renamed,
    rllib_class,
)
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import Config
from rllib_compat.config.values.kinds import Words
from rllib_compat.networks.heads.q_head import EXPLORING
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.runtime.atari import atari_settings
from rllib_compat.runtime.atari_names import may_be_atari

FAMILY = "evaluation"
EPSILON, OF_MODULES = "training.epsilon", "rl_module.model_config"
DURATION = v.COUNT | v.AUTO

# Arguments whose attribute has another name; an evaluation config is a dict of attributes.
ATTRIBUTES = {
    "framework": "framework_str",
    "env_to_module_connector": "_env_to_module_connector",
    "module_to_env_connector": "_module_to_env_connector",
}


def _interval(value: Any, _: Context) -> Outcome:
    return Outcome({"evaluation.evaluation_interval": value or None})


def _num_episodes(value: Any, _: Context) -> Outcome:
    return Outcome(
        {
            "evaluation.evaluation_duration": value,
            "evaluation.evaluation_duration_unit": "episodes",
        }
    )


def _parallel(value: Any, _: Context) -> Outcome:
    if not value:
        return Outcome(verdict=Verdict.DROPPED, message="it was switched off")
    return Outcome({"evaluation.evaluation_parallel_to_training": True})


def _evaluation_config(value: Any, context: Context) -> Outcome:
    """Translates the inner config; what it does to the environment joins the outer settings."""
    if needless(value):
        return Outcome(verdict=Verdict.DROPPED, message="it changed nothing")
    if not isinstance(value, Mapping):
        return Outcome({"evaluation.evaluation_config": value}, Verdict.KEPT)
    assert context.translate is not None
    attributes: dict[str, Any] = {}
    translated = context.translate(value, context.path, context)
    env = nested(translated, "env")
    if env.get("env") is None and context.get("env") is None:
        env.pop("atari", None)  # without an environment, there is nothing to wrap
    for setting, inner in translated.items():
        method, _, argument = setting.partition(".")
        head, _, tail = argument.partition(".")
        if method == "env":
            continue
        if method == "rl_module" or head == "replay_buffer_config":
            context.note(
                Verdict.DROPPED,
                f".{tail or head}",
                "evaluation runs the module that is trained, without a replay buffer",
            )
        elif setting == EPSILON:
            continue
        elif tail:
            attributes.setdefault(ATTRIBUTES.get(head, head), {})[tail] = inner
        else:
            attributes[ATTRIBUTES.get(head, head)] = inner
    if EPSILON in translated and not any(f"{OF_MODULES}.{k}" in translated for k in EXPLORING):
        explores = _is_above_zero(translated[EPSILON])
        attributes["explore"] = attributes.get("explore", True) and explores
    if env and (
        len(env) > 1 or not isinstance(env.get("env"), str) or env["env"] != context.get("env")
    ):
        outer = {
            name: context.config[name]
            for name in ("env", "horizon", "soft_horizon", "no_done_at_end", "preprocessor_pref")
            if name in context.config
        }
        if context.legacy_ray is not None and may_be_atari(env.get("env", outer.get("env"))):
            outer["legacy_ray"] = context.legacy_ray
        if frames := atari_settings(context.get("model") or {}) | env.pop("atari", {}):
            env["atari"] = frames
        attributes["env"] = AdaptedEnv({"env": None, **outer, **env})
    return Outcome({"evaluation.evaluation_config": attributes} if attributes else {})


def _is_above_zero(epsilon: Any) -> bool:
    return any(e > 0 for _, e in epsilon) if isinstance(epsilon, list) else bool(epsilon)


def _custom_function(value: Any, _: Context) -> Outcome:
    if value is None:
        return Outcome(verdict=Verdict.DROPPED, message="there was none")
    return Outcome({"evaluation.custom_evaluation_function": AdaptedEvaluation(value)})


def _input_evaluation(value: Any, _: Context) -> Outcome:
    if needless(value) or value == -1:
        return Outcome(verdict=Verdict.DROPPED, message="none was asked for")
    return Outcome(
        verdict=Verdict.DROPPED,
        message="the new API stack has no off-policy estimators",
        severity=Severity.WARNING,
        hint="evaluate in the environment: evaluation(evaluation_interval=)",
    )


RULES = (
    Rule(
        FAMILY,
        "evaluation_interval",
        Verdict.KEPT,
        target="evaluation.evaluation_interval",
        convert=_interval,
        value=v.COUNT,
    ),
    Rule(
        FAMILY,
        "evaluation_num_episodes",
        Verdict.CONVERTED,
        "renamed in Ray 1.10, which also counts timesteps",
        target="evaluation.evaluation_duration",
        convert=_num_episodes,
        value=DURATION,
    ),
    *renamed(
        FAMILY,
        "evaluation",
        {v.STARTED: {"evaluation_num_workers": "evaluation_num_env_runners"}},
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.WRAPPED,
            "it gets the trainer and its evaluation workers, as before",
            target="evaluation.custom_evaluation_function",
            convert=_custom_function,
            value=v.CODE,
        )
        for key in ("custom_eval_function", "custom_evaluation_function")
    ),
    Rule(
        FAMILY,
        "enable_async_evaluation",
        Verdict.CONVERTED,
        "parallel evaluation is asynchronous by itself",
        target="evaluation.evaluation_parallel_to_training",
        convert=_parallel,
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "evaluation_config",
        Verdict.CONVERTED,
        "its keys are translated like the config's own",
        target="evaluation.evaluation_config",
        convert=_evaluation_config,
        value=Config(),
    ),
    *kept(
        FAMILY,
        "evaluation",
        {
            DURATION: "evaluation_duration",
            Words(("episodes", "timesteps")): "evaluation_duration_unit",
            v.FLAG: "evaluation_parallel_to_training evaluation_force_reset_envs_before_iteration "
            "restart_failed_offline_eval_runners ignore_offline_eval_runner_failures "
            "validate_offline_eval_runners_after_construction "
            "offline_eval_rl_module_inference_only broadcast_offline_eval_runner_states",
            v.STARTED: "evaluation_num_env_runners num_offline_eval_runners",
            v.SECONDS: "evaluation_sample_timeout_s evaluation_unhealthy_workers_timeout_s "
            "offline_evaluation_timeout_s offline_eval_runner_restore_timeout_s "
            "offline_eval_runner_health_probe_timeout_s",
            v.STEPS: "evaluation_auto_duration_min_env_steps_per_sample "
            "evaluation_auto_duration_max_env_steps_per_sample",
            v.COUNT: "evaluation_error_after_n_consecutive_skips offline_evaluation_interval "
            "offline_eval_batch_size_per_runner",
            Words(("eval_loss", "is", "pdis")): "offline_evaluation_type",
            v.CODES: "offline_loss_for_module_fn",
            v.CPUS: "num_cpus_per_offline_eval_runner num_gpus_per_offline_eval_runner",
            v.RESOURCES: "custom_resources_per_offline_eval_runner",
            v.LIMIT: "max_num_offline_eval_runner_restarts",
            v.LENGTH: "max_requests_in_flight_per_offline_eval_runner",
        },
    ),
    Rule(
        FAMILY,
        "offline_eval_runner_class",
        Verdict.KEPT,
        target="evaluation.offline_eval_runner_class",
        convert=rllib_class("evaluation.offline_eval_runner_class"),
        value=v.CODE,
    ),
    Rule(
        FAMILY,
        "dataset_num_iters_per_eval_runner",
        Verdict.RENAMED,
        target="evaluation.dataset_num_iters_per_offline_eval_runner",
        value=v.COUNT,
        old_target="",
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.DROPPED,
            "the new API stack has no off-policy estimators",
            convert=_input_evaluation,
            value=UNREAD,
        )
        for key in ("input_evaluation", "off_policy_estimation_methods")
    ),
    *dropped(FAMILY, "ope_split_batch_by_episode", "a key of the off-policy estimators"),
    *dropped(FAMILY, "always_attach_evaluation_results", "Tune copes without it since Ray 2.35"),
    *lost(FAMILY, "custom_async_evaluation_function", "removed in Ray 2.20"),
    *dropped(
        FAMILY,
        "in_evaluation _run_training_always_in_thread "
        "_evaluation_parallel_to_training_wo_thread offline_evaluation_duration "
        "offline_evaluation_parallel_to_training",
        "an inner key of RLlib",
    ),
)
