"""Conversions of what concerns training: batches, rates, losses, learners, reporting."""

from __future__ import annotations

import math
from typing import Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.config import values as v
from rllib_compat.config.rule import Context, Outcome, drop, is_off, refuse
from rllib_compat.config.rules.common import (
    for_new_stack,
    keep_on_old_stack,
    warn_if_set,
    warn_unless,
)
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.ray_versions import configs
from rllib_compat.registry.keys import section, was_default

#: What `runtime.learners.use_legacy_optimizer` reads; the learner's other settings are beside it.
OPTIMIZER = "training.learner_config_dict.legacy_optimizer"
#: The epsilon of torch's Adam.
_EPSILON_OF_ADAM = 1e-8
#: Those whose losses read one learning rate per network.
SEPARATE_RATES = tuple(row.name for row in registry.trained() if len(row.optimizers) > 1)
#: Those whose rates and coefficients take schedules on either API stack.
_ONE_SETTING = ("A2C", "A3C", "PG")
_BATCH = "training.train_batch_size_per_learner"
#: The first Ray with the key `framework`; before it, TensorFlow was all there was by default.
_FRAMEWORK = Version("0.8.6")
#: The newest Ray that took `vtrace: False`.
NEWEST_WITHOUT_VTRACE = "2.10.0"
#: The first Ray whose targets followed after so many steps, not after more than these.
_TARGETS_AT_ONCE = Version("1.12")
#: The first Ray with RMSprop of Keras, which is torch's unless it has a momentum.
_KERAS = Version("1.0")
#: What the arguments of RMSprop were where the config says nothing; no Ray changed them.
_RMSPROP = {key: section("IMPALA")[key][0][2] for key in ("decay", "momentum", "epsilon")}


def _optimizer(argument: str) -> str:
    """The setting of an optimizer's argument, where the installed Ray wants it."""
    return f"{configs.learner_method()}.{OPTIMIZER.partition('.')[2]}.{argument}"


# Learners and GPUs


def count_learners(context: Context) -> int:
    """How many learners the config asks for, by any of the names that this ever had."""
    for key in ("num_learners", "num_learner_workers", "num_trainer_workers"):
        given = context.get(key)
        if isinstance(given, int) and given > 0:
            return given
    gpus = 1 if context.get("_fake_gpus") else context.get("num_gpus")
    return int(gpus) if isinstance(gpus, (int, float)) and gpus > 1 else 1


def num_gpus(value: object, context: Context) -> Outcome:
    """The algorithm's GPUs: a share of one, or several."""
    if not isinstance(value, (int, float)):
        return Outcome({context.target: value})
    if context.stack == "new" and "num_gpus_per_learner" in context.config:
        return drop("`num_gpus_per_learner` says it")
    if context.get("_fake_gpus"):
        message = "one learner makes the step of fake GPUs, which averaged over parts of a batch"
        return Outcome({context.target: 0}, message=message)
    if context.stack == "old" or value <= 1:
        return Outcome({context.target: value})
    settings = {"learners.num_learners": int(value), context.target: 1}
    message = f"{int(value)} learners with one GPU each"
    if context.algorithm != "PPO":
        return Outcome(settings, message=message)
    return Outcome(
        settings,
        message=f"{message}, which make the installed Ray's passes over a batch, in other "
        f"minibatches",
        severity=Severity.WARNING,
        hint="a single learner (num_gpus: 1) makes those of the config's Ray",
    )


def gpu(value: object, context: Context) -> Outcome:
    """The switch of Ray 0.5, and the share that went with it."""
    share = (context.get("gpu_fraction") or 1) if value else 0
    target = "resources.num_gpus" if context.stack == "old" else "learners.num_gpus_per_learner"
    return Outcome({target: share})


def gpu_fraction(_: object, context: Context) -> Outcome:
    """The share of a GPU, where `gpu` switches it on."""
    return gpu(context.get("gpu"), context)


# The framework


def was_tensorflow(context: Context) -> bool:
    """Whether a config, or the Ray that it was written for, says TensorFlow."""
    name = context.get("framework", context.get("framework_str"))
    if name is not None:
        return name in v.TENSORFLOW
    torch = context.get("use_pytorch")
    if torch is not None:
        return not torch
    return context.legacy_ray is not None and Version(context.legacy_ray) < _FRAMEWORK


def _was_torch(context: Context) -> bool:
    name = context.get("framework", context.get("framework_str"))
    return name == "torch" or (name is None and bool(context.get("use_pytorch")))


# Reporting


def minimum(value: object, context: Context) -> Outcome:
    """What an iteration samples, trains or takes at least; -1 left it to Ray."""
    return _minimum(value, context.rule.target)


def min_sample_timesteps(value: object, context: Context) -> Outcome:
    """What an iteration samples at least, but in Ray 1.10 – 1.13, which never read it."""
    ray = context.legacy_ray and Version(context.legacy_ray)
    if not ray or not Version("1.10") <= ray < Version("2.0"):
        return minimum(value, context)
    return drop(
        "Ray 1.10 – 1.13 put `timesteps_per_iteration`, or its default, in the place of this key",
        None if is_off(value) else Severity.WARNING,
        "say timesteps_per_iteration if so many steps are meant",
    )


def timesteps_per_iteration(value: object, context: Context) -> Outcome:
    """Sampled steps, or trained ones where nothing is sampled."""
    kind = "train" if registry.of(context.algorithm).offline else "sample"
    target = f"reporting.min_{kind}_timesteps_per_iteration"
    outcome = _minimum(value, target)
    if not context.get("use_exec_api") or not outcome.settings.get(target):
        return outcome
    more = outcome.settings[target] + 1
    return Outcome({target: more}, message="Ray 0.8.3 – 0.8.5 wanted more steps than this")


def _minimum(value: object, target: str) -> Outcome:
    if value == -1:
        return drop("it was left to the default")
    if "time_s" in target:
        return Outcome({target: value or None})
    whole = math.ceil(value) if isinstance(value, float) and math.isfinite(value) else value
    return Outcome({target: whole or 0})  # as YAML reads 1e4 as a float


# Batches


def factor(value: object, context: Context) -> Outcome:
    """A fraction; population-based training makes others, too, which every Ray computed with."""
    settings = {context.target: value}
    if not isinstance(value, (int, float)) or 0 <= value <= 1:
        return Outcome(settings)
    message = f"{value:g} is not between 0 and 1; it is used as it is, as in every Ray"
    return Outcome(settings, message=message, severity=Severity.WARNING)


@for_new_stack
def train_batch_size(value: object, context: Context) -> Outcome:
    """Divides the batch by the number of learners: today's setting is the share of each."""
    if not isinstance(value, (int, float)) or value <= 0:
        return drop(f"{value!r} left the size to the algorithm")
    count = count_learners(context)
    message = f"shared by {count} learners" if count > 1 else ""
    return Outcome({context.target: max(1, math.ceil(value) // count)}, message=message)


def train_batch_size_per_learner(value: object, context: Context) -> Outcome:
    """Ray's own copy of the size, None where another key says it."""
    if value is None or context.stack == "old":
        return drop("it follows from `train_batch_size`")
    return Outcome({context.rule.target: value})


def train_batch_size_of_ddppo(value: object, context: Context) -> Outcome:
    """Fragments say it where their length is a number; until Ray 2.1 it always was one."""
    fragment, envs = context.get("rollout_fragment_length"), context.get("num_envs_per_worker", 5)
    follows = drop("it follows from the fragments")
    if not isinstance(value, int) or value <= 0:
        return follows
    if not isinstance(fragment, int):
        return Outcome({_BATCH: value})
    if was_default("train_batch_size", value, "DDPPO") or value == fragment * envs:
        return follows
    return refuse(
        "each env runner learns from its fragments, and `rollout_fragment_length` says how long "
        "they are; RLlib refused both, too",
        "take one of them out",
    )


def sgd_minibatch_size(value: object, context: Context) -> Outcome:
    """A share for each learner; DDPPO's workers had one of their own."""
    count = count_learners(context)
    is_whole = context.stack == "old" or context.legacy_algorithm == "DDPPO" or count == 1
    if is_whole or not isinstance(value, int):
        return Outcome({context.target: value})
    message = f"shared by {count} learners"
    return Outcome({context.target: max(1, value // count)}, message=message)


# Rates and coefficients that may have a schedule


def lr(value: object, context: Context) -> Outcome:
    """The learning rate, unless each network has one."""
    if context.algorithm in SEPARATE_RATES and context.stack == "new":
        return _never_read_rate(value)
    return _unless_scheduled(value, context, "lr")


def lr_schedule(value: object, context: Context) -> Outcome:
    """The learning rate's schedule, which `lr` takes today."""
    return _scheduled(value, context, "lr")


def kl_coeff(value: float | None) -> float | None:
    """The KL coefficient as a float: Ray makes a tensor of the same type, and halves it."""
    return None if value is None else float(value)


def bound(value: float | None) -> float:
    """A bound of what a loss computes; None was none, and so is infinity."""
    return math.inf if value is None else value


def entropy_coeff(value: object, context: Context) -> Outcome:
    """How much the loss rewards uncertainty."""
    if isinstance(value, (int, float)) and value < 0:
        return _negative_entropy(value, context)
    value = float(value) if isinstance(value, int) else value
    return _unless_scheduled(value, context, "entropy_coeff")


def _negative_entropy(value: float, context: Context) -> Outcome:
    if context.algorithm in ("IMPALA", "APPO", "A2C", "A3C"):
        message = "Ray 0.5 added the entropy term to the loss; it is subtracted since"
        return Outcome({"training.entropy_coeff": -value}, Verdict.CONVERTED, message)
    return refuse(
        "a negative coefficient would reward certainty; Ray does not take one",
        "give its absolute value, or 0",
    )


def entropy_coeff_schedule(value: object, context: Context) -> Outcome:
    """The coefficient's schedule, which `entropy_coeff` takes today."""
    return _scheduled(value, context, "entropy_coeff")


def _scheduled(value: object, context: Context, plain: str) -> Outcome:
    """Turns `<plain>_schedule` into a value of `training(<plain>=)`."""
    if value is None or value == []:
        return drop("no schedule was asked for")
    if plain == "lr" and context.algorithm in SEPARATE_RATES:
        return _never_read_rate(value)
    if context.stack == "old" and context.algorithm in ("MARWIL", "BC"):
        return drop("", Severity.WARNING)
    if _separates_schedules(context):
        return Outcome({f"training.{plain}_schedule": value}, Verdict.KEPT)
    try:
        steps = _todays_schedule(value, context.get(plain))
    except (TypeError, ValueError, IndexError):
        message = f"{value!r} is not a list of [step, value] pairs"
        return refuse(message, f"give {plain} as such a list")
    return Outcome({f"training.{plain}": steps})


def _separates_schedules(context: Context) -> bool:
    """Whether a schedule is a setting beside its value: for Ray's own, on the old API stack."""
    return context.stack == "old" and context.algorithm not in _ONE_SETTING


def _todays_schedule(points: Any, before: object) -> Any:
    """A legacy schedule as today's: it begins at step 0, with what was before, and has two ends."""
    steps = [[int(step), float(value)] for step, value in points]
    if steps[0][0] > 0:
        first = before if isinstance(before, (int, float)) else steps[0][1]
        steps.insert(0, [0, float(first)])
    return steps if len(steps) > 1 else steps[0][1]


def _unless_scheduled(value: object, context: Context, plain: str) -> Outcome:
    """Keeps a plain value, unless its schedule takes its place."""
    if context.get(f"{plain}_schedule") and not _separates_schedules(context):
        message = f"`{plain}_schedule` takes its place (and begins with it, if it starts later)"
        return Outcome(verdict=Verdict.CONVERTED, message=message)
    return Outcome({f"training.{plain}": value})


def _never_read_rate(value: object) -> Outcome:
    return drop(
        "this algorithm has one learning rate per network, and never read this one",
        Severity.INFO if value is None else Severity.WARNING,
        "" if value is None else "give actor_lr, critic_lr and alpha_lr",
    )


# PPO


def use_gae(value: object, context: Context) -> Outcome:
    """Whether advantages are estimated with GAE, as the new API stack always does."""
    cut = context.get("batch_mode") != "complete_episodes" and context.algorithm != "APPO"
    if not value and context.stack == "old" and cut:
        return refuse(
            "without GAE, PPO learns from whole episodes alone, in every Ray: the rest of "
            "a cut one's return is not known",
            'set batch_mode to "complete_episodes"',
        )
    if value or context.stack == "old":
        return Outcome({context.target: bool(value)})
    return Outcome()


def use_critic(value: object, context: Context) -> Outcome:
    """Whether PPO has a critic, as the new API stack always does."""
    if value:
        return Outcome({context.target: True})
    if context.get("use_gae", True):
        return refuse(
            "GAE needs a critic; without one, every Ray ended in an error at the first batch",
            'set use_gae to False, too, and batch_mode to "complete_episodes"',
        )
    return Outcome({context.target: False} if context.stack == "old" else {})


# IMPALA and APPO


def _learns_as_appo(context: Context) -> bool:
    """Whether a config of APPO is from a Ray that took `vtrace: False`."""
    before = Version(context.legacy_ray or NEWEST_WITHOUT_VTRACE) <= Version(NEWEST_WITHOUT_VTRACE)
    return context.algorithm == "APPO" and context.stack == "new" and before


def vtrace(value: object, context: Context) -> Outcome:
    """Whether returns are corrected for off-policy steps."""
    if value not in (False, None):
        return Outcome({context.target: value})
    if _learns_as_appo(context):
        message = (
            "a trainer learns from advantages of GAE, as it says; Ray itself always has V-trace"
        )
        return Outcome({context.target: True}, Verdict.CONVERTED, message)
    return Outcome(
        {context.target: True},
        Verdict.CONVERTED,
        "no Ray from 2.20 on runs without V-trace; it is switched on",
        Severity.WARNING,
        "PPO is the algorithm without it",
    )


def num_sgd_iter(value: object, context: Context) -> Outcome:
    """Passes over a train batch; APPO's circular buffer counts them otherwise."""
    if _learns_as_appo(context):
        return Outcome({"training.circular_buffer_iterations_per_batch": value})
    return Outcome({context.target: value})


@for_new_stack
def minibatch_buffer_size(value: object, context: Context) -> Outcome:
    """How many train batches are kept for a second pass: only APPO has a place for them."""
    if context.algorithm == "APPO":
        return Outcome({context.target: value or 1})
    if value in (None, 1):
        return drop("no batch was kept for a second pass")
    return warn_if_set(value, context)


def learner_queue_size(value: object, context: Context) -> Outcome:
    """How many batches may wait for the learner; APPO has a circular buffer instead."""
    if _learns_as_appo(context):
        return drop("the circular buffer takes the queue's place")
    return Outcome({context.target: value})


def num_aggregation_workers(value: object, context: Context) -> Outcome:
    """How many actors put batches together: on the new API stack they belong to learners."""
    if context.stack == "old":
        return warn_if_set(value, context)
    return Outcome({context.target: value})


def target_update_frequency(value: object, context: Context) -> Outcome:
    """After how much training the target network is updated, in another unit."""
    return Outcome(
        {context.target: value},
        severity=Severity.WARNING,
        hint="it counted train batches; it counts circular buffers full of steps now",
    )


@for_new_stack
def optimizer_argument(_: object, context: Context) -> Outcome:
    """An argument of RMSprop."""
    if context.get("opt_type", "adam") == "adam":
        return drop("Adam never read it")
    return Outcome(_rmsprop(context))


@for_new_stack
def opt_type(value: object, context: Context) -> Outcome:
    """Which optimizer; RMSprop with its arguments."""
    if value in (None, "adam"):
        return drop("Adam, as by default")
    settings = _rmsprop(context)
    if _was_torch(context) and context.get("decay", _RMSPROP["decay"]):
        message = "torch's policies took `decay` for a weight decay, which shrinks all weights"
        return Outcome(settings, None, message, Severity.WARNING, "`decay: 0.0` does not")
    return Outcome(settings)


def _rmsprop(context: Context) -> dict[str, Any]:
    """The optimizer that a config asks for, as its framework had it."""
    decay, momentum, epsilon = (context.get(key, value) for key, value in _RMSPROP.items())
    arguments = {"name": "RMSprop", "momentum": momentum, "eps": epsilon}
    if _was_torch(context):
        arguments["weight_decay"] = decay
    else:
        arguments["alpha"] = decay
        graphs = context.legacy_ray is not None and Version(context.legacy_ray) < _KERAS
        if graphs or momentum:
            arguments |= {"name": "TensorFlowRMSprop", "first": float(graphs)}
    return {_optimizer(name): value for name, value in arguments.items()}


def broadcast_interval(value: object, context: Context) -> Outcome:
    """Fragments or train batches until Ray 1.13, training steps since."""
    since = Version(context.legacy_ray) if context.legacy_ray else None
    if value in (None, 1) or (since is not None and since >= Version("2.0")):
        return Outcome({context.target: value})
    return Outcome(
        {context.target: value},
        message="it counted train batches until Ray 2.0; it counts training steps now, each of "
        "which may train on several batches, or on none",
        severity=Severity.WARNING,
        hint="1 sends weights as soon as there are new ones",
    )


# Target networks


def target_network_update_freq(value: object, context: Context) -> Outcome:
    """After how many steps targets follow; until Ray 1.11, after more than these."""
    ray = context.legacy_ray
    if type(value) is not int or ray is None or Version(ray) >= _TARGETS_AT_ONCE:
        return Outcome({context.target: value})
    message = f"until Ray 1.11 targets followed after more than {value} steps, not after as many"
    return Outcome({context.target: value + 1}, Verdict.CONVERTED, message)


# DQN and R2D2


def categorical_temperature(value: object, context: Context) -> Outcome:
    """What values are divided by; 1 changes nothing."""
    none = context.stack == "new" and value == 1.0
    return keep_on_old_stack(None if none else value, context)


@for_new_stack
def adam_epsilon(value: object, _: Context) -> Outcome:
    """Adam's epsilon, which is a setting of the learner unless it is torch's own."""
    if value in (None, _EPSILON_OF_ADAM):
        return drop("torch's Adam has it by itself")
    return Outcome({_optimizer("eps"): value})


def atoms_of_r2d2(value: object, _: Context) -> Outcome:
    """How many values a distribution has; R2D2 learns none."""
    if value in (None, 1):
        return drop("it learns values, not distributions")
    why = "R2D2 learns values, no distributions; RLlib's refused them, too"
    return refuse(why, "num_atoms=1")


def loss_of_r2d2(value: object, context: Context) -> Outcome:
    """Huber's, whatever is asked for."""
    return Outcome() if value == "huber" else warn_if_set(value, context)


# SAC, DDPG and ARS


def smooth_target_policy(value: object, context: Context) -> Outcome:
    """TD3's default was a tuple from Ray 2.0 to 2.10, where a comma had slipped in."""
    first = value[0] if isinstance(value, (list, tuple)) else value
    return Outcome({context.target: bool(first)})


def l2_reg(value: object, context: Context) -> Outcome:
    """How much large weights cost; on torch, nothing."""
    if not value or not _was_torch(context):
        return Outcome({context.target: 0.0 if value is None else value})
    return Outcome(
        {context.target: 0.0},
        Verdict.CONVERTED,
        "torch's policies added it to the losses without a gradient: it changed nothing",
        hint=f"training(l2_reg={value!r}) makes weights smaller, as with TensorFlow",
    )


def lr_of_ddpg(value: object, context: Context) -> Outcome:
    """Ray 0.6 had one optimizer for all; later ones read a rate for each."""
    if context.get("actor_loss_coeff") is None and context.get("critic_loss_coeff") is None:
        return drop("no loss read it: `actor_lr` and `critic_lr` are what counts")
    return Outcome({"training.actor_lr": value, "training.critic_lr": value})


def stepsize(value: object, context: Context) -> Outcome:
    """ARS of Ray 0.5 had it by the name that ES has for it."""
    if context.algorithm == "ARS":
        return Outcome({"training.sgd_stepsize": value}, Verdict.RENAMED)
    return Outcome({context.target: value})


# Learning from recorded data


def beta_of_marwil(value: object, context: Context) -> Outcome:
    """How much advantages weigh; BC is MARWIL without."""
    if context.algorithm != "BC" or value == 0:
        return Outcome({context.target: value})
    hint = "translate it with algorithm='MARWIL', or set beta to 0"
    return refuse("BC with a beta above 0 is MARWIL", hint)


def lagrangian(value: object, context: Context) -> Outcome:
    """CQL's switch, and the threshold that it reads."""
    on_new = context.stack == "new" and context.rule.key != "lagrangian"
    return keep_on_old_stack(context.get("lagrangian") if on_new else value, context)


#: What MADDPG's policies learn by, which RLlib never read.
policy_of_maddpg = warn_unless(
    lambda value: value != "ddpg", "give its policies `use_local_critic=True`: DDPG"
)
