"""Policies without weights: what they did was code (a heuristic, random actions, a clone of data).

A checkpoint has an entry for such a policy, with nothing in it. The others are converted. It goes
on itself only if it was declared to be Ray's own random policy, of which today's Ray has a module.
"""

from __future__ import annotations

from collections.abc import Iterator

from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState, size_of
from rllib_compat.neutral.errors import NotConvertibleError
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: Today's module that acts at random.
RANDOM_MODULE = "ray.rllib.examples.rl_modules.classes.random_rlm:RandomRLModule"

#: Ray's own policies, and its module, that act at random, as every release called them.
_RANDOM_POLICIES = {
    "ray.rllib.examples.multi_agent_custom_policy.RandomPolicy",
    "ray.rllib.examples.policy.random_policy.RandomPolicy",
    "ray.rllib.examples._old_api_stack.policy.random_policy.RandomPolicy",
    RANDOM_MODULE.replace(":", "."),
}


def has_weights(policy: PolicyState) -> bool:
    """Whether anything of a policy can be carried over."""
    return size_of(policy.weights) > 0 or bool(policy.learner_weights)


def is_random(policy: PolicyState) -> bool:
    """Whether a policy was declared to be Ray's own random one, and its actions are known."""
    known = policy.action_space is not None and policy.observation_space is not None
    return known and not has_weights(policy) and policy.policy_class in _RANDOM_POLICIES


def leave_out(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """The checkpoint without policies that nothing can be made of; each has a row.

    Raises:
        NotConvertibleError: No policy has weights.
    """
    policies = checkpoint.policies.values()
    if not any(map(has_weights, policies)):
        raise NotConvertibleError(
            "No policy has weights: what they did was code, which is not in a checkpoint.",
            where=str(checkpoint.source.path),
            fix="Write RLModules that do the same (Ray's examples have one of a heuristic: "
            "ray/rllib/examples/rl_modules/classes/rock_paper_scissors_heuristic_rlm.py).",
        )
    kept = checkpoint.with_policies(p for p in policies if has_weights(p) or is_random(p))
    return kept.with_findings(_told(checkpoint))


def _told(checkpoint: LegacyCheckpoint) -> Iterator[Finding]:
    for policy in checkpoint.policies.values():
        if has_weights(policy):
            continue
        path, cls = f"policies.{policy.policy_id}", policy.policy_class
        if is_random(policy):
            message = "it has no weights, as Ray's random policy; it is a RandomRLModule now"
            yield Finding("no-weights", Severity.INFO, Verdict.CONVERTED, path, message)
            continue
        yield Finding(
            "no-weights",
            Severity.WARNING,
            Verdict.DROPPED,
            path,
            "it has no weights: what it did was the code of its class"
            f"{f' {cls}' if cls else ''}, which was not executed",
            "to have it again, write an RLModule that does the same and add it: "
            f"algorithm.add_module({policy.policy_id!r}, RLModuleSpec(module_class=MyModule)); "
            "it must not be among policies_to_train",
        )
