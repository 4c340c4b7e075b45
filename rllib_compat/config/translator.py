"""From a legacy config to a `Translation`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.algorithms.legacy_training import (
    LegacyTraining,
    collected_steps,
    framework_of,
    replay_of,
    uses_simple_optimizer,
)
from rllib_compat.config import completion, engine
from rllib_compat.config.completion import CompletedConfig, complete
from rllib_compat.config.defaults import TODAY, todays_default
from rllib_compat.config.deferred import AdaptedEnv, DeferredPolicy
from rllib_compat.config.era import AUTO, Era, resolve
from rllib_compat.config.rule import Context, Settings, nested
from rllib_compat.config.rules.sampling import ray_of_env
from rllib_compat.config.rules.tensorflow import about_model
from rllib_compat.config.rules.training import NEWEST_WITHOUT_VTRACE
from rllib_compat.config.steps import apply_first, apply_steps
from rllib_compat.config.translation import Translation
from rllib_compat.config.validation import validate_config
from rllib_compat.config.values.validator import Origin
from rllib_compat.networks import fresh
from rllib_compat.neutral.choices import require_one_of
from rllib_compat.neutral.errors import ConfigError, UnknownKeysError
from rllib_compat.neutral.report import Finding, Report, Severity, Verdict
from rllib_compat.ray_versions import configs
from rllib_compat.registry import keys as table
from rllib_compat.registry.keys import find_algorithm

OnUnknown = Literal["error", "warn", "pass"]
Stack = Literal["auto", "new", "old"]

#: The rules of keys that only networks of the old Rays have, which a Trainer makes.
_ONLY_OLD = r"model\.no_final_linear|sac\.Q_model\..*"
_ATTENTION = r"|model\.(use_attention|attention_\w+)"

#: What an environment of evaluation shares with that of training, whatever the evaluation changes.
_OF_POLICIES = ("multi_agent", "policy_spaces", "policy_mapping_fn", "observation_fn", "old_stack")
#: The algorithms whose torch policies made their optimizer with `lr`, before a schedule was asked.
_LR_FIRST = (*registry.family("PPO"), "A2C", "A3C", "PG")


def translate(
    config: Mapping[str, Any],
    *,
    algorithm: str | type | None = None,
    env: object = None,
    legacy_ray: str | Era | None = AUTO,
    on_unknown: OnUnknown = "error",
    api_stack: Stack = "auto",
    origin: Origin = Origin.USER,
    given: Mapping[str, Any] | None = None,
    trust: Iterable[str] = (),
    old_networks: bool = False,
) -> Translation:
    """Translates a legacy RLlib config into calls of Ray's `AlgorithmConfig`.

    Neither Ray nor any function of the config is imported or called.

    Args:
        config: The legacy config, as `tune.run(config=)` or a Trainer took it. It is not changed.
        algorithm: The algorithm it is for (a name of any era, or a class); else its keys decide.
        env: The environment, if the config does not name it; a user's, like `given`.
        legacy_ray: The Ray that it was written for, whose defaults are made explicit where they
            differ from today's. "today": none are. "auto": that which `config.era` infers.
        on_unknown: What to do with keys that no Ray had: raise, warn, or stay silent.
        api_stack: "new", "old", or "auto": new, unless a key needs the old one.
        origin: Whether somebody wrote `config` for this run, or it came with a file. Of a config
            from a file only values that fit their declarations are used; never code.
        given: Keys of the user or of the calling program. They replace those of `config`, and
            count as written for this run.
        trust: Exact names of classes and functions, `module:Class`, that may pass although they
            came with a file.
        old_networks: Whether the caller makes the networks that the config's Ray made of it, where
            they are known, as a Trainer does.

    Raises:
        UnknownKeysError: The config has keys that no Ray had, and `on_unknown` is "error".
        ConfigError: The algorithm or `legacy_ray` is not known.
    """
    if not isinstance(config, Mapping):
        raise ConfigError(
            f"A config is a dict, not {type(config).__name__}.",
            fix='Pass a dict, such as {"lr": 0.0001}.',
        )
    require_one_of(get_args(OnUnknown), on_unknown=on_unknown)
    require_one_of(get_args(Stack), api_stack=api_stack)
    given = {**(given or {}), **({} if env is None else {"env": env})}
    legacy_algorithm, how = find_algorithm({**config, **given}, algorithm)
    target = registry.of(legacy_algorithm).becomes or legacy_algorithm
    era = resolve(legacy_ray, config, legacy_algorithm, None if origin is Origin.USER else ())
    others = {key: config[key] for key in config if key not in given}
    valid = validate_config(others, (legacy_algorithm, target), origin, trust)
    ours = validate_config(given, (legacy_algorithm, target), Origin.USER)
    legacy = {**valid.config, **ours.config}
    came_in = legacy if origin is Origin.FILE else _copied({**config, **given})
    completed = CompletedConfig(legacy)
    ray = table.versions()[-1] if era.ray == table.TODAY else era.ray
    if ray is not None and era.ray != table.TODAY and registry.of(target).becomes:
        completed = complete(legacy, legacy_algorithm, ray)
    keeps = _old_network_rules(legacy_algorithm, completed.config) if old_networks else None
    stack, decided_by = _choose_stack(completed, (legacy_algorithm, target), api_stack, keeps)
    if stack == "old":
        target = registry.of(target).undistributed or target

    context = Context(completed.config, target, legacy_algorithm, stack, translate=_inner_settings)
    context.legacy_ray, context.keeps = ray, keeps
    entries = engine.apply(completed.config, context, chosen=completed.chosen(legacy_algorithm))
    context.findings[:] = [f for f in context.findings if not completed.is_added(f.path)]
    settings = engine.settings_of(entries)
    apply_first(settings, context)
    context.findings += completion.describe_changed(entries, completed, context)
    adopted = completion.made_by_defaults(entries, completed)
    apply_steps(settings, context)
    completion.leave_out_todays(settings, adopted, target)
    _leave_out_unknown_settings(settings, context)

    findings = [e.finding for e in entries if not completed.is_added(e.leaf.path)]
    findings += context.findings + valid.findings + ours.findings
    findings = _about_unknown(findings, on_unknown)
    facts = {"algorithm": f"{target} ({how})", "API stack": stack}
    report = Report(f"{legacy_algorithm} config", facts)
    if era.ray is not None:
        report.facts["legacy Ray"] = era.ray
    if valid.trusted:
        report.facts["trusted"] = ", ".join(f"{n} ({path})" for path, n in valid.trusted)
    if decided_by and stack == "old":
        report.facts["old API stack because of"] = ", ".join(decided_by)
    report.extend(_about_algorithm(legacy_algorithm, target, how))
    if api_stack == "old" and stack == "new":
        message = f"{target} runs on the new API stack only"
        hint = "leave api_stack as it is by default"
        new_only = "algorithm.new_stack_only"
        report.extend([_row(new_only, Severity.ERROR, Verdict.REFUSED, message, hint)])
    report.extend([*era.findings(), *about_model(settings, context), *findings])

    wrapping = {"env": None, **nested(settings, "env"), **_agents(settings)}
    if stack == "old":
        wrapping["old_stack"] = True
    wrapping |= ray_of_env(completed.config, ray)
    _tell_evaluation_of_agents(settings, wrapping)
    return Translation(
        target,
        legacy_algorithm,
        stack,
        _calls(settings, wrapping, stack, target),
        report,
        came_in,
        {**wrapping, "env_config": settings.get("environment.env_config") or {}},
        legacy.get("callbacks", legacy.get("callbacks_class")),
        tuple(decided_by),
        _legacy_training(completed.config, ray, legacy_algorithm),
    )


def _inner_settings(part: Mapping[str, Any], path: str, at: Context) -> Settings:
    """The settings of a config inside the config; its findings join those of `at`."""
    inner = replace(at, config={**at.config, **part})
    entries = engine.apply(part, inner, path)
    at.findings.extend(entry.finding for entry in entries)
    return engine.settings_of(entries)


def _copied(config: Mapping[str, Any]) -> Any:
    """A copy of all containers; what is in them (functions, spaces, arrays) is shared."""
    try:
        return _copied_value(config)
    except RecursionError:
        raise ConfigError(
            "The config contains itself.", fix="remove the circular reference"
        ) from None


def _copied_value(value: Any) -> Any:
    if type(value) is dict or (isinstance(value, Mapping) and not hasattr(value, "__dict__")):
        return {key: _copied_value(inner) for key, inner in value.items()}
    if type(value) in (list, tuple, set):
        return type(value)(_copied_value(inner) for inner in value)
    return value


def _choose_stack(
    completed: CompletedConfig,
    algorithms: tuple[str, ...],
    asked: Stack,
    keeps: re.Pattern[str] | None,
) -> tuple[str, list[str]]:
    """The API stack, and the paths of the keys that need the old one; no default does."""
    chosen = completed.chosen(algorithms[0]) or (lambda _: True)
    need_old = [
        leaf.path
        for leaf in engine.leaves(completed.config, algorithms)
        if leaf.needs_old
        and chosen(leaf)
        and not (keeps and leaf.rule and keeps.fullmatch(leaf.rule.id))
    ]
    if registry.of(algorithms[1]).new_stack_only:
        return "new", need_old
    if asked != "auto":
        return asked, need_old
    return ("old" if need_old else "new"), need_old


def _leave_out_unknown_settings(settings: Settings, context: Context) -> None:
    """Takes out what the installed Ray has no argument for."""
    for name in [n for n in settings if not configs.has_setting(n)]:
        del settings[name]
        message, hint = f"the installed Ray has no {name}", "it came with a later Ray"
        warning = (Severity.WARNING, Verdict.DROPPED)
        context.findings.append(_row("engine.newer_ray", *warning, message, hint, f"$.{name}"))


def _about_unknown(findings: list[Finding], on_unknown: OnUnknown) -> list[Finding]:
    def is_unknown(finding: Finding) -> bool:
        return finding.verdict is Verdict.UNKNOWN and finding.severity is Severity.ERROR

    unknown = [finding for finding in findings if is_unknown(finding)]
    if unknown and on_unknown == "error":
        raise UnknownKeysError(
            f"Keys that no Ray from 0.5 on had: {len(unknown)}.",
            fix="correct or remove them, or pass on_unknown='warn'",
            findings=unknown,
        )
    severity = Severity.WARNING if on_unknown == "warn" else Severity.INFO
    return [replace(f, severity=severity) if is_unknown(f) else f for f in findings]


def _about_algorithm(legacy: str, target: str, how: str) -> list[Finding]:
    row, gone = registry.of(target), f"{legacy} was removed from RLlib"
    if not row.becomes:
        why = registry.of(legacy).why
        return [_row("algorithm.removed", Severity.ERROR, Verdict.REFUSED, gone, why)]
    if legacy != target:
        message = f"{gone}; {target} takes its place: {_difference(legacy)}"
        return [_row("algorithm.successor", Severity.WARNING, Verdict.CONVERTED, message)]
    if row.ours:
        return [_row("algorithm.ours", Severity.INFO, Verdict.NOTE, f"{gone}; {row.why}")]
    if how == "assumed":
        message = "no key shows which algorithm it is for; PPO is assumed"
        severity = Severity.WARNING
        return [_row("algorithm.assumed", severity, Verdict.NOTE, message, "pass algorithm=")]
    return []


def _row(
    rule: str, severity: Severity, verdict: Verdict, message: str, hint: str = "", path: str = "$"
) -> Finding:
    return Finding(rule, severity, verdict, path, message, hint)


def _difference(legacy: str) -> str:
    """How what takes an algorithm's place is different."""
    row = registry.of(legacy)
    if not row.ours:
        return row.why
    return (
        f"on the old API stack, where this package has no {legacy}; its replay buffer is not "
        "distributed over actors"
    )


def _agents(settings: Settings) -> Settings:
    """What the environment's wrapper has to know about the policies."""
    policies = settings.get("multi_agent.policies")
    if policies is None:
        return {}
    spaces = {
        name: tuple(
            spec.fields.get(which, settings.get(f"environment.{which}"))
            for which in ("observation_space", "action_space")
        )
        for name, spec in policies.items()
        if isinstance(spec, DeferredPolicy)
    }
    found: Settings = {"multi_agent": True}
    if any(space is not None for pair in spaces.values() for space in pair):
        found["policy_spaces"] = spaces
        found["policy_mapping_fn"] = settings.get("multi_agent.policy_mapping_fn")
    return found


def _tell_evaluation_of_agents(settings: Settings, wrapping: Mapping[str, Any]) -> None:
    """Gives an evaluation's own environment, in place, what policies and API stack ask for."""
    config = settings.get("evaluation.evaluation_config")
    if isinstance(config, Mapping) and isinstance(env := config.get("env"), AdaptedEnv):
        shared = {name: wrapping[name] for name in _OF_POLICIES if name in wrapping}
        adapted = AdaptedEnv({**shared, **env.settings})
        settings["evaluation.evaluation_config"] = {**config, "env": adapted}


def _calls(
    settings: Settings, wrapping: Mapping[str, Any], stack: str, algorithm: str
) -> dict[str, dict[str, Any]]:
    calls: dict[str, dict[str, Any]] = {}
    if stack == "old":
        calls["api_stack"] = {
            "enable_rl_module_and_learner": False,
            "enable_env_runner_and_connector_v2": False,
        }
    env = wrapping.get("env")
    if isinstance(env, Mapping) and set(env) == {"grid_search"}:
        each = [AdaptedEnv({**wrapping, "env": one}) for one in env["grid_search"]]
        calls["environment"] = {"env": {"grid_search": each}}
    elif env is not None:
        calls["environment"] = {"env": AdaptedEnv(dict(wrapping))}
    settings = {
        **settings,
        **{
            name: configs.kept_minus_one(value, todays_default(algorithm, name)[1])
            for name, value in settings.items()
            if type(value) in (int, float) and value == -1 and name.count(".") == 1
        },
    }
    for method in sorted({name.partition(".")[0] for name in settings} - {"env"}):
        calls.setdefault(method, {}).update(nested(settings, method))
    return calls


def _legacy_training(
    config: Mapping[str, Any], legacy_ray: str | None, algorithm: str
) -> LegacyTraining | None:
    """How a config's Ray trained; None: as it does today, or that Ray is not known."""
    release = legacy_ray
    if release is None and config.get("vtrace") is False:  # no Ray has this default
        release = NEWEST_WITHOUT_VTRACE
    if release is None or Version(release) >= Version(TODAY):
        return None
    framework = framework_of(config)
    return LegacyTraining.of_release(
        release,
        framework,
        simple_optimizer=uses_simple_optimizer(release, framework, config.get("simple_optimizer")),
        shuffles=config.get("shuffle_sequences") is not False,
        replay=replay_of(release, algorithm, config),
        collected_steps=collected_steps(release, config),
        vtrace_drops_last_step=config.get("vtrace_drop_last_ts", True) is not False,
        vtrace=config.get("vtrace", True) not in (False, None),
        initial_lr=_first_lr(config, release, algorithm) if framework == "torch" else None,
    )


def _first_lr(config: Mapping[str, Any], release: str, algorithm: str) -> float | None:
    if algorithm not in _LR_FIRST or not config.get("lr_schedule"):
        return None
    lr = {**table.default_config(algorithm, release), **config}.get("lr")
    return float(lr) if isinstance(lr, (int, float)) else None


def _old_network_rules(algorithm: str, config: Mapping[str, Any]) -> re.Pattern[str] | None:
    """The rules of the keys that the old networks have, and today's have not.

    Returns:
        What their ids look like; None: networks are today's.
    """
    if not fresh.makes(algorithm, config):
        return None
    return re.compile(_ONLY_OLD + (_ATTENTION if fresh.takes_attention(algorithm) else ""))
