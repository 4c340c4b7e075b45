"""Conversions of replay buffers: single keys until Ray 1.8, `replay_buffer_config` since."""

from __future__ import annotations

from math import inf

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.algorithms.legacy_training import PRIORITY_OFFSET, has_policy_optimizer
from rllib_compat.config.defaults import TODAY
from rllib_compat.config.rule import Context, Outcome, drop, is_off, refuse
from rllib_compat.config.rules.common import (
    for_new_stack,
    keep_unless_placeholder,
    warn_if_set,
    warn_unless,
)
from rllib_compat.config.rules.exploration import type_name
from rllib_compat.neutral.report import Severity, Verdict

BUFFER = "training.replay_buffer_config"
#: Buffers that draw evenly, of QMIX and MADDPG; those of R2D2 and RNNSAC may have priorities.
EVEN = (*registry.family("QMIX"), "MADDPG")
#: Algorithms whose buffers are this package's.
OWN_BUFFERS = (*EVEN, "R2D2", "RNNSAC")
#: Everything else never read these keys.
REPLAYING = tuple(n for n in registry.replaying() if n not in OWN_BUFFERS)
#: Those whose buffer is not distributed over actors.
IN_ONE_PROCESS = tuple(n for n in REPLAYING if not registry.of(n).undistributed)
PLAIN, PRIORITIZED = "EpisodeReplayBuffer", "PrioritizedEpisodeReplayBuffer"
OLD_PLAIN, OLD_PRIORITIZED = "MultiAgentReplayBuffer", "MultiAgentPrioritizedReplayBuffer"
#: The one buffer of Ray 1.9, by its name there.
FIRST = "LocalReplayBuffer"


def buffer_type(prioritized: bool, context: Context) -> str:
    """The name of the buffer class, on the stack at hand."""
    if context.stack == "old":
        return OLD_PRIORITIZED if prioritized else OLD_PLAIN
    return PRIORITIZED if prioritized else PLAIN


def prioritized_replay(value: object, context: Context) -> Outcome:
    """A switch that is the buffer's type today."""
    if value in (None, -1):
        return drop("it was left to the buffer's type")
    return Outcome({context.target: buffer_type(bool(value), context)})


def replay_buffer_type(value: object, context: Context) -> Outcome:
    """The class of the buffer, as one of those that the API stack has."""
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    name = name.rpartition(".")[2].strip("'>")
    if _took_no_class(context):
        name = OLD_PRIORITIZED
    if name == FIRST or (name == OLD_PLAIN and _is_switched(context)):
        value = name = OLD_PRIORITIZED if context.get("prioritized_replay") is True else OLD_PLAIN
    if context.get("prioritized_replay") is False and "Prioritized" in name:
        name = "ReplayBuffer"  # the older key switched it off
    if context.stack == "old":
        known = "Episode" not in name
        return Outcome({context.target: value if known else buffer_type("Prio" in name, context)})
    if "Episode" in name:
        return Outcome({context.target: value if isinstance(value, str) else name})
    if name in ("ReplayBuffer", "PrioritizedReplayBuffer", OLD_PLAIN, OLD_PRIORITIZED):
        return Outcome({context.target: buffer_type("Prioritized" in name, context)})
    return Outcome(
        {context.target: PLAIN},
        message=f"the new API stack has no {name}; its plain buffer takes the place",
        severity=Severity.WARNING,
        hint="api_stack='old' keeps it",
    )


def _took_no_class(context: Context) -> bool:
    """Whether the config is one of APEX before Ray 2.0, whose shards were always prioritized."""
    return _is_before_buffers(context) and bool(registry.of(context.legacy_algorithm).undistributed)


def _is_switched(context: Context) -> bool:
    """Whether `prioritized_replay` says if the one buffer of Ray 1.9 - 1.13 has priorities."""
    by_class = context.get("replay_buffer_config._enable_replay_buffer_api")
    return _is_before_buffers(context) and not by_class


def _is_before_buffers(context: Context) -> bool:
    """Whether the config is of a Ray before 2.0, which took older keys before those of buffers."""
    return context.legacy_ray is not None and Version(context.legacy_ray) < Version("2.0")


def capacity(value: object, context: Context) -> Outcome:
    """How much is kept, unless the older key says it: some Rays had defaults of both."""
    older = context.get("buffer_size")
    if older not in (None, -1) and _is_before_buffers(context):
        return drop(f"buffer_size={older} decided, as it did before Ray 2.0")
    return Outcome({context.target: value})


def _has_priorities(context: Context) -> bool:
    """Whether the config asks for a buffer with priorities."""
    switch = context.get("prioritized_replay")
    if isinstance(switch, bool):
        return switch
    return "Prioritized" in str(context.get("replay_buffer_config.type"))


def _refuse_priorities(why: str) -> Outcome:
    return refuse(why, "set prioritized_replay to False, or leave it out")


def replay_sequence_length(value: object, context: Context) -> Outcome:
    """How long replayed sequences are."""
    if value in (None, 1, 0, -1):
        return drop("single steps are replayed")
    if context.stack == "old" and _has_priorities(context):
        return _refuse_priorities(f"sequences of {value} steps have no priorities, in any Ray")
    return Outcome({context.target: value}, Verdict.MOVED if context.stack == "old" else None)


@for_new_stack
def replay_burn_in(value: object, context: Context) -> Outcome:
    """How many steps a recurrent state is warmed up for."""
    if context.algorithm in ("DQN", "APEX"):
        return Outcome({context.target: value})
    return warn_if_set(value, context)


def replay_mode(value: object, context: Context) -> Outcome:
    """Whether the steps of all agents are replayed together."""
    if context.stack == "old" and context.algorithm in REPLAYING:
        if value == "lockstep" and _has_priorities(context):
            return _refuse_priorities("steps of all agents have no priorities, in any Ray")
        return Outcome({context.target: value}, Verdict.MOVED)
    if value in (None, "independent") or value == -1:
        return Outcome(message="modules are sampled independently, as they were")
    return Outcome(
        severity=Severity.WARNING,
        message=f"{value!r}: the new API stack samples modules independently",
        hint="api_stack='old' keeps it",
    )


def storage_unit(value: object, context: Context) -> Outcome:
    """What is drawn together: single steps, or more."""
    if context.stack == "old":
        return Outcome({context.target: value}, Verdict.KEPT)
    single = str(getattr(value, "value", value)) in ("None", "timesteps")
    return Outcome(severity=None if single else Severity.WARNING)


def prioritized_replay_eps(value: object, context: Context) -> Outcome:
    """What is added to each error."""
    if context.stack == "old":
        return keep_unless_placeholder(value, context)
    if value in (None, -1, PRIORITY_OFFSET):
        return drop("it is 1e-6, as by default")
    if context.legacy_ray is None or Version(context.legacy_ray) >= Version(TODAY):
        return Outcome(severity=Severity.WARNING)
    message = "a trainer adds it to each error; Ray's own buffers have an offset of their own"
    return Outcome(verdict=Verdict.KEPT, message=message)


def annealed_beta(value: object, context: Context) -> Outcome:
    """How beta changed with steps, which policy optimizers alone looked at."""
    ray = context.legacy_ray
    distributed = bool(registry.of(context.legacy_algorithm).undistributed)
    if ray is None or distributed or not has_policy_optimizer(ray, context.config):
        return warn_if_set(value, context)
    message = "a trainer changes beta as it says; Ray's own learners keep it as it is"
    return Outcome(verdict=Verdict.KEPT, message=message)


def sequences_type(value: object, context: Context) -> Outcome:
    """The buffer's class says whether R2D2's and RNNSAC's sequences have priorities."""
    if context.get("prioritized_replay") in (True, False):
        return drop("`prioritized_replay` itself decides")
    return Outcome({context.target: "Prioritized" in (type_name({"type": value}) or "")})


# Distributed replay


def keep_distributed(value: object, context: Context) -> Outcome:
    """A setting of a buffer that is distributed over actors."""
    if context.stack == "old":
        return drop("the replay buffer is not distributed on the old API stack")
    # The table of old defaults is JSON, and has infinity as a word.
    if value in (None, -1, "inf", inf):
        return drop("it was left to the default")
    return Outcome({context.target: value})


def worker_side_prioritization(value: object, context: Context) -> Outcome:
    """Whether env runners say the first priorities."""
    if context.legacy_algorithm == "APEX_DDPG":
        return drop("env runners have no critics: new steps have the greatest priority")
    return keep_distributed(value, context)


# Buffers of this package


#: Only APEX_QMIX's buffer read it.
prioritized_replay_of_even = warn_unless(lambda value: is_off(value) or value == -1)
#: All agents' steps are replayed together.
replay_mode_of_maddpg = warn_unless(
    lambda value: is_off(value) or value in (-1, "lockstep"), "critics see all agents in each step"
)
