"""Conversions of several agents: policies, who follows which, and what each has for itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rllib_compat import registry
from rllib_compat.config.deferred import DeferredPolicy, DeferredSpace, ModelPerPolicy
from rllib_compat.config.rule import Context, Outcome, drop
from rllib_compat.config.rules.common import warn_if_set
from rllib_compat.neutral.deferred import PublicCall
from rllib_compat.neutral.records import is_stand_in
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.neutral.spaces import from_object, parse_repr
from rllib_compat.registry import keys
from rllib_compat.runtime.policy_mapping import policy_by_number

DEFAULT_POLICY = "default_policy"
#: What tuned examples of Ray 2.0 – 2.9 named.
_EXAMPLE_MAPPING = "ray.rllib.examples.multi_agent_and_self_play.policy_mapping_fn.PolicyMappingFn"
_FIELDS = ("policy_class", "observation_space", "action_space", "config")

# RLlib's own policy classes: to name one meant the same as to name none.
_RLLIBS_POLICY = re.compile(
    r"^(A3C|APPO|BC|CQL|DDPG|DDPPO|DQN|Dreamer|IMPALA|Impala|MARWIL|PG|PPO|R2D2|RNNSAC|SAC|SimpleQ"
    r"|VTrace|AsyncPPO|ApeX|Apex)\w*(Policy|PolicyGraph)\w*$"
)


def fields_of(spec: object) -> dict[str, Any]:
    """The parts of a policy, given as a tuple of 0 to 4 entries, a dict, or a PolicySpec."""
    if isinstance(spec, (tuple, list)):
        return dict(zip(_FIELDS, spec, strict=False))
    if isinstance(spec, Mapping):
        return {name: spec.get(name) for name in _FIELDS}
    if spec is None or isinstance(spec, str) or is_stand_in(spec):
        return {}
    if isinstance(spec, type):
        return {"policy_class": spec}
    return {name: getattr(spec, name, None) for name in _FIELDS}


def _class_name(policy_class: Any) -> str:
    if isinstance(policy_class, str):
        return policy_class.strip("<>' ").rpartition(".")[2].strip("'> ")
    if is_stand_in(policy_class):
        return str(policy_class.qualified).rpartition(".")[2]
    return str(getattr(policy_class, "__name__", ""))


def _is_rllibs(policy_class: object) -> bool:
    """Whether a class is RLlib's own; one of the user's may be called like it."""
    home = getattr(policy_class, "__module__", "") if isinstance(policy_class, type) else "ray"
    is_rays = home.startswith(("ray", "rllib_compat"))
    return is_rays and bool(_RLLIBS_POLICY.match(_class_name(policy_class)))


def _algorithm_of(given: object) -> str | None:
    """What became of the algorithm of one of Ray's own policy classes."""
    match = _RLLIBS_POLICY.match(_class_name(given))
    bases = given.__mro__ if isinstance(given, type) else ()
    if match is None or not any(base.__module__.startswith("ray.") for base in bases):
        return None
    name = registry.class_names().get(match[1])
    return registry.of(name).becomes if name else None


def _another_algorithm(given: object, context: Context) -> str | None:
    """The algorithm of one of Ray's own classes, if it is not that of the config."""
    target = _algorithm_of(given)
    return None if target == context.algorithm else target


def _own_class(spec: object) -> bool:
    given = fields_of(spec).get("policy_class")
    if given is None or _is_rllibs(given):
        return False
    return not is_stand_in(given) and not isinstance(given, str)


def _own_model(spec: object) -> bool:
    """Whether a policy's config names a model class of the old API stack."""
    config = fields_of(spec).get("config")
    model = config.get("model") if isinstance(config, Mapping) else None
    named = model.get("custom_model") if isinstance(model, Mapping) else None
    return bool(named) and not is_stand_in(named)


def needs_old(policies: object) -> bool:
    """Whether a policy has a class or model of the old API stack, or policies mix algorithms."""
    specs = policies.values() if isinstance(policies, Mapping) else ()
    named = {_algorithm_of(fields_of(spec).get("policy_class")) for spec in specs}
    if len(named - {None}) > 1:
        return True
    return any(_own_class(spec) or _own_model(spec) for spec in specs)


def _space(value: object) -> DeferredSpace | None:
    if value is None or is_stand_in(value):
        return None
    record = parse_repr(value) if isinstance(value, str) else from_object(value)
    if record is None and isinstance(value, (str, Mapping)):
        return None
    return DeferredSpace(value if record is None else record)


def policies(value: object, context: Context) -> Outcome:
    """The specs of all policies; what one has for itself goes to its module."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return warn_if_set(value, context)
    if not isinstance(value, Mapping):
        names = sorted(value) if isinstance(value, (set, frozenset)) else list(value)
        return Outcome({"multi_agent.policies": {name: DeferredPolicy() for name in names}})
    if not value:
        return drop("there was one policy for all")
    specs: dict[str, DeferredPolicy] = {}
    overrides: dict[str, dict[str, Any]] = {}
    models: dict[str, dict[str, Any]] = {}
    for name, spec in value.items():
        fields = fields_of(spec)
        parts: dict[str, Any] = {}
        _take_class(name, fields.get("policy_class"), parts, context)
        other = _another_algorithm(parts.get("policy_class"), context)
        mine = replace(context, algorithm=other, legacy_algorithm=other) if other else context
        for which in ("observation_space", "action_space"):
            space = _space(fields.get(which))
            if space is not None:
                parts[which] = space
            elif fields.get(which) is not None:
                message = f"{fields[which]!r} can't be read as a space"
                hint = "the environment has to name the spaces of its agents"
                where = f".{name}.{which}"
                context.note(Verdict.DROPPED, where, message, Severity.WARNING, hint)
        own = fields.get("config")
        if isinstance(own, Mapping):
            of_own_class = "policy_class" in parts and _own_class(spec)
            own = _take_own_keys(name, own, parts if of_own_class else None, context)
        if own:
            _take_config(name, own, parts, overrides, models, mine)
        specs[name] = DeferredPolicy(parts, other)
    if set(specs) == {DEFAULT_POLICY} and not specs[DEFAULT_POLICY].fields and not overrides:
        return drop("there was one policy for all")
    settings: dict[str, Any] = {"multi_agent.policies": specs}
    if overrides:
        settings["rl_module.algorithm_config_overrides_per_module"] = overrides
    if models:
        settings["rl_module.rl_module_spec"] = ModelPerPolicy(
            {name: models.get(name, {}) for name in specs}
        )
    return Outcome(settings)


def _take_class(name: str, given: object, parts: dict[str, Any], context: Context) -> None:
    if given is None:
        return
    where = f".{name}[0]"
    if context.stack == "old" and _another_algorithm(given, context):
        parts["policy_class"] = given
    elif _is_rllibs(given):
        context.note(Verdict.DROPPED, where, "RLlib's own policy class: what None means, too")
    elif is_stand_in(given) or isinstance(given, str):
        message = f"{given!r}: code that was kept with the config is not executed"
        context.note(Verdict.DROPPED, where, message, Severity.WARNING, "pass it again")
    elif context.stack == "old":
        parts["policy_class"] = given
    else:
        message = f"the policy class {_class_name(given)} runs on the old API stack only"
        hint = "rewrite it as an RLModule, or pass api_stack='old'"
        context.note(Verdict.REFUSED, where, message, Severity.ERROR, hint)


def _take_own_keys(
    name: str, own: Mapping[str, Any], parts: dict[str, Any] | None, context: Context
) -> Mapping[str, Any]:
    """Gives a policy of a custom class the keys that only that class has; returns the others.

    Old Rays took any key here. Without a custom class (`parts` is None), nothing reads these.
    """
    unknown = {key: value for key, value in own.items() if keys.lifetime(key) is None}
    if unknown and parts is not None:
        parts["config"] = unknown
        message = f"{', '.join(unknown)}: the policy's own class reads it"
        context.note(Verdict.KEPT, f".{name}[3]", message)
    elif unknown:
        message = f"{', '.join(unknown)}: no Ray from 0.5 on had it, and nothing reads it"
        context.note(Verdict.DROPPED, f".{name}[3]", message, Severity.WARNING)
    return {key: value for key, value in own.items() if key not in unknown}


def _take_config(
    name: str,
    own: Mapping[str, Any],
    parts: dict[str, Any],
    overrides: dict[str, dict[str, Any]],
    models: dict[str, dict[str, Any]],
    context: Context,
) -> None:
    """Sorts a policy's own config: what its learner reads, its model, and what is left over."""
    assert context.translate is not None
    settings = context.translate(own, f"{context.path}.{name}[3]", context)
    flat: dict[str, Any] = {}
    for setting, value in settings.items():
        method, _, argument = setting.partition(".")
        head, _, tail = argument.partition(".")
        if setting.startswith("rl_module.model_config."):
            models.setdefault(name, {})[tail] = value
        elif method == "training" and (not tail or head == "model"):
            _nest(flat, argument, value)
        elif method == "env_runners" and head in ("explore", "exploration_config"):
            if context.stack == "old" or head == "explore":
                _nest(flat, argument, value)
        else:
            message = f"{setting} can't differ between policies"
            context.note(Verdict.DROPPED, f".{name}[3]", message, Severity.WARNING)
    if not flat:
        return
    if context.stack == "old":
        parts["config"] = {**parts.get("config", {}), **flat}
    else:
        overrides[name] = flat


def _nest(settings: dict[str, Any], path: str, value: object) -> None:
    *sections, last = path.split(".")
    for section in sections:
        settings = settings.setdefault(section, {})
    settings[last] = value


def policy_mapping_fn(value: object, context: Context) -> Outcome:
    """The function that gives each agent a policy, with whatever arguments it takes."""
    if value is None or "DEFAULT_POLICY_MAPPING_FN" in getattr(value, "__qualname__", ""):
        return drop(f"all agents follow {DEFAULT_POLICY!r}")
    if isinstance(value, Mapping) and value.get("type") == _EXAMPLE_MAPPING:
        return Outcome({context.target: PublicCall("MappingFn", (policy_by_number,))})
    if not callable(value):
        message, hint = f"{value!r} can't be called", "pass the function itself"
        return drop(message, Severity.WARNING, hint)
    return Outcome({context.target: PublicCall("MappingFn", (value,))})


def policies_to_train(value: object, context: Context) -> Outcome:
    """Names of policies, or a function; None trains all."""
    if value is None:
        return drop("all policies are trained")
    if isinstance(value, (set, frozenset)):
        return Outcome({context.target: sorted(value)})
    return Outcome({context.target: list(value) if isinstance(value, tuple) else value})
