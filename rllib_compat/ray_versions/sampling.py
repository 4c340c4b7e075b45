"""What env runners for one agent and for many share when they sample without connectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.ray_versions import modules
from rllib_compat.ray_versions.metrics import log_directly
from rllib_compat.ray_versions.modules import torch_distributions
from rllib_compat.ray_versions.timers import pass_over_connector_timers

if TYPE_CHECKING:
    import torch

    from rllib_compat.ray_versions.types import AlgorithmConfig, EnvRunner, RLModule

#: One step in so many goes Ray's way, so that its timers have values.
TIMED = 50

_LOG_OF_ROOT_OF_2_PI = 0.5 * np.log(2 * np.pi)


def tolerates_failures(config: AlgorithmConfig) -> bool:
    """Whether a config asks to continue when workers fail.

    Ray 2.60 ends a worker in which an environment or a callback raises, and the error stays in the
    worker's log; the driver hears that an actor died. A worker that answers with its error instead
    lets `train()` raise it. Where the config asks for other workers in the place of failed ones, or
    to continue without them, Ray's own way is right.
    """
    return bool(
        getattr(config, "restart_failed_env_runners", False)
        or getattr(config, "ignore_env_runner_failures", False)
    )


def unmask_zero_q_values(runner: EnvRunner) -> None:
    """Lets a runner's modules of DQN explore actions whose Q-value is zero."""
    for module in _modules_of(runner):
        modules.unmask_zero_q_values(module)


def prepare_modules_for_sampling(runner: EnvRunner) -> None:
    """Takes away what costs each step of a runner time and decides nothing.

    Its modules only ever act, and Ray would switch their mode twice a step.
    """
    pass_over_connector_timers(runner)
    log_directly(runner.metrics)
    for module in _modules_of(runner):
        getattr(module, "eval", lambda: None)()


def set_own_exploration(runner: EnvRunner) -> None:
    """Lets modules act as the configs of their policies say: `explore` may be a policy's own."""
    overrides = runner.config.algorithm_config_overrides_per_module
    if overrides and hasattr(runner.module, "keys"):
        for policy_id in set(overrides) & set(runner.module.keys()):
            if (own := overrides[policy_id].get("explore")) is not None:
                modules.set_explores(runner.module[policy_id], bool(own))


def _modules_of(runner: EnvRunner) -> list[Any]:
    made = runner.module
    return [m for m in (made.values() if hasattr(made, "values") else [made]) if m is not None]


def same(known: list[Any] | None, found: list[Any]) -> bool:
    """Whether what was found is what was known: the same objects."""
    return known is not None and [*map(id, known)] == [*map(id, found)]


def rays_to_module(*, multi_agent: bool = False) -> list[tuple[type, ...]]:
    """Classes of Ray's own connectors to the module, of which one was not there until Ray 2.41."""
    from ray.rllib.connectors import env_to_module as of_ray

    mapping = (of_ray.AgentToModuleMapping,) if multi_agent else ()
    last = (of_ray.BatchIndividualItems, of_ray.NumpyToTensor)
    without_time = (
        of_ray.AddObservationsFromEpisodesToBatch,
        of_ray.AddStatesFromEpisodesToBatch,
        *mapping,
        *last,
    )
    try:
        from ray.rllib.connectors.common.add_time_dim_to_batch_and_zero_pad import (
            AddTimeDimToBatchAndZeroPad,
        )
    except ImportError:
        return [without_time]
    first, *others = without_time
    return [without_time, (first, AddTimeDimToBatchAndZeroPad, *others)]


def normalizer_of(pipeline: Any) -> Any:
    """The connector of a pipeline of Ray's own that stretches or clips actions."""
    from ray.rllib.connectors.module_to_env import NormalizeAndClipActions

    return next(c for c in pipeline.connectors if type(c) is NormalizeAndClipActions)


def classes_of(connectors: Iterable[Any]) -> tuple[type, ...]:
    """The connectors' classes; those of a subclass are its own, which may do anything."""
    return tuple(map(type, connectors))


def forward_of(module: RLModule, *, explore: bool) -> Any:
    """The module's forward pass; later Rays put every layer into its mode before each."""
    from ray.rllib.core.rl_module.torch import TorchRLModule

    name = "forward_exploration" if explore else "forward_inference"
    public = getattr(module, name)
    replaced = name in vars(module) or getattr(type(module), name) is not getattr(
        TorchRLModule, name
    )
    if module.training or replaced:
        return public
    layers = modules.acting_layers(module)
    return partial(_act_through, layers) if layers else getattr(module, f"_{name}")


def _act_through(layers: list[Any], batch: Mapping[str, Any], **_: object) -> dict[str, Any]:
    import torch

    with torch.no_grad():
        return {"action_dist_inputs": modules.through(layers, batch["obs"])}


def act(
    module: RLModule,
    inputs: torch.Tensor,
    to_array: Callable[[Any], Any],
    *,
    explore: bool,
    in_numpy: bool,
) -> tuple[Any, Any]:
    """Actions, and the logarithms of their probabilities.

    Only here is the module asked from what they are drawn: one that chooses itself has nothing.

    Inputs make a distribution of each row `[B, n]`, or of each step `[B, T, n]`.
    """
    explore = explore and modules.explores(module)
    which = "exploration" if explore else "inference"
    kind = getattr(module, f"get_{which}_action_dist_cls")()
    if explore and in_numpy and (found := draw(kind, to_array(inputs))) is not None:
        return found
    distribution = kind.from_logits(inputs)
    if not explore:
        # Old policies gave zeros, too. Those of Ray's deterministic distributions have the shape of
        # the action, by which losses fail, or make a table of all rows by all rows.
        logp = inputs.new_zeros(inputs.shape[:-1])
        return to_array(likeliest(distribution)), to_array(logp)
    actions = distribution.sample()
    return to_array(actions), to_array(distribution.logp(actions))


def likeliest(distribution: Any) -> Any:
    """The likeliest actions, an array for each part of a Tuple or Dict.

    Those of a MultiDiscrete were a list of them in Ray 2.40, which no environment takes.
    """
    import torch
    import tree

    of_ray = torch_distributions()
    if isinstance(distribution, of_ray.TorchMultiCategorical):
        return torch.stack([likeliest(choice) for choice in distribution._cats], -1)
    if isinstance(distribution, of_ray.TorchMultiDistribution):
        parts = [likeliest(part) for part in distribution._flat_child_distributions]
        return tree.unflatten_as(distribution._original_struct, parts)
    return distribution.to_deterministic().sample()


def draw(distribution: type, inputs: object) -> tuple[Any, Any] | None:
    """Draws an action from each row of logits, or of means and logarithms of deviations, in numpy.

    torch takes a tenth of a millisecond to make a distribution, draw from it, and compute a
    probability; for one row of numbers, numpy takes a tenth of that.

    Returns:
        The actions `[B]` or `[B, n / 2]`, and the logarithms of their probabilities or densities
        `[B]`; None where the class is another one.
    """
    known = getattr(distribution, "draw_in_numpy", None) or _drawn_in_numpy().get(distribution)
    return known(inputs) if known else None


@cache
def _drawn_in_numpy() -> dict[type, Callable[[Any], Any]]:
    of_ray = torch_distributions()
    return {of_ray.TorchCategorical: _categorical, of_ray.TorchDiagGaussian: _diagonal_gaussian}


def _categorical(logits: Any) -> tuple[Any, Any] | None:
    """Draws one of `n` choices by each row of logits `[B, n]`, or each step of `[B, T, n]`.

    Returns:
        The choices, and the logarithms of their probabilities; None where logits are no numbers.
    """
    scaled = logits - logits.max(-1, keepdims=True)
    sums = np.exp(scaled).cumsum(-1)
    total = sums[..., -1:]
    if not math.isfinite(total.sum()):
        return None  # torch says what is wrong
    actions = (sums <= np.random.random(total.shape) * total).sum(-1)
    rows = scaled.reshape(-1, scaled.shape[-1])
    chosen = rows[np.arange(len(rows)), actions.ravel()].reshape(actions.shape)
    return actions, chosen - np.log(total[..., 0])


def _diagonal_gaussian(inputs: torch.Tensor) -> tuple[Any, Any]:
    """Draws from normal distributions by each row of means and logarithms of deviations."""
    means, logs = np.split(inputs, 2, -1)
    noise = np.random.standard_normal(means.shape).astype(means.dtype)
    logp = -(0.5 * noise**2 + logs + _LOG_OF_ROOT_OF_2_PI).sum(-1)
    return means + np.exp(logs) * noise, logp.astype(means.dtype)


def map_structure(function: Callable[[Any], Any], value: object) -> Any:
    """A nested value with the function's results in the place of its arrays."""
    if isinstance(value, Mapping):
        return {name: map_structure(function, part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(map_structure(function, part) for part in value)
    return function(value)


def stack(values: list[Any]) -> Any:
    """Nested values of the same form, as one with arrays."""
    first = values[0]
    if isinstance(first, Mapping):
        return {name: stack([value[name] for value in values]) for name in first}
    if isinstance(first, (tuple, list)):
        return type(first)(stack(list(parts)) for parts in zip(*values, strict=True))
    return np.array(values)
