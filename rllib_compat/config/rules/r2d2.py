"""R2D2 and RNNSAC, which this package has; what they share with DQN and SAC has those rules."""

from __future__ import annotations

from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, drop_aloud, dropped, kept, lost, renamed
from rllib_compat.config.rules.dqn import ATOMS, LOSSES
from rllib_compat.config.rules.exploration import type_name
from rllib_compat.config.rules.replay import BUFFERS, SEQUENCE
from rllib_compat.config.values import common as v
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "r2d2"
R2D2 = ("R2D2",)
#: Both replay sequences.
BOTH = ("R2D2", "RNNSAC")
BUFFER = "replay_buffer_config"
PRIORITIES = ("prioritized_replay_alpha", "prioritized_replay_beta", "prioritized_replay_eps")


def _given(setting: str) -> Any:
    """Keeps a value, unless it left the place of the key that took its place (-1)."""

    def convert(value: Any, _: Context) -> Outcome:
        if value in (None, -1):
            return Outcome(verdict=Verdict.DROPPED, message="it was left to the default")
        return Outcome({f"training.{setting}": value})

    return convert


def _type(value: Any, context: Context) -> Outcome:
    if context.get("prioritized_replay") in (True, False):
        return Outcome(verdict=Verdict.DROPPED, message="`prioritized_replay` itself decides")
    prioritized = "Prioritized" in (type_name({"type": value}) or "")
    return Outcome({"training.prioritized_replay": prioritized})


def _atoms(value: Any, _: Context) -> Outcome:
    if value in (None, 1):
        return Outcome(verdict=Verdict.DROPPED, message="it learns values, not distributions")
    return Outcome(
        {},
        Verdict.REFUSED,
        "R2D2 learns values, no distributions; RLlib's refused them, too",
        Severity.ERROR,
        "num_atoms=1",
    )


def _loss(value: Any, context: Context) -> Outcome:
    return Outcome() if value == "huber" else drop_aloud(value, context)


def _rule(
    key: str, value: Any, why: str, convert: Any, target: str = "", whose: tuple[str, ...] = R2D2
) -> Rule:
    verdict = Verdict.CONVERTED if target else Verdict.DROPPED
    return Rule(
        FAMILY, key, verdict, why, target=target, convert=convert, value=value, algorithms=whose
    )


RULES = (
    *kept(
        FAMILY,
        "training",
        {
            v.FLAG: "use_h_function",
            v.AMOUNT: "h_function_epsilon adam_epsilon",
            v.LAYERS: "hiddens",
        },
        algorithms=R2D2,
    ),
    *kept(
        FAMILY,
        "training",
        {v.FLAG: "zero_init_states", v.SOME: "n_step", v.LENGTH: "burn_in"},
        algorithms=BOTH,
    ),
    *renamed(
        FAMILY,
        "training",
        {
            v.LENGTH: {"burn_in_len": "burn_in", f"{BUFFER}.replay_burn_in": "burn_in"},
            v.FLAG: {
                f"{BUFFER}.replay_zero_init_states": "zero_init_states",
                f"{BUFFER}.zero_init_states": "zero_init_states",
            },
        },
        why="a setting of the algorithm",
        algorithms=BOTH,
    ),
    *(
        Rule(
            FAMILY,
            f"{section}{key}",
            Verdict.RENAMED if section else Verdict.KEPT,
            target=f"training.{key}",
            convert=_given(key),
            value=value,
            algorithms=BOTH,
        )
        for section in ("", f"{BUFFER}.")
        for key, value in (
            ("prioritized_replay", v.FLAG),
            *((name, v.AMOUNT) for name in PRIORITIES),
        )
    ),
    *renamed(
        FAMILY,
        "training",
        {v.AMOUNT: {f"{BUFFER}.alpha": PRIORITIES[0], f"{BUFFER}.beta": PRIORITIES[1]}},
        algorithms=BOTH,
    ),
    _rule(
        f"{BUFFER}.type",
        BUFFERS | v.CODE,
        "its name says whether sequences have priorities",
        _type,
        "training.prioritized_replay",
        BOTH,
    ),
    *(
        _rule(key, SEQUENCE, "it was `max_seq_len` and the burn-in", drop_aloud, whose=BOTH)
        for key in ("replay_sequence_length", f"{BUFFER}.replay_sequence_length")
    ),
    _rule("num_atoms", ATOMS, "it learns values, no distributions", _atoms),
    _rule("td_error_loss_fn", LOSSES, "its loss is Huber's, as it always was", _loss),
    *dropped(FAMILY, "v_min v_max", "only distributions of values read it", algorithms=R2D2),
    Rule(
        FAMILY,
        "noisy",
        Verdict.DROPPED,
        "R2D2 has no noisy nets here",
        value=v.FLAG,
        algorithms=R2D2,
        needs_old=bool,
    ),
    *dropped(FAMILY, "sigma0", "only noisy nets read it", algorithms=R2D2),
    *dropped(
        FAMILY,
        [f"{s}{key}" for s in ("", f"{BUFFER}.") for key in ("replay_batch_size", "storage_unit")]
        + [f"{BUFFER}.underlying_buffer_config"],
        "sequences are replayed, as many as `train_batch_size` steps hold",
        algorithms=BOTH,
    ),
    *lost(
        FAMILY,
        [f"{section}worker_side_prioritization" for section in ("", f"{BUFFER}.")],
        "learners set all priorities",
        algorithms=BOTH,
    ),
)
