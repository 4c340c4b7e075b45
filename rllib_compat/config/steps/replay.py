"""Replay buffers: a config of its own replaces Ray's default, so it has to be whole.

The steps go on where the one before has come to; all but the first look at the type it has set.
"""

from __future__ import annotations

from rllib_compat import ray_versions
from rllib_compat.config.context import Context
from rllib_compat.config.deferred import OldReplayBuffer
from rllib_compat.config.rules.replay import BUFFER, buffer_type
from rllib_compat.config.steps.step import ABSENT, COMPUTED, Change, Given, Step
from rllib_compat.config.today import todays_default

#: What learns from a replay buffer that a config can describe. (DreamerV3 has one of its own kind.)
REPLAYING = ("DQN", "APEX", "SAC", "CQL", "DDPG", "APEX_DDPG", "TD3")
#: Those whose steps have priorities by default.
PRIORITIZING = ("DQN", "APEX", "DDPG", "APEX_DDPG")

TYPE, CAPACITY = f"{BUFFER}.type", f"{BUFFER}.capacity"
ALPHA, BETA = f"{BUFFER}.alpha", f"{BUFFER}.beta"
#: What sets priorities, by today's names and by those of the old stack's buffers.
PRIORITIES = (
    ALPHA,
    BETA,
    f"{BUFFER}.prioritized_replay_alpha",
    f"{BUFFER}.prioritized_replay_beta",
)


def _type(given: Given, context: Context) -> Change | None:
    several = "multi_agent.policies" in given
    own = list(given.below(BUFFER))
    if not (own or several or context.stack == "old"):
        return None
    kind = given.get(TYPE)
    if not kind:
        # Another's is where the config says how.
        wanted = context.algorithm in PRIORITIZING or any("alpha" in n or "beta" in n for n in own)
        kind = buffer_type(wanted, context)
    if not isinstance(kind, str):
        return None
    return Change({TYPE: f"MultiAgent{kind}" if several and kind[:10] != "MultiAgent" else kind})


def _capacity(given: Given, context: Context) -> Change | None:
    if not isinstance(given.get(TYPE), str) or CAPACITY in given:
        return None
    capacity = todays_default(context.algorithm, CAPACITY)[1]
    return Change({CAPACITY: capacity}, f"{given.get(TYPE)} of {capacity} steps")


def _no_priorities(given: Given, _: Context) -> Change | None:
    there = [name for name in PRIORITIES if given.get(name) is not None]
    if not isinstance(given.get(TYPE), str) or _is_prioritized(given) or not there:
        return None
    names = ", ".join(name.rpartition(".")[2] for name in there)
    message = f"a buffer without priorities does not read {names}"
    return Change(dict.fromkeys(PRIORITIES, ABSENT), message)


def _is_prioritized(given: Given) -> bool:
    return isinstance(given.get(TYPE), str) and "Prioritized" in given.get(TYPE)


def _weights(given: Given, _: Context) -> Change | None:
    kind = given.get(TYPE)
    weighted = ray_versions.weighted_buffer(kind) if isinstance(kind, str) else None
    if weighted is None:
        return None
    message = f"this Ray's learners can't use {kind}"
    return Change({TYPE: weighted, ALPHA: 0.0, BETA: 0.0}, message)


def _class(given: Given, _: Context) -> Change | None:
    kind = given.get(TYPE)
    return Change({TYPE: OldReplayBuffer(kind)}) if isinstance(kind, str) else None


_REPORTED_AS = "replay_buffer_config"

STEPS = (
    Step(
        "replay_type",
        "A replay buffer config of its own replaces Ray's default as a whole, so it names a type: "
        "one for several agents where there are several policies.",
        algorithms=REPLAYING,
        reads=(BUFFER, "multi_agent.policies"),
        sets={TYPE: COMPUTED},
        change=_type,
    ),
    Step(
        "replay_capacity",
        "For the same reason it names a capacity: Ray's default where the config gives none.",
        algorithms=REPLAYING,
        reads=(TYPE, CAPACITY),
        sets={CAPACITY: COMPUTED},
        key=_REPORTED_AS,
        change=_capacity,
    ),
    Step(
        "no_priorities",
        "A replay buffer without priorities takes no exponents for them.",
        algorithms=REPLAYING,
        reads=(TYPE, *PRIORITIES),
        sets=dict.fromkeys(PRIORITIES, ABSENT),
        key=_REPORTED_AS,
        change=_no_priorities,
    ),
    Step(
        "priorities",
        "Every release's prioritized buffers began with these exponents; some of today's begin "
        "with others, or with none.",
        algorithms=REPLAYING,
        stack="new",
        reads=(TYPE,),
        sets={ALPHA: 0.6, BETA: 0.4},
        fills=True,
        when=_is_prioritized,
    ),
    Step(
        "replay_weights",
        "Learners of Ray 2.40 ask for weights that its plain replay buffers don't give. A "
        "prioritized one with `alpha=0` samples as evenly, and all its weights are 1.",
        algorithms=REPLAYING,
        stack="new",
        reads=(TYPE,),
        sets={TYPE: COMPUTED, ALPHA: 0.0, BETA: 0.0},
        key=_REPORTED_AS,
        change=_weights,
    ),
    Step(
        "replay_class",
        "On the old API stack DQN takes the buffer's class, not its name.",
        algorithms=("DQN",),
        stack="old",
        reads=(TYPE,),
        sets={TYPE: COMPUTED},
        change=_class,
    ),
)
