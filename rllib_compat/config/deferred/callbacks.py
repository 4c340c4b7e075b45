"""Legacy callbacks and evaluation functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.later import PUBLIC, Later, Writer
from rllib_compat.runtime.offline.files import Recording


@frozen
class AdaptedCallbacks(Later):
    """Legacy callbacks (a dict of functions, or a class of the 0.8 – 2.x interface).

    Attributes:
        callbacks: The callbacks, or None.
        recording: Where the steps are written, if anywhere.
        task_function: Says after each iteration what task every environment gets, if any.
    """

    callbacks: Any
    recording: Recording | None = None
    task_function: Callable[..., Any] | None = None

    def build(self) -> Any:
        """The `RLlibCallback` subclass that calls them."""
        from rllib_compat.runtime.callbacks import adapt_callbacks

        return adapt_callbacks(self.callbacks, self.recording, self.task_function)

    def code(self, writer: Writer) -> ast.expr | None:
        """The call that adapts them."""
        function = writer.imported(PUBLIC, "adapt_callbacks")
        given: dict[str, Any] = {}
        if self.recording is not None:
            cls = writer.imported(PUBLIC, "Recording")
            if (recording := writer.call(cls, **asdict(self.recording))) is None:
                return None
            given["recording"] = recording
        if self.task_function is not None:
            given["task_function"] = self.task_function
        return writer.call(function, self.callbacks, **given)


def adapted(callbacks: Any) -> AdaptedCallbacks:
    """Callbacks of a config as what may be given more to do."""
    return callbacks if isinstance(callbacks, AdaptedCallbacks) else AdaptedCallbacks(callbacks)


@frozen
class AdaptedEvaluation(Later):
    """A legacy evaluation function, of the trainer and its evaluation workers."""

    function: Callable[..., Any]

    def build(self) -> Any:
        """The function that Ray takes."""
        from rllib_compat.runtime.evaluation import EvaluationFunction

        return EvaluationFunction(self.function)

    def code(self, writer: Writer) -> ast.expr | None:
        """The call that adapts it."""
        cls = writer.imported(PUBLIC, "EvaluationFunction")
        return writer.call(cls, self.function)
