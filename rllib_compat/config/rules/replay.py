"""Replay buffers: single keys until Ray 1.8, `replay_buffer_config` since."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.rule import (
    UNREAD,
    Outcome,
    Rule,
    drop_aloud,
    dropped,
    empty_section,
    lost,
    renamed,
    words,
)
from rllib_compat.config.rules.own_buffers import OWN
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import Fields
from rllib_compat.config.values.kinds import Kind, Whole, Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "replay"
BUFFER = "training.replay_buffer_config"
# Everything else never read these keys; buffers of our own have rules of their own.
REPLAYING = tuple(n for n in registry.replaying() if n not in OWN)
#: Those whose buffer is not distributed over actors (`apex`).
IN_ONE_PROCESS = tuple(n for n in REPLAYING if not registry.of(n).undistributed)
PLAIN, PRIORITIZED = "EpisodeReplayBuffer", "PrioritizedEpisodeReplayBuffer"
OLD_PLAIN, OLD_PRIORITIZED = "MultiAgentReplayBuffer", "MultiAgentPrioritizedReplayBuffer"


def buffer_type(prioritized: bool, context: Context) -> str:
    """The name of the buffer class, on the stack at hand."""
    if context.stack == "old":
        return OLD_PRIORITIZED if prioritized else OLD_PLAIN
    return PRIORITIZED if prioritized else PLAIN


def _prioritized(value: Any, context: Context) -> Outcome:
    if value in (None, -1):
        return Outcome(verdict=Verdict.DROPPED, message="it was left to the buffer's type")
    return Outcome({f"{BUFFER}.type": buffer_type(bool(value), context)})


def _type(value: Any, context: Context) -> Outcome:
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    name = name.rpartition(".")[2].strip("'>")
    if _took_no_class(context):
        name = OLD_PRIORITIZED
    if context.get("prioritized_replay") is False and "Prioritized" in name:
        name = "ReplayBuffer"  # the older key switched it off
    if context.stack == "old":
        known = "Episode" not in name
        return Outcome({f"{BUFFER}.type": value if known else buffer_type("Prio" in name, context)})
    if "Episode" in name:
        return Outcome({f"{BUFFER}.type": value if isinstance(value, str) else name})
    if name in ("ReplayBuffer", "PrioritizedReplayBuffer", OLD_PLAIN, OLD_PRIORITIZED):
        return Outcome({f"{BUFFER}.type": buffer_type("Prioritized" in name, context)})
    return Outcome(
        {f"{BUFFER}.type": PLAIN},
        message=f"the new API stack has no {name}; its plain buffer takes the place",
        severity=Severity.WARNING,
        hint="api_stack='old' keeps it",
    )


def _took_no_class(context: Context) -> bool:
    """Whether the config is one of APEX before Ray 2.0, whose shards were always prioritized."""
    before = context.legacy_ray is not None and Version(context.legacy_ray) < Version("2.0")
    return before and bool(registry.of(context.legacy_algorithm).undistributed)


def _replay_sequence_length(value: Any, context: Context) -> Outcome:
    if value in (None, 1, 0, -1):
        return Outcome(verdict=Verdict.DROPPED, message="single steps are replayed")
    if context.stack == "old":
        return Outcome({f"{BUFFER}.replay_sequence_length": value}, Verdict.MOVED)
    return Outcome({"rl_module.model_config.max_seq_len": value})


def _burn_in(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({f"{BUFFER}.replay_burn_in": value}, Verdict.KEPT)
    if context.algorithm in ("DQN", "APEX"):
        return Outcome({"training.burn_in_len": value})
    return drop_aloud(value, context)


def _same(name: str) -> Any:
    def convert(value: Any, _: Context) -> Outcome:
        if value in (None, -1):
            return Outcome(verdict=Verdict.DROPPED, message="it was left to the default")
        return Outcome({name: value})

    return convert


def _places(key: str) -> tuple[str, str]:
    """Where a key stood: at the top level, and in `replay_buffer_config`."""
    return key, f"replay_buffer_config.{key}"


def _both(
    key: str,
    value: Kind,
    verdict: Verdict,
    why: str,
    target: str,
    old: str | None = None,
    convert: Any = None,
    algorithms: tuple[str, ...] = REPLAYING,
) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            FAMILY,
            place,
            verdict,
            why,
            target=target,
            old_target=old,
            convert=convert,
            algorithms=algorithms,
            value=value,
        )
        for place in _places(key)
    )


def _on_stack(new: str, old: str) -> Any:
    def convert(value: Any, context: Context) -> Outcome:
        return _same(old if context.stack == "old" else new)(value, context)  # type: ignore[no-any-return]

    return convert


# All buffer classes that any RLlib had (`rllib/utils/replay_buffers`).
BUFFERS = Words(
    (
        *(PLAIN, PRIORITIZED, f"MultiAgent{PLAIN}", f"MultiAgent{PRIORITIZED}"),
        *(OLD_PLAIN, OLD_PRIORITIZED, "MultiAgentMixInReplayBuffer", "SimpleReplayBuffer"),
        *("ReplayBuffer", "PrioritizedReplayBuffer", "ReservoirReplayBuffer", "FifoReplayBuffer"),
        *("ReservoirBuffer", "LocalReplayBuffer", "MixInMultiAgentReplayBuffer"),
    ),
    classes=True,
)
MODE = Words(("independent", "lockstep"))
_UNITS = ("timesteps", "sequences", "episodes", "fragments")
UNIT = Words(_UNITS, also={name.upper(): name for name in _UNITS})
# -1 left the length to the model.
SEQUENCE = Whole(-1, ample=1_000_000)
_ARGUMENTS = {
    "type": BUFFERS | v.CODE,
    "capacity": v.ENTRIES,
    "storage_unit": UNIT,
    "replay_mode": MODE,
    "replay_sequence_length": SEQUENCE,
    "replay_burn_in": v.LENGTH,
    **dict.fromkeys(("replay_zero_init_states", "replay_sequence_override"), v.FLAG),
    **dict.fromkeys(("replay_ratio", "alpha", "beta"), v.AMOUNT),
    **{f"prioritized_replay_{name}": v.AMOUNT for name in ("alpha", "beta", "eps")},
}
INNER = Fields(_ARGUMENTS)

ALPHA = (f"{BUFFER}.alpha", f"{BUFFER}.prioritized_replay_alpha")
BETA = (f"{BUFFER}.beta", f"{BUFFER}.prioritized_replay_beta")
STARTS = "training.num_steps_sampled_before_learning_starts"

RULES = (
    Rule(
        FAMILY,
        "replay_buffer_config",
        Verdict.KEPT,
        target=BUFFER,
        section=True,
        algorithms=REPLAYING,
        convert=empty_section,
        value=v.SECTION,
    ),
    *_both(
        "buffer_size",
        v.ENTRIES,
        Verdict.RENAMED,
        "a key of the replay buffer",
        f"{BUFFER}.capacity",
        convert=_same(f"{BUFFER}.capacity"),
    ),
    *_both(
        "learning_starts",
        v.STEPS,
        Verdict.RENAMED,
        "renamed in Ray 2.1",
        STARTS,
        convert=_same(STARTS),
    ),
    *_both(
        "prioritized_replay",
        v.FLAG,
        Verdict.CONVERTED,
        "the buffer's type says it",
        f"{BUFFER}.type",
        convert=_prioritized,
    ),
    *_both(
        "prioritized_replay_alpha",
        v.AMOUNT,
        Verdict.RENAMED,
        "a key of the replay buffer",
        ALPHA[0],
        old=ALPHA[1],
        convert=_on_stack(*ALPHA),
    ),
    *_both(
        "prioritized_replay_beta",
        v.AMOUNT,
        Verdict.RENAMED,
        "a key of the replay buffer",
        BETA[0],
        old=BETA[1],
        convert=_on_stack(*BETA),
    ),
    *_both(
        "prioritized_replay_eps",
        v.AMOUNT,
        Verdict.DROPPED,
        "columns add 1e-6, its default; Ray's own buffers have an offset of their own",
        "",
        old=f"{BUFFER}.prioritized_replay_eps",
        algorithms=IN_ONE_PROCESS,
    ),
    *_both(
        "replay_batch_size", UNREAD, Verdict.DROPPED, "it follows from the train batch size", ""
    ),
    *_both(
        "replay_sequence_length",
        SEQUENCE,
        Verdict.CONVERTED,
        "the model's `max_seq_len` says how long replayed sequences are",
        "rl_module.model_config.max_seq_len",
        old=f"{BUFFER}.replay_sequence_length",
        convert=_replay_sequence_length,
    ),
    *_both(
        "worker_side_prioritization",
        UNREAD,
        Verdict.DROPPED,
        "learners set all priorities",
        "",
        algorithms=IN_ONE_PROCESS,
    ),
    Rule(
        FAMILY,
        "replay_buffer_config.type",
        Verdict.CONVERTED,
        "the new API stack stores episodes",
        target=f"{BUFFER}.type",
        convert=_type,
        value=BUFFERS | v.CODE,
    ),
    *renamed(
        FAMILY,
        BUFFER,
        {
            v.ENTRIES: {
                "replay_buffer_config.capacity": "capacity",
                "replay_buffer_config.size": "capacity",
            }
        },
        algorithms=REPLAYING,
    ),
    *(
        Rule(
            FAMILY,
            f"replay_buffer_config.{name}",
            Verdict.KEPT,
            target=targets[0],
            old_target=targets[1],
            algorithms=REPLAYING,
            value=v.AMOUNT,
        )
        for name, targets in {"alpha": ALPHA, "beta": BETA}.items()
    ),
    *(
        Rule(
            FAMILY,
            f"replay_buffer_config.{name}",
            Verdict.KEPT,
            target=f"{BUFFER}.{name}",
            old_target="",
            value=v.LENGTH,
        )
        for name in ("batch_size_B", "batch_length_T", "metrics_num_episodes_for_smoothing")
    ),
    Rule(
        FAMILY,
        "replay_buffer_config.replay_burn_in",
        Verdict.RENAMED,
        "renamed in Ray 2.44; only DQN has it",
        target="training.burn_in_len",
        old_target=f"{BUFFER}.replay_burn_in",
        convert=_burn_in,
        value=v.LENGTH,
    ),
    Rule(
        FAMILY,
        "replay_buffer_config.replay_mode",
        Verdict.DROPPED,
        "the new API stack samples modules independently",
        old_target=f"{BUFFER}.replay_mode",
        value=MODE,
    ),
    *(
        Rule(
            FAMILY,
            f"replay_buffer_config.{name}",
            Verdict.DROPPED,
            why,
            old_target=f"{BUFFER}.{name}",
            value=value,
        )
        for name, value, why in (
            ("storage_unit", UNIT, "episode buffers count steps"),
            ("replay_zero_init_states", v.FLAG, "episode buffers keep the states"),
            ("zero_init_states", v.FLAG, "episode buffers keep the states"),
            ("replay_ratio", v.AMOUNT, "the new API stack mixes no replayed batches in"),
            ("underlying_buffer_config", INNER, "episode buffers have no inner buffers"),
            ("num_shards", v.STARTED, "the buffer is not distributed"),
            (
                "replay_sequence_override",
                v.FLAG,
                "episode buffers replay sequences by themselves",
            ),
        )
    ),
    *dropped(
        FAMILY,
        [
            f"replay_buffer_config.{name}"
            for name in words(
                "_enable_replay_buffer_api underlying_replay_buffer_config id_ observations "
                "actions rewards states is_terminated is_truncated render_images t "
                "no_local_replay_buffer replay_buffer_shards_colocated_with_driver"
            )
        ],
        "an inner argument of a buffer class",
    ),
    *lost(
        FAMILY,
        "beta_annealing_fraction final_prioritized_replay_beta "
        "prioritized_replay_beta_annealing_timesteps",
        "beta does not change while training since Ray 1.13",
    ),
    Rule(
        FAMILY,
        "optimizer.buffer_size",
        Verdict.MOVED,
        "a key of the replay buffer",
        target=f"{BUFFER}.capacity",
        algorithms=REPLAYING,
        value=v.ENTRIES,
    ),
    Rule(
        FAMILY,
        "optimizer.learning_starts",
        Verdict.MOVED,
        "not the policy optimizer's since Ray 0.6",
        target=STARTS,
        algorithms=REPLAYING,
        value=v.STEPS,
    ),
    Rule(
        FAMILY,
        "optimizer.prioritized_replay",
        Verdict.CONVERTED,
        "the buffer's type says it",
        target=f"{BUFFER}.type",
        convert=_prioritized,
        algorithms=REPLAYING,
        value=v.FLAG,
    ),
    *dropped(FAMILY, "optimizer.*", "the policy optimizers of Ray 0.x are gone"),
)
