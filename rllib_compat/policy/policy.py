"""A checkpoint of any Ray as a policy that acts, without Ray: observations in, actions out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rllib_compat.conversion.complete import complete
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.identify import drop_weightless, identify_networks, require_facts
from rllib_compat.formats import layouts
from rllib_compat.networks import AnyNetwork, ModelSettings, Network, custom, refusals
from rllib_compat.networks.actions import ActionChooser, ActionFitting, find_fitting, make_chooser
from rllib_compat.networks.distributions import Array
from rllib_compat.networks.graph import Compiled
from rllib_compat.networks.observation_filter import can_hold, with_filter
from rllib_compat.networks.previous_steps import PREVIOUS_ACTIONS, PREVIOUS_REWARDS, choices_of
from rllib_compat.neutral.advice import for_python
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import (
    CheckpointError,
    MissingInformationError,
    NotConvertibleError,
    NotYetError,
)
from rllib_compat.neutral.recurrent_state import checked_state, is_given
from rllib_compat.neutral.report import Finding, Severity
from rllib_compat.neutral.spaces import DictSpace, Space, TupleSpace
from rllib_compat.policy.observations import Preprocessor, preprocessor


class Computed(NamedTuple):
    """What a policy computed.

    Attributes:
        actions: As the environment takes them: a batch in the structure of the action space, or
            one action.
        state: The recurrent state after them, a list of arrays; empty where there is none.
        extras: The network's outputs by name (`action_dist_inputs`, `vf_preds`, `q_values`);
            `action_logp`, the log of the probability of actions that were sampled; and
            `policy_actions`, the actions as the policy gave them, neither stretched nor clipped.
            Networks that take previous actions take those.
    """

    actions: Any
    state: list[Array]
    extras: dict[str, Any]


class Policy:
    """An old policy, computed in numpy: what `load_policy` returns.

    It holds no state between calls beside its random generator, so one object may serve many
    environments.

    Attributes:
        policy_id: Its id.
        network: What it computes; `network.summary` says it in a line.
        observation_space: The environment's observations, as a record.
        action_space: The environment's actions, likewise.
        findings: What was noticed when it was read.
    """

    def __init__(
        self,
        policy_id: str,
        network: Network,
        *,
        spaces: tuple[Space, Space],
        preprocess: Preprocessor,
        chooser: ActionChooser,
        fitting: ActionFitting,
        explore: bool = False,
        findings: Sequence[Finding] = (),
    ) -> None:
        self.policy_id = policy_id
        self.network = network
        self.observation_space, self.action_space = spaces
        self.findings = tuple(findings)
        self._preprocess = preprocess
        self._chooser = chooser
        self._fitting = fitting
        self._explore = explore
        self._act = Compiled(network.graph, network.arrays, [chooser.output], where=self._where)
        self._all = Compiled(network.graph, network.arrays, self._known(), where=self._where)
        self._rng = np.random.default_rng()

    def __repr__(self) -> str:
        return (
            f"Policy({self.policy_id!r}: {self.network.summary}, {self.observation_space} → "
            f"{self.action_space})"
        )

    @property
    def is_recurrent(self) -> bool:
        """Whether it has a state that goes from step to step."""
        return self.network.graph.recurrent

    def get_initial_state(self, batch_size: int | None = None) -> list[Array]:
        """The state before the first step: zeros.

        Args:
            batch_size: For how many environments, `[B, …]`; None: for one, without that axis.
        """
        graph = self.network.graph
        lead = () if batch_size is None else (batch_size,)
        return [np.zeros((*lead, *graph.inputs[name]), np.float32) for name in graph.states]

    def compute_actions(
        self,
        obs: object,
        state: Sequence[Any] | None = None,
        prev_actions: object = None,
        prev_rewards: object = None,
        *,
        explore: bool | None = None,
        seed: int | None = None,
        full_fetch: bool = True,
    ) -> Computed:
        """Computes an action for each observation of a batch.

        Args:
            obs: Observations as the environment gives them: an array `[B, …]`, a structure of the
                observation space with such arrays as leaves, or a list of observations.
            state: The state before this step, as the last call returned it; None: the initial one.
            prev_actions: The actions of the step before, for networks that take them (or `[B, n,
                …]` for those that take the last n, oldest first): `extras["policy_actions"]` of
                the last call. None: zeros, as before the first step.
            prev_rewards: The rewards of the step before `[B]` (or `[B, n]`), likewise.
            explore: Whether to sample from the action distribution (or, for Q-values, to mix in
                random actions as at the end of training) instead of taking the best action; None:
                as the policy was loaded.
            seed: Makes sampling repeatable; None: the policy's own generator continues.
            full_fetch: Whether all outputs of the network are computed and returned in `extras`, or
                only what the action needs.

        Raises:
            CheckpointError: Something does not fit the policy, or its output has NaN.
            NotYetError: It explored in a way that is not computed here.
        """
        inputs = self._inputs(self._preprocess(obs), state, prev_actions, prev_rewards)
        outputs = (self._all if full_fetch else self._act)(inputs)
        graph = self.network.graph
        next_state = [outputs.pop(name).astype(np.float32) for name in graph.states]
        if graph.recurrent:
            outputs = {name: value[:, 0] for name, value in outputs.items()}
        output = outputs[self._chooser.output]
        if np.isnan(output).any():
            raise CheckpointError(
                "The network's output has NaN: an observation is too large, or is NaN itself.",
                where=self._where,
                fix="Pass observations of the space; or, if these are, an earlier checkpoint.",
            )
        extras: dict[str, Any] = dict(outputs)
        if self._explore if explore is None else explore:
            rng = self._rng if seed is None else np.random.default_rng(seed)
            actions = self._chooser.explore(output, rng)
            if full_fetch and self._chooser.log_likelihood is not None:
                extras["action_logp"] = self._chooser.log_likelihood(output, actions)
        else:
            actions = self._chooser.distribution.best(output)
        extras["policy_actions"] = actions
        return Computed(self._fitting(actions, self.action_space), next_state, extras)

    def compute_single_action(
        self,
        obs: object,
        state: Sequence[Any] | None = None,
        prev_action: object = None,
        prev_reward: object = None,
        *,
        explore: bool | None = None,
        seed: int | None = None,
        full_fetch: bool = False,
    ) -> Computed:
        """Computes one action.

        Args:
            obs: One observation as the environment gives it.
            state: The state before this step, without a batch axis; None: the initial one.
            prev_action: The action of the step before (see `compute_actions`).
            prev_reward: The reward of the step before.
            explore: See `compute_actions`.
            seed: See `compute_actions`.
            full_fetch: See `compute_actions`; here only what the action needs is the default.
        """
        structured = isinstance(self.observation_space, _STRUCTURES)
        computed = self.compute_actions(
            obs[None] if isinstance(obs, np.ndarray) and not structured else [obs],
            [part[None] for part in self._checked(state)] if is_given(state) else None,
            None if prev_action is None else _batched(prev_action),
            None if prev_reward is None else np.asarray(prev_reward)[None],
            explore=explore,
            seed=seed,
            full_fetch=full_fetch,
        )
        extras = {name: _first(value) for name, value in computed.extras.items()}
        return Computed(_first(computed.actions), [part[0] for part in computed.state], extras)

    def _checked(self, state: Any, batch_size: int | None = None) -> list[Array]:
        shapes = [part.shape for part in self.get_initial_state(batch_size)]
        return checked_state(state, shapes, where=self._where, error=CheckpointError)

    @property
    def _where(self) -> str:
        return f"policies.{self.policy_id}"

    def _known(self) -> list[str]:
        """The outputs that need nothing but an observation and what came before it."""
        graph = self.network.graph
        if "actions" not in graph.inputs:
            return list(graph.outputs)
        return [
            name
            for name in graph.outputs
            if not any("actions" in step.takes for step in graph.needed([name]))
        ]

    def _inputs(
        self, obs: Array, state: Sequence[Any] | None, prev_actions: object, prev_rewards: object
    ) -> dict[str, Array]:
        """What the graph takes, with a time axis of one step where it has states."""
        graph, batch = self.network.graph, len(obs)
        inputs = {"obs": obs}
        states = self._checked(state, batch) if is_given(state) else self.get_initial_state(batch)
        if not graph.recurrent:
            return inputs  # what else there is, old Rays ignored, too
        if PREVIOUS_ACTIONS in graph.inputs:
            given = None if prev_actions is None else _flat(prev_actions, self.action_space, batch)
            inputs[PREVIOUS_ACTIONS] = self._previous(PREVIOUS_ACTIONS, given, batch)
        if PREVIOUS_REWARDS in graph.inputs:
            given = None if prev_rewards is None else np.asarray(prev_rewards).reshape(batch, -1)
            inputs[PREVIOUS_REWARDS] = self._previous(PREVIOUS_REWARDS, given, batch)
        timed = {name: value[:, None] for name, value in inputs.items()}
        return timed | dict(zip(graph.states, states, strict=True))

    def _previous(self, name: str, given: Array | None, batch: int) -> Array:
        shape = (batch, *self.network.graph.inputs[name])
        if given is None:
            return np.zeros(shape)
        if given.shape != shape:
            raise CheckpointError(
                f"{name} must have the shape {shape[1:]} per observation, not {given.shape[1:]}.",
                where=self._where,
                fix=f"Pass an array of the shape {shape}.",
            )
        return given


_STRUCTURES = (TupleSpace, DictSpace)


def _batched(action: object) -> Any:
    """One action as a batch of one."""
    if isinstance(action, Mapping):
        return {key: _batched(part) for key, part in action.items()}
    if isinstance(action, tuple):
        return tuple(_batched(part) for part in action)
    return np.asarray(action)[None]


def _first(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return {key: _first(part) for key, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_first(part) for part in batch)
    return batch[0]


def _flat(actions: Any, space: Space, batch: int) -> Array:
    """Actions as the numbers that they are, one behind the other, `[B, n k]`."""
    if isinstance(space, TupleSpace):
        parts = [_flat(a, s, batch) for a, s in zip(actions, space.spaces, strict=True)]
        return _interleaved(parts, space.spaces)
    if isinstance(space, DictSpace):
        keys = sorted(space.spaces)
        parts = [_flat(actions[key], space.spaces[key], batch) for key in keys]
        return _interleaved(parts, [space.spaces[key] for key in keys])
    return np.asarray(actions, np.float64).reshape(batch, -1)


def _interleaved(parts: list[Array], spaces: Sequence[Space]) -> Array:
    """The parts of each step together, step by step."""
    sizes = [max(len(choices_of(space)), 1) for space in spaces]
    steps = [part.reshape(len(part), -1, size) for part, size in zip(parts, sizes, strict=True)]
    return np.concatenate(steps, axis=-1).reshape(len(parts[0]), -1)


logger = logging.getLogger(__name__)


def load_policy(
    path: str | Path,
    policy_id: str | None = None,
    *,
    algorithm: str | None = None,
    config: Mapping[str, Any] | str | Path | None = None,
    observation_space: object = None,
    action_space: object = None,
    explore: bool = False,
    given: Given | None = None,
) -> Policy:
    """Loads a policy of any readable checkpoint: of Ray 0.5 – 2.x, converted, or as msgpack.

    It needs numpy, and neither Ray nor torch. Nothing in the checkpoint is executed. Actions come
    out as that Ray gave them to the environment: with its preprocessing and observation filter,
    stretched or clipped as its config and its defaults said.

    Args:
        path: The checkpoint.
        policy_id: Which policy; None: the only one.
        algorithm: The algorithm that was trained, where the checkpoint does not say.
        config: The trainer's config, where the checkpoint has none, or a file of it; `{}` for its
            defaults.
        observation_space: The environment's observations, where the checkpoint has none:
            a space of gymnasium or gym, or text like `Box(4,)`.
        action_space: The environment's actions, likewise.
        explore: Whether the policy explores where a call does not say.
        given: The same as the command line's options; the other arguments go before it.

    Returns:
        The policy.

    Raises:
        CheckpointError: It can't be read, or something has to be given.
        NotYetError: Its network or its actions can't be computed; the error says why.
    """
    given = (given or Given()).with_arguments(
        algorithm=algorithm,
        config=config,
        observation_space=observation_space,
        action_space=action_space,
    )
    # What a custom model computes is torch code, which is not run here.
    given = replace(given, model=None)
    checkpoint = layouts.read(path)
    if policy_id is not None:
        given = replace(given, policies=(policy_id,))
    checkpoint = drop_weightless(complete(checkpoint, given))
    if len(checkpoint.policies) != 1:
        raise MissingInformationError(
            f"The checkpoint has {len(checkpoint.policies)} policies, and one has to be chosen.",
            where=str(checkpoint.source.path),
            fix=f"Pass policy_id=, one of {', '.join(map(repr, checkpoint.policies))}.",
        )
    require_facts(checkpoint, given)
    (state,) = checkpoint.policies.values()
    try:
        checkpoint, networks = identify_networks(checkpoint, given)
    except MissingInformationError as error:
        if custom.is_custom(state, ModelSettings.of(checkpoint, state)):
            raise _custom_model(state.policy_id) from error
        raise
    if state.policy_id not in networks:
        raise NotConvertibleError(
            "The policy has no weights: it acted randomly.",
            where=f"policies.{state.policy_id}",
            fix="Draw its actions with `action_space.sample()`.",
        )
    state, network = checkpoint.policies[state.policy_id], networks[state.policy_id]
    policy = _policy(checkpoint, state, network, explore)
    for finding in policy.findings:
        if finding.severity is not Severity.INFO:
            logger.warning("%s: %s (%s)", finding.path, finding.message, for_python(finding.hint))
    return policy


def _policy(
    checkpoint: LegacyCheckpoint, policy: PolicyState, network: AnyNetwork, explore: bool
) -> Policy:
    where = f"policies.{policy.policy_id}"
    if not isinstance(network, Network):
        raise _custom_model(policy.policy_id)
    settings = ModelSettings.of(checkpoint, policy)
    observations, actions = policy.observation_space, policy.action_space
    assert observations is not None, "identify_networks has asked for both"
    assert actions is not None, "identify_networks has asked for both"
    preprocess = preprocessor(observations, settings, network.inputs, where=where)
    network = _with_filter(network, policy, where)
    fit, findings = find_fitting(checkpoint, policy, network)
    return Policy(
        policy.policy_id,
        network,
        spaces=(observations.original_space or observations, actions),
        preprocess=preprocess,
        chooser=make_chooser(network, policy, settings),
        fitting=fit,
        explore=explore,
        findings=(*checkpoint.findings, *findings),
    )


def _custom_model(policy_id: str) -> NotYetError:
    return NotYetError(
        "The weights are of a custom model, whose code is not in the checkpoint.",
        where=f"policies.{policy_id}",
        fix="`rllib-compat convert --to safetensors` writes its arrays by name",
    )


def _with_filter(network: Network, policy: PolicyState, where: str) -> Network:
    """The network on observations that are not filtered yet."""
    found = policy.observation_filter
    if found is None or found.kind == "NoFilter" or not found.stats:
        return network
    if not can_hold(network, found):
        raise NotYetError(
            f"Not supported yet: an observation filter of {len(found.stats)} parts on observations "
            f"of the shape {network.inputs}.",
            where=f"{where}.observation_filter",
            fix=refusals.KEEPS,
        )
    return with_filter(network, found)
