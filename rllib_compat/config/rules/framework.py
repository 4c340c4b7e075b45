"""The framework: TensorFlow is gone, so all of this becomes torch."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from rllib_compat.config.context import Context
from rllib_compat.config.rule import UNREAD, Outcome, Rule, dropped, kept
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import Fields
from rllib_compat.config.values.kinds import Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "framework"
TENSORFLOW = ("tf", "tf2", "tfe", "tf1")
FRAMEWORK = Words((*TENSORFLOW, "torch", "jax"))

#: The first Ray with the key `framework`; before it, TensorFlow was all there was by default.
_FRAMEWORK = Version("0.8.6")

# What torch.compile and DistributedDataParallel take.
COMPILED = Words(("forward_train", "complete_update"))
BACKEND = Words(("inductor", "aot_eager", "eager", "cudagraphs", "onnxrt", "ipex", "tvm"))
MODE = Words(("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"))
DDP = Fields(
    dict.fromkeys(
        (
            *("broadcast_buffers", "find_unused_parameters", "gradient_as_bucket_view"),
            *("static_graph", "init_sync", "check_reduction"),
        ),
        v.FLAG,
    )
    | {"bucket_cap_mb": v.AMOUNT}
)


def was_tensorflow(context: Context) -> bool:
    """Whether a config, or the Ray that it was written for, says TensorFlow."""
    framework = context.get("framework", context.get("framework_str"))
    if framework is not None:
        return framework in TENSORFLOW
    torch = context.get("use_pytorch")
    if torch is not None:
        return not torch
    return context.legacy_ray is not None and Version(context.legacy_ray) < _FRAMEWORK


def was_torch(context: Context) -> bool:
    """Whether a config says torch."""
    told = context.get("framework", context.get("framework_str"))
    return told == "torch" or (told is None and bool(context.get("use_pytorch")))


def _framework(value: Any, _: Context) -> Outcome:
    if value in TENSORFLOW:
        return Outcome(
            {"framework.framework": "torch"},
            Verdict.CONVERTED,
            f"RLlib has no {value!r} any more; torch trains the same networks",
            Severity.WARNING,
        )
    return Outcome({"framework.framework": "torch"})


def _use_pytorch(value: Any, context: Context) -> Outcome:
    return _framework("torch" if value else "tf", context)


def _eager(value: Any, _: Context) -> Outcome:
    if not value:
        return Outcome(message="it was switched off")
    return Outcome(message="torch is always eager")


RULES = (
    *(
        Rule(
            FAMILY,
            key,
            Verdict.KEPT,
            target="framework.framework",
            convert=_framework,
            value=FRAMEWORK,
        )
        for key in ("framework", "framework_str")
    ),
    Rule(
        FAMILY,
        "use_pytorch",
        Verdict.CONVERTED,
        "`framework` since Ray 0.8.7",
        target="framework.framework",
        convert=_use_pytorch,
        value=v.FLAG,
    ),
    Rule(FAMILY, "eager", Verdict.DROPPED, "a switch of TensorFlow", convert=_eager, value=v.FLAG),
    *dropped(
        FAMILY,
        "no_eager_on_workers eager_tracing eager_max_retraces tf_session_args.* "
        "local_tf_session_args.* local_evaluator_tf_session_args",
        "a switch of TensorFlow",
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.DROPPED,
            "a switch of TensorFlow",
            section=True,
            value=UNREAD,
        )
        for key in ("tf_session_args", "local_tf_session_args")
    ),
    *kept(
        FAMILY,
        "framework",
        {
            v.FLAG: "torch_compile_learner torch_compile_worker torch_skip_nan_gradients",
            COMPILED: "torch_compile_learner_what_to_compile",
            BACKEND: "torch_compile_learner_dynamo_backend torch_compile_worker_dynamo_backend",
            MODE: "torch_compile_learner_dynamo_mode torch_compile_worker_dynamo_mode",
            DDP: "torch_ddp_kwargs",
        },
    ),
)
