"""Observation filters, which are connectors today."""

from __future__ import annotations

import ast
from collections.abc import Callable
from math import inf
from typing import Any

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.later import PUBLIC, Later, Writer

_SIGNATURE = "lambda env=None, spaces=None, device=None: 0"


@frozen
class MeanStdConnector(Later):
    """The connector that does what `observation_filter="MeanStdFilter"` did.

    Attributes:
        multi_agent: Whether observations come by agent; each policy then has statistics.
    """

    multi_agent: bool = False

    def build(self) -> Callable[..., Any]:
        """The function that Ray calls for each env runner's pipeline."""
        from rllib_compat.runtime import connectors

        if self.multi_agent:
            return connectors.multi_agent_mean_std_filter
        return connectors.mean_std_filter

    def code(self, writer: Writer) -> ast.expr | None:
        """The function as a lambda."""
        if self.multi_agent:
            cls = writer.imported(PUBLIC, "PolicyMeanStdFilter")
            made = writer.call(cls, multi_agent=True, clip_by_value=inf)
        else:
            cls = writer.imported("ray.rllib.connectors.env_to_module", "MeanStdFilter")
            made = writer.call(cls, clip_by_value=inf)
        function = ast.parse(_SIGNATURE, mode="eval").body
        assert isinstance(function, ast.Lambda)
        assert made is not None
        function.body = made
        return function
