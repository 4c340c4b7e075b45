"""A policy's arrays by canonical name: what trunks, wrappers and heads build on.

Named weights say themselves what network they are; the config adds what the weights do not show
(the activation, strides). A contradiction is an error: then the config belongs to another
checkpoint, and what it adds would be a guess. A few keys were ignored by some Rays: there the
weights are followed, and the report says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Array, Graph
from rllib_compat.networks.mapping import Table, to_canonical
from rllib_compat.networks.network import Network, Reading, Target
from rllib_compat.networks.observations import preprocessed_image
from rllib_compat.networks.settings import ModelSettings, distribution_inputs, model_setting
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: MARWIL's running mean of squared advantages, a scalar among its weights (Ray 0.6 – 2.x).
MOVING_AVERAGE = "moving_average_of_advantage_norm"

#: Scalars that policies kept among their variables, and no network has.
SCALARS = ("kl_coeff", "entropy_coeff", "lr")

#: Constants that an RLModule registers as buffers; they hold no training.
BUFFERS = tuple(
    f"{part}.log_std_clip_param_const"
    for part in ("pi", "vf", "_old_pi", "_pi_head", "af", "_target_af", "_target_vf")
)

#: What torch policies that explored by curiosity kept in their model: the networks that predicted
#: observations, for rewards of their own. Nothing that acts reads them.
_CURIOSITY = "_curiosity_"


def plain_name(policy: PolicyState, name: str) -> str:
    """A variable's name without TensorFlow's scope and output number.

    The scope is the policy's id, with the number of a rollout worker in some Rays
    (`default_policy_wk0/`), or `default/`.
    """
    scope = rf"(default|{re.escape(policy.old_id)}(_wk\d+)?)/"
    return re.sub(rf"^{scope}", "", name).removesuffix(":0")


def plain_names(policy: PolicyState) -> tuple[dict[str, Array], dict[str, float]]:
    """The named arrays of a policy without TensorFlow's scope and output number.

    Returns:
        `fc_1/kernel` for `default_policy/fc_1/kernel:0`, and the scalars that are no weights.
    """
    assert isinstance(policy.weights, dict)
    plain = {plain_name(policy, k): np.asarray(v) for k, v in policy.weights.items()}
    found = [name for name in SCALARS if name in plain and plain[name].ndim == 0]
    scalars = {name: float(plain.pop(name)) for name in found}
    for name in [name for name in plain if name.endswith(MOVING_AVERAGE)]:
        scalars[MOVING_AVERAGE] = float(plain.pop(name).reshape(()))
    return {k: v for k, v in plain.items() if k not in BUFFERS}, scalars


def best_scheme(schemes: Mapping[str, Table], plain: Mapping[str, Array]) -> str:
    """The scheme whose table leaves the fewest names over; the first of them."""

    def left(scheme: str) -> tuple[bool, int]:
        arrays, left = to_canonical(schemes[scheme], plain)
        return not arrays, len(left)

    return min(schemes, key=left)


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
            plain: The arrays by the scheme's names (see `plain_names`).
            scheme: The naming scheme.
            table: Its names.
            of: The network that they should be of, for the refusal.
            unused: The names that nothing reads.
            state: Numbers that were found among the arrays.
            aliases: Second names of arrays.

        Raises:
            NotYetError: Some arrays have no place in the table.
        """
        unused = [*unused, *(name for name in plain if name.startswith(_CURIOSITY))]
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

    def require_outputs(self, have: int) -> None:
        """Makes sure that a policy gives what its action distribution takes.

        Raises:
            CheckpointError: It gives more or fewer numbers.
        """
        space = self.policy.action_space
        wanted = None if space is None else distribution_inputs(space)
        if space is not None and wanted is not None and wanted != have:
            raise refusals.other_space("action", space, have, wanted, self.where)

    def require_inputs(self, have: Sequence[int]) -> None:
        """Makes sure that a network takes what the preprocessor makes of an observation.

        Raises:
            CheckpointError: It takes more or fewer numbers.
        """
        space = self.policy.observation_space
        if space is None:
            return
        image = preprocessed_image(space, self.settings)
        wanted = space.flat_size() if image is None else math.prod(image)
        if wanted != math.prod(have):
            raise refusals.other_space("observation", space, math.prod(have), wanted, self.where)

    def require_hiddens(
        self, have: Sequence[int], said: Sequence[int] | None, of: str = ""
    ) -> None:
        """Makes sure that hidden layers have the sizes that the config says, if it says any.

        Raises:
            CheckpointError: They have others.
        """
        if said is not None and list(said) != list(have):
            raise refusals.other_hiddens(have, said, self.where, of)

    def require_told(self, found: dict[str, Any]) -> None:
        """Makes sure that keys of `model` say what the arrays show (`found`).

        Raises:
            CheckpointError: The config says something else.
        """
        for key, have in found.items():
            said = self.settings.model.get(key)
            if said is not None and said != have:
                raise refusals.other_config(key, have, said, self.where)

    def ignored(self, **found: bool) -> list[Finding]:
        """What the report says of keys that some Rays ignored."""
        settings = self.settings
        said = {"vf_share_layers": settings.shares_layers, "free_log_std": settings.free_log_std}
        return [
            self.note(
                f"the config says {key}={said[key]}, the weights were made with {have} (some Rays "
                "ignored the key); the weights are followed"
            )
            for key, have in found.items()
            if said[key] != have
        ]

    def having(self, arrays: Mapping[str, Array]) -> Named:
        """The same with some arrays more, or others in their place."""
        return replace(self, arrays={**self.arrays, **arrays})

    def activation(self, *keys: str) -> str | None:
        """The activation that the first of some keys of `model` names; None means none.

        Where the config has none of them, it is the default of the last.
        """
        model = self.settings.model
        given = model_setting(model, next((key for key in keys if key in model), keys[-1]))
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
        """The network that a head made of these arrays, or of `arrays` with target networks'."""
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
