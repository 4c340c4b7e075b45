"""What objects of the old Rays had, and ours can't have: a row a name, with what to do instead.

One table for all objects that stand in for those of old Rays. An object asks it in `__getattr__`,
where a name is found nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

from rllib_compat.neutral.errors import GoneError

_GROUP = "trainer.algorithm.env_runner_group"
_LEARNERS = "the learners took its place: trainer.algorithm.learner_group"
_REPLAY = "it is trainer.algorithm.local_replay_buffer"
_SESSION = "no TensorFlow session is behind it: call policy.model, or its module, with tensors"
_TARGETS = "they are in the module: policy.model.rl_module.get_target_network_pairs()"
_OPTIMIZERS = "they are policy.optimizer()"
_RETURNED = "learn_on_batch() returns it in `learner_stats`, or policy.model has it"
_WEIGHTS = "load the weights yourself and call trainer.set_weights()"
_TRAINER = "call trainer.add_policy()"
_FAILURES = "failed workers are replaced by Ray, if restart_failed_env_runners is set"
_STORAGE = "Ray synchronizes what is below the storage_path of tune.run"
_ONE_CALL = "Ray calls a worker one method at a time"
_RECORDED = "the env runner records each step; a connector may change it"


def _each(names: str, instead: str) -> dict[str, str]:
    """Several names of which the same is to be said."""
    return dict.fromkeys(names.split(), instead)


#: Object → name → what took its place.
GONE: Mapping[str, Mapping[str, str]] = {
    "trainer": {
        "make_local_evaluator": "it is trainer.workers.local_worker()",
        "make_remote_evaluators": f"set num_workers in the config; {_GROUP} makes them",
        "on_worker_failures": "Ray calls Algorithm.restore_env_runners",
        "restore_workers": _FAILURES,
        "from_state": "call from_checkpoint()",
        "policy": "trainer.get_policy() returns it",
        "evaluation_dataset": "set evaluation_config['input'] to the recordings",
        "custom_syncer": _STORAGE,
        "sync_timeout": _STORAGE,
    },
    "trainer.optimizer": {
        "replay_buffer": _REPLAY,
        "replay_buffers": _REPLAY,
        "learner": _LEARNERS,
        "reset": _FAILURES,
        "restore": "restore the trainer",
    },
    "workers": {
        "add_policy_to_workers": _TRAINER,
        "foreach_worker_async": f"it is {_GROUP}.foreach_env_runner_async",
        "fetch_ready_async_reqs": f"it is {_GROUP}.fetch_ready_async_reqs",
        "sync_env_runner_states": f"it is {_GROUP}.sync_env_runner_states",
    },
    "worker": {
        "output_writer": "the env runner writes, as config.offline_data(output=…) says",
        "as_remote": "it is a method of the class: RolloutWorker.as_remote()",
        "import_policy_model_from_h5": _WEIGHTS,
        "setup_torch_data_parallel": "set num_learners in the config",
        "lock": _ONE_CALL,
        "unlock": _ONE_CALL,
        "marl_module_spec": "it is algorithm.config.get_multi_rl_module_spec()",
    },
    "remote worker": {"add_policy": _TRAINER, "remove_policy": "call trainer.remove_policy()"},
    "base_env": {
        "try_restart": "set restart_failed_sub_environments in the config",
    },
    "episode": {
        "add_init_obs": _RECORDED,
        "add_action_reward_done_next_obs": _RECORDED,
        "postprocess_episode": "do it in on_postprocess_trajectory",
        "set_last_info": _RECORDED,
        "step": _RECORDED,
    },
    "policy_map": {
        "session_creator": _SESSION,
    },
    "policy": {
        "get_session": _SESSION,
        "_sess": _SESSION,
        "import_model_from_h5": "load the weights yourself and call policy.set_weights()",
        "target_model": _TARGETS,
        "target_models": _TARGETS,
        "q_func_vars": "they are policy.model.variables()",
        "compute_td_error": "learn_on_batch() returns `td_error`",
        "td_error": "learn_on_batch() returns `td_error`",
        "q_values": "compute_actions() gives `q_values` among what it computed",
        "target_q_model": _TARGETS,
        "target_q_func_vars": _TARGETS,
        "q_model": "it is policy.model",
        "loss_obj": "policy.loss(…) computes it",
        "q_loss": "policy.loss(…) computes it",
        **_each(
            """
            actor_loss alpha_loss alpha_value critic_loss log_alpha_value log_pis_t policy_t q_t
            target_entropy
            """,
            _RETURNED,
        ),
        "actor_optim": _OPTIMIZERS,
        "critic_optims": _OPTIMIZERS,
        "alpha_optim": _OPTIMIZERS,
        "parent_cls": "policies are of one class; algorithms differ in their learners",
        "with_updates": "subclass the algorithm's Learner: config.learners(learner_class=…)",
    },
    "model": {
        "base_model": "Keras models are gone; print(policy.model.rl_module) shows the layers",
        "register_variables": "layers of a torch module are found by themselves",
        "tf_session": _SESSION,
        **_each(
            "lstm forward_rnn action_model q_net twin_q_net",
            "layers have other names: print(policy.model.rl_module)",
        ),
        **_each(
            "build_policy_model build_q_model concat_obs_and_actions",
            "the module builds its networks in RLModule.setup()",
        ),
    },
}

_GRAPH = "it was a part of a TensorFlow graph; policy.loss(…) and policy.model compute with tensors"
_TEMPLATE = "it was given to what made the class: subclass the policy's class and override methods"
_V1 = "models are ModelV2: forward(input_dict, state, seq_lens) and value_function() have it"
_OF_PARTS = "policy.model.rl_module.named_parameters() has all, with the names of their networks"
_OF_LOSS = "the loss of this policy has none"

#: The same of names that only some of the policies and models of an old Ray had, and so do ours.
_OF_SOME: Mapping[str, Mapping[str, str]] = {
    "policy": {
        **_each(
            """
            build_apply_op copy enable_eager_execution_if_necessary
            extra_compute_action_feed_dict extra_compute_action_fetches
            extra_compute_grad_feed_dict get_placeholder gradients
            maybe_initialize_optimizer_and_loss next_tf_var_scope_name
            tf_var_creation_scope_counter with_tracing
            """,
            _GRAPH,
        ),
        **_each(
            """
            apply_gradients_fn compute_gradients_fn extra_action_out_fn extra_grad_info
            extra_learn_fetches_fn get_batch_divisibility_req get_default_config grad_stats_fn
            make_model make_model_and_action_dist make_rl_module maybe_add_time_dimension
            maybe_remove_time_dimension num_grad_updates stats_fn validate_spaces
            """,
            _TEMPLATE,
        ),
        **_each(
            """
            entropy_coeff entropy_coeff_schedule kl_coeff kl_coeff_val kl_target tower_stats
            update_kl
            """,
            _OF_LOSS,
        ),
        **_each(
            """
            action_connectors agent_connectors get_connector_metrics reset_connectors
            restore_connectors
            """,
            "env runners have connectors; trainer.compute_single_action(obs) takes observations as "
            "environments give them, and so it does what local_policy_inference() did",
        ),
        **_each(
            "cur_lr lr_schedule",
            "it has several optimizers: policy.optimizer() has their rates, which may be set",
        ),
        **_each(
            "from_checkpoint from_state",
            "compat.load_policy() reads checkpoints; set_state() takes what get_state() gives",
        ),
        "init_view_requirements": "policy.view_requirements computes them",
        "set_epsilon": "call trainer.compute_single_action(obs, explore=False), or set "
        "policy.exploration.epsilon_schedule, which is a schedule",
        "lock": _ONE_CALL,
    },
    "model": {
        "policy_variables": _OF_PARTS,
        "q_variables": _OF_PARTS,
    }
    | _each(
        """
        custom_stats from_batch get_input_dict graph input_dict last_layer loss options outputs
        scope seq_lens session state_in state_init state_out update_ops var_list
        """,
        _V1,
    ),
    "policy_map": {"create_policy": _TRAINER},
}


def names_with(of: object, kind: str, behind: object) -> list[str]:
    """What `dir` gives for an object of a kind in `GONE`, with another's public attributes."""
    public = (name for name in dir(behind) if not name.startswith("_"))
    known = {*object.__dir__(of), *public}
    return sorted(name for name in known if name not in GONE[kind] or hasattr(of, name))


def sentence_for(kind: str, name: str) -> str | None:
    """What to do instead of asking an object for a name; None of a name that it never had."""
    return GONE[kind].get(name) or _OF_SOME.get(kind, {}).get(name)


def missing(of: object, kind: str, name: str) -> AttributeError:
    """The error for an attribute that an object (of a kind in `GONE`) does not have.

    It is a `GoneError` if the old Rays' object had it.
    """
    if sentence := sentence_for(kind, name):
        where = f"{kind}.{name}"
        return GoneError(f"There is no `{where}` any more.", where=where, fix=sentence)
    return AttributeError(f"{type(of).__name__} has no attribute {name!r}")
