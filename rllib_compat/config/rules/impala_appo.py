"""IMPALA and APPO."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, drop_aloud, dropped, kept, lost
from rllib_compat.config.rules.framework import was_torch
from rllib_compat.config.rules.training import OPTIMIZER, of_optimizer
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "impala_appo"
BOTH = registry.family("IMPALA")
APPO = registry.family("APPO")
#: The newest Ray that took `vtrace: False`.
NEWEST_WITHOUT_VTRACE = "2.10.0"


def _vtrace(value: Any, context: Context) -> Outcome:
    if value is not False:
        return Outcome({"training.vtrace": value})
    since = Version(context.legacy_ray or NEWEST_WITHOUT_VTRACE)
    old = since <= Version(NEWEST_WITHOUT_VTRACE)
    if context.algorithm == "APPO" and context.stack == "new" and old:
        return Outcome(
            {"training.vtrace": True},
            Verdict.CONVERTED,
            "a trainer learns from advantages of GAE, as it says; Ray itself always has V-trace",
        )
    return Outcome(
        {"training.vtrace": True},
        Verdict.CONVERTED,
        "no Ray from 2.20 on runs without V-trace; it is switched on",
        Severity.WARNING,
        "PPO is the algorithm without it",
    )


def _num_sgd_iter(value: Any, context: Context) -> Outcome:
    since = Version(context.legacy_ray or NEWEST_WITHOUT_VTRACE)
    old = since <= Version(NEWEST_WITHOUT_VTRACE)
    if context.algorithm == "APPO" and context.stack == "new" and old:
        return Outcome({"training.circular_buffer_iterations_per_batch": value})
    return Outcome({"training.num_epochs": value})


def _minibatch_buffer_size(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"training.minibatch_buffer_size": value}, Verdict.KEPT)
    if context.algorithm == "APPO":
        return Outcome({"training.circular_buffer_num_batches": value or 1})
    if value in (None, 1):
        return Outcome(verdict=Verdict.DROPPED, message="no batch was kept for a second pass")
    return drop_aloud(value, context)


def _learner_queue_size(value: Any, context: Context) -> Outcome:
    since = Version(context.legacy_ray or NEWEST_WITHOUT_VTRACE)
    old = since <= Version(NEWEST_WITHOUT_VTRACE)
    if context.algorithm == "APPO" and context.stack == "new" and old:
        return Outcome(
            verdict=Verdict.DROPPED, message="the circular buffer takes the queue's place"
        )
    return Outcome({"training.learner_queue_size": value})


def _aggregators(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return drop_aloud(value, context)
    return Outcome({"learners.num_aggregator_actors_per_learner": value})


def _target_update_frequency(value: Any, _: Context) -> Outcome:
    return Outcome(
        {"training.target_network_update_freq": value},
        severity=Severity.WARNING,
        hint="it counted train batches; it counts circular buffers full of steps now",
    )


def _replay_proportion(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"training.replay_proportion": value}, Verdict.KEPT)
    return drop_aloud(value, context)


#: The first Ray with RMSprop of Keras, which is torch's unless it has a momentum.
_KERAS = Version("1.0")
#: What the arguments of RMSprop were in every Ray, where the config says nothing.
_RMSPROP = {"decay": 0.99, "momentum": 0.0, "epsilon": 0.1}


def _of_rmsprop(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({f"training.{context.path.rpartition('.')[2]}": value}, Verdict.KEPT)
    if context.get("opt_type", "adam") == "adam":
        return Outcome(verdict=Verdict.DROPPED, message="Adam never read it")
    return Outcome({of_optimizer(name): told for name, told in _rmsprop(context).items()})


def _opt_type(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"training.opt_type": value}, Verdict.KEPT)
    if value in (None, "adam"):
        return Outcome(verdict=Verdict.DROPPED, message="Adam, as by default")
    settings = {of_optimizer(name): value for name, value in _rmsprop(context).items()}
    message = "torch's policies took `decay` for a weight decay, which shrinks all weights"
    if was_torch(context) and context.get("decay", _RMSPROP["decay"]):
        return Outcome(settings, None, message, Severity.WARNING, "`decay: 0.0` does not")
    return Outcome(settings)


def _rmsprop(context: Context) -> dict[str, Any]:
    """The optimizer that a config asks for, as its framework had it."""
    decay, momentum, epsilon = (context.get(key, value) for key, value in _RMSPROP.items())
    told = {"momentum": momentum, "eps": epsilon}
    if was_torch(context):
        return {"name": "RMSprop", "weight_decay": decay, **told}
    graphs = context.legacy_ray is not None and Version(context.legacy_ray) < _KERAS
    if graphs or momentum:
        return {"name": "TensorFlowRMSprop", "alpha": decay, "first": float(graphs), **told}
    return {"name": "RMSprop", "alpha": decay, **told}


def _broadcast_interval(value: Any, context: Context) -> Outcome:
    """Fragments or train batches until Ray 1.13, training steps since."""
    since = Version(context.legacy_ray) if context.legacy_ray else None
    same = value in (None, 1) or (since is not None and since >= Version("2.0"))
    return Outcome(
        {"training.broadcast_interval": value},
        message=""
        if same
        else "it counted train batches until Ray 2.0; it counts training steps "
        "now, each of which may train on several batches, or on none",
        severity=None if same else Severity.WARNING,
        hint="" if same else "1 sends weights as soon as there are new ones",
    )


RULES = (
    Rule(
        FAMILY,
        "vtrace",
        Verdict.KEPT,
        target="training.vtrace",
        convert=_vtrace,
        value=v.FLAG,
        algorithms=BOTH,
    ),
    *kept(
        FAMILY,
        "training",
        {
            v.BOUND: "vtrace_clip_rho_threshold vtrace_clip_pg_rho_threshold",
            v.STARTED: "num_gpu_loader_threads",
        },
        algorithms=BOTH,
    ),
    Rule(
        FAMILY,
        "broadcast_interval",
        Verdict.KEPT,
        "how often env runners get new weights",
        target="training.broadcast_interval",
        convert=_broadcast_interval,
        value=v.COUNT,
        algorithms=BOTH,
    ),
    *kept(
        FAMILY,
        "training",
        {
            v.BOUND: "target_worker_clipping",
            v.LENGTH: "circular_buffer_num_batches circular_buffer_iterations_per_batch "
            "simple_queue_size",
            v.FLAG: "use_circular_buffer",
        },
        algorithms=APPO,
        old_target="",
    ),
    *kept(
        FAMILY,
        "training",
        {v.AMOUNT: "target_network_update_freq", v.SHARE: "tau"},
        algorithms=APPO,
    ),
    Rule(
        FAMILY,
        "target_update_frequency",
        Verdict.RENAMED,
        "renamed in Ray 2.35",
        target="training.target_network_update_freq",
        convert=_target_update_frequency,
        value=v.AMOUNT,
        algorithms=APPO,
    ),
    Rule(
        FAMILY,
        "num_sgd_iter",
        Verdict.RENAMED,
        "how often each train batch is used",
        target="training.num_epochs",
        convert=_num_sgd_iter,
        value=v.SOME,
        algorithms=BOTH,
    ),
    Rule(
        FAMILY,
        "minibatch_buffer_size",
        Verdict.CONVERTED,
        "train batches that are kept for a second pass; only APPO's circular buffer keeps any",
        target="training.circular_buffer_num_batches",
        old_target="training.minibatch_buffer_size",
        convert=_minibatch_buffer_size,
        value=v.LENGTH,
        algorithms=BOTH,
    ),
    *dropped(FAMILY, "_minibatch_size", "an inner key of Ray 2.5 – 2.35", algorithms=BOTH),
    Rule(
        FAMILY,
        "learner_queue_size",
        Verdict.KEPT,
        target="training.learner_queue_size",
        convert=_learner_queue_size,
        value=v.LENGTH,
        algorithms=BOTH,
    ),
    Rule(
        FAMILY,
        "num_aggregation_workers",
        Verdict.CONVERTED,
        "aggregators belong to learners since Ray 2.44",
        target="learners.num_aggregator_actors_per_learner",
        old_target="",
        convert=_aggregators,
        value=v.STARTED,
        algorithms=BOTH,
    ),
    Rule(
        FAMILY,
        "max_requests_in_flight_per_aggregator_worker",
        Verdict.RENAMED,
        "aggregators belong to learners since Ray 2.44",
        target="learners.max_requests_in_flight_per_aggregator_actor",
        value=v.LENGTH,
        old_target="",
        algorithms=BOTH,
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.MOVED,
            "a learner of this package has RMSProp; the new API stack's own have Adam",
            target=f"{OPTIMIZER}.{target}",
            old_target=f"training.{key}",
            convert=convert,
            algorithms=BOTH,
            value=value,
        )
        for key, target, convert, value in (
            ("opt_type", "name", _opt_type, Words(("adam", "rmsprop"))),
            ("decay", "alpha", _of_rmsprop, v.NUMBER),
            ("momentum", "momentum", _of_rmsprop, v.NUMBER),
            ("epsilon", "eps", _of_rmsprop, v.AMOUNT),
        )
    ),
    Rule(
        FAMILY,
        "replay_proportion",
        Verdict.DROPPED,
        "the new API stack mixes no replayed batches in",
        old_target="training.replay_proportion",
        convert=_replay_proportion,
        algorithms=BOTH,
        hint="APPO's circular buffer replays batches; api_stack='old' keeps the key",
        value=v.AMOUNT,
    ),
    Rule(
        FAMILY,
        "replay_buffer_num_slots",
        Verdict.DROPPED,
        "the new API stack mixes no replayed batches in",
        old_target="training.replay_buffer_num_slots",
        value=v.LENGTH,
        algorithms=BOTH,
    ),
    *lost(
        FAMILY,
        "replay_ratio",
        "it followed from `replay_proportion`",
        algorithms=BOTH,
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.DROPPED,
            why,
            old_target=f"training.{key}",
            algorithms=BOTH,
            value=value,
        )
        for key, value, why in (
            ("num_multi_gpu_tower_stacks", v.STARTED, "several GPUs are several learners now"),
            (
                "learner_queue_timeout",
                v.SECONDS,
                "the learner waits for its queue without a limit",
            ),
            ("timeout_s_sampler_manager", v.SECONDS, "the new API stack has no such manager"),
            ("timeout_s_aggregator_manager", v.SECONDS, "the new API stack has no such manager"),
            ("_separate_vf_optimizer", v.FLAG, "a module has one optimizer"),
            ("_lr_vf", v.RATE, "a module has one optimizer"),
        )
    ),
    *dropped(
        FAMILY,
        "num_data_loader_buffers",
        "several GPUs are several learners now",
        algorithms=BOTH,
    ),
    *dropped(
        FAMILY,
        "vtrace_drop_last_ts",
        "a trainer learns as it says; Ray itself learns from the last step, too, since 2.7",
        algorithms=BOTH,
    ),
    *lost(
        FAMILY,
        "after_train_step",
        "removed in Ray 2.35",
        hint="use the callback on_train_result",
        algorithms=BOTH,
    ),
    *dropped(
        FAMILY,
        "_fake_sampler _env_runners_only _skip_learners",
        "a switch for RLlib's own debugging",
        algorithms=BOTH,
    ),
    *dropped(FAMILY, "use_critic", "APPO always trains a critic", algorithms=APPO),
)
