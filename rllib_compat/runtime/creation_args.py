"""`worker.creation_args()`: the constructor arguments of an old rollout worker."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from rllib_compat.registry.legacy_api import missing

#: Argument → its default. The config's key has the same name.
_OF_CONFIG: dict[str, Any] = {
    "disable_env_checking": False,
    "input_evaluation": [],
    "log_level": "WARN",
    "no_done_at_end": False,
    "preprocessor_pref": "deepmind",
    "remote_env_batch_wait_ms": 0,
    "sample_async": False,
    "soft_horizon": False,
}
#: Argument → the config's key.
_RENAMED = {
    "episode_horizon": "horizon",
    "extra_python_environs": "extra_python_environs_for_worker",
    "model_config": "model",
}
#: Arguments that are attributes of the worker.
_OWN = (
    "batch_mode",
    "compress_observations",
    "count_steps_by",
    "env_creator",
    "fake_sampler",
    "num_workers",
    "observation_filter",
    "recreated_worker",
    "rollout_fragment_length",
    "seed",
    "worker_index",
)
#: Arguments that are attributes of its env runner's config.
_OF_RUNNER = ("clip_actions", "clip_rewards", "normalize_actions", "remote_worker_envs")
#: Before `_CLASS`, a single policy was given as its class; before `_POLICY`, as `policy`.
_CLASS, _POLICY = Version("1.4"), Version("1.0")


def creation_args(worker: Any) -> dict[str, Any]:
    """Returns the constructor arguments of an old rollout worker.

    Functions such as `input_creator` return the worker's own objects; `tf_session_creator` raises.
    """
    config = worker.policy_config
    agents = config.get("multiagent") or {}
    ray = worker.legacy_ray
    one_class = ray is not None and ray < _CLASS and not worker.multiagent
    policies = type(worker.get_policy()) if one_class else worker.policy_dict
    named_policy = ray is not None and ray < _POLICY

    def make_session() -> Any:
        raise missing(worker, "policy", "get_session")

    return {
        **{name: getattr(worker, name) for name in _OWN},
        **{name: getattr(worker.env_runner.config, name) for name in _OF_RUNNER},
        **{name: config.get(name, default) for name, default in _OF_CONFIG.items()},
        **{name: config.get(key) for name, key in _RENAMED.items()},
        "_fake_sampler": False,
        "callbacks": type(worker.callbacks),
        "env_config": dict(worker.env_context),
        "input_creator": lambda _: worker.input_reader,
        "log_dir": worker.log_dir,
        "monitor_path": None,
        "num_envs": worker.env_runner.num_envs,
        "observation_fn": agents.get("observation_fn"),
        "output_creator": lambda _: worker.output_writer,
        "policies_to_train": agents.get("policies_to_train"),
        "policy": policies if named_policy else None,
        "policy_config": config,
        "policy_mapping_fn": agents.get("policy_mapping_fn"),
        "policy_spec": None if named_policy else policies,
        "record_env": bool(config.get("record_env", False)),
        "spaces": None,
        "tf_session_creator": make_session,
        "validate_env": None,
    }
