"""The replay buffers of QMIX, MADDPG, R2D2 and RNNSAC, which are this package's."""

from __future__ import annotations

from typing import Any

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.rule import (
    Outcome,
    Rule,
    drop_aloud,
    dropped,
    empty_section,
    kept,
    needless,
    renamed,
)
from rllib_compat.config.values import common as v
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "own_buffers"
#: Those that draw evenly; R2D2 and RNNSAC have priorities (`r2d2`).
EVEN = (*registry.family("QMIX"), "MADDPG")
OWN = (*EVEN, "R2D2", "RNNSAC")
SIZES = (
    "replay_buffer_config.capacity",
    "replay_buffer_config.buffer_size",
    "optimizer.buffer_size",
)
STARTS = ("learning_starts", "replay_buffer_config.learning_starts", "optimizer.learning_starts")
EVENLY = "all that is kept is drawn as often, until there are `train_batch_size` steps"


def _prioritized(value: Any, _: Context) -> Outcome:
    """Only APEX_QMIX's buffer read it."""
    return Outcome(severity=None if needless(value) or value == -1 else Severity.WARNING)


RULES = (
    *kept(
        FAMILY,
        "training",
        {
            v.STEPS: "num_steps_sampled_before_learning_starts",
            v.ENTRIES: "buffer_size",
        },
        algorithms=OWN,
    ),
    Rule(
        FAMILY,
        "replay_buffer_config",
        Verdict.CONVERTED,
        "its keys are settings of the algorithm",
        section=True,
        algorithms=OWN,
        convert=empty_section,
        value=v.SECTION,
    ),
    *renamed(
        FAMILY,
        "training",
        {v.ENTRIES: dict.fromkeys(SIZES, "buffer_size")},
        why="how many fragments (QMIX) or steps (MADDPG, R2D2, RNNSAC) are kept",
        algorithms=OWN,
    ),
    *renamed(
        FAMILY,
        "training",
        {v.STEPS: dict.fromkeys(STARTS, "num_steps_sampled_before_learning_starts")},
        why="renamed in Ray 2.1",
        algorithms=OWN,
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.DROPPED,
            "nothing has a priority",
            convert=_prioritized,
            value=v.FLAG,
            algorithms=EVEN,
        )
        for key in ("prioritized_replay", "replay_buffer_config.prioritized_replay")
    ),
    *dropped(
        FAMILY,
        [
            f"{section}{key}"
            for section in ("", "replay_buffer_config.")
            for key in (
                *("prioritized_replay_alpha", "prioritized_replay_beta", "prioritized_replay_eps"),
                *("worker_side_prioritization", "replay_batch_size"),
            )
        ],
        EVENLY,
        algorithms=EVEN,
    ),
    *dropped(
        FAMILY,
        "replay_buffer_config.type replay_buffer_config.storage_unit "
        "replay_buffer_config.replay_sequence_length",
        "the algorithm says what is replayed: QMIX whole episodes, MADDPG steps",
        algorithms=EVEN,
    ),
    Rule(
        FAMILY,
        "store_buffer_in_checkpoints",
        Verdict.DROPPED,
        "checkpoints do not hold what is replayed; the buffer is filled anew",
        convert=drop_aloud,
        value=v.FLAG,
        algorithms=OWN,
    ),
)
