"""What `rllib train` made of its flags and files: specs of experiments, each with its report.

A spec is what `run_experiments` takes: `run`, `env`, `stop`, `config`, and Tune's arguments.
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
from rllib_compat.tune import CHECKPOINT_CONFIG, DROPPED, RENAMED

if TYPE_CHECKING:
    from rllib_compat.config.translator import OnUnknown

#: Keys of a spec that nobody but Ray's own release tests ever read.
OF_RAYS_TESTS = ("pass_criteria",)

#: The least that is worth a restart: without a checkpoint it would only fail again.
MAX_FAILURES = 3


@dataclass
class Experiment:
    """One experiment, and what became of its config.

    Attributes:
        name: Its name; results go to a folder of this name.
        spec: What `run_experiments` takes.
        report: A row for every key of the config, and for what was changed of the spec.
    """

    name: str
    spec: dict[str, Any]
    report: Report

    @property
    def needs(self) -> dict[str, float]:
        """The resources of one trial, by Ray's names for them (the first of each grid search)."""
        with startup.quiet_logs():
            request = self.spec["run"].default_resource_request(_first(self.spec["config"]))
        amounts: dict[str, float] = {}
        for bundle in request.bundles:
            for name, amount in bundle.items():
                amounts[name] = amounts.get(name, 0.0) + amount
        return amounts


def read(file: str) -> dict[str, dict[str, Any]]:
    """Reads the specs of an experiment file (YAML or JSON); nothing in it is run.

    Raises:
        ConfigError: It can't be read, or holds something else.
    """
    if file.endswith(".py"):
        raise ConfigError(
            f"{file} is a program, not a file of experiments.",
            fix=f"rllib-compat run {file}",
        )
    found = read_data(file)
    if isinstance(found, Mapping) and isinstance(found.get("run"), str):
        found = {Path(file).stem: found}
    if not isinstance(found, Mapping) or not found:
        raise ConfigError(f"{file} holds no experiments.", fix="see `rllib-compat train --help`")
    for name, spec in found.items():
        if not isinstance(spec, Mapping) or not isinstance(spec.get("config") or {}, Mapping):
            raise ConfigError(f"{name} in {file} is not an experiment.", where=f"{file}: {name}")
    return {str(name): _with_inputs(dict(spec), local_path(file)) for name, spec in found.items()}


def prepare(
    specs: Mapping[str, Mapping[str, Any]],
    *,
    keys: Mapping[str, Any],
    legacy_ray: str = AUTO,
    evidence: Iterable[Evidence] | None = None,
    on_unknown: OnUnknown = "error",
) -> list[Experiment]:
    """Translates the configs of specs, so that all is said before anything runs.

    Args:
        specs: The specs by name.
        keys: Keys of the config that are set in all of them (`framework`, `log_level`, …).
        legacy_ray: The Ray whose defaults are kept, as `translate` takes it.
        evidence: What shows it beside the configs; None: what this process knows.
        on_unknown: What to do with keys that no Ray ever had; as `translate` takes it.

    Raises:
        ConfigError: A spec is incomplete, or its config can't be translated.
        RefusedKeysError: Its algorithm or its config can't be run today.
    """
    how = (keys, legacy_ray, evidence, on_unknown)
    return [_prepared(name, spec, *how) for name, spec in specs.items()]


def check_resources(experiments: Iterable[Experiment], has: Mapping[str, float]) -> None:
    """Raises where a trial asks for more than there is: it would wait for ever.

    Raises:
        ConfigError: One does.
    """
    for experiment in experiments:
        lacking = {n: v for n, v in experiment.needs.items() if v > has.get(n, 0)}
        if lacking:
            asked = ", ".join(f"{v:g} {name}" for name, v in lacking.items())
            there = ", ".join(f"{has.get(name, 0):g} {name}" for name in lacking)
            raise ConfigError(
                f"A trial asks for {asked}; Ray has {there} here.",
                where=f"{experiment.name}.config",
                fix="give --num-workers and --num-gpus for this machine, or --queue-trials to wait "
                "for nodes that join",
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
        raise ConfigError("No algorithm is named.", where=f"{name}.run", fix="give --run PPO")
    config = {**(spec.get("config") or {}), **keys}
    if "env" in spec:
        config["env"] = spec.pop("env")
    if not config.get("env") and "input" not in config:
        raise ConfigError(
            "No environment is named.", where=f"{name}.env", fix="give --env CartPole-v1"
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
            f"{name} can't be trained on the installed Ray.",
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
    """The arguments that mean something today; others are reported, unknown ones refused."""
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
                    f"means nothing to Tune any more: {why}",
                    severity=Severity.WARNING,
                )
        elif key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            raise ConfigError(
                f"An experiment has no {key!r}.",
                where=f"{name}.{key}",
                fix=f"did you mean {near[0]!r}?" if near else "take it out, or move it to `config`",
            )
        else:
            kept[key] = value
    return kept


def _with_inputs(spec: dict[str, Any], file: Path) -> dict[str, Any]:
    """A spec whose recorded data is named by absolute paths: Tune changes the folder.

    As `rllib train` did, it looks for `tests/data/…` beside the `tuned_examples` of the file, too.
    """
    config = dict(spec.get("config") or {})
    if "input" in config:
        places = [Path.cwd(), *file.absolute().parents[:3]]
        config["input"] = _found(config["input"], places)
        spec["config"] = config
    return spec


def _found(source: Any, places: list[Path]) -> Any:
    if isinstance(source, list):
        return [_found(one, places) for one in source]
    if isinstance(source, dict):
        return {_found(key, places): value for key, value in source.items()}
    if not isinstance(source, str) or "://" in source:
        return source
    path = local_path(source)
    found = [place / path for place in places if (place / path).exists()]
    return str(found[0]) if found else source


def _first(value: Any) -> Any:
    """A config without its grid searches: the first value of each."""
    if isinstance(value, dict):
        if set(value) == {"grid_search"}:
            return value["grid_search"][0]
        return {key: _first(inner) for key, inner in value.items()}
    return value
