"""What Tune reserves for a trial, as bundles and in the form that it had until Ray 1.x."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.tune import PlacementGroupFactory  # noqa: TID253 - the base class; only Tune asks

_NAMES = {"cpu": "CPU", "gpu": "GPU"}
_EXTRA = "extra_"


class TrialResources(PlacementGroupFactory):  # type: ignore[misc]  # Ray has no types
    """The bundles of a trial: the trainer's own first, then those of its workers."""

    @classmethod
    def of(cls, request: PlacementGroupFactory) -> TrialResources:
        """The same request as an object of this class."""
        own: list[dict[str, float]] = [{}] if request.head_bundle_is_empty else []
        return cls([*own, *request.bundles], request.strategy)

    def to_json(self) -> dict[str, Any]:
        """As `tune.run(resources_per_trial=…)` of Ray 0.5 – 1.x took it; ours does, too."""
        bundles = self.bundles
        own: dict[str, float] = {} if self.head_bundle_is_empty else bundles.pop(0)
        extra: dict[str, float] = {}
        for bundle in bundles:
            for name, amount in bundle.items():
                extra[name] = extra.get(name, 0) + amount
        return {
            **_as_json(own, ""),
            **_as_json(extra, _EXTRA),
        }


def with_extra(resources: object) -> Any:
    """What Tune takes for `{"cpu": …, "extra_cpu": …}`; anything else is Tune's business.

    Ray would wait forever for nodes with a resource that is called `extra_cpu`.
    """
    if not isinstance(resources, Mapping) or not any(k.startswith(_EXTRA) for k in resources):
        return resources
    own = {name: value for name, value in resources.items() if not name.startswith(_EXTRA)}
    extra = {k.removeprefix(_EXTRA): v for k, v in resources.items() if k not in own}
    bundles = [_bundle(own), _bundle(extra)]
    return TrialResources(bundles if any(bundles[1].values()) else bundles[:1])


def _bundle(resources: Mapping[str, Any]) -> dict[str, float]:
    named = {_NAMES.get(k, k): v for k, v in resources.items() if k != "custom_resources"}
    return {name: v for name, v in (named | (resources.get("custom_resources") or {})).items() if v}


def _as_json(bundle: Mapping[str, float], prefix: str) -> dict[str, Any]:
    custom = {name: bundle[name] for name in bundle if name not in ("CPU", "GPU", "memory")}
    return {
        f"{prefix}cpu": bundle.get("CPU", 0),
        f"{prefix}gpu": bundle.get("GPU", 0),
        f"{prefix}memory": bundle.get("memory", 0),
        f"{prefix}custom_resources": custom,
    }
