"""The legacy config of a checkpoint as it is translated: what its file says, and what replaces it.

A checkpoint of Ray 2.1 and later has the complete config, including defaults. The user has chosen
only the values that differ from that Ray's defaults; the others are one line of the report. The
policies are those of the checkpoint, with the spaces that were found. If this machine lacks the
environment, a placeholder with its spaces replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from rllib_compat import registry
from rllib_compat.config import Origin, default_config
from rllib_compat.config.rules import find
from rllib_compat.config.validation import validate_config
from rllib_compat.config.values.kinds import is_plain_env_name
from rllib_compat.conversion.given import Given
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import GlobalRef, StandIn, is_stand_in
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.ray_versions import tune
from rllib_compat.registry import keys as table
from rllib_compat.runtime.policy_mapping import PolicyOfSameName

#: The keys of SAC's config for the layers of its critics and of its policy.
_CRITIC_AND_ACTOR = (("Q_model", "policy_model"), ("q_model_config", "policy_model_config"))

#: The multi-agent keys, which are in their own dict or at the top level, depending on the Ray.
#: Other keys of the dict are translated as any key.
_KEYS = ("policies", "policy_graphs", "policy_mapping_fn", "policies_to_train")

#: The installed Ray's keys for reading recordings.
_READING = {"input_read_method", "input_read_episodes", "input_read_sample_batches"}

#: A policy's config with more keys is a complete config, not the user's override.
_COMPLETE = 60

_NO_VALUE = object()


@frozen
class ConfigSources:
    """A legacy config for the translation, separated by its sources.

    Attributes:
        from_file: The checkpoint's config, of which only declared values pass, and never code.
        from_caller: The caller's keys, and this package's replacements of the file's.
        findings: The changes so far.
    """

    from_file: Mapping[str, Any]
    from_caller: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def without(self, *keys: str) -> ConfigSources:
        """Returns the sources without some of the file's keys."""
        kept = {key: value for key, value in self.from_file.items() if key not in keys}
        return replace(self, from_file=kept)

    def changing(self, **values: object) -> ConfigSources:
        """Returns the sources with other values of the file's keys."""
        return replace(self, from_file={**self.from_file, **values})

    def giving(self, **values: object) -> ConfigSources:
        """Returns the sources with more of the caller's keys."""
        return replace(self, from_caller={**self.from_caller, **values})

    def with_findings(self, *findings: Finding) -> ConfigSources:
        """Returns the sources with more findings."""
        return replace(self, findings=(*self.findings, *findings))


def collect_sources(
    checkpoint: LegacyCheckpoint, given: Given, env: Mapping[str, object]
) -> ConfigSources:
    """Separates a checkpoint's config by its sources, and replaces what can't be translated.

    `env` has the keys of the environment that this package has stored; empty: it has not.
    """
    sources = ConfigSources(checkpoint.config)
    for step in (
        _without_defaults,
        _without_attention,
        _without_custom_model,
        _without_shapes_of_critics,
        _with_policies,
    ):
        sources = step(sources, checkpoint, given)
    sources = _with_env(sources.changing(**env), checkpoint, given)
    sources = _without_recordings(sources, checkpoint, given)
    # The caller's keys have precedence.
    own = {key: value for key, value in given.overrides.items() if key != "multiagent"}
    return sources.without(*own).giving(**own)


def _without_defaults(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, _: Given
) -> ConfigSources:
    """Removes the defaults of a config's Ray."""
    if not checkpoint.config_is_complete:
        return sources
    config, legacy_ray = sources.from_file, checkpoint.source.ray_version
    defaults = default_config(checkpoint.algorithm or "PPO", legacy_ray or "2.10.0")
    chosen = _without_rays_own(_diff(config, defaults), checkpoint.algorithm)
    finding = Finding.info(
        "config",
        Verdict.NOTE,
        "config",
        f"{len(config) - len(chosen)} of {len(config)} keys have the default of Ray "
        f"{legacy_ray}, or are Ray's own; {len(chosen)} were chosen and are translated",
    )
    return replace(sources, from_file=chosen).with_findings(finding)


def _diff(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a config that differ from the defaults, also in nested dicts."""
    different = {}
    for key, value in config.items():
        default = defaults.get(key, _NO_VALUE)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            if inner := _diff(value, default):
                different[key] = inner
        elif not _same_value(value, default):
            different[key] = value
    return different


def _same_value(a: Any, b: Any) -> bool:
    """Whether two values are equal, and of the same type."""
    if a is b:
        return True
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same_value, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    return type(a) is type(b) and bool(a == b)


def _without_rays_own(config: Mapping[str, Any], algorithm: str | None) -> dict[str, Any]:
    """Removes Ray's internal keys, also in nested configs."""
    chosen = {}
    for key, value in config.items():
        if (
            _is_of_ray(value)
            or _is_of_this_package(value)
            or _is_kept_by_ray(key, value, algorithm)
        ):
            continue
        inner = isinstance(value, Mapping) and key == "evaluation_config"
        chosen[key] = _without_rays_own(value, algorithm) if inner else value
    return chosen


def _is_kept_by_ray(key: str, value: object, algorithm: str | None) -> bool:
    """Whether a key is private, or -1 as a placeholder of another algorithm's key."""
    if key.startswith(("_AlgorithmConfig__", "__")):
        return True
    owners = {home for home in table.homes(key) if home != "common"}
    return bool(owners) and algorithm not in owners and type(value) is int and value == -1


def _is_of_ray(value: object) -> bool:
    """Whether a value names only classes of RLlib, which each Ray has itself."""
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_of_ray, value.values()))
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_of_ray, value))
    return isinstance(value, (GlobalRef, StandIn)) and value.qualified.startswith("ray.rllib.")


def _is_of_this_package(value: object, deepest: int = 8) -> bool:
    """Whether a value is a function of this package with its arguments, which is created again.

    A user's own function among the arguments is lost, and reported.
    """
    if not isinstance(value, StandIn) or value.qualified != "functools.partial" or not deepest:
        return False
    match value.state:
        case (_, tuple() as arguments, dict() as words, _):
            inner = (*value.args, *arguments, *words.values())
        case _:
            return False
    code = [one for one in inner if isinstance(one, (GlobalRef, StandIn))]
    return all(
        one.qualified.startswith("rllib_compat.") or _is_of_this_package(one, deepest - 1)
        for one in code
    )


def _without_attention(sources: ConfigSources, _: LegacyCheckpoint, __: Given) -> ConfigSources:
    """Removes attention from `model`, whose keys only the old API stack has now.

    The modules of a converted checkpoint have the attention themselves.
    """
    model = sources.from_file.get("model")
    if not isinstance(model, Mapping) or not model.get("use_attention"):
        return sources
    keys = [key for key in model if str(key).startswith(("use_attention", "attention_"))]
    kept = {key: value for key, value in model.items() if key not in keys}
    finding = Finding.info(
        "attention",
        Verdict.CONVERTED,
        "config.model.use_attention",
        f"{len(keys)} keys are in the modules now",
    )
    return sources.changing(model=kept).with_findings(finding)


def _without_custom_model(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given
) -> ConfigSources:
    """Removes a custom model from `model`, which the modules replace.

    The caller passes it as a module, or it is one that DDPG ignored.
    """
    model = sources.from_file.get("model")
    stands = given.model or registry.of(checkpoint.algorithm).reader == "ddpg"
    if not (isinstance(model, Mapping) and model.get("custom_model") and stands):
        return sources
    kept = {key: value for key, value in model.items() if key != "custom_model"}
    finding = Finding.info(
        "custom-model",
        Verdict.CONVERTED,
        "config.model.custom_model",
        f"{given.model} replaces it" if given.model else "its layers are in the modules",
    )
    return sources.changing(model=kept).with_findings(finding)


def _without_shapes_of_critics(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, _: Given
) -> ConfigSources:
    """Removes the layers of critics from SAC's config, if they differ from the policy's.

    A new config has one setting for both; the modules of a converted checkpoint have their own.
    RNNSAC's config, which is this package's, has two.
    """
    algorithm = registry.of(checkpoint.algorithm)
    if not algorithm.soft_actor_critic or algorithm.name == "RNNSAC":
        return sources
    config, removed = dict(sources.from_file), dict[str, Any]()
    for critic, actor in _CRITIC_AND_ACTOR:
        ours, theirs = config.get(critic), config.get(actor)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            other = {k: v for k, v in ours.items() if k in theirs and theirs[k] != v}
            config[critic] = {k: v for k, v in ours.items() if k not in other}
            removed |= {f"{critic}.{key}": value for key, value in other.items()}
    if not removed:
        return sources
    shapes = ", ".join(f"{key} {value!r}" for key, value in removed.items())
    finding = Finding.info(
        "critics",
        Verdict.CONVERTED,
        "config.model",
        f"the critics keep their own layers, in their module: {shapes}",
    )
    return replace(sources, from_file=config).with_findings(finding)


def _without_recordings(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given
) -> ConfigSources:
    """Removes the paths of recordings, and settings that depend on them.

    Ray reads recordings when it loads a checkpoint; then the files would have to be at the same
    paths, in a format of the installed Ray. Without them, Ray loads the checkpoint, and `train()`
    raises that a NoneType has no attribute sample.
    """
    keys = ("input", "input_")
    algorithm = registry.of(checkpoint.algorithm)
    if not algorithm.offline:
        return sources
    if any(key in given.overrides for key in keys):
        # The settings for reading belong to the files: a converted checkpoint has Ray's defaults.
        return sources.changing(**dict.fromkeys(_READING & checkpoint.config.keys()))
    inputs = [v for k in keys if (v := sources.from_file.get(k)) not in (None, "", "sampler")]
    finding = Finding.warning(
        "offline-data",
        Verdict.RESET,
        "config.input",
        f"the training used recordings in {inputs[0]!r}; the checkpoint loads without them"
        if inputs
        else f"{algorithm.name} trains on recordings, and the config has none; the checkpoint "
        "loads, and train() raises an error until it has some",
        'to continue training: rllib_compat.load(CHECKPOINT, input="/path/to/recordings").train(), '
        "also with old JSON files; with Ray only: AlgorithmConfig.offline_data(input_=…)",
    )
    if not inputs:
        return sources.with_findings(finding)
    return sources.without(*keys).with_findings(finding)


def _with_policies(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given
) -> ConfigSources:
    """Replaces `multiagent` with the checkpoint's policies."""
    config = sources.from_file
    section = config.get("multiagent")
    part = dict(section) if isinstance(section, Mapping) else {}
    sources = sources.without("multiagent", *_KEYS)
    if not checkpoint.is_multi_agent:
        return sources
    rest = {key: value for key, value in part.items() if key not in _KEYS}
    others = validate_config({"multiagent": rest}, _algorithms(checkpoint), Origin.FILE)
    made: dict[str, Any] = dict(others.config.get("multiagent") or {})
    made["policies"] = {}
    findings = list(others.findings)
    for policy_id, policy in checkpoint.policies.items():
        spec, found = _spec(checkpoint, policy)
        made["policies"][policy_id] = spec
        findings += found
    callers = dict(given.overrides.get("multiagent") or {})
    made |= callers
    if "policy_mapping_fn" not in callers:
        made["policy_mapping_fn"] = PolicyOfSameName(tuple(checkpoint.policies))
        lost = Finding.warning(
            "policy-mapping",
            Verdict.RESET,
            "policy_mapping_fn",
            "the policy mapping function is code and was not executed; each agent now has the "
            "policy with its id",
            "to continue training: "
            "rllib_compat.load(NEW, env=MyEnv, policy_mapping_fn=my_function)",
        )
        findings.append(lost)
    if "policies_to_train" in callers:
        return sources.giving(multiagent=made).with_findings(*findings)
    key = "policies_to_train"
    said = (checkpoint.policies_to_train, part.get(key), config.get(key))
    trained, found = _to_train(checkpoint, [one for one in said if one is not None])
    can_learn = [k for k, policy in checkpoint.policies.items() if policy.has_weights]
    if len(can_learn) < len(checkpoint.policies):
        trained = [k for k in can_learn if trained is None or k in trained]
    if trained is not None:
        made[key] = trained
    return sources.giving(multiagent=made).with_findings(*findings, *found)


def _to_train(
    checkpoint: LegacyCheckpoint, sources: list[Any]
) -> tuple[list[str] | None, list[Finding]]:
    """Returns the policies to train, from the state or the config; None: all."""
    path = "policies_to_train"
    named = next((s for s in sources if isinstance(s, (list, tuple, set, frozenset))), None)
    if named is None:
        reset = Finding.warning(
            "policies-to-train",
            Verdict.RESET,
            path,
            "code, which was not executed, decided which policies to train; now all are trained",
            "before you continue training: config.multi_agent(policies_to_train=[…])",
        )
        return None, [reset] if sources else []
    trained, unknown = _ids(checkpoint, named)
    frozen = [policy_id for policy_id in checkpoint.policies if policy_id not in trained]
    message = f"trained: {', '.join(trained) or 'none'}; as they are: {', '.join(frozen) or 'none'}"
    if any(is_stand_in(source) for source in sources):
        message += " (by the config; code that may have changed it was not executed)"
    if unknown:
        message += f"; not in this checkpoint: {', '.join(unknown)}"
    severity = Severity.WARNING if unknown else Severity.INFO
    return trained, [Finding("policies-to-train", severity, Verdict.KEPT, path, message)]


def _ids(checkpoint: LegacyCheckpoint, named: Iterable[Any]) -> tuple[list[str], list[str]]:
    """Returns the current ids of a file's policies, in the checkpoint's order, and unknown ids."""
    names = {str(name) for name in named}
    old = {policy.old_id: policy_id for policy_id, policy in checkpoint.policies.items()}
    known = [policy_id for old_id, policy_id in old.items() if old_id in names]
    return known, sorted(names - old.keys())


def _spec(checkpoint: LegacyCheckpoint, policy: PolicyState) -> tuple[Any, list[Finding]]:
    """Returns a policy's tuple: class, spaces, and its own settings."""
    assert policy.observation_space is not None
    assert policy.action_space is not None
    valid = validate_config(_overrides(checkpoint, policy), _algorithms(checkpoint), Origin.FILE)
    spec = (
        None,
        spaces.to_gymnasium(policy.observation_space),
        spaces.to_gymnasium(policy.action_space),
        valid.config,
    )
    return spec, valid.findings


def _overrides(checkpoint: LegacyCheckpoint, policy: PolicyState) -> dict[str, Any]:
    """Returns a policy's own settings.

    Ray 2.1 and later stored the worker's complete config for each policy, of which only training
    settings can differ.
    """
    own, algorithms = policy.config, _algorithms(checkpoint)
    base = dict(checkpoint.config)
    if len(own) > _COMPLETE:
        defaults = default_config(algorithms[0], checkpoint.source.ray_version or "2.10.0")
        base = {**defaults, **base}
        own = {key: value for key, value in own.items() if _is_for_training(key, algorithms)}
    return {
        key: value
        for key, value in own.items()
        if key != "model" and not _same_value(value, base.get(key, _NO_VALUE))
    }


def _is_for_training(key: str, algorithms: tuple[str, str]) -> bool:
    rule = find(key, algorithms)
    return rule is not None and rule.target.startswith("training.")


def _algorithms(checkpoint: LegacyCheckpoint) -> tuple[str, str]:
    algorithm = registry.of(checkpoint.algorithm)
    return algorithm.name, algorithm.becomes


def _with_env(sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given) -> ConfigSources:
    """Adds a placeholder if this machine lacks the checkpoint's environment.

    A placeholder creates the environment once its name is registered; until then, it has only the
    spaces. A checkpoint's name is looked up among registered ones, and never imported.
    """
    from rllib_compat.runtime.envs import find_creator, why_not_importable
    from rllib_compat.runtime.placeholders import placeholder_env, placeholder_multi_agent_env

    env, why = sources.from_file.get("env"), None
    if given.env is not None:
        sources = sources.without("env").giving(env=given.env)
        if not isinstance(given.env, str):
            return sources
        env, why = given.env, why_not_importable(given.env)
        if why is None and find_creator(env) is not None:
            return sources
    elif _is_trusted(env, given):
        return sources
    elif (
        isinstance(env, str)
        and is_plain_env_name(env)
        and (why := why_not_importable(env)) is None
        and find_creator(env, trusted=False)
    ):
        return sources if tune.is_registered_env(env) else _without_paths(sources)
    name = env if isinstance(env, str) else getattr(env, "label", None)
    env_config = _valid_env_config(sources, checkpoint)
    known = {
        policy_id: (policy.observation_space, policy.action_space)
        for policy_id, policy in checkpoint.policies.items()
        if policy.observation_space is not None and policy.action_space is not None
    }
    if not checkpoint.is_multi_agent:
        ((observation, action),) = known.values()
        cls, env_config = placeholder_env(name, observation, action, env_config)
    else:
        cls, env_config = placeholder_multi_agent_env(name, known, env_config)
    sources = sources.without("env", "env_config", "disable_env_checking")
    sources = sources.giving(env=cls, env_config=env_config, disable_env_checking=True)
    return sources.with_findings(_unknown_env(name, why))


def _without_paths(sources: ConfigSources) -> ConfigSources:
    """Removes strings from the file's `env_config`s that gymnasium's environments could open.

    An `evaluation_config` has its own `env_config`.
    """
    findings: list[Finding] = []
    given, changed = sources.from_caller, dict[str, Any]()
    own = sources.from_file.get("env_config")
    if isinstance(own, Mapping) and "env_config" not in given:
        changed["env_config"] = _keep_plain(own, "env_config", findings)
    evaluation = sources.from_file.get("evaluation_config")
    evaluation = evaluation if isinstance(evaluation, Mapping) else {}
    inner = evaluation.get("env_config")
    if isinstance(inner, Mapping) and "evaluation_config" not in given:
        kept = _keep_plain(inner, "evaluation_config.env_config", findings)
        changed["evaluation_config"] = {**evaluation, "env_config": kept}
    return sources.changing(**changed).with_findings(*findings) if findings else sources


def _keep_plain(
    env_config: Mapping[Any, Any], where: str, findings: list[Finding]
) -> dict[str, Any]:
    """Removes values that could be paths, with a row for each."""
    from rllib_compat.runtime.envs import without_paths

    kept = without_paths({str(key): value for key, value in env_config.items()})
    findings += [
        Finding.warning(
            "environment",
            Verdict.DROPPED,
            f"config.{where}.{key}"[:300],
            "it could be the name of a file, and environments of gymnasium open such files",
            "if it is right, say so: rllib_compat.load(OLD, env_config={…})",
        )
        for key in env_config
        if str(key) not in kept
    ]
    return kept


def _is_trusted(env: object, given: Given) -> bool:
    text = env.qualified if isinstance(env, GlobalRef) else env
    trusted = {name.replace(":", ".") for name in given.trust}
    return isinstance(text, str) and text.replace(":", ".") in trusted


def _valid_env_config(sources: ConfigSources, checkpoint: LegacyCheckpoint) -> dict[str, Any]:
    """Returns the valid part of the file's `env_config`."""
    algorithm = registry.of(checkpoint.algorithm)
    part = {key: value for key, value in sources.from_file.items() if key == "env_config"}
    valid = validate_config(part, (algorithm.name, algorithm.becomes), Origin.FILE).config
    env_config = valid.get("env_config")
    return dict(env_config) if isinstance(env_config, Mapping) else {}


def _unknown_env(name: str | None, why: str | None) -> Finding:
    """Returns the row for an environment that this machine lacks."""
    if name is None:
        message = "the checkpoint does not name its environment; it loads, and has the spaces"
        hint = "give it with --env, or to continue training: rllib_compat.load(NEW, env=MyEnv)"
    elif why is not None:
        message = f"the environment {name!r} can't be made here; the checkpoint loads, and has "
        message += f"its spaces: {why}"
        hint = "before you continue training, install what is missing"
    else:
        message = f"the environment {name!r} is not known on this machine; the checkpoint loads, "
        message += "and has its spaces"
        hint = f"before you continue training: ray.tune.register_env({name!r}, lambda config: "
        hint += "MyEnv(config)), in each program that loads it"
    return Finding.warning("environment", Verdict.DERIVED, "config.env", message, hint)
