"""How old Rays trained, as far as no key of a config says it. It needs no Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from packaging.version import Version

from rllib_compat.neutral.frozen import frozen

#: What the old Rays added to each error that became a priority. A step whose error is nothing would
#: make all others count hundreds of times less, while the optimizer still expects the gradients of
#: before.
PRIORITY_OFFSET = 1e-6
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
#: The first Ray whose A2C and A3C expected nothing after a fragment without `use_gae`.
_EXPECTS_BY_GAE = Version("1.2")
#: The first Ray without policy optimizers; 0.8.3 - 0.8.5 had both ways (`use_exec_api`).
_NO_OPTIMIZERS = Version("0.8.6")
#: The first Ray in which `training_intensity` counted the fragments of all workers, and the first
#: that made whole numbers of updates of it.
_ALL_FRAGMENTS, _WHOLE_UPDATES = Version("1.4"), Version("2.0")
#: The first Ray whose R2D2 did so, too.
_ALL_OF_R2D2 = Version("1.10")


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
        expects_without_gae: Whether the critic of A2C and A3C said what was expected after the end
            of a fragment without `use_gae`, too.
        reports_summed_entropy: Whether IMPALA logged the entropy of all steps together.
        averages_errors: Whether A2C and A3C took the mean of the critic's squared errors and of the
            entropy; else half of the sum, and the sum. Of the policy's terms they took the sum.
        filter_keeps_integers: Whether a filter of observations made integers of integers.
        vtrace_drops_last_step: Whether the last step of a fragment of IMPALA and APPO is the
            bootstrap value alone (`vtrace_drop_last_ts`, which Rays before 1.9 did not ask).
        vtrace: Whether APPO's advantages are those of V-trace (`vtrace`).
        initial_lr: The learning rate of the first iteration, where that was not the first one of
            the schedule.
        replay: How steps were replayed; see `replay_of`.
        collected_steps: How many steps PPO asked its workers for, where each sampled one more
            fragment until there were so many; None: all sampled as many fragments.
    """

    time_limit_terminates: bool
    shuffle: Literal["never", "once", "each epoch"]
    keeps_partial_minibatch: bool
    reports_last_epoch: bool
    clips_value_function: bool
    schedules_count_agent_steps: bool = False
    huber_loss: bool = True
    averages_errors: bool = False
    expects_without_gae: bool = False
    reports_summed_entropy: bool = False
    filter_keeps_integers: bool = False
    vtrace_drops_last_step: bool = True
    vtrace: bool = True
    initial_lr: float | None = None
    replay: Mapping[str, Any] = field(default_factory=dict)
    collected_steps: int | None = None

    @classmethod
    def of_release(
        cls,
        release: str,
        framework: str,
        *,
        simple_optimizer: bool,
        shuffles: bool = True,
        **settings: Any,
    ) -> LegacyTraining:
        """How a release trained with a framework: `tf`, `tfe`, `tf2` or `torch`.

        Args:
            release: The version of the Ray.
            framework: The framework.
            simple_optimizer: Whether it learned without loading the whole batch onto the device.
            shuffles: What the config says with `shuffle_sequences`.
            **settings: Attributes that other keys of the config decide.
        """
        ray = Version(release)
        loads_batch = ray >= _LOADED
        once: Literal["never", "once"] = "once" if shuffles and not loads_batch else "never"
        return cls(
            time_limit_terminates=ray < _TRUNCATED,
            shuffle="each epoch" if simple_optimizer else once,
            keeps_partial_minibatch=simple_optimizer,
            reports_last_epoch=not loads_batch,
            clips_value_function=ray < _CLIPPED_ERROR,
            schedules_count_agent_steps=ray >= _AGENTS_STEPS,
            huber_loss=ray >= _HUBER,
            averages_errors=framework == "torch" and ray < _SUMS,
            expects_without_gae=ray < _EXPECTS_BY_GAE,
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


def has_policy_optimizer(release: str, config: Mapping[str, Any]) -> bool:
    """Whether a Ray trained a config with a policy optimizer (`ray.rllib.optimizers`)."""
    return Version(release) < _NO_OPTIMIZERS and not config.get("use_exec_api")


def framework_of(config: Mapping[str, Any]) -> str:
    """The framework that a config asks for by any of the keys that there were."""
    name = config.get("framework", config.get("framework_str"))
    if isinstance(name, str):
        return name
    if config.get("eager"):
        return "tfe"
    return "torch" if config.get("use_pytorch") else "tf"


def collected_steps(release: str, config: Mapping[str, Any]) -> int | None:
    """How many steps PPO asked workers for one by one; None: it asked all of them each time."""
    steps = config.get("train_batch_size", config.get("timesteps_per_batch"))
    if not isinstance(steps, int) or not has_policy_optimizer(release, config):
        return None
    simple = uses_simple_optimizer(release, framework_of(config), config.get("simple_optimizer"))
    return None if simple else steps


def replay_of(release: str, algorithm: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """How a Ray replayed steps, as plain data.

    Args:
        release: The version of the Ray.
        algorithm: Its name of the algorithm.
        config: The config, with the defaults of that Ray.

    Returns:
        `first`: The priority of new steps; None: the greatest of all.
        `offset`: What was added to each error.
        `beta`: How far weights made up for priorities, as a schedule over the steps that were
        learned from; where it changed.
        `intensity_of`: Of whose steps `training_intensity` said how often they were learned from:
        those of one "fragment" or of "all" workers; where updates were drawn at random.
    """
    ray, has_optimizer = Version(release), has_policy_optimizer(release, config)
    found: dict[str, Any] = {"first": None if has_optimizer else 1.0}
    buffer = config.get("replay_buffer_config")
    inner = buffer if isinstance(buffer, Mapping) else {}
    for home in (inner, config):
        offset = home.get("prioritized_replay_eps")
        if isinstance(offset, (int, float)) and offset >= 0:
            found["offset"] = float(offset)
    if has_optimizer and (beta := _annealed_beta(config)):
        found["beta"] = beta
    if ray < _WHOLE_UPDATES:
        counts_all = _ALL_OF_R2D2 if algorithm == "R2D2" else _ALL_FRAGMENTS
        found["intensity_of"] = "all" if ray >= counts_all else "fragment"
    return found


def _annealed_beta(config: Mapping[str, Any]) -> list[list[float]] | None:
    """The schedule of beta that policy optimizers had; None: it did not change."""
    fraction = config.get("beta_annealing_fraction")
    steps = config.get("prioritized_replay_beta_annealing_timesteps")
    if isinstance(fraction, (int, float)) and fraction >= 0:
        steps = fraction * (config.get("schedule_max_timesteps") or 100_000)
    first, last = config.get("prioritized_replay_beta"), config.get("final_prioritized_replay_beta")
    numbers = (steps, first, last)
    if not all(isinstance(number, (int, float)) for number in numbers) or first == last:
        return None
    return [[0, float(first or 0)], [int(steps or 0), float(last or 0)]]
