"""What a checkpoint does not hold is given, found around it, or asked for.

A v0.1 checkpoint has no algorithm, no config and mostly no spaces. Each of them is taken from the
first source that has it, in this order: what the caller gave; the checkpoint itself; the trial's
params; the environment, where gymnasium offers one of that name; the weights, where they leave
only one answer. The report tells which it was. What is found nowhere is asked for, not guessed.

Each step takes a checkpoint and returns another one that knows more.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from packaging.version import Version

from rllib_compat.conversion import find_algorithm, find_spaces
from rllib_compat.conversion.given import Given
from rllib_compat.networks import own
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import MissingInformationError
from rllib_compat.neutral.policy_id import SHARED, PolicyId
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: What Ray 0.5 called the only policy, and what every later Ray calls it.
_OLD_ID, _ONLY_ID = "default", PolicyId("default_policy")


def complete(checkpoint: LegacyCheckpoint, given: Given) -> LegacyCheckpoint:
    """Adds algorithm, config and spaces, as far as they can be found.

    What was derived is among the findings of the result. What is missing is no error yet: see
    `require_algorithm`, `require_config` and `with_spaces_of_network`.

    Raises:
        ConfigError: No RLlib ever had the algorithm that the caller gave.
    """
    if given.config is not None:
        checkpoint = replace(checkpoint, config=given.config, config_is_complete=False)
    if given.env is not None:
        checkpoint = _with_env(checkpoint, given.env)
    algorithm, findings = find_algorithm.of(checkpoint, given.algorithm)
    checkpoint = replace(checkpoint, algorithm=algorithm).with_findings(findings)
    checkpoint = _selected(_with_default_policy(checkpoint), given)
    if "env" not in checkpoint.config and (name := find_algorithm.env_of_path(checkpoint)):
        checkpoint = _with_env(checkpoint, name).with_findings(
            [derived("config.env", f"{name}, from the name of the trial's folder")]
        )
    return _with_epsilon(find_spaces.complete(checkpoint, given))


def derived(path: str, message: str, *, warn: bool = False) -> Finding:
    """A finding about what was not in the checkpoint itself."""
    severity = Severity.WARNING if warn else Severity.INFO
    return Finding("derived", severity, Verdict.DERIVED, path, message)


def _with_env(checkpoint: LegacyCheckpoint, env: Any) -> LegacyCheckpoint:
    return replace(checkpoint, config={**checkpoint.config, "env": env})


def _with_epsilon(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """Filters add to each deviation what those of their Ray added.

    Layouts 1.0 and later are all of Ray 2.1 and later, whether they tell their Ray or not.
    """
    ray, layout = checkpoint.source.ray_version, checkpoint.source.layout
    late = layout.startswith(("1.", "2.")) if ray is None else Version(ray) >= Version("1.10")
    return checkpoint.with_policies(
        replace(p, observation_filter=replace(p.observation_filter, epsilon=1e-6))
        if late and p.observation_filter is not None
        else p
        for p in checkpoint.policies.values()
    )


def _with_default_policy(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """With today's name of the only policy."""
    if set(checkpoint.policies) == {_OLD_ID}:
        return _renamed(checkpoint, _ONLY_ID, f"the only policy is called {_ONLY_ID} since Ray 0.6")
    if set(checkpoint.policies) == {_ONLY_ID} and _wants_shared(checkpoint.config):
        return _renamed(checkpoint, SHARED, "the policy of all agents, as the trainer calls it")
    return checkpoint


def _wants_shared(config: Mapping[str, Any]) -> bool:
    """Whether a Trainer gave a config its one policy for many agents."""
    several = config.get("multiagent")
    policies = several.get("policies") if isinstance(several, Mapping) else None
    return isinstance(policies, Mapping) and set(policies) == {SHARED}


def _renamed(checkpoint: LegacyCheckpoint, name: PolicyId, why: str) -> LegacyCheckpoint:
    (only,) = checkpoint.policies.values()
    where = f"policies.{only.policy_id}"
    finding = Finding("policy-id", Severity.INFO, Verdict.RENAMED, where, why)
    only = replace(only, policy_id=name)
    return checkpoint.with_policies([only]).with_findings([finding])


def _selected(checkpoint: LegacyCheckpoint, given: Given) -> LegacyCheckpoint:
    """With the policies that the caller wants, and a row for those that are left out.

    Raises:
        MissingInformationError: There is no policy of that name.
    """
    policies = checkpoint.policies
    if given.policies:
        by_name = {**{p.old_id: p for p in policies.values()}, **policies}
        if unknown := [name for name in given.policies if name not in by_name]:
            raise MissingInformationError(
                f"The checkpoint has no policy {', '.join(map(repr, unknown))}.",
                where=str(checkpoint.source.path),
                fix=f"It has {', '.join(policies)}.",
            )
        wanted = {by_name[name].policy_id for name in given.policies}
        checkpoint = checkpoint.with_policies(p for k, p in policies.items() if k in wanted)
        left = ", ".join(policy_id for policy_id in policies if policy_id not in wanted)
        if left:
            finding = Finding(
                "policies", Severity.INFO, Verdict.DROPPED, "policies", f"not asked for: {left}"
            )
            checkpoint = checkpoint.with_findings([finding])
    return checkpoint


def require_facts(checkpoint: LegacyCheckpoint, given: Given) -> None:
    """Makes sure that algorithm and config are known, where a network can't be read without them.

    Modules that this package wrote hold the graph of their network.

    Raises:
        MissingInformationError: One of them is not known.
    """
    if not (checkpoint.modules_alone and all(map(own.is_own, checkpoint.policies.values()))):
        require_algorithm(checkpoint)
        require_config(checkpoint, given)


def require_algorithm(checkpoint: LegacyCheckpoint) -> None:
    """Makes sure that the algorithm is known.

    Raises:
        MissingInformationError: It is not.
    """
    if checkpoint.algorithm is None:
        names = find_algorithm.candidates(checkpoint)
        several = f" It may be {', '.join(names[:-1])} or {names[-1]}." if len(names) > 1 else ""
        example = names[0] if names else "PPO"
        raise MissingInformationError(
            f"The checkpoint does not say which algorithm wrote it.{several}",
            where=str(checkpoint.source.path),
            fix=f"Give the one that was trained: --algorithm {example} "
            f"(Python: Given(algorithm={example!r})).",
        )


def require_config(checkpoint: LegacyCheckpoint, given: Given) -> None:
    """Makes sure that there is a config: the activation of a network is in no array.

    An empty one that was given, or that lay with the checkpoint, says that all was Ray's default.

    Raises:
        MissingInformationError: There is none.
    """
    found = given.config is not None or any(f.rule == "params" for f in checkpoint.findings)
    known = checkpoint.config.keys() - {"env"}  # which the name of a folder told
    if not (found or known or any(p.config for p in checkpoint.policies.values())):
        damaged = [f"{f.path} was {f.message}" for f in checkpoint.findings if _is_of_params(f)]
        why = "; ".join(damaged) or "no params.pkl or params.json lies with the checkpoint"
        raise MissingInformationError(
            f"No config was found: {why.rstrip('.')}. The weights do not show the network's "
            "activation.",
            where=str(checkpoint.source.path),
            fix="Give --config params.json, or --config '{}' if the trainer had Ray's defaults.",
        )


def _is_of_params(finding: Finding) -> bool:
    return finding.rule == "side-file" and finding.path.startswith("params.")


def _why_no_env_tells(env: Any) -> str:
    named = isinstance(env, str) or isinstance(getattr(env, "label", None), str)
    if not named:
        return "no environment is named."
    if importlib.util.find_spec("gymnasium") is None:
        return f"gymnasium, which may know {env!r}, is not installed."
    return f"gymnasium has no environment {env!r}."


def with_spaces_of_network(
    policy: PolicyState,
    inputs: tuple[int, ...],
    config: Mapping[str, Any],
    choices: int | None = None,
) -> tuple[PolicyState, list[Finding]]:
    """Makes sure that a policy has both spaces.

    The observation space follows from the network's inputs where nothing else tells it: a flat,
    unbounded Box, since that is what the network sees of any space.

    Args:
        policy: The policy.
        inputs: The shape of what its network takes.
        config: The trainer's config.
        choices: How many discrete actions a Q-network gives a value for.

    Returns:
        The policy with both spaces, and what was derived.

    Raises:
        MissingInformationError: The action space was found nowhere; the number of outputs can't
            tell a Discrete space from a Box.
    """
    here = f"policies.{policy.policy_id}"
    notes = []
    if policy.action_space is None and choices is not None:
        policy = replace(policy, action_space=spaces.Discrete(choices))
        told = f"derived from the network's head: {choices} actions, a Q-value for each"
        notes.append(derived(f"{here}.action_space", told))
    if policy.action_space is None:
        raise MissingInformationError(
            "The action space is neither in the checkpoint nor in its params, and "
            + _why_no_env_tells(config.get("env")),
            where=f"{here}.action_space",
            fix=f"Give --action-space {policy.policy_id}='Discrete(2)' (Python: action_space=).",
        )
    if policy.observation_space is not None:
        return policy, notes
    note = derived(
        f"{here}.observation_space",
        f"derived from the network's {math.prod(inputs)} inputs: the preprocessed observation",
        warn=True,
    )
    return replace(policy, observation_space=spaces.box(-np.inf, np.inf, inputs)), [*notes, note]
