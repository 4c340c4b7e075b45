"""RLlib's own policy classes by their old names: `PPOTFPolicy`, `PPOTorchPolicy`, `PGPolicyGraph`.

A config that names one is the same as a config that names none. Those for torch that Ray still has
are Ray's, so that subclasses run on its old API stack; the others can only be named.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from typing import Any

from rllib_compat import registry
from rllib_compat.neutral.errors import GoneError
from rllib_compat.ray_versions import old_policies

KINDS = ("TF1Policy", "TF2Policy", "TFPolicy", "TorchPolicy", "Policy", "PolicyGraph")
_KIND = re.compile(rf"({'|'.join(KINDS)})$")
#: The stems of policies that several algorithms had.
_SHARED = ("Bandit",)


def _stems() -> dict[str, tuple[str, ...]]:
    return {place: tuple(a.stems[0] for a in rows) for place, rows in registry.modules().items()}


def policy_modules() -> dict[str, tuple[str, ...]]:
    """The modules below `ray.rllib.agents` that had policies → the stems of their names."""
    found = {}
    for place, stems in _stems().items():
        for ending in ("tf_policy", "torch_policy", "policy", "policy_graph"):
            folder, _, name = place.partition(".")
            found[f"{folder}.{name or folder}_{ending}"] = stems
    return found


def policy_names(place: str) -> set[str]:
    """The policies in a module below `ray.rllib.agents`."""
    stems = policy_modules().get(place) or _stems().get(place, ())
    return {f"{stem}{kind}" for stem in stems for kind in KINDS}


@cache
def policy_class(name: str) -> type:
    """The class of one of `policy_names`."""
    stem = _KIND.sub("", name)
    place = stem.lower()
    if name.endswith("TorchPolicy"):
        try:
            home = f"ray.rllib.algorithms.{place}.{place}_torch_policy"
            if (row := registry.class_names().get(stem)) and registry.of(row).ours:
                home = "rllib_compat.algorithms.old_stack_policies"
            module = importlib.import_module(home)
            made = old_policies.torch_policy_with(getattr(module, name), name, {})
            made.__module__, made.is_own = __name__, False  # type: ignore[attr-defined]
            return made
        except (ImportError, AttributeError):
            pass  # removed, or never in Ray 2.x
    members = {"__module__": __name__, "__doc__": f"{name}, for a config to name."}
    return type(name, (StockPolicy,), members)


class StockPolicy:
    """A policy class that code can name in a config or derive from; making one raises an error."""

    def __new__(cls, *_: object, **__: object) -> StockPolicy:  # noqa: D102
        raise _gone(cls.__name__)

    @classmethod
    def with_updates(cls, *, name: str | None = None, **_: object) -> type:
        """A class with another loss, which raises an error when it is used.

        Old modules make one for each framework, and use one of them.
        """
        members = {"__doc__": f"{cls.__name__} with another loss; it can't be used."}
        return type(name or cls.__name__, (cls,), members)


def is_policy_name(name: str) -> bool:
    """Whether any algorithm had a policy class of that name."""
    stem = _KIND.sub("", name)
    return stem != name and (stem in _SHARED or f"{stem}Trainer" in registry.class_names())


def __getattr__(name: str) -> Any:  # where pickle finds them again
    if is_policy_name(name):
        return policy_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _gone(name: str) -> GoneError:
    return GoneError(
        f"There is no {name} any more; a config can name it, but code can't use it.",
        where=name,
        fix="subclass the algorithm's Learner, override compute_loss_for_module() and set "
        "config.learners(learner_class=…)",
    )
