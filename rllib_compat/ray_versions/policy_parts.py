"""What old policies were made of and Ray still has (2.40 – 2.60): distributions, exploration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gymnasium import Space


def struct_of(space: Space[Any]) -> Any:
    """The structure of a space's parts; a space without parts itself."""
    from ray.rllib.utils.spaces.space_utils import get_base_struct_from_space

    return get_base_struct_from_space(space)


def normalized(actions: object, struct: object) -> Any:
    """Actions of an environment as policies give them, between -1 and 1."""
    from ray.rllib.utils.spaces.space_utils import normalize_action

    return normalize_action(actions, struct)


def distribution(
    action_space: Space[Any], model_config: Mapping[str, Any], squashed: bool
) -> tuple[Any, int]:
    """The old action distribution of a space, of (inputs, model), and how many inputs it takes."""
    from ray.rllib.models import MODEL_DEFAULTS, ModelCatalog
    from ray.rllib.models.torch.torch_action_dist import TorchDiagGaussian, TorchSquashedGaussian

    custom = model_config.get("custom_action_dist")
    if squashed and hasattr(action_space, "low") and not custom:
        return TorchSquashedGaussian, 2 * int(np.prod(action_space.shape or ()))
    known = {**MODEL_DEFAULTS, **{n: v for n, v in model_config.items() if n in MODEL_DEFAULTS}}
    made, size = ModelCatalog.get_action_dist(action_space, known, framework="torch")
    if getattr(made, "func", None) is TorchDiagGaussian:  # it gets the space, needlessly
        made = made.func
    return made, int(np.prod(size))


def exploration(
    settings: Mapping[str, Any], action_space: Space[Any], config: Mapping[str, Any], model: object
) -> Any:
    """An exploration object of the old API stack, by an `exploration_config`."""
    from ray.rllib.utils.exploration.exploration import Exploration
    from ray.rllib.utils.from_config import from_config

    return from_config(
        Exploration,
        dict(settings),
        action_space=action_space,
        framework="torch",
        policy_config={**config, "framework": "torch"},
        model=model,
        num_workers=config.get("num_workers", 0),
        worker_index=0,
    )


def view_requirements(
    observation_space: Space[Any],
    action_space: Space[Any],
    columns: Iterable[str],
    state: Sequence[Any],
) -> dict[str, Any]:
    """The columns of a policy's batches, as `ViewRequirement`s by name."""
    from ray.rllib.policy.view_requirement import ViewRequirement

    found = {
        "obs": ViewRequirement(space=observation_space),
        "new_obs": ViewRequirement("obs", space=observation_space, shift=1),
        "actions": ViewRequirement(space=action_space),
    }
    for name in ("rewards", "dones", "infos", "eps_id", "unroll_id", "agent_index", *columns):
        found[name] = ViewRequirement(used_for_compute_actions=False)
    return with_state(found, len(state))


def with_state(views: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Views with those of a state of so many arrays."""
    from ray.rllib.policy.view_requirement import ViewRequirement

    found = dict(views)
    for i in range(count):
        found[f"state_in_{i}"] = ViewRequirement(f"state_out_{i}", shift=-1)
        found[f"state_out_{i}"] = ViewRequirement(used_for_compute_actions=False)
    return found
