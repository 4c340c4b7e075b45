"""APEX and APEX_DDPG, whose replay is distributed; this package has them for the new API stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, dropped
from rllib_compat.config.rules import exploration, q_exploration
from rllib_compat.config.rules.exploration import EXPLORATION, type_name
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Kind, Number
from rllib_compat.neutral.report import Verdict

FAMILY = "apex"
APEX = ("APEX",)
BOTH = (*APEX, "APEX_DDPG")
BUFFER = "replay_buffer_config"
PER_WORKER = "training.per_worker_exploration"
#: The exploration class by which each worker had an epsilon of its own.
_OF_EACH = "PerWorkerEpsilonGreedy"


def _kept(setting: str) -> Callable[[Any, Context], Outcome]:
    """Keeps a value, unless it left the place of the key that took its place (-1)."""

    def convert(value: Any, context: Context) -> Outcome:
        if context.stack == "old":
            why = "the replay buffer is not distributed on the old API stack"
            return Outcome(verdict=Verdict.DROPPED, message=why)
        # The table of old defaults is JSON, and has infinity as a word.
        if value in (None, -1, "inf", inf):
            return Outcome(verdict=Verdict.DROPPED, message="it was left to the default")
        return Outcome({f"training.{setting}": value})

    return convert


def _worker_side(value: Any, context: Context) -> Outcome:
    if context.legacy_algorithm == "APEX_DDPG":
        return Outcome(
            verdict=Verdict.DROPPED,
            message="env runners have no critics: new steps get the greatest priority of all",
        )
    return _kept("worker_side_prioritization")(value, context)


def _offset(value: Any, context: Context) -> Outcome:
    if value in (None, -1):
        return Outcome(verdict=Verdict.DROPPED, message="it was left to the default")
    if context.stack == "old":
        return Outcome({f"training.{BUFFER}.prioritized_replay_eps": value})
    return Outcome({"training.prioritized_replay_eps": value})


def _exploration_config(value: Any, context: Context) -> Outcome:
    """As for DQN; whether each env runner has its own epsilon is a setting."""
    told = q_exploration.of_config(value, context)
    kind = type_name(value)
    if context.stack == "old" or kind is None:
        return told
    settings = {**told.settings, PER_WORKER: kind == _OF_EACH}
    return Outcome(settings, Verdict.CONVERTED, "each env runner may have an epsilon of its own")


def _needs_old(config: Any) -> bool:
    return type_name(config) != _OF_EACH and q_exploration.needs_old(config)


def _per_worker(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return exploration.typed(_OF_EACH)(value, context)  # type: ignore[no-any-return]
    return Outcome({PER_WORKER: bool(value)})


#: Setting → what it may be, the keys that said it, what for.
_SETTINGS: Mapping[str, tuple[Kind, tuple[str, ...], str]] = {
    "num_replay_buffer_shards": (
        v.SOME,
        ("num_replay_buffer_shards", "optimizer.num_replay_buffer_shards"),
        "over how many actors the replay buffer is distributed",
    ),
    "max_weight_sync_delay": (
        v.STEPS,
        ("max_weight_sync_delay", "optimizer.max_weight_sync_delay"),
        "after how many of its steps an env runner gets new weights",
    ),
    "debug_replay": (v.FLAG, ("optimizer.debug",), "whether a shard tells how many bytes it holds"),
    "replay_buffer_shards_colocated_with_driver": (
        v.FLAG,
        (
            "replay_buffer_shards_colocated_with_driver",
            f"{BUFFER}.replay_buffer_shards_colocated_with_driver",
        ),
        "whether the shards are on the node of the algorithm",
    ),
    "max_requests_in_flight_per_replay_worker": (
        Number(1, infinite=True),
        ("max_requests_in_flight_per_replay_worker",),
        "for how many batches a shard is asked at once",
    ),
}


def _setting(
    name: str,
    value: Kind,
    keys: tuple[str, ...],
    why: str,
    *,
    convert: Callable[[Any, Context], Outcome] | None = None,
    old_target: str = "",
    elsewhere: Verdict = Verdict.RENAMED,
) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            FAMILY,
            key,
            Verdict.KEPT if key == name else elsewhere,
            why,
            target=f"training.{name}",
            old_target=old_target,
            convert=convert or _kept(name),
            value=value,
            algorithms=BOTH,
        )
        for key in keys
    )


RULES = (
    *(
        rule
        for name, (value, keys, why) in _SETTINGS.items()
        for rule in _setting(name, value, keys, why)
    ),
    *_setting(
        "prioritized_replay_eps",
        v.AMOUNT,
        ("prioritized_replay_eps", f"{BUFFER}.prioritized_replay_eps"),
        "what each error is added to",
        convert=_offset,
        old_target=f"training.{BUFFER}.prioritized_replay_eps",
        elsewhere=Verdict.KEPT,
    ),
    *_setting(
        "worker_side_prioritization",
        v.FLAG,
        ("worker_side_prioritization", f"{BUFFER}.worker_side_prioritization"),
        "whether env runners say the first priorities",
        convert=_worker_side,
        elsewhere=Verdict.KEPT,
    ),
    Rule(
        FAMILY,
        "exploration_config",
        Verdict.CONVERTED,
        "the module explores by itself, with epsilon",
        target="training.epsilon",
        old_target=exploration.OLD,
        convert=_exploration_config,
        value=EXPLORATION,
        needs_old=_needs_old,
        algorithms=APEX,
    ),
    Rule(
        FAMILY,
        "per_worker_exploration",
        Verdict.KEPT,
        "whether each env runner explores by a share of its own",
        target=PER_WORKER,
        old_target=f"{exploration.OLD}.type",
        convert=_per_worker,
        value=v.FLAG,
        algorithms=BOTH,
    ),
    *dropped(
        FAMILY,
        "timeout_s_replay_manager timeout_s_sampler_manager",
        "it waits until an env runner or a shard has answered",
        algorithms=BOTH,
    ),
    *dropped(
        FAMILY,
        f"no_local_replay_buffer {BUFFER}.no_local_replay_buffer",
        "the algorithm's process has a buffer where it has no env runners, and none otherwise",
        algorithms=BOTH,
    ),
)
