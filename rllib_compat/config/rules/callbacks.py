"""Callbacks: functions of the trainer's loop, in a dict or in a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.deferred import AdaptedCallbacks
from rllib_compat.config.rule import Outcome, Rule, words
from rllib_compat.config.values import common as v
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.runtime.events import DICT_EVENTS

FAMILY = "callbacks"
# RLlib's base classes do nothing.
BASES = ("DefaultCallbacks", "RLlibCallback")


def _callbacks(value: Any, context: Context) -> Outcome:
    if value is None or value == {} or value == []:
        return Outcome(verdict=Verdict.DROPPED, message="there were none")
    if getattr(value, "__name__", "") in BASES:
        return Outcome(verdict=Verdict.DROPPED, message="the base class, which does nothing")
    if isinstance(value, Mapping):
        value = _usable(value, context)
        if not value:
            return Outcome(verdict=Verdict.DROPPED, message="no function of it can be called")
    return Outcome({"callbacks.callbacks_class": AdaptedCallbacks(value)})


def _usable(functions: Mapping[str, Any], context: Context) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for event, function in functions.items():
        where = f".{event}"
        if event not in DICT_EVENTS:
            context.note(
                Verdict.UNKNOWN,
                where,
                "RLlib never called a function of this name",
                severity=Severity.WARNING,
                hint=f"it called {', '.join(DICT_EVENTS)}",
            )
        elif function is None:
            context.note(Verdict.DROPPED, where, "there was none")
        elif not callable(function):
            context.note(
                Verdict.DROPPED,
                where,
                f"{function!r:.60} can't be called",
                severity=Severity.WARNING,
                hint="pass the function itself",
            )
        else:
            kept[event] = function
            _say_kept(event, where, context)
    return kept


def _say_kept(event: str, where: str, context: Context) -> None:
    message = "called with the old `info` dict"
    if event == "on_postprocess_traj" and context.stack == "new":
        message += "; what it writes is learned from, only advantages it can't write"
    context.note(Verdict.WRAPPED, where, message)


def _function(value: Any, context: Context) -> Outcome:
    if value is None:
        return Outcome(verdict=Verdict.DROPPED, message="there was none")
    return Outcome({f"callbacks.{context.path.rpartition('.callbacks_')[2]}": value})


RULES = (
    Rule(
        FAMILY,
        "callbacks",
        Verdict.WRAPPED,
        "an adapter calls them with what they expect",
        target="callbacks.callbacks_class",
        convert=_callbacks,
        value=v.CALLBACKS,
    ),
    Rule(
        FAMILY,
        "callbacks_class",
        Verdict.WRAPPED,
        "an adapter calls it with what it expects",
        target="callbacks.callbacks_class",
        convert=_callbacks,
        value=v.CALLBACKS,
    ),
    *(
        Rule(
            FAMILY,
            f"callbacks.{event}",
            Verdict.WRAPPED,
            "called with the old `info` dict",
            target="callbacks.callbacks_class",
            value=v.CODE,
        )
        for event in DICT_EVENTS
    ),
    *(
        Rule(
            FAMILY,
            f"callbacks_{event}",
            Verdict.RENAMED,
            "a function for one event",
            target=f"callbacks.{event}",
            convert=_function,
            value=v.CODES,
        )
        for event in words(
            "on_algorithm_init on_env_runners_recreated on_checkpoint_loaded "
            "on_environment_created on_episode_created on_episode_start on_episode_step "
            "on_episode_end on_evaluate_start on_evaluate_end on_sample_end on_train_result "
            "on_offline_eval_runners_recreated on_evaluate_offline_start "
            "on_evaluate_offline_end"
        )
    ),
)
