"""`es_torch_policy` and `es_tf_policy`: parts of a policy whose weights are one vector."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
import tree
from numpy.typing import NDArray
from ray.rllib.models.catalog import ModelCatalog
from ray.rllib.utils.filter import get_filter
from ray.rllib.utils.spaces.space_utils import get_base_struct_from_space, unbatch
from ray.rllib.utils.torch_utils import convert_to_torch_tensor

from rllib_compat.ray_versions.types import Policy

__all__ = ["after_init", "before_init", "make_model_and_action_dist", "rollout"]


def before_init(policy: Policy, observation_space: Any, action_space: Any, config: Any) -> None:
    """Gives a policy its filter and noise, and its class the methods for flat weights."""
    policy.preprocessor = ModelCatalog.get_preprocessor_for_space(observation_space)
    policy.action_space_struct = get_base_struct_from_space(action_space)
    policy.action_noise_std = config["action_noise_std"]
    shape = policy.preprocessor.shape
    policy.observation_filter = get_filter(config["observation_filter"], shape)
    policy.single_threaded = config.get("single_threaded", False)
    kind: Any = type(policy)
    kind.set_flat_weights, kind.get_flat_weights = _set_flat_weights, _get_flat_weights
    kind.compute_actions, kind.compute_single_action = _compute_actions, _compute_single_action


def _get_flat_weights(policy: Policy) -> NDArray[Any]:
    """All weights as one vector, by the order of their names."""
    weights = policy.model.state_dict()
    flat = torch.cat([weights[name].flatten() for name in sorted(weights)])
    return flat.cpu().numpy()


def _set_flat_weights(policy: Policy, theta: NDArray[Any]) -> None:
    ends = np.cumsum([int(np.prod(shape)) for shape in policy.param_shapes.values()])
    parts = zip(policy.param_shapes.items(), np.split(np.asarray(theta), ends), strict=False)
    state = {name: torch.from_numpy(part.reshape(shape)) for (name, shape), part in parts}
    policy.model.load_state_dict(state)


def _compute_actions(
    policy: Policy, obs_batch: Any, add_noise: bool = False, update: bool = True, **kwargs: object
) -> Any:
    """The action for an observation, in a list; `update` says whether filters learn from it."""
    alone = isinstance(obs_batch, list) and len(obs_batch) == 1
    seen = policy.preprocessor.transform(obs_batch[0] if alone else obs_batch)
    seen = policy.observation_filter(seen, update=update)[None]
    model, numbers = policy.model, convert_to_torch_tensor(seen, policy.device)
    inputs = model({"obs": numbers}, state=[], seq_lens=None)[0]
    drawn = policy.dist_class(inputs, model).sample()

    def noisy(action: Any, space: Any) -> Any:
        found = action.numpy(force=True)
        is_real = isinstance(space, gymnasium.spaces.Box) and found.dtype.kind == "f"
        if not (add_noise and is_real):
            return found
        return found + np.random.randn(*found.shape) * policy.action_noise_std

    return unbatch(tree.map_structure(noisy, drawn, policy.action_space_struct)), [], {}


def _compute_single_action(
    policy: Policy, observation: Any, add_noise: bool = False, update: bool = True, **kwargs: object
) -> Any:
    options = {"add_noise": add_noise, "update": update, **kwargs}
    actions, states, fetches = policy.compute_actions([observation], **options)
    return actions[0], states, fetches


def make_model_and_action_dist(
    policy: Policy, observation_space: object, action_space: Any, config: Any
) -> Any:
    """The model, which has no gradients, and the class of distributions, which are points."""
    options = {"framework": "torch", "dist_type": "deterministic"}
    kind, size = ModelCatalog.get_action_dist(action_space, config["model"], **options)
    space = policy.preprocessor.observation_space
    model = ModelCatalog.get_model_v2(space, action_space, size, config["model"], "torch")
    return model.requires_grad_(False), kind


def after_init(
    policy: Policy, observation_space: object, action_space: object, config: object
) -> None:
    """Notes the shapes of weights, and how many there are."""
    weights = policy.model.state_dict()
    policy.param_shapes = {name: tuple(weights[name].shape) for name in sorted(weights)}
    policy.num_params = sum(int(np.prod(shape)) for shape in policy.param_shapes.values())


def rollout(
    policy: Policy,
    env: Any,
    timestep_limit: int | None = None,
    add_noise: bool = False,
    offset: float = 0.0,
) -> tuple[NDArray[Any], int]:
    """The rewards of an episode, each lowered by `offset`, and how many steps it had."""
    own = getattr(getattr(env, "spec", None), "max_episode_steps", None) or 999999
    most = own if timestep_limit is None else min(timestep_limit, own)
    seen, ended = env.reset(), False
    rewards: list[float] = []
    while len(rewards) < most and not ended:
        actions, _, _ = policy.compute_actions([seen], add_noise=add_noise, update=True)
        seen, reward, ended, _ = env.step(actions[0])
        rewards.append(reward - abs(offset))
    return np.array(rewards, dtype=np.float32), len(rewards)
