"""All rules, one file a family, and the index that finds the rule of a key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from rllib_compat.config.rule import Rule
from rllib_compat.config.rules import (
    a2c,
    apex,
    bandits,
    callbacks,
    crr,
    ddpg,
    dqn,
    dreamer_iql,
    environment,
    evaluation,
    evolution,
    exploration,
    fault_tolerance,
    framework,
    impala_appo,
    internal,
    maddpg,
    marwil_bc_cql,
    model,
    multi_agent,
    offline,
    own_buffers,
    ppo,
    q_exploration,
    qmix,
    r2d2,
    removed,
    replay,
    reporting,
    resources,
    rollouts,
    sac,
    training,
)

FAMILIES = {
    "environment": environment,
    "rollouts": rollouts,
    "resources": resources,
    "training": training,
    "model": model,
    "exploration": exploration,
    "replay": replay,
    "multi_agent": multi_agent,
    "callbacks": callbacks,
    "evaluation": evaluation,
    "offline": offline,
    "framework": framework,
    "reporting": reporting,
    "fault_tolerance": fault_tolerance,
    "internal": internal,
    "ppo": ppo,
    "a2c": a2c,
    "ddpg": ddpg,
    "impala_appo": impala_appo,
    "dqn": dqn,
    "q_exploration": q_exploration,
    "apex": apex,
    "sac": sac,
    "marwil_bc_cql": marwil_bc_cql,
    "dreamer_iql": dreamer_iql,
    "bandits": bandits,
    "crr": crr,
    "evolution": evolution,
    "qmix": qmix,
    "maddpg": maddpg,
    "r2d2": r2d2,
    "own_buffers": own_buffers,
    "removed": removed,
}


def every_rule() -> Iterator[Rule]:
    """All rules, family by family."""
    for module in FAMILIES.values():
        yield from module.RULES


@cache
def _index() -> dict[str, list[Rule]]:
    index: dict[str, list[Rule]] = {}
    for rule in every_rule():
        index.setdefault(rule.key, []).append(rule)
    return index


def find(key: str, algorithms: tuple[str, ...]) -> Rule | None:
    """The rule of a key: the one for the first of `algorithms` that has one, else the common one.

    Args:
        key: The key with its section.
        algorithms: The legacy algorithm, then the target.

    A rule for `section.*` holds for the keys of a section that took any. The sections of SAC's
    networks take all keys of the model config.
    """
    rules = _index().get(key, ())
    for algorithm in algorithms:
        for rule in rules:
            if algorithm in rule.algorithms:
                return rule
    common = next((rule for rule in rules if not rule.algorithms), None)
    head, dot, _ = key.partition(".")
    if common or not dot:
        return common
    return next(iter(_index().get(f"{head}.*", ())), None) or sac.of_network(key)
