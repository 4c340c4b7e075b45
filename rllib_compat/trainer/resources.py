"""What a trainer has of its machine: GPUs, and what Tune reserves for it, also as until 1.x."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from packaging.version import Version
from ray.tune import PlacementGroupFactory  # noqa: TID253 - the base class; only Tune asks

from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.report import Finding, Verdict

_NAMES = {"cpu": "CPU", "gpu": "GPU"}
_EXTRA = "extra_"
_OWN_FIELDS = ("CPU", "GPU", "memory", "object_store_memory")


class TrialResources(PlacementGroupFactory):  # type: ignore[misc]  # Ray has no types
    """The bundles of a trial: the trainer's own first, then those of its workers."""

    @classmethod
    def of(cls, request: PlacementGroupFactory) -> TrialResources:
        """The same request as an object of this class."""
        own: list[dict[str, float]] = [{}] if request.head_bundle_is_empty else []
        return cls([*own, *request.bundles], request.strategy)

    #: The fields of the tuple `Resources`, which `default_resource_request` gave until Ray 1.x.
    _fields: ClassVar[tuple[str, ...]] = tuple(
        prefix + name
        for name in ("cpu", "gpu", "memory", "object_store_memory", "custom_resources")
        for prefix in ("", _EXTRA)
    )

    def __getattr__(self, name: str) -> Any:
        """A field of the tuple: of the trainer itself, or with `extra_` of its workers."""
        if name not in type(self)._fields:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.to_json()[name]

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
    custom = {name: bundle[name] for name in bundle if name not in _OWN_FIELDS}
    return {
        f"{prefix}cpu": _whole(bundle.get("CPU", 0)),
        f"{prefix}gpu": _whole(bundle.get("GPU", 0)),
        f"{prefix}memory": bundle.get("memory", 0),
        f"{prefix}object_store_memory": bundle.get("object_store_memory", 0),
        f"{prefix}custom_resources": custom,
    }


def _whole(amount: float) -> float:
    """A whole number of CPUs or GPUs as an integer, as they were asked for."""
    return int(amount) if amount == int(amount) else amount


#: The keys that ask for GPUs, and their values that ask for none.
_NO_GPUS: dict[str, Any] = {"num_gpus": 0, "gpu": False, "num_gpus_per_worker": 0}
#: Until this Ray, GPUs were only reserved: without any, networks were computed by CPUs.
_COUNTED = Version("1.3")


def fit_gpus(
    given: Mapping[str, Any], defaults: Mapping[str, Any], *, legacy_ray: str | None, gpus: float
) -> tuple[dict[str, Any], list[Finding]]:
    """A config that asks for no GPUs where there are none, and rows that say so.

    IMPALA, APPO, APEX and DD-PPO had one by default.

    Args:
        given: The config, as it was given.
        defaults: Those of its Ray.
        legacy_ray: That Ray, if it is known; if it is not, no default of an old Ray counts.
        gpus: How many there are.

    Raises:
        ConfigError: It was given a GPU for its networks, and its Ray would have missed it, too.
    """
    if gpus or given.get("_fake_gpus"):
        return dict(given), []
    reserved_only = legacy_ray is not None and Version(legacy_ray) < _COUNTED
    fitted, findings = dict(given), []
    for key, none in _NO_GPUS.items():
        asked = given.get(key) if key in given else legacy_ray and defaults.get(key)
        if not isinstance(asked, (int, float)) or not asked:
            continue
        if key in given and key == "num_gpus_per_worker":
            continue  # nodes that have some may join
        if key in given and not reserved_only:
            raise ConfigError(
                f"The config asks for a GPU ({key}={asked}), and there is none.",
                where=key,
                fix=f"Set {key} to {none}. If there is one, look whether torch.cuda.is_available()"
                " and whether ray.init() has num_gpus.",
            )
        fitted[key] = none
        message = f"there is no GPU; it was {asked}"
        findings.append(Finding.warning("resources.gpus", Verdict.RESET, f"$.{key}", message))
    return fitted, findings
