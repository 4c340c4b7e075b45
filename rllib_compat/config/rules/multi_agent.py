"""Several agents: policies, who follows which, and what each policy has for itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.deferred import AdaptedMapping, ModelPerPolicy, PolicyLater, SpaceLater
from rllib_compat.config.rule import UNREAD, Outcome, Rule, drop_aloud, dropped, empty_section
from rllib_compat.config.rules.replay import BUFFER, MODE, REPLAYING
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import Config, ListOf, Table
from rllib_compat.config.values.kinds import Words
from rllib_compat.neutral.records import is_stand_in
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.neutral.space_text import parse_repr
from rllib_compat.neutral.spaces import from_object
from rllib_compat.runtime.policy_mapping import policy_by_number

FAMILY = "multi_agent"
DEFAULT_POLICY = "default_policy"
#: What tuned examples of Ray 2.0 – 2.9 named.
EXAMPLE_MAPPING = "ray.rllib.examples.multi_agent_and_self_play.policy_mapping_fn.PolicyMappingFn"
FIELDS = ("policy_class", "observation_space", "action_space", "config")

# RLlib's own policy classes: to name one meant the same as to name none.
STOCK = re.compile(
    r"^(A3C|APPO|BC|CQL|DDPG|DDPPO|DQN|Dreamer|IMPALA|Impala|MARWIL|PG|PPO|R2D2|RNNSAC|SAC|SimpleQ"
    r"|VTrace|AsyncPPO|ApeX|Apex)\w*(Policy|PolicyGraph)\w*$"
)


def _fields(spec: Any) -> dict[str, Any]:
    """The parts of a policy, given as a tuple of 0 to 4 entries, a dict, or a PolicySpec."""
    if isinstance(spec, (tuple, list)):
        return dict(zip(FIELDS, spec, strict=False))
    if isinstance(spec, Mapping):
        return {name: spec.get(name) for name in FIELDS}
    if spec is None or isinstance(spec, str) or is_stand_in(spec):
        return {}
    if isinstance(spec, type):
        return {"policy_class": spec}
    return {name: getattr(spec, name, None) for name in FIELDS}


def _class_name(policy_class: Any) -> str:
    if isinstance(policy_class, str):
        return policy_class.strip("<>' ").rpartition(".")[2].strip("'> ")
    if is_stand_in(policy_class):
        return str(policy_class.qualified).rpartition(".")[2]
    return str(getattr(policy_class, "__name__", ""))


def _is_stock(policy_class: Any) -> bool:
    """Whether a class is RLlib's own; one of the user's may be called like it."""
    home = getattr(policy_class, "__module__", "") if isinstance(policy_class, type) else "ray"
    return home.startswith(("ray", "rllib_compat")) and bool(STOCK.match(_class_name(policy_class)))


def _another_algorithm(given: Any, context: Context) -> str | None:
    """The algorithm of one of Ray's own classes, if it is not that of the config.

    Trainers with an execution plan have policies of several algorithms; nothing else has.
    """
    match = STOCK.match(_class_name(given))
    bases = given.__mro__ if isinstance(given, type) else ()
    if match is None or not any(base.__module__.startswith("ray.") for base in bases):
        return None
    name = registry.class_names().get(match[1])
    target = registry.of(name).becomes if name else None
    return None if target in (None, context.algorithm) else target


def _own_class(spec: Any) -> bool:
    given = _fields(spec).get("policy_class")
    if given is None or _is_stock(given):
        return False
    return not is_stand_in(given) and not isinstance(given, str)


def _own_model(spec: Any) -> bool:
    """Whether a policy's config names a model class of the old API stack."""
    config = _fields(spec).get("config")
    model = config.get("model") if isinstance(config, Mapping) else None
    named = model.get("custom_model") if isinstance(model, Mapping) else None
    return bool(named) and not is_stand_in(named)


def _needs_old(policies: Any) -> bool:
    specs = policies.values() if isinstance(policies, Mapping) else ()
    return any(_own_class(spec) or _own_model(spec) for spec in specs)


def _space(value: Any) -> SpaceLater | None:
    if value is None or is_stand_in(value):
        return None
    record = parse_repr(value) if isinstance(value, str) else from_object(value)
    if record is None and isinstance(value, (str, Mapping)):
        return None
    return SpaceLater(value if record is None else record)


def _policies(value: Any, context: Context) -> Outcome:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return drop_aloud(value, context)
    if not isinstance(value, Mapping):
        names = sorted(value) if isinstance(value, (set, frozenset)) else list(value)
        return Outcome({"multi_agent.policies": {name: PolicyLater() for name in names}})
    if not value:
        return Outcome(verdict=Verdict.DROPPED, message="there was one policy for all")
    specs: dict[str, PolicyLater] = {}
    overrides: dict[str, dict[str, Any]] = {}
    models: dict[str, dict[str, Any]] = {}
    for name, spec in value.items():
        fields = _fields(spec)
        parts: dict[str, Any] = {}
        _take_class(name, fields.get("policy_class"), parts, context)
        other = _another_algorithm(parts.get("policy_class"), context)
        mine = replace(context, algorithm=other, legacy_algorithm=other) if other else context
        for which in ("observation_space", "action_space"):
            space = _space(fields.get(which))
            if space is not None:
                parts[which] = space
            elif fields.get(which) is not None:
                context.note(
                    Verdict.DROPPED,
                    f".{name}.{which}",
                    f"{fields[which]!r} can't be read as a space",
                    severity=Severity.WARNING,
                    hint="the environment has to name the spaces of its agents",
                )
        own = fields.get("config")
        if isinstance(own, Mapping) and own:
            _take_config(name, own, parts, overrides, models, mine)
        specs[name] = PolicyLater(parts, other)
    if set(specs) == {DEFAULT_POLICY} and not specs[DEFAULT_POLICY].fields and not overrides:
        return Outcome(verdict=Verdict.DROPPED, message="there was one policy for all")
    settings: dict[str, Any] = {"multi_agent.policies": specs}
    if overrides:
        settings["rl_module.algorithm_config_overrides_per_module"] = overrides
    if models:
        settings["rl_module.rl_module_spec"] = ModelPerPolicy(
            {name: models.get(name, {}) for name in specs}
        )
    return Outcome(settings)


def _take_class(name: str, given: Any, parts: dict[str, Any], context: Context) -> None:
    if given is None:
        return
    where = f".{name}[0]"
    if context.stack == "old" and _another_algorithm(given, context):
        parts["policy_class"] = given
    elif _is_stock(given):
        context.note(Verdict.DROPPED, where, "RLlib's own policy class: what None means, too")
    elif is_stand_in(given) or isinstance(given, str):
        context.note(
            Verdict.DROPPED,
            where,
            f"{given!r}: code that was kept with the config is not executed",
            severity=Severity.WARNING,
            hint="pass it again",
        )
    elif context.stack == "old":
        parts["policy_class"] = given
    else:
        context.note(
            Verdict.REFUSED,
            where,
            f"the policy class {_class_name(given)} runs on the old API stack only",
            severity=Severity.ERROR,
            hint="rewrite it as an RLModule, or pass api_stack='old'",
        )


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
            if context.stack == "old":
                _nest(flat, argument, value)
        else:
            context.note(
                Verdict.DROPPED,
                f".{name}[3]",
                f"{setting} can't differ between policies",
                severity=Severity.WARNING,
            )
    if not flat:
        return
    if context.stack == "old":
        parts["config"] = flat
    else:
        overrides[name] = flat


def _nest(settings: dict[str, Any], path: str, value: Any) -> None:
    *sections, last = path.split(".")
    for section in sections:
        settings = settings.setdefault(section, {})
    settings[last] = value


def _mapping_fn(value: Any, _: Context) -> Outcome:
    if value is None or "DEFAULT_POLICY_MAPPING_FN" in getattr(value, "__qualname__", ""):
        return Outcome(verdict=Verdict.DROPPED, message=f"all agents follow {DEFAULT_POLICY!r}")
    if isinstance(value, Mapping) and value.get("type") == EXAMPLE_MAPPING:
        return Outcome({"multi_agent.policy_mapping_fn": AdaptedMapping(policy_by_number)})
    if not callable(value):
        return Outcome(
            verdict=Verdict.DROPPED,
            message=f"{value!r} can't be called",
            severity=Severity.WARNING,
            hint="pass the function itself",
        )
    return Outcome({"multi_agent.policy_mapping_fn": AdaptedMapping(value)})


def _to_train(value: Any, _: Context) -> Outcome:
    if value is None:
        return Outcome(verdict=Verdict.DROPPED, message="all policies are trained")
    if isinstance(value, (set, frozenset)):
        return Outcome({"multi_agent.policies_to_train": sorted(value)})
    return Outcome(
        {"multi_agent.policies_to_train": list(value) if isinstance(value, tuple) else value}
    )


def _policy_graphs(value: Any, context: Context) -> Outcome:
    return _policies(value, context)


def _observation_fn(value: Any, _: Context) -> Outcome:
    if value is None:
        return Outcome(verdict=Verdict.DROPPED, message="there was none")
    return Outcome({"env.observation_fn": value})


def _replay_mode(value: Any, context: Context) -> Outcome:
    if context.stack == "old" and context.algorithm in REPLAYING:
        return Outcome({f"{BUFFER}.replay_mode": value}, Verdict.MOVED)
    if value in (None, "independent") or value == -1:
        return Outcome(message="modules are sampled independently, as they were")
    return Outcome(
        severity=Severity.WARNING,
        message=f"{value!r}: the new API stack samples modules independently",
        hint="api_stack='old' keeps it",
    )


def _both(key: str, verdict: Verdict, why: str, **options: Any) -> tuple[Rule, ...]:
    """The rule of a key of `multiagent`, which Ray 2.x has at the top level, too."""
    return (
        Rule(FAMILY, f"multiagent.{key}", verdict, why, **options),
        Rule(FAMILY, key, verdict, why, **options),
    )


RULES = (
    Rule(
        FAMILY,
        "multiagent",
        Verdict.MOVED,
        "its keys are arguments of multi_agent()",
        target="multi_agent",
        section=True,
        convert=empty_section,
        value=v.SECTION,
    ),
    *_both(
        "policies",
        Verdict.CONVERTED,
        "specs of all policies; what one has for itself goes to its module",
        target="multi_agent.policies",
        convert=_policies,
        value=v.POLICIES,
        needs_old=_needs_old,
    ),
    Rule(
        FAMILY,
        "multiagent.policy_graphs",
        Verdict.RENAMED,
        "renamed in Ray 0.7",
        target="multi_agent.policies",
        convert=_policy_graphs,
        value=v.POLICIES,
        needs_old=_needs_old,
    ),
    *_both(
        "policy_mapping_fn",
        Verdict.WRAPPED,
        "called with what its signature takes",
        target="multi_agent.policy_mapping_fn",
        convert=_mapping_fn,
        value=v.MADE,
    ),
    *_both(
        "policies_to_train",
        Verdict.MOVED,
        "",
        target="multi_agent.policies_to_train",
        convert=_to_train,
        value=ListOf(v.POLICY) | v.CODE,
    ),
    *_both(
        "observation_fn",
        Verdict.WRAPPED,
        "the wrapped environment calls it; worker, policies and episode are None there",
        target="env.observation_fn",
        convert=_observation_fn,
        value=v.CODE,
    ),
    *_both(
        "policy_map_capacity",
        Verdict.DROPPED,
        "no argument of today's config; an env runner of a Trainer holds so many frozen policies",
        old_target="multi_agent.policy_map_capacity",
        value=v.LENGTH,
    ),
    *_both(
        "policy_states_are_swappable",
        Verdict.DROPPED,
        "frozen policies of a Trainer share their weights whether they were or not",
        old_target="multi_agent.policy_states_are_swappable",
        value=v.FLAG,
    ),
    *_both(
        "policy_map_cache",
        Verdict.DROPPED,
        "Ray's object store writes to disk by itself what does not fit",
        value=UNREAD,
    ),
    *_both(
        "count_steps_by",
        Verdict.MOVED,
        "",
        target="multi_agent.count_steps_by",
        value=Words(("env_steps", "agent_steps")),
    ),
    *_both(
        "replay_mode",
        Verdict.DROPPED,
        "a key of the replay buffer",
        old_target="training.replay_buffer_config.replay_mode",
        convert=_replay_mode,
        value=MODE,
    ),
    *_both(
        "algorithm_config_overrides_per_module",
        Verdict.MOVED,
        "",
        target="rl_module.algorithm_config_overrides_per_module",
        value=Table(v.POLICY, Config(raw=True)),
        old_target="",
    ),
    *dropped(FAMILY, "_per_module_overrides", "Ray fills it from the overrides per module"),
)
