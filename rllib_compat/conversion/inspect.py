"""What is inside a checkpoint, for people and programs; without Ray, torch or TensorFlow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from rllib_compat.conversion.assumed import Assumption, of_networks
from rllib_compat.conversion.complete import complete, require_facts
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.identify import identify_one
from rllib_compat.conversion.write_model import chain_of
from rllib_compat.formats import layouts
from rllib_compat.networks import AnyNetwork, ModelSettings, custom, known
from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import from_canonical
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState, Weights, size_of
from rllib_compat.neutral.errors import CheckpointError, CompatError, MissingFileError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Report, Severity, Verdict


@frozen
class Inspection:
    """A checkpoint, and what could be told of it.

    Attributes:
        checkpoint: The neutral state.
        networks: The network of each policy, where it is known.
        report: What was noticed; a network that is not known is a finding, not an error.
        guesses: What the network of a custom model may be, by its arrays.
    """

    checkpoint: LegacyCheckpoint
    report: Report
    networks: Mapping[str, AnyNetwork] = field(default_factory=dict)
    guesses: Mapping[str, str] = field(default_factory=dict)

    @property
    def assumed(self) -> list[Assumption]:
        """What no array shows of the networks, and what it was taken to be."""
        return of_networks(self.checkpoint, known(self.networks))

    @property
    def stand_ins(self) -> dict[str, int]:
        """How often the files name each class and function of others, which stay inert.

        This package's own are none of them: converted checkpoints name its modules.
        """
        told = self.checkpoint.stand_ins.items()
        return {name: count for name, count in told if not name.startswith("rllib_compat.")}

    def facts(self) -> list[tuple[str, str]]:
        """Name and value pairs that head the output."""
        checkpoint, counters = self.checkpoint, self.checkpoint.counters
        told = {
            "iterations": counters.iteration,
            "env steps": counters.env_steps,
            "episodes": counters.episodes,
            "hours": None if counters.seconds is None else f"{counters.seconds / 3600:.2f}",
        }
        optimizers = sum(p.optimizer is not None for p in checkpoint.policies.values())
        keys = "all" if checkpoint.config_is_complete else "given by the user"
        return [
            ("format", checkpoint.source.layout),
            ("Ray", checkpoint.source.ray_version or "unknown"),
            ("algorithm", checkpoint.algorithm or "unknown"),
            ("environment", str(checkpoint.config.get("env", "unknown"))),
            ("config", f"{len(checkpoint.config)} keys ({keys})" if checkpoint.config else "none"),
            ("counters", ", ".join(f"{k} {v}" for k, v in told.items() if v is not None) or "none"),
            ("policies", str(len(checkpoint.policies))),
            ("optimizer states", f"{optimizers} of {len(checkpoint.policies)} policies"),
        ]

    def policies(self) -> list[tuple[str, str, str, str, str]]:
        """A row a policy: id, network, parameters, spaces, filter."""
        return [self._policy(policy) for policy in self.checkpoint.policies.values()]

    def _policy(self, policy: PolicyState) -> tuple[str, str, str, str, str]:
        old_filter = policy.observation_filter
        count = f", {old_filter.stats[0].count} seen" if old_filter and old_filter.stats else ""
        return (
            policy.policy_id,
            self._network(policy),
            f"{self._parameters(policy):,}",
            f"{policy.observation_space or 'unknown'} → {policy.action_space or 'unknown'}",
            f"{old_filter.kind}{count}" if old_filter else "none",
        )

    def _network(self, policy: PolicyState) -> str:
        if network := self.networks.get(policy.policy_id):
            return network.summary
        return self.guesses.get(policy.policy_id) or _shape_of(policy.weights)

    def _parameters(self, policy: PolicyState) -> int:
        network = self.networks.get(policy.policy_id)
        return network.parameters if network else size_of(policy.weights)

    def arrays(self) -> list[tuple[str, str, str, str]]:
        """A row an array: policy, name, shape, dtype."""
        return [
            (policy_id, name, "x".join(map(str, array.shape)) or "one number", str(array.dtype))
            for policy_id, name, array in self._all_arrays()
        ]

    def _all_arrays(self) -> Iterator[tuple[str, str, Array]]:
        for policy in self.checkpoint.policies.values():
            for name, array in self._arrays_of(policy).items():
                yield policy.policy_id, name, array

    def _arrays_of(self, policy: PolicyState) -> Mapping[str, Array]:
        """A policy's arrays; those without names get the names that their variables had."""
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

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON: numbers are numbers, and what is unknown is null."""
        checkpoint, counters = self.checkpoint, self.checkpoint.counters
        return {
            "path": str(checkpoint.source.path),
            "format": checkpoint.source.layout,
            "ray_version": checkpoint.source.ray_version,
            "algorithm": checkpoint.algorithm,
            "environment": _text(checkpoint.config.get("env")),
            "config": {
                "keys": len(checkpoint.config),
                "is_complete": checkpoint.config_is_complete,
            },
            "counters": {
                "iterations": counters.iteration,
                "env_steps": counters.env_steps,
                "episodes": counters.episodes,
                "seconds": counters.seconds,
            },
            "policies": {
                policy_id: self._policy_dict(policy)
                for policy_id, policy in checkpoint.policies.items()
            },
            "arrays": [
                {
                    "policy": policy_id,
                    "name": name,
                    "shape": list(array.shape),
                    "dtype": str(array.dtype),
                }
                for policy_id, name, array in self._all_arrays()
            ],
            "assumed": [vars(row) for row in self.assumed],
            "stand_ins": self.stand_ins,
            "extra": sorted(checkpoint.extra),
            "report": self.report.to_dict()["findings"],
        }

    def _policy_dict(self, policy: PolicyState) -> dict[str, Any]:
        old_filter = policy.observation_filter
        return {
            "network": self._network(policy),
            "parameters": self._parameters(policy),
            "observation_space": _text(policy.observation_space),
            "action_space": _text(policy.action_space),
            "filter": old_filter
            and {"kind": old_filter.kind, "seen": [stat.count for stat in old_filter.stats]},
            "has_optimizer_state": policy.optimizer is not None,
        }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def inspect(
    path: str | Path, given: Given | None = None, budget: Budget | None = None
) -> Inspection:
    """Reads a checkpoint and tells what it can; only a checkpoint that can't be read is an error.

    Args:
        path: A checkpoint file, its folder, or the trial's folder above it.
        given: What the checkpoint does not tell.
        budget: What the job may cost.

    Raises:
        CheckpointError: No layout fits, or a file is damaged.
    """
    given = given or Given()
    report = Report(f"Inspection of {path}")
    try:
        checkpoint = complete(layouts.read(path, budget), given)
    except MissingFileError as error:
        if error.rest is None:
            raise
        checkpoint = complete(error.rest, given)
        report.extend([_missing(error)])
    networks, guesses = {}, dict[str, str]()
    findings = list(checkpoint.findings)
    for policy_id, policy in checkpoint.policies.items():
        try:
            require_facts(checkpoint, given)
            networks[policy_id], _, found = identify_one(checkpoint, policy, given)
            findings += found
        except CompatError as error:
            unknown = _unknown(error, f"policies.{policy_id}")
            if unknown not in report.findings:  # what no policy has is said once
                report.extend([unknown])
            with contextlib.suppress(CompatError):
                if custom.is_custom(policy, ModelSettings.of(checkpoint, policy)):
                    guesses[policy.policy_id] = f"custom model; a guess: {chain_of(policy)}"
    report.extend(findings)
    return Inspection(checkpoint, report, networks, guesses)


def _missing(error: MissingFileError) -> Finding:
    where, fix = error.where or "", error.fix or ""
    return Finding("missing", Severity.ERROR, Verdict.ABSENT, where, error.found, fix)


def _unknown(error: CompatError, path: str) -> Finding:
    return Finding(
        "unknown",
        Severity.WARNING,
        Verdict.NOTE,
        error.where or path,
        error.found,
        error.fix or "",
    )


def _shape_of(weights: Weights) -> str:
    """What can be said of weights whose network is not known."""
    if isinstance(weights, Mapping):
        return f"{len(weights)} named arrays"
    if isinstance(weights, list):
        return f"{len(weights)} arrays without names"
    return "one vector without names"
