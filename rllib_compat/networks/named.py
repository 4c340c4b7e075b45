"""A policy's arrays by canonical name: what trunks, wrappers and heads build on."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Any

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array, Graph
from rllib_compat.networks.mapping import Table, to_canonical
from rllib_compat.networks.network import Network, Reading, Target
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict


@frozen
class Named:
    """A policy's arrays by canonical name, and what the config says of them.

    Attributes:
        policy: Whose arrays they are.
        settings: What the config says of the policy's model.
        arrays: The arrays by canonical name.
        scheme: The naming scheme in which they were found; `list` and `vector` had no names.
        table: The scheme's names.
        unused: Arrays that nothing reads, by the names they had.
        aliases: Second names of arrays that the checkpoint holds twice.
        state: Numbers among the arrays that belong to the policy's state.
    """

    policy: PolicyState
    settings: ModelSettings
    arrays: Mapping[str, Array]
    scheme: str
    table: Table = ()
    unused: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    state: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def take(
        cls,
        policy: PolicyState,
        settings: ModelSettings,
        plain: Mapping[str, Array],
        scheme: str,
        table: Table,
        *,
        of: str,
        unused: Collection[str] = (),
        state: Mapping[str, float] | None = None,
        aliases: Collection[str] = (),
    ) -> Named:
        """Gives arrays their canonical names.

        Args:
            policy: Whose arrays they are.
            settings: What the config says.
            plain: The arrays by the scheme's names (see `names.plain`).
            scheme: The naming scheme.
            table: Its names.
            of: The network that they should be of, for the refusal.
            unused: The names that nothing reads.
            state: Numbers that were found among the arrays.
            aliases: Second names of arrays.

        Raises:
            NotYetError: Some arrays have no place in the table.
        """
        arrays, left = to_canonical(table, {k: v for k, v in plain.items() if k not in unused})
        if left:
            raise refusals.unknown_arrays(left, plain, of, where_of(policy))
        return cls(
            policy, settings, arrays, scheme, table, tuple(unused), tuple(aliases), state or {}
        )

    @property
    def where(self) -> str:
        """The place of the arrays, for reports."""
        return where_of(self.policy)

    @property
    def torch(self) -> bool:
        """Whether torch computed with them: it pads and flattens images in its own way."""
        return self.scheme == "torch"

    def __contains__(self, layer: str) -> bool:
        """Whether a layer has a kernel."""
        return f"{layer}.kernel" in self.arrays

    def layers(self, stack: str) -> list[str]:
        """The names of a stack's layers `<stack>.<i>` in order."""
        pattern = re.compile(rf"{re.escape(stack)}\.(\d+)\.kernel")
        numbers = [int(match[1]) for match in map(pattern.fullmatch, self.arrays) if match]
        return [f"{stack}.{i}" for i in sorted(numbers)]

    def gives(self, layer: str) -> int:
        """How many numbers a layer gives."""
        return int(self._kernel(layer).shape[-1])

    def takes(self, layer: str) -> int:
        """How many numbers (or channels) a layer takes."""
        return int(self._kernel(layer).shape[-2])

    def sizes(self, stack: str) -> tuple[int, ...]:
        """How many numbers each layer of a stack gives."""
        return tuple(self.gives(layer) for layer in self.layers(stack))

    def _kernel(self, layer: str) -> Array:
        if layer not in self:
            raise refusals.missing([f"{layer}.kernel"], self.where)
        return self.arrays[f"{layer}.kernel"]

    def require(self, *names: str) -> None:
        """Makes sure that arrays are there.

        Raises:
            CheckpointError: Some are missing.
        """
        if lacking := [name for name in names if name not in self.arrays]:
            raise refusals.missing(lacking, self.where)

    def having(self, arrays: Mapping[str, Array]) -> Named:
        """The same with some arrays more, or others in their place."""
        return replace(self, arrays={**self.arrays, **arrays})

    def model(self, key: str, default: Any) -> str | None:
        """An activation that the config's `model` names; None means none."""
        given = self.settings.model.get(key, default)
        return None if given is None else str(given)

    def note(
        self,
        message: str,
        hint: str = "",
        *,
        code: str = "network",
        severity: Severity = Severity.INFO,
        verdict: Verdict = Verdict.NOTE,
    ) -> Finding:
        """A row of the report on these arrays."""
        return Finding(code, severity, verdict, self.where, message, hint)

    def network(
        self,
        kind: str,
        summary: str,
        graph: Graph,
        target: Target,
        arrays: Mapping[str, Array] | None = None,
    ) -> Network:
        """The network that a head made of the arrays.

        Args:
            kind: What it is, in a word or two.
            summary: One line for tables.
            graph: What it computes.
            target: The module that takes it.
            arrays: The arrays with those of target networks; None: these.
        """
        return Network(
            kind=kind,
            summary=summary,
            scheme=self.scheme,
            arrays=self.arrays if arrays is None else arrays,
            graph=graph,
            target=target,
            names=self.table,
            unused=self.unused,
            aliases=self.aliases,
        )

    def reading(self, network: Network, *findings: Finding) -> Reading:
        """What was read from the policy."""
        return Reading(network, findings, self.state)


def where_of(policy: PolicyState) -> str:
    """The place of a policy's weights, for reports."""
    return f"policies.{policy.policy_id}.weights"
