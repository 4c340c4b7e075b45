"""Steps of a callback's own that a trainer learns from: `episode.new_batch_builder()` and on."""

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
    """Collects steps agent by agent, and makes a batch of each policy's (Ray 0.5 – 1.13).

    Args:
        policies: The policies by id; each postprocesses the steps of its agents.

    Attributes:
        count: How many steps of the environment they are; whoever adds steps counts them.
    """

    def __init__(self, policies: Mapping[str, Any]) -> None:
        self._policies = policies
        self._rows: dict[tuple[Any, str], list[dict[str, Any]]] = {}
        self._made: dict[str, list[Any]] = {}
        self.count = 0

    def total(self) -> int:
        """How many steps of agents are not in a batch yet."""
        return sum(map(len, self._rows.values()))

    def has_pending_agent_data(self) -> bool:
        """Whether there are any."""
        return bool(self._rows)

    def add_values(self, agent_id: object, policy_id: str, **values: object) -> None:
        """Adds a step of an agent.

        Args:
            agent_id: The agent.
            policy_id: Its policy.
            **values: The step: `obs`, `actions`, `rewards`, `dones` and what else there is.
        """
        self._rows.setdefault((agent_id, policy_id), []).append(values)

    def postprocess_batch_so_far(self, episode: Any = None) -> None:
        """Lets the policies postprocess what was added since the last time."""
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

    def build_and_reset(self, episode: Any = None) -> Any:
        """The batches by policy, a `MultiAgentBatch`, of all that was added.

        Args:
            episode: The episode that the policies are told.
        """
        from ray.rllib.policy.sample_batch import MultiAgentBatch, concat_samples

        self.postprocess_batch_so_far(episode)
        made, self._made = self._made, {}
        joined = {policy: concat_samples(batches) for policy, batches in made.items()}
        steps, self.count = self.count or max(map(len, joined.values()), default=0), 0
        return MultiAgentBatch(joined, steps)


def extra_episodes(batch: AnyBatch, chunk: Any) -> list[Any]:
    """The episodes of an extra batch, like those that a runner has sampled.

    Args:
        batch: Observations, actions, rewards, `dones`, and what the policy computes of each step.
        chunk: An episode of the runner.

    Raises:
        GoneError: There are several policies.
        CompatError: The batch lacks what the policy computes.
    """
    if hasattr(chunk, "agent_episodes"):
        raise GoneError(
            "Of several policies, samples are episodes of the environment alone.",
            where=_WHERE,
            fix="return more episodes from a connector instead",
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
            fix="add what policy.compute_actions() gives beside the actions",
        )
    return episodes_of_batch(columns, _WHERE)
