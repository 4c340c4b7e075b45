"""The RLModule that a user gives for a custom model: found, and built with the policy's spaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import import_attribute
from rllib_compat.neutral.spaces import Box, DictSpace, Space, TupleSpace
from rllib_compat.ray_versions import startup

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.rl_module import RLModule


@frozen
class Built:
    """What a module is, once it is built.

    Attributes:
        space: What it takes: the policy's observations as they are, or all of them in one vector.
        shapes: The shapes of its arrays, by name.
    """

    space: Space
    shapes: Mapping[str, tuple[int, ...]]


def build(
    name: str, policy: PolicyState, model_config: Mapping[str, Any], *, in_parts: bool
) -> Built:
    """Builds a user's module with the spaces of a policy.

    Models of the old API found a Dict or Tuple both in parts (`input_dict["obs"]`) and as one
    vector (`input_dict["obs_flat"]`). A module is given the parts if it computes with them, and
    the vector otherwise.

    Args:
        name: The module, as `module:Class`.
        policy: The policy.
        model_config: What the module is told.
        in_parts: Whether observations can reach the module in parts.

    Raises:
        CheckpointError: It can't be imported, built, or computed.
    """
    cls = _import(name)
    seen = policy.observation_space
    assert seen is not None
    flat = seen if isinstance(seen, Box) else spaces.box(-np.inf, np.inf, (seen.flat_size(),))
    tried = [seen, flat] if in_parts and has_parts(seen) else [flat]
    failed = []
    for space in tried:
        try:
            module = _built(cls, space, policy, model_config)
            if len(tried) > 1:
                _compute(module)
        except Exception as error:  # it is the user's code, which may raise anything
            shown = "in parts" if space is not flat else f"of the shape {flat.shape}"
            failed.append(f"with observations {shown}: {type(error).__name__}: {error}")
        else:
            arrays = {str(k): tuple(np.shape(v)) for k, v in module.get_state().items()}
            return Built(space, arrays)
    raise CheckpointError(
        f"The module {name} can't be built and computed {'; '.join(failed)}.",
        where="--model",
        fix="Its `setup()` has `self.observation_space`, `self.action_space` and "
        "`self.model_config` to make its layers of.",
    )


def has_parts(space: Space | None) -> bool:
    """Whether observations of a space come in parts."""
    return isinstance(space, (DictSpace, TupleSpace))


def _import(name: str) -> Any:
    """The class that the user named; never one that a checkpoint names."""
    module, colon, cls = name.partition(":")
    try:
        if not colon:
            raise ImportError("it is not written as module:Class")
        return import_attribute(module, cls)
    except ImportError as error:
        raise CheckpointError(
            f"The module {name!r} can't be imported ({error}).",
            where="--model",
            fix="Give it as my_package.my_module:MyRLModule; it has to be on PYTHONPATH.",
        ) from error


def _built(cls: Any, space: Space, policy: PolicyState, model_config: Mapping[str, Any]) -> Any:
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    assert policy.action_space is not None
    spec = RLModuleSpec(
        module_class=cls,
        observation_space=spaces.to_gymnasium(space),
        action_space=spaces.to_gymnasium(policy.action_space),
        model_config=dict(model_config),
    )
    with startup.quiet_logs():
        return spec.build()


def _compute(module: RLModule) -> None:
    """Computes two observations of the module's space, unless they need states as well."""
    import torch
    import tree

    if module.get_initial_state():
        return
    seen = [module.observation_space.sample() for _ in range(2)]
    batch = tree.map_structure(lambda *rows: torch.as_tensor(np.stack(rows)), *seen)
    with torch.no_grad():
        module.forward_inference({"obs": batch})
