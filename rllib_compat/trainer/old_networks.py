"""A trainer around the networks of an old checkpoint, where its own modules can't take them.

Ray loads the arrays whose names a module has, and drops the others without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.formats import layouts
from rllib_compat.networks.named import BUFFERS
from rllib_compat.neutral.budget import Budget
from rllib_compat.ray_versions import modules as ray_modules
from rllib_compat.ray_versions import training_steps

if TYPE_CHECKING:
    from rllib_compat.networks import AnyNetwork
    from rllib_compat.neutral.checkpoint import LegacyCheckpoint
    from rllib_compat.trainer.trainer import Trainer


#: What the model config of a module tells of what it computes, and its arrays may not show.
_NOT_IN_ARRAYS = ("graph", "fcnet_hiddens", "head_fcnet_hiddens", "critics", "times")
#: What is meant where it tells nothing; of the others, whatever they are.
_UNTOLD = {"times": 1.0}


def has_other_modules(
    trainer: Trainer, states: Mapping[str, Mapping[str, Any]], path: Path
) -> bool:
    """Whether a module of a trainer is not that of a checkpoint of today's.

    Args:
        trainer: Who restores it.
        states: The state of each module in it.
        path: The checkpoint.
    """
    own = trainer.get_weights()
    both = own.keys() & states.keys()
    # Both may have none: Random's has not.
    if any(states[name] and _shapes(own[name]) != _shapes(states[name]) for name in both):
        return True
    if not any(training_steps.foreach_learner(trainer.algorithm, _has_ours)):
        return False  # modules of Ray's, whose config is that of the trainer
    told = _told(trainer)
    saved = layouts.read(path, Budget()).policies
    return not all(
        _agree(saved[name].extra.get("module_config", {}), told[name])
        for name in both & saved.keys()
    )


def take_networks(
    trainer: Trainer, checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> None:
    """Builds the trainer's algorithm anew around old networks, if its modules are not theirs.

    Policies that the checkpoint does not have keep the modules of the trainer's config.

    Args:
        trainer: Who restores the checkpoint.
        checkpoint: The state of policies with spaces.
        networks: Their networks.
    """
    own = trainer.get_weights()
    networks = {name: network for name, network in networks.items() if name in own}
    told = _told(trainer)
    if all(
        _fits(network, own[name]) and _agree(network.target.model_config, told[name])
        for name, network in networks.items()
    ):
        return
    from rllib_compat.conversion.write.checkpointable import adapt_config  # it needs torch

    policies = [checkpoint.policies[name] for name in networks]
    config = trainer.algorithm.config.copy(copy_frozen=False)
    adapt_config(
        config, checkpoint.with_policies(policies), networks, others=own.keys() - networks.keys()
    )
    trainer.name_networks(config)
    trainer.build_anew(config)


def _told(trainer: Trainer) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]]
    found, *_ = training_steps.foreach_learner(trainer.algorithm, ray_modules.model_configs)
    return found


def _fits(network: AnyNetwork, arrays: Mapping[str, Any]) -> bool:
    """Whether a module has the arrays of a network, and no others."""
    return _shapes(network.module_state()) == _shapes(arrays)


def _shapes(arrays: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: np.shape(array) for name, array in arrays.items() if name not in BUFFERS}


def _has_ours(learner: Any) -> bool:
    """Whether any of a learner's modules is one of this package."""
    modules = (learner.module[name].unwrapped() for name in learner.module.keys())  # noqa: SIM118 - it is no dict
    return any(type(module).__module__.startswith("rllib_compat.") for module in modules)


def _agree(told: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether two model configs tell of the same layers in one order, as far as they tell any."""

    def of(one: Mapping[str, Any], key: str, other: Mapping[str, Any]) -> Any:
        return one.get(key, _UNTOLD.get(key, other.get(key)))

    # An optimizer's state goes by the places of the arrays.
    orders = [list(one["shapes"]) for one in (told, others) if "shapes" in one]
    same_order = orders[:1] * len(orders) == orders
    return same_order and all(of(told, k, others) == of(others, k, told) for k in _NOT_IN_ARRAYS)
