"""Specs of experiments for `train`, from flags and files, each with a report.

A spec is that of `run_experiments`: `run`, `env`, `stop`, `config`, and Tune's arguments.
"""

from __future__ import annotations

import copy
import difflib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray.tune import Experiment as RayExperiment

from rllib_compat import registry
from rllib_compat.config import translate
from rllib_compat.config.era import AUTO, resolve
from rllib_compat.config.evidence import Evidence
from rllib_compat.config.files import read_data
from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.errors import ConfigError, RefusedKeysError
from rllib_compat.neutral.report import Report, Severity, Verdict
from rllib_compat.ray_versions import startup
from rllib_compat.registry.keys import TODAY
from rllib_compat.trainer.classes import class_of_algorithm, keep_era
from rllib_compat.trainer.refusals import total
from rllib_compat.tune import CHECKPOINT_CONFIG, DROPPED, RENAMED

if TYPE_CHECKING:
    from rllib_compat.config.translator import OnUnknown

_EXAMPLE = "see the example of `rllib-compat train --help`"

#: Keys of a spec that only Ray's own release tests read.
OF_RAYS_TESTS = ("pass_criteria",)

#: The default of `max_failures` for experiments with checkpoints.
MAX_FAILURES = 3


@dataclass
class Experiment:
    """An experiment with the report of its translation.

    Attributes:
        name: The name, which is also that of the results' folder.
        spec: The spec for `run_experiments`.
        report: A row for every key of the config, and for each change of the spec.
    """

    name: str
    spec: dict[str, Any]
    report: Report

    @property
    def needs(self) -> dict[str, float]:
        """The resources of one trial by Ray's names (with the first value of each grid search)."""
        with startup.quiet_logs():
            request = self.spec["run"].default_resource_request(_first(self.spec["config"]))
        return total(request.bundles)


def read(file: str) -> dict[str, dict[str, Any]]:
    """Reads the specs of an experiment file (YAML or JSON), without executing anything.

    Raises:
        ConfigError: The file cannot be read, or is not an experiment file.
    """
    if file.endswith(".py"):
        raise ConfigError(
            f"{file} is a Python script, not an experiment file.",
            fix=f"rllib-compat run {file}",
        )
    found = read_data(file)
    if isinstance(found, Mapping) and isinstance(found.get("run"), str):
        found = {Path(file).stem: found}
    if not isinstance(found, Mapping) or not found:
        raise ConfigError(f"{file} has no experiments.", fix=_EXAMPLE)
    for name, spec in found.items():
        if not isinstance(spec, Mapping) or not isinstance(spec.get("config") or {}, Mapping):
            raise ConfigError(
                f"{name} in {file} is not an experiment.", where=f"{file}: {name}", fix=_EXAMPLE
            )
    return {str(name): _with_inputs(dict(spec), local_path(file)) for name, spec in found.items()}


def prepare(
    specs: Mapping[str, Mapping[str, Any]],
    *,
    keys: Mapping[str, Any],
    legacy_ray: str = AUTO,
    evidence: Iterable[Evidence] | None = None,
    on_unknown: OnUnknown = "error",
) -> list[Experiment]:
    """Translates the configs of specs, so that errors are raised before anything runs.

    Args:
        specs: The specs by name.
        keys: Keys of the config to set in all specs (`framework`, `log_level`, …).
        legacy_ray: The Ray whose defaults apply; see `translate`.
        evidence: Evidence of that Ray other than the configs; None: this process's.
        on_unknown: What to do with unknown keys; see `translate`.

    Raises:
        ConfigError: A spec is incomplete, or its config cannot be translated.
        RefusedKeysError: The installed Ray cannot run its algorithm or config.
    """
    how = (keys, legacy_ray, evidence, on_unknown)
    return [_prepared(name, spec, *how) for name, spec in specs.items()]


def check_resources(experiments: Iterable[Experiment], has: Mapping[str, float]) -> None:
    """Checks that each trial's resources are available; it would wait forever otherwise.

    Raises:
        ConfigError: A trial needs more than `has`.
    """
    for experiment in experiments:
        lacking = {n: v for n, v in experiment.needs.items() if v > has.get(n, 0)}
        if lacking:
            needed = ", ".join(f"{v:g} {name}" for name, v in lacking.items())
            available = ", ".join(f"{has.get(name, 0):g} {name}" for name in lacking)
            raise ConfigError(
                f"A trial needs {needed}, and Ray has {available}.",
                where=f"{experiment.name}.config",
                fix="pass --num-workers and --num-gpus for this machine, or --queue-trials to wait "
                "for more nodes",
            )


def _prepared(
    name: str,
    spec: Mapping[str, Any],
    keys: Mapping[str, Any],
    legacy_ray: str,
    evidence: Iterable[Evidence] | None,
    on_unknown: OnUnknown,
) -> Experiment:
    spec = {k: copy.deepcopy(v) for k, v in spec.items() if v is not None}
    if not isinstance(run := spec.get("run"), str):
        raise ConfigError(
            "The experiment has no algorithm.", where=f"{name}.run", fix="pass --run PPO"
        )
    config = {**(spec.get("config") or {}), **keys}
    if "env" in spec:
        config["env"] = spec.pop("env")
    if not config.get("env") and "input" not in config:
        raise ConfigError(
            "The experiment has no environment.", where=f"{name}.env", fix="pass --env CartPole-v1"
        )
    translation = translate(
        config,
        algorithm=run,
        legacy_ray=resolve(legacy_ray, config, registry.find(run).name, evidence),
        on_unknown=on_unknown,
        old_networks=legacy_ray != TODAY,
    )
    report = translation.report
    report.title = f"{name}: {report.title}"
    if translation.refused:
        refused = [f for f in report if f.verdict is Verdict.REFUSED]
        raise RefusedKeysError(
            f"The installed Ray cannot train {name}.",
            where=f"{name}.config",
            findings=refused,
        )
    spec = _known_arguments(name, spec, report)
    spec["config"] = config
    spec["run"] = keep_era(class_of_algorithm(run), legacy_ray, evidence)
    if spec.get("checkpoint_freq"):
        spec.setdefault("max_failures", MAX_FAILURES)
    return Experiment(name, spec, report)


def _known_arguments(name: str, spec: dict[str, Any], report: Report) -> dict[str, Any]:
    """Returns the arguments that the installed Tune has; reports removed ones.

    Raises:
        ConfigError: An argument is unknown.
    """
    today = {*inspect.signature(RayExperiment.__init__).parameters, "env"} - {"self", "name"}
    known = today | set(RENAMED) | set(CHECKPOINT_CONFIG)
    kept = {}
    for key, value in spec.items():
        if key in DROPPED or key in OF_RAYS_TESTS:
            why = DROPPED.get(key, "only Ray's own release tests read it")
            if value:
                report.add(
                    f"experiment.{key}",
                    Verdict.DROPPED,
                    f"{name}.{key}",
                    f"is ignored, because Tune has removed it: {why}",
                    severity=Severity.WARNING,
                )
        elif key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            raise ConfigError(
                f"An experiment has no argument {key!r}.",
                where=f"{name}.{key}",
                fix=f"did you mean {near[0]!r}?" if near else "remove it, or move it to `config`",
            )
        else:
            kept[key] = value
    return kept


def _with_inputs(spec: dict[str, Any], file: Path) -> dict[str, Any]:
    """Makes the paths of recorded data in a spec absolute: Tune changes the working directory.

    As in `rllib train`, `tests/data/…` may also be beside the file's `tuned_examples`.
    """
    config = dict(spec.get("config") or {})
    if "input" in config:
        places = [Path.cwd(), *file.absolute().parents[:3]]
        config["input"] = _found(config["input"], places)
        spec["config"] = config
    return spec


def _found(source: object, places: list[Path]) -> Any:
    if isinstance(source, list):
        return [_found(one, places) for one in source]
    if isinstance(source, dict):
        return {_found(key, places): value for key, value in source.items()}
    if not isinstance(source, str) or "://" in source:
        return source
    path = local_path(source)
    found = [place / path for place in places if (place / path).exists()]
    return str(found[0]) if found else source


def _first(value: object) -> Any:
    """Replaces the grid searches of a config with their first values."""
    if isinstance(value, dict):
        if set(value) == {"grid_search"}:
            return value["grid_search"][0]
        return {key: _first(inner) for key, inner in value.items()}
    return value
