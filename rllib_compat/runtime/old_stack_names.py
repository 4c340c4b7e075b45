"""Old attributes of objects of the old API stack, which are Ray's own or the user's.

Objects of the new API stack are this package's, and have these attributes themselves. Attributes
that Ray has removed from the old stack are added here, or raise the errors of
`registry/legacy_api.py`.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rllib_compat.formats.msgpack.codec import pack, unpack
from rllib_compat.registry.legacy_api import missing

#: Where `torch.nn.Module.__getattr__` finds parts, which this module's `__getattr__` replaces.
_PARTS = ("_parameters", "_buffers", "_modules")

#: Name → a function that returns its value for an object.
Names = Mapping[str, Callable[[Any], Any]]

POLICY: Names = {
    "exploration_info": lambda policy: policy.get_exploration_state(),
    "explore": lambda policy: bool(policy.config.get("explore", True)),
    "get_exploration_info": lambda policy: policy.get_exploration_state,
    "loss_initialized": lambda _: lambda: True,
    "variables": lambda policy: policy.model.variables,
}
MODEL: Names = {
    "inference_view_requirements": lambda model: model.view_requirements,
    "options": lambda model: model.model_config,
    "state_init": lambda model: model.get_initial_state(),
    "var_list": lambda model: model.variables(),
}
POLICY_MAP: Names = {
    "deque": lambda policies: collections.deque(policies.keys()),
    "extension": lambda _: "",
    "num_workers": lambda policies: _config_of(policies).get("num_workers", 0),
    "path": lambda _: "",
    "policy_config": lambda policies: _config_of(policies),
    "policy_specs": lambda policies: {name: _spec_of(one) for name, one in policies.items()},
    "seed": lambda policies: _config_of(policies).get("seed"),
    "valid_keys": lambda policies: set(policies.keys()),
    "worker_index": lambda policies: _config_of(policies).get("worker_index", 0),
}
WORKER: Names = {
    "batch_mode": lambda worker: worker.config.batch_mode,
    "compress_observations": lambda worker: bool(worker.config.compress_observations),
    "count_steps_by": lambda worker: worker.config.count_steps_by,
    "export_policy_checkpoint": lambda worker: partial(_export, worker, "export_checkpoint"),
    "export_policy_model": lambda worker: partial(_export, worker, "export_model"),
    "fake_sampler": lambda _: False,
    "foreach_trainable_policy": lambda worker: worker.foreach_policy_to_train,
    "make_env_fn": lambda worker: worker.make_sub_env_fn,
    "num_envs": lambda worker: worker.config.num_envs_per_env_runner,
    "observation_filter": lambda worker: worker.config.observation_filter,
    "policies_to_train": lambda worker: worker.get_policies_to_train(),
    "policy_config": lambda worker: dict(worker.config.to_dict()),
    "restore": lambda worker: partial(_restore, worker),
    "reward_estimators": lambda _: [],
    "rollout_fragment_length": lambda worker: worker.total_rollout_fragment_length,
    "sample_batch_size": lambda worker: worker.total_rollout_fragment_length,
    "save": lambda worker: partial(_save, worker),
    "tf_sess": lambda _: None,
}


def add_old_names() -> None:
    """Adds the old attributes to Ray's policies, models and policy maps in this process."""
    from ray.rllib.models.modelv2 import ModelV2
    from ray.rllib.policy.policy import Policy
    from ray.rllib.policy.policy_map import PolicyMap

    for cls, kind, names in (
        (Policy, "policy", POLICY),
        (ModelV2, "model", MODEL),
        (PolicyMap, "policy_map", POLICY_MAP),
    ):
        cls.__getattr__ = _getter(kind, names)


def get_old_attribute(of: object, kind: str, names: Names, name: str) -> Any:
    """Returns an old attribute of an object.

    Raises:
        AttributeError: There is none. It is a `GoneError` if an old object had it.
    """
    if name in names:
        return names[name](of)
    raise missing(of, kind, name)


def _getter(kind: str, names: Names) -> Callable[[Any, str], Any]:
    def get(of: object, name: str) -> Any:
        state = of.__dict__
        for parts in _PARTS:
            if name in state.get(parts, ()):
                return state[parts][name]
        return get_old_attribute(of, kind, names, name)

    return get


def _config_of(policies: Any) -> dict[str, Any]:
    return dict(next(iter(policies.values())).config)


def _spec_of(policy: Any) -> Any:
    from ray.rllib.policy.policy import PolicySpec

    spaces = policy.observation_space, policy.action_space
    return PolicySpec(type(policy), *spaces, {})


def _export(
    worker: Any, method: str, export_dir: str, *rest: Any, policy_id: str = "default_policy"
) -> Any:
    return getattr(worker.policy_map[policy_id], method)(export_dir, *rest)


def _save(worker: Any) -> bytes:
    return pack({"weights": worker.get_weights(), "global_vars": dict(worker.global_vars)})


def _restore(worker: Any, objs: bytes) -> None:
    state = unpack(objs, where="worker.restore()")
    worker.set_weights(state["weights"], state["global_vars"])
