"""Describes a checkpoint, for people and programs, without Ray, torch or TensorFlow."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from rllib_compat.conversion.complete import complete
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.identify import identify_network, require_facts
from rllib_compat.conversion.module_source import chain_of
from rllib_compat.conversion.prove import Assumption, find_assumptions
from rllib_compat.formats import layouts
from rllib_compat.networks import AnyNetwork, ModelSettings, custom, known
from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import from_canonical
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import (
    Counters,
    LegacyCheckpoint,
    ObservationFilter,
    PolicyState,
    Weights,
    size_of,
)
from rllib_compat.neutral.errors import CheckpointError, CompatError, MissingFileError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.origins import describe_place
from rllib_compat.neutral.report import Finding, Report, Severity, Verdict
from rllib_compat.neutral.spaces import Space


@frozen
class PolicySummary:
    """The summary of a policy.

    Attributes:
        policy_id: Its id.
        network: Its network (`fc 4-32-32-2 relu`), or a description of its arrays.
        parameters: The number of parameters of its network.
        observation_space: The observation space, if known.
        action_space: The action space, if known.
        observation_filter: The filter with its statistics, if it has one.
        has_optimizer_state: Whether its optimizer's state is stored.
    """

    policy_id: str
    network: str
    parameters: int
    observation_space: Space | None
    action_space: Space | None
    observation_filter: ObservationFilter | None
    has_optimizer_state: bool

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data, for JSON."""
        old = self.observation_filter
        return {
            "network": self.network,
            "parameters": self.parameters,
            "observation_space": _text(self.observation_space),
            "action_space": _text(self.action_space),
            "filter": old and {"kind": old.kind, "seen": [stat.count for stat in old.stats]},
            "has_optimizer_state": self.has_optimizer_state,
        }


@frozen
class ArraySummary:
    """The summary of an array.

    Attributes:
        policy_id: The policy.
        name: The array's name; without one, the name that the variable had.
        shape: Its shape.
        dtype: Its type (`float32`).
    """

    policy_id: str
    name: str
    shape: tuple[int, ...]
    dtype: str


@frozen
class Inspection:
    """The result of `inspect`: a checkpoint with its networks and a report.

    Attributes:
        checkpoint: The checkpoint, completed with facts from other sources.
        networks: The known networks, by policy.
        report: The findings; an unknown network is a finding, not an error.
        guesses: The possible network of a custom model, by its arrays.
    """

    checkpoint: LegacyCheckpoint
    report: Report
    networks: Mapping[str, AnyNetwork] = field(default_factory=dict)
    guesses: Mapping[str, str] = field(default_factory=dict)

    @property
    def layout(self) -> str:
        """The format on disk (`0.1`, `1.1`, …)."""
        return self.checkpoint.source.layout

    @property
    def ray_version(self) -> str | None:
        """The Ray that wrote it, if known."""
        return self.checkpoint.source.ray_version

    @property
    def algorithm(self) -> str | None:
        """The algorithm's registered name (`PPO`), if known."""
        return self.checkpoint.algorithm

    @property
    def environment(self) -> str | None:
        """The environment that the config names."""
        return _text(self.checkpoint.config.get("env"))

    @property
    def config(self) -> Mapping[str, Any]:
        """The trainer's config, with inert records instead of code."""
        return self.checkpoint.config

    @property
    def counters(self) -> Counters:
        """The counters of the training."""
        return self.checkpoint.counters

    @property
    def policies(self) -> dict[str, PolicySummary]:
        """Each policy by its id."""
        return {
            policy_id: PolicySummary(
                policy_id,
                self._describe_network(policy),
                self._parameters(policy),
                policy.observation_space,
                policy.action_space,
                policy.observation_filter,
                policy.optimizer is not None,
            )
            for policy_id, policy in self.checkpoint.policies.items()
        }

    @property
    def arrays(self) -> list[ArraySummary]:
        """Each array of each policy."""
        return [
            ArraySummary(policy_id, name, array.shape, str(array.dtype))
            for policy_id, policy in self.checkpoint.policies.items()
            for name, array in self._named_arrays(policy).items()
        ]

    @property
    def assumptions(self) -> list[Assumption]:
        """The settings of the networks that the weights do not show."""
        return find_assumptions(self.checkpoint, known(self.networks))

    @property
    def stand_ins(self) -> dict[str, int]:
        """The number of references to each class and function, which are inert records.

        This package's own, which converted checkpoints name, are not included.
        """
        named = self.checkpoint.stand_ins.items()
        return {name: count for name, count in named if not name.startswith("rllib_compat.")}

    def to_dict(self) -> dict[str, Any]:
        """Returns all of it as plain data, for JSON, with null for unknown facts."""
        counters = self.counters
        return {
            "path": self.checkpoint.source.place,
            "format": self.layout,
            "ray_version": self.ray_version,
            "algorithm": self.algorithm,
            "environment": self.environment,
            "config": {"keys": len(self.config), "is_complete": self.checkpoint.config_is_complete},
            "counters": {
                "iterations": counters.iteration,
                "env_steps": counters.env_steps,
                "episodes": counters.episodes,
                "seconds": counters.seconds,
            },
            "policies": {k: policy.to_dict() for k, policy in self.policies.items()},
            "arrays": [
                {
                    "policy": array.policy_id,
                    "name": array.name,
                    "shape": list(array.shape),
                    "dtype": array.dtype,
                }
                for array in self.arrays
            ],
            "assumed": [vars(row) for row in self.assumptions],
            "stand_ins": self.stand_ins,
            "extra": sorted(self.checkpoint.extra),
            "report": self.report.to_dict()["findings"],
        }

    def _describe_network(self, policy: PolicyState) -> str:
        if network := self.networks.get(policy.policy_id):
            return network.summary
        return self.guesses.get(policy.policy_id) or _describe_weights(policy.weights)

    def _parameters(self, policy: PolicyState) -> int:
        network = self.networks.get(policy.policy_id)
        return network.parameters if network else size_of(policy.weights)

    def _named_arrays(self, policy: PolicyState) -> Mapping[str, Array]:
        if isinstance(policy.weights, Mapping):
            return policy.weights
        network = self.networks.get(policy.policy_id)
        if network is not None:
            kept = {k: v for k, v in network.arrays.items() if not k.startswith(TARGET_PREFIX)}
            with contextlib.suppress(CheckpointError):
                return from_canonical(network.names, kept)
            return kept
        if isinstance(policy.weights, list):
            return {f"[{i}]": array for i, array in enumerate(policy.weights)}
        return {"(one vector)": policy.weights}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _describe_weights(weights: Weights) -> str:
    if isinstance(weights, Mapping):
        return f"{len(weights)} named arrays"
    if isinstance(weights, list):
        return f"{len(weights)} arrays without names"
    return "one vector without names"


def inspect(
    path: str | Path,
    *,
    algorithm: str | None = None,
    config: Mapping[str, Any] | str | Path | None = None,
    env: object = None,
    observation_space: object = None,
    action_space: object = None,
    model: str | type | None = None,
    given: Given | None = None,
    budget: Budget | None = None,
) -> Inspection:
    """Reads a checkpoint and describes it; only an unreadable checkpoint is an error.

    Nothing in the checkpoint is executed, and neither Ray nor torch is imported.

    Args:
        path: A checkpoint file, its folder, or the trial's folder above it.
        algorithm: The algorithm that was trained, if the checkpoint does not name it.
        config: The trainer's config, likewise, or its file; `{}` for the defaults.
        env: The environment: a registered name, a class, or a function of the env config.
        observation_space: The environment's observations, likewise: a space of gymnasium or gym,
            or text like `Box(4,)`.
        action_space: The environment's actions, likewise; another for each policy in a dict.
        model: The RLModule that takes the weights of a custom model, or `module:Class`.
        given: The options of the command line; the other arguments have precedence.
        budget: The limits of memory and time.

    Returns:
        The description; unknown facts are None, or findings of its `report`.

    Raises:
        CheckpointError: No layout fits, or a file is damaged.
    """
    facts = algorithm, config, env, observation_space, action_space, model
    given = (given or Given()).with_arguments(*facts)
    report = Report(f"Inspection of {describe_place(path)}")
    try:
        checkpoint = complete(layouts.read(path, budget), given)
    except MissingFileError as error:
        if error.rest is None:
            raise
        checkpoint = complete(error.rest, given)
        where, fix = error.where or "", error.fix or ""
        missing = Finding("missing", Severity.ERROR, Verdict.ABSENT, where, error.found, fix)
        report.extend([missing])
    networks, guesses = dict[str, AnyNetwork](), dict[str, str]()
    findings = list(checkpoint.findings)
    unknown: dict[Finding, None] = {}  # a finding of several policies is reported once
    lacking: CompatError | None = None
    try:
        require_facts(checkpoint, given)
    except CompatError as error:
        lacking = error
    for policy_id, policy in checkpoint.policies.items():
        if not policy.has_weights:
            continue
        try:
            if lacking is not None:
                raise lacking
            networks[policy_id], _, found = identify_network(checkpoint, policy, given)
            findings += found
        except CompatError as error:
            where, fix = error.where or f"policies.{policy_id}", error.fix or ""
            unknown[Finding.warning("unknown", Verdict.NOTE, where, error.found, fix)] = None
            with contextlib.suppress(CompatError):
                if custom.is_custom(policy, ModelSettings.of(checkpoint, policy)):
                    guesses[policy_id] = f"custom model; a guess: {chain_of(policy)}"
    report.extend([*unknown, *findings])
    return Inspection(checkpoint, report, networks, guesses)
