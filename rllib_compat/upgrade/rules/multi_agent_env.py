"""`MultiAgentEnv` as it is today: five dicts, and agents that are declared."""

from __future__ import annotations

import libcst as cst

from rllib_compat.upgrade.rule import text_of
from rllib_compat.upgrade.rules._env_classes import EnvClasses

_DECLARED = "possible_agents"


class MultiAgentEnv(EnvClasses):
    """Rewrites `reset` and `step` of environments with many agents."""

    id = "multi-agent-env"
    bases = (
        "ray.rllib.MultiAgentEnv",
        "ray.rllib.env.MultiAgentEnv",
        "ray.rllib.env.multi_agent_env.MultiAgentEnv",
    )

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """Tells what an environment has to declare."""
        super().visit_ClassDef(node)
        if self._classes[-1] and _DECLARED not in text_of(node):
            self.todo(
                node,
                "set self.agents, self.possible_agents, self.observation_spaces and "
                "self.action_spaces in __init__",
            )

    def split(self, value: cst.Tuple) -> cst.Tuple:
        """Returns five dicts for four; old environments have no truncations."""
        return self.inserted(value, cst.parse_expression('{"__all__": False}'))
