"""What an iteration was in the old Rays, as far as no key of a config says it; needs no Ray."""

from __future__ import annotations

from typing import Any, Literal

from packaging.version import Version

from rllib_compat.neutral.frozen import frozen

#: The first Ray whose `step` told a time limit from an end (`terminated`, `truncated`).
_TRUNCATED = Version("2.3")
#: The first Ray in which PPO went through loaded batches with torch as with TensorFlow.
_LOADED = Version("1.6")
#: The first Ray in which PPO clipped the critic's error, not what the critic says.
_CLIPPED_ERROR = Version("1.12")
#: The first Ray whose PPO told policies how many steps of agents there were.
_AGENTS_STEPS = Version("1.13")
#: The first Ray whose SAC took Huber's loss for the error of a critic.
_HUBER = Version("1.1")


@frozen
class Ways:
    """What an old Ray did in an iteration.

    Attributes:
        cuts_end: Whether an episode that `horizon` or a time limit has cut is over for what learns:
            nothing is expected after it.
        shuffles: When PPO shuffled the steps of a train batch (sequences, with an LSTM). What is
            always drawn is in which order the minibatches of a pass come.
        keeps_rest: Whether steps that fill no minibatch made a smaller one; else they were left.
        tells_last_pass: Whether PPO's statistics, which the KL coefficient follows, are means over
            the minibatches of the last pass; else of all passes.
        clips_values: Whether PPO's critic may go no further than `vf_clip_param` from what it has
            said; else its squared error counts no more than that.
        by_agents: Whether PPO's schedules went by steps of agents, not by those of environments.
        limits_errors: Whether errors of SAC's critics above 1 counted as they are, and all by the
            weights of what is replayed; else with their squares.
        drops_last: Whether the last step of a fragment only told IMPALA and APPO what is expected
            after the one before it (`vtrace_drop_last_ts`, which Rays before 1.9 did not ask).
        traces: Whether APPO's advantages are those of V-trace (`vtrace`).
        first_lr: The learning rate of the first iteration, where that was not the first one of the
            schedule.
    """

    cuts_end: bool
    shuffles: Literal["never", "once", "each pass"]
    keeps_rest: bool
    tells_last_pass: bool
    clips_values: bool
    by_agents: bool = False
    limits_errors: bool = True
    drops_last: bool = True
    traces: bool = True
    first_lr: float | None = None


def ways_of(release: str, *, simple: bool, **more: Any) -> Ways:
    """The ways of a Ray.

    Args:
        release: Its version.
        simple: Whether its policies learned without loading the whole batch first: those of torch
            until Ray 1.5, those of eager TensorFlow, and others if `simple_optimizer` said so.
        **more: What the config says.
    """
    ray = Version(release)
    loaded = ray >= _LOADED
    return Ways(
        cuts_end=ray < _TRUNCATED,
        shuffles="each pass" if simple else "never" if loaded else "once",
        keeps_rest=simple,
        tells_last_pass=not loaded,
        clips_values=ray < _CLIPPED_ERROR,
        by_agents=ray >= _AGENTS_STEPS,
        limits_errors=ray >= _HUBER,
        **more,
    )


def is_simple(release: str, framework: str, asked: object) -> bool:
    """Whether policies learned without loading the whole batch first.

    Args:
        release: The version of the Ray.
        framework: Its framework: "tf", "tfe", "tf2" or "torch".
        asked: What the config has for `simple_optimizer`.
    """
    loads = ("tf", "torch") if Version(release) >= _LOADED else ("tf",)
    return asked is True or framework not in loads
