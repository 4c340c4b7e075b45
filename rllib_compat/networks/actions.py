"""How a policy chooses actions, what exploring meant, and how actions were fitted to their space.

Ray 0.6 – 1.3 clipped actions (`clip_actions`), and stretched them only where the config said so
(`normalize_actions`, a wrapper of the environment then). Since Ray 1.4, actions are stretched from
-1 … 1 to the bounds of their space, and not clipped otherwise.
Source: `ray/rllib/utils/spaces/space_utils.py`, `unsquash_action` and `clip_action`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.distributions import (
    Array,
    Categorical,
    Deterministic,
    Distribution,
    default_distribution,
    distribution_from_settings,
)
from rllib_compat.networks.families.q_head import exploring
from rllib_compat.networks.graph import Graph
from rllib_compat.networks.network import Network
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import CheckpointError, NotYetError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Box, Space, map_leaves
from rllib_compat.registry import keys as table

#: Draws actions by Q-values `[B, actions]`.
Explore: TypeAlias = Callable[[Array, np.random.Generator], Array]

#: The names of the exploration that mixes the best action with random ones. Workers of APEX had
#: an epsilon each; the one that acts outside of training is the local worker's.
_EPSILON_GREEDY = ("EpsilonGreedy", "PerWorkerEpsilonGreedy")
#: `final_epsilon` of every Ray; `exploration_final_eps` before Ray 0.8.4.
_FINAL_EPSILON = 0.02


@frozen
class ActionChooser:
    """Chooses actions by one output of a network.

    Attributes:
        output: The name of the output.
        distribution: Whose best actions are taken, by a batch of that output.
        explore: Actions of a policy that explores, likewise.
        log_likelihood: The log of the probability (or density) of actions; None: they have none.
    """

    output: str
    distribution: Distribution
    explore: Callable[[Array, np.random.Generator], Any]
    log_likelihood: Callable[[Array, Any], Array] | None = None


def make_chooser(network: Network, policy: PolicyState, settings: ModelSettings) -> ActionChooser:
    """How a policy chooses.

    Raises:
        NotYetError: Its actions have no distribution that is known.
        CheckpointError: The network's outputs are not those of its actions.
    """
    chooser = _make_chooser(network, policy, settings)
    # A graph may come from a file.
    given = network.forward(network.graph.zeros()).get(chooser.output)
    size = given.shape[-1] if isinstance(given, np.ndarray) and given.ndim > 1 else 0
    if size < 1 or chooser.distribution.size not in (0, size):
        raise CheckpointError(
            f"The network's output {chooser.output} does not fit the action space "
            f"{policy.action_space}.",
            where=f"policies.{policy.policy_id}",
            fix="Pass the right one with --action-space (Python: action_space=).",
        )
    return chooser


def _make_chooser(network: Network, policy: PolicyState, settings: ModelSettings) -> ActionChooser:
    space, where = policy.action_space, f"policies.{policy.policy_id}"
    assert space is not None, "a policy without an action space is asked for one before"
    outputs = network.graph.outputs
    if "actions" in outputs:
        action = Deterministic(getattr(space, "shape", ()))
        return ActionChooser("actions", action, _refusing("noise on its actions", where))
    if "action_dist_inputs" in outputs:
        distribution = network.target.model_config.get("distribution")
        chosen = (
            distribution_from_settings(distribution, space, where=where)
            if distribution
            else default_distribution(space, where=where)
        )
        return ActionChooser("action_dist_inputs", chosen, chosen.sample, chosen.log_likelihood)
    explore = _exploration_by_values(policy, settings.config, network.graph)
    return ActionChooser("q_values", Categorical(network.choices or 0), explore)


def _exploration_by_values(policy: PolicyState, config: Mapping[str, Any], graph: Graph) -> Explore:
    """How a policy of Q-values explored when its training stopped."""
    if bandits := [step for step in graph.steps if step.op == "linear_bandit"]:
        if not bandits[0].settings["bonus"]:
            return _refusing("Thompson sampling", f"policies.{policy.policy_id}")
        return lambda values, _: np.asarray(values.argmax(-1))  # LinUCB's values have the bonus
    exploration = config.get("exploration_config")
    exploration = exploration if isinstance(exploration, Mapping) else {}
    kind = str(exploration.get("type", "EpsilonGreedy")).rpartition(".")[2]
    module = module_settings(policy)
    temperature = module.get("soft_q_temperature")
    if kind == "SoftQ":
        temperature = exploration.get("temperature", 1.0)
    elif config.get("soft_q"):  # until Ray 0.8.0
        temperature = config.get("softmax_temp", 1.0)
    if temperature is not None:
        by = float(temperature)
        return lambda values, rng: Categorical(values.shape[-1]).sample(values / by, rng)
    if "parameter_noise" in module or config.get("parameter_noise"):
        kind = "ParameterNoise"
    if kind in _EPSILON_GREEDY and not any(step.op == "noisy_dense" for step in graph.steps):
        return _epsilon_greedy(_epsilon(policy, exploration, config))
    what = "noisy layers" if kind in _EPSILON_GREEDY else kind
    return _refusing(what, f"policies.{policy.policy_id}")


def module_settings(policy: PolicyState) -> Mapping[str, Any]:
    """How a module of this package explores beside epsilon."""
    model = policy.config.get("model")
    own = policy.extra.get("module_config")
    return exploring({**(model or {}), **(own or {})})


def _refusing(what: str, where: str) -> Explore:
    """Stands where exploring was noise that is not computed here."""

    def refuse(output: Array, rng: np.random.Generator) -> Array:  # noqa: ARG001
        raise NotYetError(
            f"Not supported yet: exploration with {what}.",
            where=where,
            fix="Pass explore=False for the policy's best action.",
        )

    return refuse


def _epsilon(
    policy: PolicyState, exploration: Mapping[str, Any], config: Mapping[str, Any]
) -> float:
    """What it was at last, or what it was going to be."""
    stored = policy.exploration
    for found in (
        stored.get("cur_epsilon") if isinstance(stored, Mapping) else None,
        exploration.get("final_epsilon"),
        config.get("exploration_final_eps"),
    ):
        if isinstance(found, (int, float, np.number)):
            return float(found)
    return _FINAL_EPSILON


def _epsilon_greedy(epsilon: float) -> Explore:
    def choose(values: Array, rng: np.random.Generator) -> Array:
        random = rng.integers(values.shape[-1], size=len(values))
        return np.where(rng.random(len(values)) < epsilon, random, values.argmax(-1))

    return choose


@frozen
class ActionFitting:
    """What becomes of actions.

    Attributes:
        unsquash: Whether they are stretched from -1 … 1 to their space.
        clip: Whether they are clipped to their space.
    """

    unsquash: bool
    clip: bool

    def __call__(self, actions: object, space: Space) -> Any:
        """Fits a batch of actions, in the structure of their space."""
        return map_leaves(self._fit, space, actions)

    def _fit(self, space: Space, actions: Any) -> Any:
        if not isinstance(space, Box):
            return actions
        if self.unsquash and space.bounded and space.dtype.startswith("float"):
            stretched = space.low + (actions + 1.0) * (space.high - space.low) / 2.0
            return np.clip(stretched, space.low, space.high).astype(space.dtype)
        if self.clip:
            return np.clip(actions, space.low, space.high)
        return actions


def find_fitting(
    checkpoint: LegacyCheckpoint, policy: PolicyState, network: Network
) -> tuple[ActionFitting, tuple[Finding, ...]]:
    """What the config of a checkpoint says, with the defaults of its Ray.

    Returns:
        It, and a warning if the defaults of its Ray are unknown.
    """
    known: Mapping[str, Any] = {**checkpoint.config, **policy.config}
    ray = checkpoint.source.ray_version
    if ray is not None and checkpoint.algorithm is not None:
        known = {**table.default_config(checkpoint.algorithm, ray), **known}
    # Ray 0.7 and 0.8.0 squashed into the space itself.
    fits = network.target.model_config.get("distribution", {}).get("squashes", 1) > 1
    fitting = ActionFitting(
        bool(known.get("normalize_actions")) and not fits, bool(known.get("clip_actions"))
    )
    missing = [key for key in ("normalize_actions", "clip_actions") if key not in known]
    if ray is not None or not missing or not _has_numbers(policy.action_space):
        return fitting, ()
    return fitting, (
        Finding.warning(
            "actions",
            Verdict.DERIVED,
            f"policies.{policy.policy_id}.action_space",
            f"neither the config nor a Ray version shows {' and '.join(missing)}; actions are "
            "returned as if the setting were False",
            "pass it: load_policy(…, config={…, 'clip_actions': True})",
        ),
    )


def _has_numbers(space: Space | None) -> bool:
    return isinstance(space, Box) or (space is not None and any(map(_has_numbers, space.parts())))
