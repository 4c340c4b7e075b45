"""Values of a translation that only the installed Ray can make.

A translation needs no Ray. Where a setting is an object of Ray (a connector, a `PolicySpec`, a
callbacks class), it holds one of these instead: `build()` makes the object, `code()` says how a
person would write it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rllib_compat import ray_versions
from rllib_compat.neutral import spaces
from rllib_compat.neutral.later import Later
from rllib_compat.runtime.offline.files import Recording
from rllib_compat.runtime.policy_mapping import MappingFn


@dataclass(frozen=True)
class Imported(Later):
    """A class or function of Ray, by its place."""

    module: str
    name: str

    def build(self) -> Any:
        """Imports it."""
        return getattr(importlib.import_module(self.module), self.name)

    def code(self, imports: set[str]) -> str:
        """Its name."""
        imports.add(f"from {self.module} import {self.name}")
        return self.name


@dataclass(frozen=True)
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

    def code(self, imports: set[str]) -> str:
        """The function as a lambda."""
        if self.multi_agent:
            imports.add("from rllib_compat.adapters import PolicyMeanStdFilter")
            made = "PolicyMeanStdFilter(multi_agent=True, clip_by_value=float('inf'))"
        else:
            imports.add("from ray.rllib.connectors.env_to_module import MeanStdFilter")
            made = "MeanStdFilter(clip_by_value=float('inf'))"
        return f"lambda env=None, spaces=None, device=None: {made}"


@dataclass(frozen=True)
class AdaptedEnv(Later):
    """A legacy environment behind the wrappers that its config asked for.

    Attributes:
        settings: The arguments of `rllib_compat.runtime.envs.EnvSettings`.
    """

    settings: Mapping[str, Any]

    def build(self) -> Any:
        """A registered name, or the function that makes the environment."""
        from rllib_compat.runtime.envs import EnvSettings, adapt_env

        return adapt_env(EnvSettings(**build(dict(self.settings))))

    def code(self, imports: set[str]) -> str | None:
        """The call that wraps it; a plain name where nothing has to be wrapped."""
        from rllib_compat.config.code import expression

        given = {k: v for k, v in self.settings.items() if v not in (None, False, {}) or k == "env"}
        if not set(given) - {"env", "env_config", "old_stack"} and isinstance(given["env"], str):
            from rllib_compat.runtime.envs import resolve_env_name

            return expression(resolve_env_name(given["env"])[0], imports)
        parts = {name: expression(value, imports) for name, value in given.items()}
        if None in parts.values():
            return None
        imports.add("from rllib_compat.adapters import EnvSettings, adapt_env")
        arguments = ", ".join(f"{name}={text}" for name, text in parts.items())
        return f"adapt_env(EnvSettings({arguments}))"


@dataclass(frozen=True)
class EnvSpace(Later):
    """A space of the environment, for offline algorithms, which don't look at one themselves.

    Attributes:
        which: "observation_space" or "action_space".
        env: The environment.
    """

    which: str
    env: AdaptedEnv

    def build(self) -> Any:
        """Makes the environment once, only to ask it."""
        from rllib_compat.runtime.envs import EnvSettings, make_env

        env = make_env(EnvSettings(**build(dict(self.env.settings))), {})
        space = getattr(env, self.which)
        env.close()
        return space

    def code(self, imports: set[str]) -> str | None:
        """The same as an expression."""
        from rllib_compat.config.code import expression

        settings = expression({**self.env.settings}, imports)
        if settings is None:
            return None
        imports.add("from rllib_compat.adapters import EnvSettings, make_env")
        return f"make_env(EnvSettings(**{settings}), {{}}).{self.which}"


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

    def code(self, imports: set[str]) -> str | None:
        """The call that adapts them."""
        from rllib_compat.config.code import expression

        inner = expression(self.callbacks, imports)
        if inner is None:
            return None
        imports.add("from rllib_compat.adapters import adapt_callbacks")
        if self.recording is None:
            return f"adapt_callbacks({inner})"
        imports.add("from rllib_compat.adapters import Recording")
        return f"adapt_callbacks({inner}, {self.recording!r})"


@dataclass(frozen=True)
class AdaptedEvaluation(Later):
    """A legacy evaluation function, of the trainer and its evaluation workers."""

    function: Callable[..., Any]

    def build(self) -> Any:
        """The function that Ray takes."""
        from rllib_compat.runtime.evaluation import EvaluationFunction

        return EvaluationFunction(self.function)

    def code(self, imports: set[str]) -> str | None:
        """The call that adapts it."""
        from rllib_compat.config.code import expression

        inner = expression(self.function, imports)
        if inner is None:
            return None
        imports.add("from rllib_compat.adapters import EvaluationFunction")
        return f"EvaluationFunction({inner})"


@dataclass(frozen=True)
class OldReplayBuffer(Later):
    """A replay buffer class of the old API stack, by its name."""

    name: str

    def build(self) -> type:
        """The class."""
        return ray_versions.old_replay_buffer(self.name)

    def code(self, imports: set[str]) -> str:
        """The call that makes it."""
        imports.add("from rllib_compat.adapters import old_replay_buffer")
        return f'old_replay_buffer("{self.name}")'


@dataclass(frozen=True)
class AdaptedMapping(Later):
    """A legacy policy mapping function of any signature."""

    legacy: Callable[..., Any]

    def build(self) -> MappingFn:
        """The function with today's signature."""
        return MappingFn(self.legacy)

    def code(self, imports: set[str]) -> str | None:
        """The call that wraps it."""
        from rllib_compat.config.code import expression

        inner = expression(self.legacy, imports)
        if inner is None:
            return None
        imports.add("from rllib_compat.adapters import MappingFn")
        return f"MappingFn({inner})"


@dataclass(frozen=True)
class SpaceLater(Later):
    """An observation or action space of gym, of gymnasium, or a record of one."""

    space: Any

    def build(self) -> Any:
        """The gymnasium space."""
        record = spaces.from_object(self.space)
        return self.space if record is None else spaces.to_gymnasium(record)

    def code(self, imports: set[str]) -> str | None:
        """The constructor call, for spaces whose `repr` is one."""
        record = spaces.from_object(self.space)
        if isinstance(record, spaces.Box) and record.low.size:
            low, high = record.low.min(), record.high.max()
            if (record.low == low).all() and (record.high == high).all():
                imports.add("import gymnasium")
                imports.add("import numpy as np")
                bounds = f"{_number(low)}, {_number(high)}"
                return f"gymnasium.spaces.Box({bounds}, {record.shape}, np.{record.dtype})"
        if isinstance(record, spaces.Discrete):
            imports.add("import gymnasium")
            return f"gymnasium.spaces.Discrete({record.n})"
        if isinstance(record, spaces.MultiDiscrete):
            imports.add("import gymnasium")
            return f"gymnasium.spaces.MultiDiscrete({list(record.nvec)})"
        return None


def _number(value: Any) -> str:
    return {"inf": "np.inf", "-inf": "-np.inf"}.get(str(value), str(value))


@dataclass(frozen=True)
class PolicyLater(Later):
    """One policy of a multi-agent config.

    Attributes:
        fields: The arguments of `PolicySpec` that are not its defaults.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> Any:
        """The `PolicySpec`."""
        from ray.rllib.policy.policy import PolicySpec

        return PolicySpec(**{name: build(value) for name, value in self.fields.items()})

    def code(self, imports: set[str]) -> str | None:
        """The constructor call."""
        from rllib_compat.config.code import expression

        parts = {name: expression(value, imports) for name, value in self.fields.items()}
        imports.add("from ray.rllib.policy.policy import PolicySpec")
        arguments = ", ".join(f"{k}={v}" for k, v in parts.items() if v is not None)
        return f"PolicySpec({arguments})"


@dataclass(frozen=True)
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

    def code(self, imports: set[str]) -> str:
        """The constructor calls."""
        from rllib_compat.config.code import expression

        imports.add("from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec")
        imports.add("from ray.rllib.core.rl_module.rl_module import RLModuleSpec")
        models = {p: expression(dict(m), imports) if m else None for p, m in self.models.items()}
        arguments = {p: f"model_config={m}" if m else "" for p, m in models.items()}
        specs = ", ".join(f"{p!r}: RLModuleSpec({a})" for p, a in arguments.items())
        return f"MultiRLModuleSpec(rl_module_specs={{{specs}}})"


def build(value: Any) -> Any:
    """Makes the objects inside a value."""
    if isinstance(value, Later):
        return value.build()
    if isinstance(value, dict):
        return {key: build(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(build(inner) for inner in value)
    return value
