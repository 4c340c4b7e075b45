"""From a legacy environment setting to what `AlgorithmConfig.environment(env=…)` takes.

An environment of any age is given as a name, a class or a creator. `adapt_env` hands out the plain
name where the installed gymnasium makes the environment itself and nothing is asked of it that
gymnasium does not do; otherwise a class which makes the environment and wraps what it got.
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
from rllib_compat.neutral.public import import_attribute, public
from rllib_compat.ray_versions import tune
from rllib_compat.runtime import atari
from rllib_compat.runtime.env_settings import EnvSettings as EnvSettings


@public("rllib_compat.adapters")
class LegacyEnv:
    """Makes a legacy environment, wrapped for the installed Ray.

    Ray takes only names and classes for `env`. `adapt_env` derives one class per setting, and
    calling it gives a gymnasium or multi-agent environment: never an instance of this class.
    """

    settings: ClassVar[EnvSettings]

    def __new__(cls, context: Mapping[str, Any] | None = None) -> Any:  # noqa: D102
        from rllib_compat.runtime.vector_envs import raise_if_vector_env

        return raise_if_vector_env(make_env(cls.settings, context if context is not None else {}))


@public("rllib_compat.adapters")
def adapt_env(settings: EnvSettings) -> str | type | None:
    """What goes into `AlgorithmConfig.environment(env=…)` for these settings.

    Returns:
        The resolved name or the class itself where nothing has to be wrapped, else a class that
        makes the wrapped environment; cloudpickle carries it to other processes.
    """
    env = settings.env
    if env is None:
        return None
    if settings.plain:
        if isinstance(env, str) and not tune.is_registered_env(env):
            name, _ = resolve_env_name(env)
            todays = _in_gymnasium(name) and not _is_old_entry(name)
            if todays and not (atari.changes_games(settings) and atari.is_registered_game(name)):
                return name
        elif isinstance(env, type):
            # What a class makes may be a game; only the instance tells.
            todays = _is_modern_class(env) and not atari.changes_games(settings)
            if todays or hasattr(env, "is_adapted"):
                return env
    label = env if isinstance(env, str) else getattr(env, "__name__", type(env).__name__)
    class_name = "Legacy_" + re.sub(r"\W", "_", label)
    return type(class_name, (LegacyEnv,), {"settings": settings, "__module__": __name__})


def resolve_env_name(name: str) -> tuple[str, str | None]:
    """The name under which the installed gymnasium offers what `name` was.

    Returns:
        The name to use, and a note for the report or None. Names that `ray.tune.register_env`
        knows, and those that nobody knows here (they may be registered later), stay as they are.
    """
    if tune.is_registered_env(name):
        return name, None
    if _in_gymnasium(name):
        newest = _versions(name)[-1][1]
        if newest == name:
            return name, None
        return name, f"gymnasium still offers `{name}`; its newest version is `{newest}`."
    version = _version_of(name)
    newer = [known for number, known in _versions(name) if version is None or number > version]
    if newer:
        return newer[0], f"gymnasium has no `{name}`; `{newer[0]}` is the next version that it has."
    return name, None


@public("rllib_compat.adapters")
def make_env(settings: EnvSettings, context: Mapping[str, Any]) -> Any:
    """Makes the environment and wraps it where it needs that.

    Args:
        settings: What the legacy config says.
        context: Ray's env context. Ray gives the same one to all environments of a runner and
            leaves `vector_index` at 0; here each environment gets its own index.

    Raises:
        LegacyEnvError: Nobody knows the name, or the environment fits no known API.
    """
    from rllib_compat.runtime import external, vector_envs
    from rllib_compat.runtime.gym_api import adapt_single_agent
    from rllib_compat.runtime.multi_agent import adapt_multi_agent, is_multi_agent

    own_context = _next_context(context)
    creator = find_creator(settings.env)
    if creator is None:
        if atari.arguments_of(settings.env) is not None:
            raise LegacyEnvError(
                f"`{settings.env}` is an Atari game, and no such games are installed.",
                where="$.env",
                fix=install_command("atari"),
            )
        raise LegacyEnvError(
            f"No environment is called `{settings.env}`.",
            where="$.env",
            fix=f"call ray.tune.register_env({settings.env!r}, creator) before training, give the "
            "class itself, or write 'module:Class'",
        )
    env = creator(own_context)
    if atari.has_game_wrappers(settings) and atari.is_atari(env, settings.legacy_ray):
        env, settings = atari.wrap_game(env, settings, own_context)
    if vector_envs.is_vector_env(env):
        return vector_envs.check_vector_env(env, settings)
    if external.is_external(env):
        if settings.old_stack and not settings.needs_adapter:
            return external.PolledEnv(env)
        env = external.ServedEnv(env)
    if settings.multi_agent:
        return adapt_multi_agent(env, settings)
    if is_multi_agent(env):
        raise LegacyEnvError(
            f"{type(env).__name__} has many agents, and the config has no policies for them.",
            where="$.multiagent.policies",
            fix="give one for all agents: {'policies': {'shared': (None, obs_space, act_space, {})}"
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
    """What makes the environment: class or creator, tune, gymnasium, gym, dotted path; or None.

    Args:
        env: The class, creator or name.
        trusted: Whether a name may import a module. One from a stranger's checkpoint may not: it
            is only looked up among those that are registered.
    """
    if callable(env):
        return cast("Callable[[Any], Any]", env)
    if tune.is_registered_env(env):
        return tune.registered_env(env)
    name, _ = resolve_env_name(env)
    game = atari.game_spec(name)
    if game is not None or _in_gymnasium(name):
        import gymnasium

        # Some of gymnasium's environments open what their arguments say.
        words = (lambda context: context) if trusted else without_paths
        return lambda context: gymnasium.make(game or name, **words(context))
    if not trusted:
        return None
    if _in_gym(env):
        return lambda _: importlib.import_module("gym").make(env)
    found = _by_path(env)
    return None if found is None else partial(_with_arguments, found)


def _with_arguments(creator: Callable[..., Any], context: Mapping[str, Any]) -> Any:
    """Makes an environment that a path names: `env_config` is its arguments, as RLlib had it.

    Where it takes no such arguments, it gets the context, as any other environment does.
    """
    try:
        inspect.signature(creator).bind(**context)
    except (TypeError, ValueError):
        return creator(context)
    return creator(**context) if context else creator(context)


def without_paths(context: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an environment without text that could be the name of a file."""
    return dict(row for row in context.items() if _is_no_path(row[1]))


def _is_no_path(value: object) -> bool:
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    if isinstance(value, Mapping):
        return all(map(_is_no_path, (*value.keys(), *value.values())))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_no_path, value))
    return not isinstance(value, bytes)


#: `rgb_array`, `8x8`, `ram`: a name of something that an environment has.
_WORD = re.compile(r"[\w -]{0,64}")


def _by_path(path: str) -> Callable[..., Any] | None:
    """The class of `module:Class` or `module.Class`, or None where there is none.

    Raises:
        ConfigError: The module is there and can't be imported.
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
    """Whether the old gym package is installed and offers `name`."""
    try:
        gym = importlib.import_module("gym")
        gym.spec(name)
    except Exception:  # each gym has its own errors here
        return False
    return True


def _in_gymnasium(name: str) -> bool:
    return any(known == name for _, known in _versions(name))


def why_not_here(env: str) -> str | None:
    """What keeps gymnasium from making an environment that it lists; None: nothing.

    It lists environments of Box2D and MuJoCo whether their packages are installed or not.
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
    """Whether `gym.register` of this package put it into gymnasium's registry."""
    import gymnasium

    return bool(getattr(gymnasium.registry[name].entry_point, "is_old_api", False))


def _version_of(name: str) -> int | None:
    match = re.search(r"-v(\d+)$", name)
    return int(match[1]) if match else None


def _versions(name: str) -> list[tuple[int, str]]:
    """All usable names in gymnasium's registry that differ from `name` in the version only."""
    import gymnasium

    if importlib.util.find_spec("ale_py"):
        gymnasium.register_envs(importlib.import_module("ale_py"))
    stem = re.sub(r"-v\d+$", "", name)
    return sorted(
        (_version_of(known) or 0, known)
        for known, spec in gymnasium.registry.items()
        if re.sub(r"-v\d+$", "", known) == stem
        # The mujoco-py versions are registered with a function that only raises.
        and not getattr(spec.entry_point, "__name__", "").startswith("_raise")
    )


def _is_modern_class(env: type) -> bool:
    import gymnasium

    # gym 0.22 – 0.25 had a `seed` in reset() too, but those classes are of another base.
    if getattr(env, "is_old_api", False):
        return False
    return issubclass(env, gymnasium.Env) and "seed" in inspect.signature(env.reset).parameters
