"""Values of a translation that only the installed Ray can make.

A translation needs no Ray. Where a setting is an object of Ray (a connector, a `PolicySpec`, a
callbacks class), it holds one of these instead: `build()` makes the object, `code()` says how a
person would write it.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, field
from functools import partial
from math import inf
from typing import Any

import numpy as np

from rllib_compat.neutral import spaces
from rllib_compat.neutral.deferred import PUBLIC, Deferred, Writer, build
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import configs, old_policies
from rllib_compat.runtime.atari import may_be_atari
from rllib_compat.runtime.env_settings import SWITCHES, EnvSettings
from rllib_compat.runtime.offline.files import Recording

#: Bounds of more numbers than this are not written one by one.
_MOST_BOUNDS = 100


@frozen
class AdaptedCallbacks(Deferred):
    """Legacy callbacks (a dict of functions, or a class of the 0.8 – 2.x interface).

    Attributes:
        callbacks: The callbacks, or None.
        recording: Where the steps are written, if anywhere.
        task_function: Says after each iteration what task every environment gets, if any.
    """

    callbacks: Any
    recording: Recording | None = None
    task_function: Callable[..., Any] | None = None

    def build(self) -> Any:
        from rllib_compat.runtime.callbacks import adapt_callbacks

        return adapt_callbacks(self.callbacks, self.recording, self.task_function)

    def code(self, writer: Writer) -> ast.expr | None:
        function = writer.imported(PUBLIC, "adapt_callbacks")
        given: dict[str, Any] = {}
        if self.recording is not None:
            cls = writer.imported(PUBLIC, "Recording")
            if (recording := writer.call(cls, **asdict(self.recording))) is None:
                return None
            given["recording"] = recording
        if self.task_function is not None:
            given["task_function"] = self.task_function
        return writer.call(function, self.callbacks, **given)


def adapted(callbacks: object) -> AdaptedCallbacks:
    """Callbacks of a config as what may be given more to do."""
    return callbacks if isinstance(callbacks, AdaptedCallbacks) else AdaptedCallbacks(callbacks)


@frozen
class MeanStdConnector(Deferred):
    """The connector that does what `observation_filter="MeanStdFilter"` did.

    Attributes:
        multi_agent: Whether observations come by agent; each policy then has statistics.
    """

    multi_agent: bool = False

    def build(self) -> Callable[..., Any]:
        from rllib_compat.runtime import connectors

        if self.multi_agent:
            return connectors.multi_agent_mean_std_filter
        return connectors.mean_std_filter

    def code(self, writer: Writer) -> ast.expr | None:
        if self.multi_agent:
            cls = writer.imported(PUBLIC, "PolicyMeanStdFilter")
            made = writer.call(cls, multi_agent=True, clip_by_value=inf)
        else:
            made = writer.call(writer.imported(PUBLIC, "MeanStdFilter"), clip_by_value=inf)
        return _connector_function(made)


@frozen
class PreviousStepsConnector(Deferred):
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
        from rllib_compat.runtime import connectors

        seen = (self.actions, self.rewards, self.multi_agent)
        return partial(connectors.with_previous_steps, build(self.inner), *seen, one_hot=True)

    def code(self, writer: Writer) -> ast.expr | None:
        """The function as a lambda; None if only code can give its first arguments."""
        cls = writer.imported(PUBLIC, "PreviousSteps")
        several = {"multi_agent": True} if self.multi_agent else {}
        made = writer.call(cls, actions=self.actions, rewards=self.rewards, one_hot=True, **several)
        assert made is not None
        if self.inner is None:
            return _connector_function(made)
        before = self.inner.code(writer) if isinstance(self.inner, Deferred) else None
        if not isinstance(before, ast.Lambda):
            return None
        return _connector_function(ast.List([before.body, made], ast.Load()))


def _connector_function(made: ast.expr | None) -> ast.Lambda:
    """The lambda that Ray calls for a connector, or a list of them."""
    function = ast.parse("lambda env=None, spaces=None, device=None: 0", mode="eval").body
    assert isinstance(function, ast.Lambda)
    assert made is not None
    function.body = made
    return function


#: Settings that matter for environments other than gymnasium's, and for Atari games.
_OF_OLD_RAYS = ("legacy_ray", *SWITCHES)


@frozen
class AdaptedEnv(Deferred):
    """A legacy environment behind the wrappers that its config asked for.

    Attributes:
        settings: The arguments of `rllib_compat.runtime.envs.EnvSettings`.
    """

    settings: Mapping[str, Any]

    def build(self) -> Any:
        """A registered name, or the function that makes the environment."""
        from rllib_compat.runtime.envs import adapt_env

        return adapt_env(EnvSettings(**build(dict(self.settings))))

    def code(self, writer: Writer) -> ast.expr | None:
        """The call that wraps it; of what gymnasium has itself, and is no game, the name."""
        given = {k: v for k, v in self.settings.items() if k == "env" or not self._means_nothing(k)}
        plain = not set(given) - {"env", "env_config", "old_stack", *_OF_OLD_RAYS}
        # The name of a game alone would leave out the wrappers that it gets here.
        if plain and isinstance(given["env"], str) and not may_be_atari(given["env"]):
            # Without gymnasium its names are unknown; the call below is right for any name.
            with suppress(ModuleNotFoundError):
                import gymnasium

                from rllib_compat.runtime.envs import resolve_env_name

                name, _ = resolve_env_name(given["env"])
                if name in gymnasium.registry:
                    return writer.expression(name)
        settings = writer.call(writer.imported(PUBLIC, "EnvSettings"), **given)
        return settings and writer.call(writer.imported(PUBLIC, "adapt_env"), settings)

    def _means_nothing(self, name: str) -> bool:
        """Whether a setting is what `EnvSettings` has by itself, or is for Atari games only."""
        value, env = self.settings[name], self.settings.get("env")
        if name == "preprocessor_pref" or (name == "clip_rewards" and value is False):
            return not may_be_atari(env) or value == getattr(EnvSettings, name)
        return value in (None, {}) or value == getattr(EnvSettings, name, None)


@frozen
class EnvSpace(Deferred):
    """A space of the environment, for offline algorithms, which don't look at one themselves.

    Attributes:
        which: "observation_space" or "action_space".
        env: The environment.
        env_config: What it gets as its context.
    """

    which: str
    env: AdaptedEnv
    env_config: Mapping[str, Any]

    def build(self) -> Any:
        """Makes the environment once, only to ask it."""
        from ray.rllib.env.env_context import EnvContext

        from rllib_compat.runtime.envs import make_env

        context = EnvContext(build(dict(self.env_config)), 0)
        env = make_env(EnvSettings(**build(dict(self.env.settings))), context)
        space = getattr(env, self.which)
        env.close()
        return space

    def code(self, writer: Writer) -> ast.expr | None:
        settings = writer.call(writer.imported(PUBLIC, "EnvSettings"), **self.env.settings)
        env = settings and writer.call(
            writer.imported(PUBLIC, "make_env"), settings, self.env_config
        )
        return env and ast.Attribute(env, self.which, ast.Load())


@frozen
class DeferredPolicy(Deferred):
    """One policy of a multi-agent config.

    Attributes:
        fields: The arguments of `PolicySpec` that are not its defaults.
        algorithm: Whose settings it reads, if not those of the config's algorithm.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    algorithm: str | None = None

    def build(self) -> Any:
        from ray.rllib.policy.policy import PolicySpec

        fields: dict[str, Any] = {name: build(value) for name, value in self.fields.items()}
        if self.algorithm is not None:
            own = configs.own_settings(self.algorithm)
            fields["config"] = {**own, **(fields.get("config") or {})}
            buffer = fields["config"].pop("replay_buffer_config", None)  # Ray sets it for no others
            if buffer is not None and isinstance(fields.get("policy_class"), type):
                fields["policy_class"] = old_policies.with_settings(
                    fields["policy_class"], {"replay_buffer_config": buffer}
                )
        if isinstance(fields.get("policy_class"), type):
            fields["policy_class"] = old_policies.as_written(fields["policy_class"])
        return PolicySpec(**fields)

    def code(self, writer: Writer) -> ast.expr | None:
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
class ModelPerPolicy(Deferred):
    """The model configs of policies that asked for one of their own.

    Attributes:
        models: Policy → model config; policies with nothing of their own have an empty one.
    """

    models: Mapping[str, Mapping[str, Any]]

    def build(self) -> Any:
        from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
        from ray.rllib.core.rl_module.rl_module import RLModuleSpec

        return MultiRLModuleSpec(
            rl_module_specs={
                policy: RLModuleSpec(model_config=build(dict(model))) if model else RLModuleSpec()
                for policy, model in self.models.items()
            }
        )

    def code(self, writer: Writer) -> ast.expr | None:
        home = "ray.rllib.core.rl_module"
        one = writer.imported(f"{home}.rl_module", "RLModuleSpec")
        specs = {}
        for policy, model in self.models.items():
            source = writer.expression(dict(model))
            if source is None:
                writer.lacks(f"the model of policy {policy!r}", model)
            given = {"model_config": source} if model and source is not None else {}
            specs[policy] = writer.call(one, **given)
        several = writer.imported(f"{home}.multi_rl_module", "MultiRLModuleSpec")
        return writer.call(several, rl_module_specs=specs)


@frozen
class ImportedName(Deferred):
    """A class or function of Ray, by its place."""

    module: str
    name: str

    def build(self) -> Any:
        return getattr(importlib.import_module(self.module), self.name)

    def code(self, writer: Writer) -> ast.expr:
        return writer.imported(self.module, self.name)


@frozen
class DeferredSpace(Deferred):
    """An observation or action space of gym, of gymnasium, or a record of one."""

    space: Any

    def build(self) -> Any:
        record = spaces.from_object(self.space)
        return self.space if record is None else spaces.to_gymnasium(record)

    def code(self, writer: Writer) -> ast.expr | None:
        """The constructor call; None for kinds of spaces that have no record."""
        record = spaces.from_object(self.space)
        return None if record is None else _space_code(record, writer)


def _space_code(space: spaces.Space, writer: Writer) -> ast.expr | None:
    gymnasium = writer.module("gymnasium")
    home = ast.Attribute(gymnasium, "spaces", ast.Load())

    def make(kind: str, *args: object, **kwargs: object) -> ast.expr | None:
        return writer.call(ast.Attribute(home, kind, ast.Load()), *args, **kwargs)

    if isinstance(space, spaces.Box):
        low, high = (_bound(bound, writer) for bound in (space.low, space.high))
        dtype = ast.Attribute(writer.module("numpy", "np"), space.dtype, ast.Load())
        if low is None or high is None:
            return None
        return make("Box", low, high, space.shape, dtype)
    if isinstance(space, spaces.Discrete):
        return make("Discrete", space.n, **({"start": space.start} if space.start else {}))
    if isinstance(space, spaces.MultiDiscrete):
        return make("MultiDiscrete", list(space.nvec))
    if isinstance(space, spaces.MultiBinary):
        shape = list(space.shape)
        return make("MultiBinary", shape[0] if len(shape) == 1 else shape)
    if isinstance(space, spaces.TupleSpace):
        parts = [_space_code(part, writer) for part in space.spaces]
        return None if None in parts else make("Tuple", parts)
    if isinstance(space, spaces.DictSpace):
        named = {name: _space_code(part, writer) for name, part in space.spaces.items()}
        return None if None in named.values() else make("Dict", named)
    if isinstance(space, spaces.Repeated):  # the environment's wrapper makes vectors of lists
        return _space_code(spaces.box(-np.inf, np.inf, (space.flat_size(),)), writer)
    return None


def _bound(bound: Any, writer: Writer) -> Any:
    """A bound of a `Box`: one number where all are equal, else an array."""
    np_module = writer.module("numpy", "np")
    if not bound.size:
        return 0
    numbers = spaces.distinct_entries(bound)
    if (numbers == numbers.flat[0]).all():
        number = numbers.flat[0].item()
        if abs(number) != np.inf:
            return number
        infinite = ast.Attribute(np_module, "inf", ast.Load())
        return infinite if number > 0 else ast.UnaryOp(ast.USub(), infinite)
    if bound.size > _MOST_BOUNDS:
        return None
    dtype = ast.Attribute(np_module, str(bound.dtype), ast.Load())
    return writer.call(ast.Attribute(np_module, "array", ast.Load()), bound.tolist(), dtype)
