"""What a checkpoint does not hold is given, found around it, or asked for.

A v0.1 checkpoint has no algorithm, no config and mostly no spaces. Each of them is taken from the
first source that has it, in this order: what the caller gave; the checkpoint itself; the trial's
params; the environment, where gymnasium offers one of that name; the weights, where they leave
only one answer. A finding says which it was. What is found nowhere is asked for, not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rllib_compat.conversion.given import Given
from rllib_compat.conversion.policy_spaces import add_spaces
from rllib_compat.conversion.signs import env_of_folder, with_algorithm
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.errors import MissingInformationError
from rllib_compat.neutral.policy_id import SHARED, PolicyId
from rllib_compat.neutral.report import Finding, Verdict

#: What Ray 0.5 called the only policy, and what every later Ray calls it.
_OLD_ID, _ONLY_ID = "default", PolicyId("default_policy")


def complete(checkpoint: LegacyCheckpoint, given: Given) -> LegacyCheckpoint:
    """Adds algorithm, config and spaces, as far as they can be found.

    What was derived is among the findings of the result. What is missing is no error yet: see
    `identify.require_facts`.

    Raises:
        ConfigError: No RLlib ever had the algorithm that the caller gave.
    """
    if given.config is not None:
        checkpoint = replace(checkpoint, config=given.config, config_is_complete=False)
    if given.env is not None:
        checkpoint = _with_env(checkpoint, given.env)
    checkpoint = with_algorithm(checkpoint, given.algorithm)
    checkpoint = _selected(_with_todays_ids(checkpoint), given)
    if "env" not in checkpoint.config and (name := env_of_folder(checkpoint)):
        message = f"{name}, from the name of the trial's folder"
        derived = Finding.info("derived", Verdict.DERIVED, "config.env", message)
        checkpoint = _with_env(checkpoint, name).with_findings([derived])
    return add_spaces(_with_epsilon(checkpoint), given)


def _with_env(checkpoint: LegacyCheckpoint, env: Any) -> LegacyCheckpoint:
    return replace(checkpoint, config={**checkpoint.config, "env": env})


def _with_epsilon(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """Filters add to each deviation what those of their Ray added.

    Layouts 1.0 and later are all of Ray 2.1 and later, whether they name their Ray or not.
    """
    ray, layout = checkpoint.source.ray_version, checkpoint.source.layout
    late = layout.startswith(("1.", "2.")) if ray is None else Version(ray) >= Version("1.10")
    return checkpoint.with_policies(
        replace(p, observation_filter=replace(p.observation_filter, epsilon=1e-6))
        if late and p.observation_filter is not None
        else p
        for p in checkpoint.policies.values()
    )


def _with_todays_ids(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """The checkpoint with today's name of the only policy."""
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
    finding = Finding.info("policy-id", Verdict.RENAMED, where, why)
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
            finding = Finding.info(
                "policies", Verdict.DROPPED, "policies", f"not asked for: {left}"
            )
            checkpoint = checkpoint.with_findings([finding])
    return checkpoint
