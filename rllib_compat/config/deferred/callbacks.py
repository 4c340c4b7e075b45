"""Legacy callbacks and evaluation functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from rllib_compat.neutral.later import PUBLIC, Later, Writer
from rllib_compat.runtime.offline.files import Recording


@dataclass(frozen=True)
class AdaptedCallbacks(Later):
    """Legacy callbacks (a dict of functions, or a class of the 0.8 – 2.x interface).

    Attributes:
        callbacks: The callbacks, or None.
        recording: Where the steps are written, if anywhere.
    """

    callbacks: Any
    recording: Recording | None = None

    def build(self) -> Any:
        """The `RLlibCallback` subclass that calls them."""
        from rllib_compat.runtime.callbacks import adapt_callbacks

        return adapt_callbacks(self.callbacks, self.recording)

    def code(self, writer: Writer) -> ast.expr | None:
        """The call that adapts them."""
        function = writer.imported(PUBLIC, "adapt_callbacks")
        if self.recording is None:
            return writer.call(function, self.callbacks)
        cls = writer.imported(PUBLIC, "Recording")
        recording = writer.call(cls, **asdict(self.recording))
        return recording and writer.call(function, self.callbacks, recording)


@dataclass(frozen=True)
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
