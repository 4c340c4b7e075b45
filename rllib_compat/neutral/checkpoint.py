"""The neutral form: what a legacy checkpoint holds, as numpy arrays and plain Python only.

Readers (`formats/layouts/`) make it, `networks/` and `convert/` take from it. It knows nothing of
Ray, torch or TensorFlow, and nothing of how a layout lies on disk.

It never changes once it is made: whoever knows more makes another one, with `dataclasses.replace`,
`with_policies` and `with_findings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.origins import describe_place
from rllib_compat.neutral.report import Finding
from rllib_compat.neutral.spaces import Array as Array
from rllib_compat.neutral.spaces import Space

# Three forms are found on disk: named arrays; a list in creation order without names (TF2 eager,
# Ray 1.x); one flat float32 vector of all variables in creation order (TF1, Ray 0.5 – 0.7).
Weights: TypeAlias = dict[str, Array] | list[Array] | Array


def size_of(weights: Weights) -> int:
    """How many numbers there are, in any of the three forms."""
    if isinstance(weights, dict):
        return sum(array.size for array in weights.values())
    if isinstance(weights, list):
        return sum(array.size for array in weights)
    return int(weights.size)


@frozen
class Source:
    """Where a checkpoint came from.

    Attributes:
        path: The file or directory that was asked for, or its copy.
        layout: Its format: `0.1`, `1.0`, `1.1`, `1.1 msgpack`, `1.2`, `2.0`, `2.1`.
        ray_version: The Ray that wrote it, where it says so.
        digests: The sha256 of every file that was read, by its path below `path`.
    """

    path: Path
    layout: str
    ray_version: str | None = None
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The path as messages have it: of a copy, the address that it was copied from."""
        return describe_place(self.path)


@frozen
class RunningStat:
    """Running statistics of one array of observations (`ray.rllib.utils.filter.RunningStat`).

    Attributes:
        count: How many observations were seen.
        mean: Their mean.
        m2: The sum of squared deviations from it; the variance is `m2 / (count - 1)`.
    """

    count: int
    mean: Array
    m2: Array

    @property
    def std(self) -> Array:
        """The standard deviation as RLlib computes it: |mean| until two observations were seen."""
        if self.count > 1:
            return np.sqrt(self.m2 / (self.count - 1))
        return np.asarray(np.abs(self.mean))


@frozen
class ObservationFilter:
    """The state of an observation filter.

    Attributes:
        kind: `NoFilter`, `MeanStdFilter` or `ConcurrentMeanStdFilter`.
        demean: Whether it subtracts the mean.
        destd: Whether it divides by the standard deviation.
        clip: Values are clipped to ±clip afterwards; None: not.
        epsilon: What is added to each deviation: 1e-8 until Ray 1.9, 1e-6 from 1.10 on
            (`ray/rllib/utils/filter.py`, of every framework).
        stats: One per leaf of the observation space, in RLlib's order; empty for `NoFilter`.
        integers: The type of integers (`uint8`) that it cuts what it gives to: that of the
            observations, from Ray 1.10 on; None: it gives floats.
    """

    kind: str
    demean: bool = True
    destd: bool = True
    clip: float | None = None
    stats: tuple[RunningStat, ...] = ()
    epsilon: float = 1e-8
    integers: str | None = None

    def __call__(self, observations: Array) -> Array:
        """Filters a batch of observations `[B, …]` of a single-leaf space; updates nothing."""
        if self.kind == "NoFilter" or not self.stats:
            return observations
        (stat,) = self.stats
        out = np.asarray(observations, np.float64)
        if self.demean:
            out = out - stat.mean
        if self.destd:
            out = out / (stat.std + self.epsilon)
        if self.clip is not None:
            out = np.clip(out, -self.clip, self.clip)
        return cut_to_integers(out, self.integers)


def cut_to_integers(numbers: Array, kind: str | None) -> Array:
    """Floats as numbers of a type of integers, and as floats again; None: as they are.

    Negative ones wrap around in unsigned types, as they did in old Rays on x86.
    """
    if kind is None:
        return numbers
    return numbers.astype(np.int64).astype(kind).astype(numbers.dtype)


@frozen
class PolicyState:
    """One policy of a checkpoint.

    Attributes:
        policy_id: Its id; the same names the module of the target, and its folder.
        weights: The weights of the policy's model, in one of three forms (see `Weights`).
        optimizer: Optimizer state as found (arrays and plain data), or None.
        observation_space: The space of raw observations, if checkpoint or params have it.
        action_space: The space of actions, likewise.
        observation_filter: The filter, or None where the checkpoint has none for this policy.
        config: What the policy's own config overrides of the trainer's.
        policy_class: The dotted name of the policy's class, if stored.
        kl_coeff: PPO's current KL coefficient, if stored.
        log_alpha: SAC's current temperature as a logarithm, if stored.
        target_entropy: The entropy that SAC's temperature is trained towards, if stored.
        global_timestep: The policy's own counter, if stored.
        exploration: Exploration state as found (epsilon, last timestep, …), or None.
        learner_weights: The RLModule's weights of a 1.2 checkpoint (Learner API), by name.
        learner_optimizer: The state of that learner's optimizer; the policy's own is empty then.
        extra: Whatever else the policy's state held, by key. Nothing is left out.
        is_module: Whether it is an RLModule, and `policy_class` the module's class.
        found_as: What the checkpoint calls it, where that can't be an id (see `policy_id.py`).
    """

    policy_id: str
    weights: Weights
    optimizer: Any = None
    observation_space: Space | None = None
    action_space: Space | None = None
    observation_filter: ObservationFilter | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    policy_class: str | None = None
    kl_coeff: float | None = None
    log_alpha: float | None = None
    target_entropy: float | None = None
    global_timestep: int | None = None
    exploration: Any = None
    learner_weights: Mapping[str, Array] | None = None
    learner_optimizer: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    is_module: bool = False
    found_as: str | None = None

    @property
    def old_id(self) -> str:
        """What the checkpoint calls it; TensorFlow's variables are named after that."""
        return self.policy_id if self.found_as is None else self.found_as

    @property
    def has_weights(self) -> bool:
        """Whether anything of it can be carried over; what others did was code."""
        return size_of(self.weights) > 0 or bool(self.learner_weights)


@frozen
class Counters:
    """How far the training was; None where the checkpoint does not say.

    Attributes:
        iteration: Calls of `train()`.
        env_steps: Environment steps sampled.
        agent_steps: Agent steps sampled.
        trained_steps: Steps that the optimizer has seen.
        episodes: Episodes finished.
        seconds: Wall time of the training.
        raw: The counters dict as found.
    """

    iteration: int | None = None
    env_steps: int | None = None
    agent_steps: int | None = None
    trained_steps: int | None = None
    episodes: int | None = None
    seconds: float | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


@frozen
class LegacyCheckpoint:
    """All that a legacy checkpoint holds.

    Attributes:
        source: Where it came from.
        algorithm: RLlib's registered name (`PPO`), where the checkpoint or its trial says.
        config: The trainer's config as a plain dict; stand-ins where it held code or classes.
        config_is_complete: Whether defaults are included (from a 2.x state) or only what the
            user gave (from `params.pkl`/`params.json`).
        modules_alone: Whether it is modules without an algorithm, as a conversion for inference
            writes them.
        policies: The policies by id.
        policy_mapping_fn: A stand-in of the mapping function, or None.
        policies_to_train: Their ids, a stand-in of a function, or None (all).
        counters: How far the training was.
        findings: What the reader noticed: damaged side files, contradictions, paths not followed.
        stand_ins: How often each class that is not on the table of known names was met.
        extra: Whatever else the state held, by key. Nothing is left out.
    """

    source: Source
    algorithm: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    config_is_complete: bool = False
    modules_alone: bool = False
    policies: Mapping[str, PolicyState] = field(default_factory=dict)
    policy_mapping_fn: Any = None
    policies_to_train: Any = None
    counters: Counters = field(default_factory=Counters)
    findings: tuple[Finding, ...] = ()
    stand_ins: Mapping[str, int] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_multi_agent(self) -> bool:
        """Whether it has other policies than the one of a single agent."""
        return not self.policies.keys() <= {"default_policy"}

    @property
    def has_config(self) -> bool:
        """Whether there is a config, which may be empty, beside it or in it."""
        known = self.config.keys() - {"env"}  # which may come from the name of a folder
        beside = any(finding.rule == "params" for finding in self.findings)
        return beside or bool(known) or any(p.config for p in self.policies.values())

    def with_policies(self, policies: Iterable[PolicyState]) -> LegacyCheckpoint:
        """The same checkpoint with other policies, by their ids."""
        return replace(self, policies={policy.policy_id: policy for policy in policies})

    def with_findings(self, findings: Iterable[Finding]) -> LegacyCheckpoint:
        """The same checkpoint with more findings."""
        return replace(self, findings=(*self.findings, *findings))
