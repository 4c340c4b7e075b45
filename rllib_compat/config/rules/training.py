"""Training: what all algorithms share about batches, learning rates and optimizers."""

from __future__ import annotations

from typing import Any

from rllib_compat import ray_versions, registry
from rllib_compat.config.context import Context
from rllib_compat.config.rule import UNREAD, Outcome, Rule, dropped, kept, renamed, rllib_class
from rllib_compat.config.rules.resources import learners
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Whole, Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "training"
#: What `runtime.learners.give_optimizer` reads; the learner's other settings stand beside it.
OPTIMIZER = "training.learner_config_dict.legacy_optimizer"
#: The epsilon of torch's Adam.
ADAMS_OWN = 1e-8
# -1 (of a Dreamer) left the size to the algorithm.
BATCH = Whole(-1)

# Their losses read one learning rate per network.
SEPARATE_RATES = tuple(row.name for row in registry.trained() if len(row.optimizers) > 1)


def of_optimizer(argument: str) -> str:
    """The setting of an optimizer's argument, where the installed Ray wants it."""
    return f"{ray_versions.learner_method()}.{OPTIMIZER.partition('.')[2]}.{argument}"


def schedule(points: Any, before: Any) -> Any:
    """A legacy schedule as today's: it begins at step 0 and has at least two points.

    Args:
        points: `[[step, value], …]`; values between the points are interpolated, then and now.
        before: The value until the first point.
    """
    steps = [[int(step), float(value)] for step, value in points]
    if steps[0][0] > 0:
        first = before if isinstance(before, (int, float)) else steps[0][1]
        steps.insert(0, [0, float(first)])
    return steps if len(steps) > 1 else steps[0][1]


def scheduled(value: Any, context: Context, plain: str) -> Outcome:
    """Turns `<plain>_schedule` into a value of `training(<plain>=)`."""
    if value is None or value == []:
        return Outcome(verdict=Verdict.DROPPED, message="no schedule was asked for")
    if plain == "lr" and context.algorithm in SEPARATE_RATES:
        return _unread_rate(value)
    if context.stack == "old" and context.algorithm in ("MARWIL", "BC"):
        return Outcome(verdict=Verdict.DROPPED, severity=Severity.WARNING)
    if context.stack == "old":
        return Outcome({f"training.{plain}_schedule": value}, Verdict.KEPT)
    try:
        steps = schedule(value, context.get(plain))
    except (TypeError, ValueError, IndexError):
        return Outcome(
            verdict=Verdict.REFUSED,
            message=f"{value!r} is not a list of [step, value] pairs",
            severity=Severity.ERROR,
            hint=f"give {plain} as such a list",
        )
    return Outcome({f"training.{plain}": steps})


def unless_scheduled(value: Any, context: Context, plain: str) -> Outcome:
    """Keeps a plain value, unless its schedule takes its place."""
    if context.get(f"{plain}_schedule") and context.stack == "new":
        return Outcome(
            verdict=Verdict.CONVERTED,
            message=f"`{plain}_schedule` takes its place (and begins with it, if it starts later)",
        )
    return Outcome({f"training.{plain}": value})


def _unread_rate(value: Any) -> Outcome:
    return Outcome(
        verdict=Verdict.DROPPED,
        message="this algorithm has one learning rate per network, and never read this one",
        severity=Severity.WARNING if value is not None else Severity.INFO,
        hint="give actor_lr, critic_lr and alpha_lr" if value is not None else "",
    )


def _lr(value: Any, context: Context) -> Outcome:
    if context.algorithm in SEPARATE_RATES and context.stack == "new":
        return _unread_rate(value)
    return unless_scheduled(value, context, "lr")


def _lr_schedule(value: Any, context: Context) -> Outcome:
    return scheduled(value, context, "lr")


def _train_batch_size(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"training.train_batch_size": value}, Verdict.KEPT)
    if not isinstance(value, (int, float)) or value <= 0:
        return Outcome(verdict=Verdict.DROPPED, message=f"{value!r} left the size to the algorithm")
    count = learners(context)
    share = max(1, int(value) // count)
    said = f"shared by {count} learners" if count > 1 else ""
    return Outcome({"training.train_batch_size_per_learner": share}, message=said)


def _per_learner(value: Any, context: Context) -> Outcome:
    if value is None or context.stack == "old":
        return Outcome(verdict=Verdict.DROPPED, message="it follows from `train_batch_size`")
    return Outcome({"training.train_batch_size_per_learner": value})


RULES = (
    *kept(
        FAMILY,
        "training",
        {
            v.SHARE: "gamma",
            v.BOUND: "grad_clip",
            Words(("value", "norm", "global_norm")): "grad_clip_by",
        },
    ),
    Rule(FAMILY, "lr", Verdict.KEPT, target="training.lr", convert=_lr, value=v.SCHEDULED_RATE),
    Rule(
        FAMILY,
        "lr_schedule",
        Verdict.CONVERTED,
        "`lr` takes the schedule itself; it has to begin at step 0",
        target="training.lr",
        old_target="training.lr_schedule",
        convert=_lr_schedule,
        value=v.SCHEDULE,
    ),
    Rule(
        FAMILY,
        "train_batch_size",
        Verdict.CONVERTED,
        "each learner has a batch of its own",
        target="training.train_batch_size_per_learner",
        old_target="training.train_batch_size",
        convert=_train_batch_size,
        value=BATCH,
    ),
    *kept(
        FAMILY,
        "training",
        {
            v.SOME: "train_batch_size_per_learner num_epochs minibatch_size",
            v.FLAG: "shuffle_batch_per_epoch add_default_connectors_to_learner_pipeline",
            v.ARGUMENTS: "learner_config_dict",
        },
    ),
    *renamed(
        FAMILY,
        "training",
        {v.CODE: {"_learner_connector": "learner_connector"}},
        old_target="",
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.RENAMED,
            target="training.learner_class",
            old_target="",
            convert=rllib_class("training.learner_class"),
            value=v.CODE,
        )
        for key in ("_learner_class", "rl_trainer_class")
    ),
    Rule(
        FAMILY,
        "_train_batch_size_per_learner",
        Verdict.RENAMED,
        "kept by Ray under this name",
        target="training.train_batch_size_per_learner",
        old_target="",
        convert=_per_learner,
        value=v.SOME,
    ),
    Rule(
        FAMILY,
        "grad_norm_clipping",
        Verdict.RENAMED,
        "renamed in Ray 0.8.5",
        target="training.grad_clip",
        value=v.BOUND,
    ),
    Rule(
        FAMILY,
        "optimizer",
        Verdict.CONVERTED,
        "the policy optimizers of Ray 0.x are gone; their settings have other homes",
        old_target="",
        section=True,
        value=UNREAD,
    ),
    *dropped(FAMILY, "optimizer_class", "the policy optimizers of Ray 0.x are gone"),
    *dropped(
        FAMILY,
        "_rl_trainer_hps _tf_policy_handles_more_than_one_loss "
        "_disable_initialize_loss_from_dummy_batch",
        "an inner switch of one generation of RLlib",
    ),
    *renamed(
        FAMILY,
        "experimental",
        {
            v.CODE: {"_torch_grad_scaler_class": "_torch_grad_scaler_class"},
            v.CODES: {"_torch_lr_scheduler_classes": "_torch_lr_scheduler_classes"},
        },
    ),
)
