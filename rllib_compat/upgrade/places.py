"""Where names of old modules stand today, found by the tables that `rllib_compat.legacy` has."""

from __future__ import annotations

import importlib

from rllib_compat import registry
from rllib_compat.neutral.frozen import frozen
from rllib_compat.upgrade.legacy_tables import brought_back, faces, old_names, table
from rllib_compat.upgrade.rule import Target
from rllib_compat.upgrade.today import has, is_module

#: Native names of what this package has a class of its own for.
NATIVE = {
    "DefaultCallbacks": "ray.rllib.callbacks.callbacks:RLlibCallback",
    "MultiAgentEpisode": "ray.rllib.env.multi_agent_episode:MultiAgentEpisode",
    "Trainer": "ray.rllib.algorithms.algorithm:Algorithm",
    "Agent": "ray.rllib.algorithms.algorithm:Algorithm",
    "get_trainer_class": "ray.tune.registry:get_trainable_cls",
    "get_agent_class": "ray.tune.registry:get_trainable_cls",
    "get_algorithm_class": "ray.tune.registry:get_trainable_cls",
}

#: Private names of this package → where they are public.
_PUBLIC = {
    "rllib_compat.runtime.callbacks:DefaultCallbacks": "rllib_compat:DefaultCallbacks",
    "rllib_compat.trainer.trainer:Trainer": "rllib_compat:Trainer",
    "rllib_compat.trainer.classes:class_of_algorithm": (
        "rllib_compat.agents.registry:get_agent_class"
    ),
    "rllib_compat.trainer.build_trainer:build_trainer": (
        "rllib_compat.agents.trainer_template:build_trainer"
    ),
    "rllib_compat.trainer.defaults:with_base_config": (
        "rllib_compat.agents.trainer:with_base_config"
    ),
    "rllib_compat.trainer.defaults:with_common_config": (
        "rllib_compat.agents.trainer:with_common_config"
    ),
}


#: Modules that stand in for old ones, and that nobody imports by their own names.
_LEGACY = "rllib_compat.legacy."

#: Names of RLlib that Ray still has where they stood, and that take other arguments there.
_CHANGED = frozenset({"RolloutWorker", "collect_episodes", "collect_metrics", "summarize_episodes"})


@frozen
class Place:
    """Where a name stands.

    Attributes:
        module: The module to import it from.
        name: Its name there, "" for the module itself.
    """

    module: str
    name: str


@frozen
class ByLegacy:
    """A name that `import rllib_compat.legacy` brings back where it stood."""


@frozen
class Gone:
    """A name that stands nowhere.

    Attributes:
        why: Where it went, in a sentence.
        is_old: Whether it is known of an old Ray, so that `rllib_compat.legacy` can name it.
    """

    why: str
    is_old: bool = True


def find(module: str, name: str, target: Target) -> Place | ByLegacy | Gone | None:
    """Where a name of a module stands today.

    Args:
        module: The module that old code imports it from.
        name: The name; "" for the module itself.
        target: For whom.

    Returns:
        The place; why there is none; None where nothing has to be changed, or nothing is known.
    """
    if module.partition(".")[0] not in table.FACED:
        return None
    if target is Target.COMPAT and module.startswith("ray.rllib") and name in _CHANGED:
        return ByLegacy()
    found = _module(module, target) if not name else _name(module, name, target)
    if found is None and module.startswith("ray") and not _is_there(module, name):
        place = f"{module}.{name}" if name else module
        return Gone(f"{place} is not in the Ray that is here: {table.sentence(place)}", False)
    if isinstance(found, Gone) and target is Target.COMPAT and _brought_back(module, name):
        return ByLegacy()
    if isinstance(found, Place) and found.module.startswith(_LEGACY):
        return ByLegacy()  # by the name that the code uses anyway
    return None if found == Place(module, name) else found


def _is_there(module: str, name: str) -> bool:
    return has(module, name) if name else is_module(module)


def _brought_back(module: str, name: str) -> bool:
    """Whether `rllib_compat.legacy` has it, and not only a name that raises when it is used."""
    with brought_back():
        try:
            if not name:
                return faces.exists(module)
            faces.find(module, name)
        except ImportError:  # by another module's text it is not there, and that can't be imported
            return False
    return not faces.redirected.get((module, name), "gone").startswith("gone")


def _module(module: str, target: Target) -> Place | Gone | None:
    if target is Target.COMPAT and module in table.STAND_INS:
        return Place(table.STAND_INS[module], "")
    homes = [h for h in _homes(module) if target is Target.COMPAT or not _ours(h)]
    if homes:
        return Place(homes[0], "")
    if module in old_names.modules():
        return Gone(f"{module} is gone: {table.sentence(module)}")
    return None


def _name(module: str, name: str, target: Target) -> Place | Gone | None:
    own = _own(module, name, target)
    if own is not None:
        return own
    for home in _homes(module):
        if target is Target.NATIVE and _ours(home):
            continue
        if home.startswith("rllib_compat.legacy"):
            continue
        if has(home, name):
            return Place(home, name)
    if name in table.MOVED and module.startswith("ray."):
        to, _, found = table.MOVED[name].partition(":")
        if not to.startswith("rllib_compat"):
            return Place(to, found)
    if _module(f"{module}.{name}", target) is not None and _is_old_module(module, name):
        below = _module(f"{module}.{name}", target)
        if isinstance(below, Place):
            parent, _, last = below.module.rpartition(".")
            return Place(parent, last)
        return below
    if name in old_names.names(module) or name in table.MOVED:
        return Gone(f"{module}.{name} is gone: {table.sentence(f'{module}.{name}')}")
    return None


def _is_old_module(module: str, name: str) -> bool:
    return f"{module}.{name}" in {*old_names.modules(), *table.STAND_INS}


def _own(module: str, name: str, target: Target) -> Place | None:
    """What this package, or today's Ray by another name, has for a name."""
    in_rllib = module.startswith("ray.rllib")
    algorithm = registry.class_names().get(name) if in_rllib else None
    part = module.removeprefix("ray.rllib.").partition(".")[0]
    if target is Target.NATIVE:
        if algorithm and part == "agents" and (today := registry.of(algorithm).becomes):
            return Place(registry.of(today).home, today)
        return _place(NATIVE[name]) if in_rllib and name in NATIVE else None
    stand_in = table.STAND_INS.get(module)
    if stand_in and name in getattr(importlib.import_module(stand_in), "__all__", ()):
        return Place(stand_in, name)
    if module == "ray" and name == "tune":
        return Place("rllib_compat", "tune")
    if stand_in and module == "ray.tune" and hasattr(importlib.import_module(stand_in), name):
        return Place(stand_in, name)
    if algorithm and part in ("agents", "contrib"):
        return Place("rllib_compat", name)
    if in_rllib and name in table.RLLIB:
        where = table.RLLIB[name]
        return _place(_PUBLIC[where]) if where in _PUBLIC else None
    return None


def _place(where: str) -> Place:
    module, _, name = where.partition(":")
    return Place(module, name)


def _homes(module: str) -> list[str]:
    """The modules of today in which names of an old one may stand, ours first."""
    return [name for name in faces.candidates(module) if is_module(name)]


def _ours(module: str) -> bool:
    return module.startswith("rllib_compat")
