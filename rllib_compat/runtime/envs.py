"""Converts a legacy `env` to the argument of `AlgorithmConfig.environment(env=…)`.

A legacy `env` is a name, a class or a creator. If the installed gymnasium has the environment and
no setting needs a wrapper, `adapt_env` returns the name; otherwise a class that creates the
environment and wraps it.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, cast

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.extras import install_command
from rllib_compat.neutral.policy_id import SHARED
from rllib_compat.neutral.public import import_attribute, public
from rllib_compat.ray_versions import tune
from rllib_compat.registry import keys
from rllib_compat.runtime import atari
from rllib_compat.runtime.env_settings import EnvSettings as EnvSettings


@public("rllib_compat.adapters")
class LegacyEnv:
    """A class whose call creates a legacy environment, wrapped for the installed Ray.

    Ray takes only names and classes for `env`. `adapt_env` derives a class for each setting; its
    call returns a gymnasium or multi-agent environment, never an instance of this class.
    """

    settings: ClassVar[EnvSettings]

    def __new__(cls, context: Mapping[str, Any] | None = None) -> Any:  # noqa: D102
        from rllib_compat.runtime.vector_envs import raise_if_vector_env

        return raise_if_vector_env(make_env(cls.settings, context if context is not None else {}))


@public("rllib_compat.adapters")
def adapt_env(settings: EnvSettings) -> str | type | None:
    """Returns the argument of `AlgorithmConfig.environment(env=…)` for settings.

    Returns:
        The resolved name or the class itself, if it needs no wrapper; else a class that creates the
        wrapped environment, which cloudpickle sends to other processes.
    """
    env = settings.env
    if env is None:
        return None
    if settings.plain and settings.validate_env is None:
        if isinstance(env, str) and not tune.is_registered_env(env):
            name, _ = resolve_env_name(env)
            current = _in_gymnasium(name) and not _is_old_entry(name)
            if current and not (atari.changes_games(settings) and atari.is_registered_game(name)):
                return name
        elif isinstance(env, type):
            # Whether it is an Atari game is known only of an instance.
            checked = settings.checks_observations or settings.old_stack
            current = _is_modern_class(env) and not (checked or atari.changes_games(settings))
            if current or hasattr(env, "is_adapted"):
                return env
    label = env if isinstance(env, str) else getattr(env, "__name__", type(env).__name__)
    class_name = "Legacy_" + re.sub(r"\W", "_", label)
    return type(class_name, (LegacyEnv,), {"settings": settings, "__module__": __name__})


def resolve_env_name(name: str) -> tuple[str, str | None]:
    """Finds the installed gymnasium's name of a legacy environment.

    Returns:
        The name to use, and a note for the report or None. Names of `ray.tune.register_env` and
        unknown names, which may be registered later, stay.
    """
    if tune.is_registered_env(name):
        return name, None
    if _in_gymnasium(name):
        newest = _versions(name)[-1][1]
        if newest == name:
            return name, None
        return name, f"gymnasium still has `{name}`; the newest version is `{newest}`."
    version = _version_of(name)
    newer = [known for number, known in _versions(name) if version is None or number > version]
    if newer:
        return newer[0], f"gymnasium has no `{name}`; its next version is `{newer[0]}`."
    return name, None


@public("rllib_compat.adapters")
def make_env(settings: EnvSettings, context: Mapping[str, Any]) -> Any:
    """Creates the environment, with the wrappers that it needs.

    Args:
        settings: The settings of the legacy config.
        context: Ray's env context. Ray gives the same one to all environments of a runner and
            leaves `vector_index` at 0; here each environment gets its own index.

    Raises:
        LegacyEnvError: The name is unknown, or the environment has no known API.
    """
    from rllib_compat.runtime import external, vector_envs
    from rllib_compat.runtime.gym_api import adapt_single_agent
    from rllib_compat.runtime.multi_agent import adapt_multi_agent, is_multi_agent

    own_context = _next_context(context)
    creator = find_creator(settings.env)
    if creator is None:
        if atari.arguments_of(settings.env) is not None:
            raise LegacyEnvError(
                f"`{settings.env}` is an Atari game, and the Atari games are not installed.",
                where="$.env",
                fix=install_command("atari"),
            )
        raise LegacyEnvError(
            f"There is no environment `{settings.env}`.",
            where="$.env",
            fix=f"call ray.tune.register_env({settings.env!r}, creator) before training, pass the "
            "class itself, or write 'module:Class'",
        )
    env = creator(own_context)
    if settings.validate_env is not None:
        settings.validate_env(env, own_context)
    if atari.has_game_wrappers(settings) and atari.is_atari(env, settings.legacy_ray):
        env, settings = atari.wrap_game(env, settings, own_context)
    if vector_envs.is_vector_env(env):
        return vector_envs.check_vector_env(env, settings)
    if external.is_external(env):
        if settings.old_stack and not settings.needs_adapter:
            return external.PolledEnv(env, settings)
        env = external.ServedEnv(env)
    if settings.multi_agent:
        return adapt_multi_agent(env, settings)
    if is_multi_agent(env):
        raise LegacyEnvError(
            f"{type(env).__name__} is a multi-agent environment, and the config has no policies.",
            where="$.multiagent.policies",
            fix="set one for all agents: {'policies': {'shared': (None, obs_space, act_space, {})}"
            ", 'policy_mapping_fn': lambda agent_id: 'shared'}",
        )
    return adapt_single_agent(env, settings)


def _next_context(context: Mapping[str, Any]) -> Any:
    if not hasattr(context, "copy_with_overrides"):
        return context
    own = context.copy_with_overrides()
    context.vector_index += 1  # type: ignore[attr-defined]
    return own


def find_creator(env: Any, *, trusted: bool = True) -> Callable[[Any], Any] | None:
    """Finds the creator of an environment: by class, Tune, gymnasium, gym or path; else None.

    Args:
        env: The class, creator or name.
        trusted: Whether a name may import a module. A name from a checkpoint may not: it is only
            looked up among registered environments.
    """
    if callable(env):
        return cast("Callable[[Any], Any]", env)
    if tune.is_registered_env(env):
        return tune.registered_env(env)
    name, _ = resolve_env_name(env)
    game = atari.game_spec(name)
    if game is not None or _in_gymnasium(name):
        import gymnasium

        # Some of gymnasium's environments open files that their arguments name.
        arguments = (lambda context: context) if trusted else without_paths
        make: Any = gymnasium.make
        if game is None and _is_old_entry(name):
            make = importlib.import_module("rllib_compat.gym").make
        return lambda context: make(game or name, **arguments(context))
    if not trusted:
        return None
    module, _, registered = env.partition(":")
    if _version_of(registered) is not None:  # `gym.make` imported the module, which registers it
        return find_creator(registered) if _imported(module) else None
    if _in_gym(env):
        return lambda _: importlib.import_module("gym").make(env)
    found = _by_path(env)
    return None if found is None else partial(_with_arguments, found)


def _with_arguments(creator: Callable[..., Any], context: Mapping[str, Any]) -> Any:
    """Creates an environment of a path, with `env_config` as its arguments, as in RLlib.

    If it does not take these arguments, it gets the env context, as other environments do.
    """
    try:
        inspect.signature(creator).bind(**context)
    except (TypeError, ValueError):
        return creator(context)
    return creator(**context) if context else creator(context)


def without_paths(context: Mapping[str, Any]) -> dict[str, Any]:
    """Removes strings that could be file names from an environment's arguments."""
    return dict(row for row in context.items() if _is_no_path(row[1]))


def _is_no_path(value: object) -> bool:
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    if isinstance(value, Mapping):
        return all(map(_is_no_path, (*value.keys(), *value.values())))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_no_path, value))
    return not isinstance(value, bytes)


#: A string that is no file name: `rgb_array`, `8x8`, `ram`.
_WORD = re.compile(r"[\w -]{0,64}")


def _imported(module: str) -> bool:
    """Imports a module; False if there is none.

    Raises:
        ConfigError: The module exists, but its import raises an error.
    """
    try:
        import_attribute(module, "__name__")
    except ImportError:
        return False
    return True


def _by_path(path: str) -> Callable[..., Any] | None:
    """Imports the class of `module:Class` or `module.Class`; None if there is none.

    Raises:
        ConfigError: The module exists, but its import raises an error.
    """
    module, _, name = path.partition(":") if ":" in path else path.rpartition(".")
    if not module:
        return None
    try:
        found = import_attribute(module, name)
    except ImportError:
        return None
    return found if callable(found) else None


def _in_gym(name: str) -> bool:
    """Whether the old gym package is installed and has `name`."""
    try:
        gym = importlib.import_module("gym")
        gym.spec(name)
    except Exception:  # each version of gym raises another error
        return False
    return True


def _in_gymnasium(name: str) -> bool:
    return any(known == name for _, known in _versions(name))


def why_not_importable(env: str) -> str | None:
    """Returns the error of importing a registered environment of gymnasium, or None.

    gymnasium registers those of Box2D and MuJoCo even if their packages are not installed.
    """
    name, _ = resolve_env_name(env)
    if tune.is_registered_env(env) or not _in_gymnasium(name):
        return None
    import gymnasium

    entry = gymnasium.registry[name].entry_point
    try:
        if isinstance(entry, str):
            gymnasium.envs.registration.load_env_creator(entry)
    except (ImportError, gymnasium.error.Error) as error:
        return str(error)
    return None


def _is_old_entry(name: str) -> bool:
    """Whether this package's `gym.register` has registered a name in gymnasium."""
    import gymnasium

    return bool(getattr(gymnasium.registry[name].entry_point, "is_old_api", False))


def _version_of(name: str) -> int | None:
    match = re.search(r"-v(\d+)$", name)
    return int(match[1]) if match else None


def _versions(name: str) -> list[tuple[int, str]]:
    """Returns the usable names in gymnasium's registry that differ from `name` only by version."""
    import gymnasium

    if importlib.util.find_spec("ale_py"):
        gymnasium.register_envs(importlib.import_module("ale_py"))
    stem = re.sub(r"-v\d+$", "", name)
    return sorted(
        (_version_of(known) or 0, known)
        for known, spec in gymnasium.registry.items()
        if re.sub(r"-v\d+$", "", known) == stem
        # The mujoco-py versions are registered with a function that raises an error.
        and not getattr(spec.entry_point, "__name__", "").startswith("_raise")
    )


def _is_modern_class(env: type) -> bool:
    import gymnasium

    # gym 0.22 – 0.25 had a `seed` in reset(), too, but another base class.
    if getattr(env, "is_old_api", False):
        return False
    return issubclass(env, gymnasium.Env) and "seed" in inspect.signature(env.reset).parameters


def with_default_policy(config: Mapping[str, Any]) -> dict[str, Any]:
    """Adds one policy for all agents to a multi-agent config without policies.

    A class shows whether it has several agents. For a registered name, a path or a function, an
    environment is created to find out, as the driver's own worker did in old Rays.
    """
    if keys.policies_of(config) or not _has_many_agents(config):
        return dict(config)
    multi_agent = dict(config.get("multiagent") or {})
    multi_agent["policies"] = {SHARED: (None, None, None, {})}
    multi_agent["policy_mapping_fn"] = to_shared_policy
    return {**config, "multiagent": multi_agent}


@public("rllib_compat.adapters")
def to_shared_policy(*_: object, **__: object) -> str:
    """Returns the id of the policy for all agents."""
    return SHARED


def _has_many_agents(config: Mapping[str, Any]) -> bool:
    from ray.rllib.env.env_context import EnvContext
    from ray.rllib.env.external_multi_agent_env import ExternalMultiAgentEnv
    from ray.rllib.env.multi_agent_env import MultiAgentEnv

    kinds = (MultiAgentEnv, ExternalMultiAgentEnv)
    env = config.get("env")
    if isinstance(env, type):
        return issubclass(env, kinds)
    is_path = isinstance(env, str) and ("." in env or ":" in env)
    if not (callable(env) or is_path or tune.is_registered_env(env)):
        return False
    try:
        if (creator := find_creator(env)) is None:
            return False
        made = creator(EnvContext(config.get("env_config") or {}, worker_index=0))
    except Exception:  # the env runner, which creates it again, raises this error
        return False
    getattr(made, "close", lambda: None)()
    return isinstance(made, kinds)
