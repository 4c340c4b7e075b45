"""How old Rays trained, as far as no key of a config says it. It needs no Ray."""

from __future__ import annotations

from typing import Any, Literal

from packaging.version import Version

from rllib_compat.neutral.frozen import frozen

#: The first Ray whose `step` distinguished a time limit from an end (`terminated`, `truncated`).
_TRUNCATED = Version("2.3")
#: The first Ray in which PPO went through loaded batches with torch as with TensorFlow.
_LOADED = Version("1.6")
#: The first Ray in which PPO clipped the critic's error, not what the critic says.
_CLIPPED_ERROR = Version("1.12")
#: The first Ray whose PPO gave policies how many steps of agents there were.
_AGENTS_STEPS = Version("1.13")
#: The first Ray whose filter of observations gave numbers of the type that it took.
_FILTERED_TYPE = Version("1.10")
#: The first Ray whose IMPALA logged the entropy of a step, not of all.
_MEAN_ENTROPY = Version("1.4")
#: The first Ray whose SAC took Huber's loss for the error of a critic.
_HUBER = Version("1.1")
#: The first Ray whose A2C and A3C summed the critic's errors and the entropy with torch, too.
_SUMS = Version("1.1")


@frozen
class LegacyTraining:
    """How an old Ray trained.

    Attributes:
        time_limit_terminates: Whether an episode that `horizon` or a time limit has cut is over for
            what learns: nothing is expected after it.
        shuffle: When PPO shuffled the steps of a train batch (sequences, with an LSTM). The
            minibatches of an epoch always come in random order.
        keeps_partial_minibatch: Whether steps that fill no minibatch made a smaller one; else they
            were dropped.
        reports_last_epoch: Whether PPO's statistics, which the KL coefficient follows, are means
            over the minibatches of the last epoch; else of all epochs.
        clips_value_function: Whether PPO's value function may move no further than `vf_clip_param`
            from its old output; else its squared error counts no more than that.
        schedules_count_agent_steps: Whether PPO's schedules counted steps of agents, not those of
            environments.
        huber_loss: Whether the loss of SAC's critics was Huber's, and weighted by the importance of
            what is replayed; else it was the mean squared error.
        reports_summed_entropy: Whether IMPALA logged the entropy of all steps together.
        averages_errors: Whether A2C and A3C took the mean of the critic's squared errors and of the
            entropy; else half of the sum, and the sum. Of the policy's terms they took the sum.
        filter_keeps_integers: Whether a filter of observations made integers of integers.
        vtrace_drops_last_step: Whether the last step of a fragment of IMPALA and APPO is the
            bootstrap value alone (`vtrace_drop_last_ts`, which Rays before 1.9 did not ask).
        vtrace: Whether APPO's advantages are those of V-trace (`vtrace`).
        initial_lr: The learning rate of the first iteration, where that was not the first one of
            the schedule.
    """

    time_limit_terminates: bool
    shuffle: Literal["never", "once", "each epoch"]
    keeps_partial_minibatch: bool
    reports_last_epoch: bool
    clips_value_function: bool
    schedules_count_agent_steps: bool = False
    huber_loss: bool = True
    averages_errors: bool = False
    reports_summed_entropy: bool = False
    filter_keeps_integers: bool = False
    vtrace_drops_last_step: bool = True
    vtrace: bool = True
    initial_lr: float | None = None

    @classmethod
    def of_release(
        cls, release: str, framework: str, *, simple_optimizer: bool, **settings: Any
    ) -> LegacyTraining:
        """How a release trained with a framework: `tf`, `tfe`, `tf2` or `torch`."""
        ray = Version(release)
        loads_batch = ray >= _LOADED
        return cls(
            time_limit_terminates=ray < _TRUNCATED,
            shuffle="each epoch" if simple_optimizer else "never" if loads_batch else "once",
            keeps_partial_minibatch=simple_optimizer,
            reports_last_epoch=not loads_batch,
            clips_value_function=ray < _CLIPPED_ERROR,
            schedules_count_agent_steps=ray >= _AGENTS_STEPS,
            huber_loss=ray >= _HUBER,
            averages_errors=framework == "torch" and ray < _SUMS,
            reports_summed_entropy=ray < _MEAN_ENTROPY,
            filter_keeps_integers=ray >= _FILTERED_TYPE,
            **settings,
        )


def uses_simple_optimizer(release: str, framework: str, asked: object) -> bool:
    """Whether a Ray learned without loading the whole train batch onto the device first.

    That did torch until Ray 1.5, eager TensorFlow, and all others with `simple_optimizer=True`.
    """
    loads = ("tf", "torch") if Version(release) >= _LOADED else ("tf",)
    return asked is True or framework not in loads
