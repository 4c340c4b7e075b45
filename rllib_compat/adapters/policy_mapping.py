"""Which policy an agent gets, where the legacy mapping function was code that is not executed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rllib_compat.errors import LegacyEnvError


@dataclass(frozen=True)
class PolicyOfSameName:
    """Maps an agent to the policy of its own name.

    Attributes:
        policies: The ids of the policies.
    """

    policies: tuple[str, ...]

    def __call__(self, agent_id: Any, episode: Any = None, **kwargs: Any) -> str:
        """The policy's id.

        Raises:
            LegacyEnvError: There is no policy of this name.
        """
        del episode, kwargs
        if str(agent_id) in self.policies:
            return str(agent_id)
        raise LegacyEnvError(
            f"No policy is named like the agent {agent_id!r}; there are "
            f"{', '.join(self.policies)}.",
            where="policy_mapping_fn",
            fix="The checkpoint's mapping function was code and was not executed. Give it again: "
            "config.multi_agent(policy_mapping_fn=…).",
        )
