"""Gives the new optimizers the old moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rllib_compat import ray_versions
from rllib_compat.networks import AnyNetwork
from rllib_compat.networks.mapping import require_same_names
from rllib_compat.networks.network import own_name
from rllib_compat.networks.optimizers.adam import torch_slots
from rllib_compat.networks.optimizers.groups import ALPHA
from rllib_compat.networks.optimizers.plan import plan
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.report import Finding

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm


def set_states(
    algorithm: Algorithm, checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> list[Finding]:
    """Sets the states of all optimizers that can go on; their settings stay the config's.

    Returns:
        What became of each policy's optimizers.
    """
    plans, findings = plan(checkpoint.policies, networks)
    learner = ray_versions.local_learner(algorithm)
    for policy_id, states in plans.items():
        names = _parameters(learner, policy_id)
        for name, state in states.items():
            optimizer = learner.get_optimizer(policy_id, name)
            order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
            slots = torch_slots(state, networks[policy_id])
            require_same_names(slots, order, where=f"optimizer {policy_id}_{name}")
            numbered = {number: slots[name] for number, name in enumerate(order)}
            optimizer.load_state_dict({**optimizer.state_dict(), "state": numbered})
    return findings


def _parameters(learner: Any, policy_id: str) -> dict[int, str]:
    """The names of a module's parameters, and of its temperature if it has one."""
    names = {id(p): name for name, p in learner.module[policy_id].named_parameters()}
    temperatures = getattr(learner, "curr_log_alpha", {})
    if policy_id in temperatures:
        names[id(temperatures[policy_id])] = own_name(ALPHA)
    return names
