"""Observation filters, and what networks see of the steps before: connectors today."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.later import PUBLIC, Later, Writer, build

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
        return _function(made)


@frozen
class PreviousStepsConnector(Later):
    """The connector that lets a network see the action and the reward before.

    Attributes:
        actions: How many previous actions.
        rewards: How many previous rewards.
        multi_agent: Whether observations come by agent.
        inner: What makes the connectors in front of it: a function, or one that is made later.
    """

    actions: int
    rewards: int
    multi_agent: bool = False
    inner: Any = None

    def build(self) -> Callable[..., Any]:
        """The function that Ray calls for each env runner's pipeline."""
        from rllib_compat.runtime import connectors

        seen = (self.actions, self.rewards, self.multi_agent)
        return partial(connectors.with_previous_steps, build(self.inner), *seen, one_hot=True)

    def code(self, writer: Writer) -> ast.expr | None:
        """The function as a lambda; None where only code says what stands in front of it."""
        cls = writer.imported(PUBLIC, "PreviousSteps")
        several = {"multi_agent": True} if self.multi_agent else {}
        told = {"actions": self.actions, "rewards": self.rewards, "one_hot": True, **several}
        made = writer.call(cls, **told)
        assert made is not None
        if self.inner is None:
            return _function(made)
        before = self.inner.code(writer) if isinstance(self.inner, Later) else None
        if not isinstance(before, ast.Lambda):
            return None
        return _function(ast.List([before.body, made], ast.Load()))


def _function(made: ast.expr | None) -> ast.Lambda:
    function = ast.parse(_SIGNATURE, mode="eval").body
    assert isinstance(function, ast.Lambda)
    assert made is not None
    function.body = made
    return function
