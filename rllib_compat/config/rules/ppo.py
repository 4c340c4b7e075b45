"""PPO and DDPPO."""

from __future__ import annotations

from typing import Any

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.keys import was_default
from rllib_compat.config.rule import Outcome, Rule, dropped, kept, lost
from rllib_compat.config.rules import model
from rllib_compat.config.rules.resources import learners
from rllib_compat.config.rules.training import BATCH, scheduled, unless_scheduled
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "ppo"
PPO = registry.family("PPO")
DDPPO = ("DDPPO",)
WITH_GAE = (*PPO, "APPO", "A2C", "A3C")
LIKE_PPO = (*WITH_GAE, "IMPALA")


def _batch_of_a_worker(value: Any, context: Context) -> Outcome:
    """Fragments say it where their length is a number; until Ray 2.1 it always was one."""
    fragment, envs = context.get("rollout_fragment_length"), context.get("num_envs_per_worker", 5)
    follows = Outcome(verdict=Verdict.DROPPED, message="it follows from the fragments")
    if not isinstance(value, int) or value <= 0:
        return follows
    if not isinstance(fragment, int):
        return Outcome({"training.train_batch_size_per_learner": value})
    if was_default("train_batch_size", value, "DDPPO") or value == fragment * envs:
        return follows
    return Outcome(
        verdict=Verdict.REFUSED,
        severity=Severity.ERROR,
        message="each env runner learns from its fragments, and `rollout_fragment_length` says how "
        "long they are; RLlib refused both, too",
        hint="take one of them out",
    )


def _entropy_coeff(value: Any, context: Context) -> Outcome:
    if isinstance(value, (int, float)) and value < 0:
        return _negative_entropy(value, context)
    if isinstance(value, int):
        value = float(value)
    return unless_scheduled(value, context, "entropy_coeff")


def _negative_entropy(value: float, context: Context) -> Outcome:
    if context.algorithm in ("IMPALA", "APPO", "A2C", "A3C"):
        return Outcome(
            {"training.entropy_coeff": -value},
            Verdict.CONVERTED,
            "Ray 0.5 added the entropy term to the loss; it is subtracted since",
        )
    return Outcome(
        verdict=Verdict.REFUSED,
        severity=Severity.ERROR,
        message="a negative coefficient would reward certainty; Ray does not take one",
        hint="give its absolute value, or 0",
    )


def _shared_layers(value: Any, context: Context) -> Outcome:
    place = model.NEW if context.stack == "new" else model.OLD
    return Outcome({f"{place}.vf_share_layers": bool(value)})


def _entropy_schedule(value: Any, context: Context) -> Outcome:
    return scheduled(value, context, "entropy_coeff")


def _use_gae(value: Any, context: Context) -> Outcome:
    if value or context.stack == "old":
        return Outcome({"training.use_gae": bool(value)})
    return Outcome()


def _sgd_minibatch_size(value: Any, context: Context) -> Outcome:
    """A share for each learner; DDPPO's workers had one of their own."""
    count = learners(context)
    if context.stack == "old" or context.legacy_algorithm == "DDPPO" or count == 1:
        return Outcome({"training.minibatch_size": value})
    if not isinstance(value, int):
        return Outcome({"training.minibatch_size": value})
    share = max(1, value // count)
    return Outcome({"training.minibatch_size": share}, message=f"shared by {count} learners")


RULES = (
    Rule(
        FAMILY,
        "num_sgd_iter",
        Verdict.RENAMED,
        "passes over each train batch; renamed in Ray 2.40",
        target="training.num_epochs",
        algorithms=(*PPO, "AlphaZero", "LeelaChessZero"),
        value=v.SOME,
    ),
    Rule(
        FAMILY,
        "vf_share_layers",
        Verdict.MOVED,
        "a key of the model since Ray 1.2",
        target=f"{model.NEW}.vf_share_layers",
        old_target=f"{model.OLD}.vf_share_layers",
        convert=_shared_layers,
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "sgd_minibatch_size",
        Verdict.RENAMED,
        "what several GPUs shared; each learner's own since Ray 2.40",
        target="training.minibatch_size",
        convert=_sgd_minibatch_size,
        value=v.SOME,
    ),
    Rule(
        FAMILY,
        "mini_batch_size_per_learner",
        Verdict.RENAMED,
        "renamed in Ray 2.40",
        target="training.minibatch_size",
        value=v.SOME,
    ),
    Rule(
        FAMILY,
        "shuffle_sequences",
        Verdict.RENAMED,
        "renamed in Ray 2.40",
        target="training.shuffle_batch_per_epoch",
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "lambda",
        Verdict.RENAMED,
        "a word of Python",
        target="training.lambda_",
        value=v.SHARE,
        algorithms=WITH_GAE,
    ),
    *kept(FAMILY, "training", {v.SHARE: "lambda_"}, algorithms=WITH_GAE),
    *kept(
        FAMILY,
        "training",
        {v.FLAG: "use_kl_loss", v.AMOUNT: "kl_coeff kl_target clip_param"},
        algorithms=(*PPO, "APPO"),
    ),
    *kept(FAMILY, "training", {v.BOUND: "vf_clip_param"}, algorithms=PPO),
    *kept(FAMILY, "training", {v.NUMBER: "vf_loss_coeff"}, algorithms=LIKE_PPO),
    Rule(
        FAMILY,
        "use_gae",
        Verdict.KEPT,
        "the new API stack always estimates advantages with GAE",
        target="training.use_gae",
        convert=_use_gae,
        value=v.FLAG,
        algorithms=(*PPO, "APPO"),
        needs_old=lambda value: value is False,
        hint="lambda_=1.0 comes nearest on the new API stack",
    ),
    Rule(
        FAMILY,
        "use_critic",
        Verdict.KEPT,
        "the new API stack always trains a critic",
        target="training.use_critic",
        value=v.FLAG,
        algorithms=PPO,
        needs_old=lambda value: value is False,
    ),
    Rule(
        FAMILY,
        "entropy_coeff",
        Verdict.KEPT,
        target="training.entropy_coeff",
        convert=_entropy_coeff,
        value=v.SCHEDULED,
        algorithms=LIKE_PPO,
    ),
    Rule(
        FAMILY,
        "entropy_coeff_schedule",
        Verdict.CONVERTED,
        "`entropy_coeff` takes the schedule itself; it has to begin at step 0",
        target="training.entropy_coeff",
        old_target="training.entropy_coeff_schedule",
        convert=_entropy_schedule,
        value=v.SCHEDULE,
        algorithms=LIKE_PPO,
    ),
    *lost(
        FAMILY,
        "straggler_mitigation",
        "late samples were dropped in Ray 0.6 only",
        hint="env_runners(sample_timeout_s=) bounds how long an env runner is waited for",
    ),
    *dropped(FAMILY, "trainer_class", "an inner key of Ray 1.13"),
    *kept(
        FAMILY,
        "training",
        {
            v.FLAG: "keep_local_weights_in_sync",
            Words(("gloo", "mpi", "nccl")): "torch_distributed_backend",
        },
        algorithms=DDPPO,
    ),
    Rule(
        FAMILY,
        "train_batch_size",
        Verdict.CONVERTED,
        "how many steps each env runner of DDPPO learns from, as in Ray 2.3",
        target="training.train_batch_size_per_learner",
        old_target="training.train_batch_size",
        convert=_batch_of_a_worker,
        value=BATCH,
        algorithms=DDPPO,
    ),
    *dropped(
        FAMILY, "truncate_episodes", "`batch_mode` says it; nothing else works", algorithms=DDPPO
    ),
)
