"""Legacy environments, and what only an environment can tell."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.later import PUBLIC, Later, Writer, build
from rllib_compat.runtime.atari_names import may_be_atari
from rllib_compat.runtime.env_settings import EnvSettings


@frozen
class AdaptedEnv(Later):
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
        plain = not set(given) - {"env", "env_config", "old_stack"}
        # A game's name says nothing of the wrappers that it has here without a word.
        if plain and isinstance(given["env"], str) and not may_be_atari(given["env"]):
            # Without gymnasium nobody knows what it has; the call below is right for any name.
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
        if name in ("preprocessor_pref", "legacy_ray") or (
            name == "clip_rewards" and value is False
        ):
            return not may_be_atari(env) or value == getattr(EnvSettings, name)
        return value in (None, {}) or value == getattr(EnvSettings, name, None)


@frozen
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
        from rllib_compat.runtime.envs import make_env

        env = make_env(EnvSettings(**build(dict(self.env.settings))), {})
        space = getattr(env, self.which)
        env.close()
        return space

    def code(self, writer: Writer) -> ast.expr | None:
        """The same as an expression."""
        settings = writer.call(writer.imported(PUBLIC, "EnvSettings"), **self.env.settings)
        env = settings and writer.call(writer.imported(PUBLIC, "make_env"), settings, {})
        return env and ast.Attribute(env, self.which, ast.Load())
