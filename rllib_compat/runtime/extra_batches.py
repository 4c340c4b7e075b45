"""Steps that a callback adds for training: `new_batch_builder()` and `add_extra_batch()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.errors import CompatError, GoneError
from rllib_compat.runtime.offline.episodes import STEPS, episodes_of_batch

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AnyBatch

_WHERE = "episode.add_extra_batch()"


class BatchBuilder:
    """Collects steps of agents, and builds a batch for each policy (Ray 0.5 – 1.13).

    Args:
        policies: The policies by id; each postprocesses the steps of its agents.

    Attributes:
        count: The number of environment steps, which the caller sets.
    """

    def __init__(self, policies: Mapping[str, Any]) -> None:
        self._policies = policies
        self._rows: dict[tuple[Any, str], list[dict[str, Any]]] = {}
        self._made: dict[str, list[Any]] = {}
        self.count = 0

    def total(self) -> int:
        """The number of agent steps that are not in a batch yet."""
        return sum(map(len, self._rows.values()))

    def has_pending_agent_data(self) -> bool:
        """Whether `total()` is not 0."""
        return bool(self._rows)

    def add_values(self, agent_id: object, policy_id: str, **values: object) -> None:
        """Adds a step of an agent, with its columns as values: `obs`, `actions`, `rewards`, …."""
        self._rows.setdefault((agent_id, policy_id), []).append(values)

    def postprocess_batch_so_far(self, episode: object = None) -> None:
        """Lets the policies postprocess the steps that were added since the last call."""
        from ray.rllib.policy.sample_batch import SampleBatch

        rows, self._rows = self._rows, {}
        batches = {}
        for (agent, policy), steps in rows.items():
            columns = {name: np.array([step[name] for step in steps]) for name in steps[0]}
            if "dones" in columns:
                columns["terminateds"] = columns.pop("dones")
            batches[agent] = policy, SampleBatch(columns)
        for agent, (policy, batch) in batches.items():
            others = {a: (self._policies[p], b) for a, (p, b) in batches.items() if a != agent}
            made = self._policies[policy].postprocess_trajectory(batch, others, episode)
            self._made.setdefault(policy, []).append(made)

    def build_and_reset(self, episode: object = None) -> Any:
        """Builds a `MultiAgentBatch` of all steps that were added, and starts a new one."""
        from ray.rllib.policy.sample_batch import MultiAgentBatch, concat_samples

        self.postprocess_batch_so_far(episode)
        made, self._made = self._made, {}
        joined = {policy: concat_samples(batches) for policy, batches in made.items()}
        steps, self.count = self.count or max(map(len, joined.values()), default=0), 0
        return MultiAgentBatch(joined, steps)


def extra_episodes(batch: AnyBatch, chunk: Any) -> list[Any]:
    """Converts an extra batch to episodes like those that an env runner samples.

    Args:
        batch: Observations, actions, rewards, `dones`, and the policy's outputs for each step.
        chunk: An episode of the env runner.

    Raises:
        GoneError: The trainer has several policies.
        CompatError: The batch lacks an output of the policy.
    """
    if hasattr(chunk, "agent_episodes"):
        raise GoneError(
            "With several policies, a batch cannot be added to the samples.",
            where=_WHERE,
            fix="add episodes in a connector instead",
        )
    (steps,) = batch.as_multi_agent().policy_batches.values()
    computed = {name for name, column in chunk.extra_model_outputs.items() if len(column)}
    columns = {name: column for name, column in steps.items() if name in computed | STEPS}
    for name in computed & {"weights_seq_no"}:
        columns[name] = np.full(steps.count, chunk.get_extra_model_outputs(name, -1))
    if lacking := sorted(computed - columns.keys()):
        raise CompatError(
            f"The batch lacks {', '.join(lacking)}.",
            where=_WHERE,
            fix="add the columns that policy.compute_actions() returns as its third value",
        )
    return episodes_of_batch(columns, _WHERE)
