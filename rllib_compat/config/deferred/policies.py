"""The policies of a multi-agent config, their models, and which agent gets which."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from rllib_compat import ray_versions
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.later import PUBLIC, Later, Writer, build
from rllib_compat.runtime.policy_mapping import MappingFn


@frozen
class AdaptedMapping(Later):
    """A legacy policy mapping function of any signature."""

    legacy: Callable[..., Any]

    def build(self) -> MappingFn:
        """The function with today's signature."""
        return MappingFn(self.legacy)

    def code(self, writer: Writer) -> ast.expr | None:
        """The call that wraps it."""
        cls = writer.imported(PUBLIC, "MappingFn")
        return writer.call(cls, self.legacy)


@frozen
class PolicyLater(Later):
    """One policy of a multi-agent config.

    Attributes:
        fields: The arguments of `PolicySpec` that are not its defaults.
        algorithm: Whose settings it reads, if not those of the config's algorithm.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    algorithm: str | None = None

    def build(self) -> Any:
        """The `PolicySpec`."""
        from ray.rllib.policy.policy import PolicySpec

        fields: dict[str, Any] = {name: build(value) for name, value in self.fields.items()}
        if self.algorithm is not None:
            own = ray_versions.own_settings(self.algorithm)
            fields["config"] = {**own, **(fields.get("config") or {})}
            fields["config"].pop("replay_buffer_config", None)  # Ray can't set it for others
        if isinstance(fields.get("policy_class"), type):
            fields["policy_class"] = ray_versions.as_written(fields["policy_class"])
        return PolicySpec(**fields)

    def code(self, writer: Writer) -> ast.expr | None:
        """The constructor call."""
        cls = writer.imported("ray.rllib.policy.policy", "PolicySpec")
        written = {}
        if self.algorithm is not None:
            writer.lacks("settings of a policy", self.algorithm)
        for name, value in self.fields.items():
            source = writer.expression(value)
            if source is None:
                writer.lacks(f"{name} of a policy", value)
            else:
                written[name] = source
        return writer.call(cls, **written)


@frozen
class ModelPerPolicy(Later):
    """The model configs of policies that asked for one of their own.

    Attributes:
        models: Policy → model config; policies with nothing of their own have an empty one.
    """

    models: Mapping[str, Mapping[str, Any]]

    def build(self) -> Any:
        """The `MultiRLModuleSpec`."""
        from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
        from ray.rllib.core.rl_module.rl_module import RLModuleSpec

        return MultiRLModuleSpec(
            rl_module_specs={
                policy: RLModuleSpec(model_config=build(dict(model))) if model else RLModuleSpec()
                for policy, model in self.models.items()
            }
        )

    def code(self, writer: Writer) -> ast.expr | None:
        """The constructor calls."""
        home = "ray.rllib.core.rl_module"
        one = writer.imported(f"{home}.rl_module", "RLModuleSpec")
        specs = {}
        for policy, model in self.models.items():
            source = writer.expression(dict(model))
            if source is None:
                writer.lacks(f"the model of policy {policy!r}", model)
            told = {"model_config": source} if model and source is not None else {}
            specs[policy] = writer.call(one, **told)
        several = writer.imported(f"{home}.multi_rl_module", "MultiRLModuleSpec")
        return writer.call(several, rl_module_specs=specs)
