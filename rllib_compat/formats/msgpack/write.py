"""Writes a checkpoint in RLlib's msgpack form (version 1.1), as Ray's own conversion lays it out.

::

    rllib_checkpoint.json                          type, version, format, policy ids
    algorithm_state.msgpck                         algorithm, config, counters, the worker
    policies/<id>/rllib_checkpoint.json
    policies/<id>/policy_state.msgpck              weights, spec, optimizer, exploration

Ray's conversion has to build the old algorithm first, on a Ray that can still open the source.
This one writes from the neutral state, and departs from Ray's files in four points:

* `state_file` is a plain name, not the path on the machine that wrote it.
* All map keys are text. Ray writes the integer ids of a torch optimizer's parameters as keys,
  and then can't read its own file; here the ids are text in both places that hold them.
* No pickle is hidden in it as bytes. Ray keeps the state of a connector as one.
* The key `rllib_compat` holds what Ray's form has no place for, so that reading back gives the
  same neutral state. Arrays are not written twice; they are referred to.

Code does not go into msgpack. Where Ray reads a class by its dotted name, the name is written;
everything else becomes `__not_serializable__`, Ray's own mark, and gets a finding.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.formats.msgpack import codec as msgpack_codec
from rllib_compat.formats.msgpack.state import OWN_KEY, Place, to_plain
from rllib_compat.formats.spaces import to_preprocessed_dict, to_ray_dict
from rllib_compat.neutral.budget import Budget, budget_error
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.policy_id import why_unsafe
from rllib_compat.neutral.records import GlobalRef, StandIn, is_stand_in
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Space
from rllib_compat.registry.keys import DICT_KEYS

VERSION = "1.1"
NOT_SERIALIZABLE = "__not_serializable__"

_ALGORITHM_STATE = "algorithm_state.msgpck"
_POLICY_STATE = "policy_state.msgpck"
_METADATA = "rllib_checkpoint.json"

# Where Ray turns a dotted name back into the class.
_CLASS_KEYS = frozenset(
    {"callbacks", "callbacks_class", "class", "custom_model", "env", "sample_collector", "type"}
)

# Ray's own classes: without them the Ray that reads takes its own.
_RAYS_OWN = frozenset({"algo_class", "stats_cls_lookup"})

# An enum of texts, which Ray writes as its text.
_TEXT_ENUM = "ray.rllib.algorithms.algorithm_config.TorchCompileWhatToCompile"
_POLICY_SPEC = "ray.rllib.policy.policy.PolicySpec"

#: What the part for several agents called its policies.
_POLICIES = ("policies", "policy_graphs")


def write(
    checkpoint: LegacyCheckpoint, target: Path, budget: Budget | None = None
) -> list[Finding]:
    """Writes `checkpoint` into the empty directory `target`.

    Ray's form has no sharing, and repeats the config.

    Returns:
        What became of the parts that Ray's form has no place for.

    Raises:
        CheckpointError: A policy's id can't be a folder's name.
        BudgetExceededError: It would be more than the budget allows.
    """
    budget = budget or Budget()
    form = _RayForm(budget)
    for policy_id in checkpoint.policies:
        if why := why_unsafe(policy_id):
            raise CheckpointError(
                f"The policy id {policy_id!r} can't be the name of a folder: {why}.",
                where="policies",
                fix="Rename the policy; Ray refuses such ids as well.",
            )
    algorithm = _make_algorithm_state(checkpoint, form)
    form.said = frozenset(form.findings)
    for policy_id, policy in checkpoint.policies.items():
        folder = target / "policies" / policy_id
        folder.mkdir(parents=True)
        state = _make_policy_state(policy, checkpoint, form)
        _write_state(folder / _POLICY_STATE, state, policy, budget)
        _write_metadata(folder, checkpoint, "Policy", _POLICY_STATE)
    # Last: it holds the source's digests, which may still be computed.
    # The path is the writer's business; the name is enough to know which file it was.
    source = replace(checkpoint.source, path=Path(checkpoint.source.path.name))
    own = replace(checkpoint, source=source, policies={})
    _write_state(target / _ALGORITHM_STATE, algorithm, own, budget)
    _write_metadata(target, checkpoint, "Algorithm", _ALGORITHM_STATE)
    return form.findings


def _write_state(
    file: Path, state: dict[str, Any], own: LegacyCheckpoint | PolicyState, budget: Budget
) -> None:
    placed = {id(array): place for place, array in _find_arrays(state, [])}
    plain = to_plain(own, placed, budget=budget)
    msgpack_codec.pack_to({**state, OWN_KEY: plain}, file, budget=budget, where=file.name)
    budget.check_time(file.name)


def _write_metadata(folder: Path, checkpoint: LegacyCheckpoint, kind: str, file: str) -> None:
    metadata = {
        "type": kind,
        "checkpoint_version": VERSION,
        "format": "msgpack",
        "state_file": file,
        **({"policy_ids": list(checkpoint.policies)} if kind == "Algorithm" else {}),
        "ray_version": checkpoint.source.ray_version,
        "ray_commit": None,
    }
    (folder / _METADATA).write_text(json.dumps(metadata), "utf-8")


def _find_arrays(value: object, place: Place) -> list[tuple[Place, Any]]:
    """The arrays in Ray's part of a state, and where they lie."""
    if isinstance(value, np.ndarray):
        return [(place, value)]
    if isinstance(value, (dict, list)):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for key, part in parts for found in _find_arrays(part, [*place, key])]
    return []


def _make_algorithm_state(checkpoint: LegacyCheckpoint, form: _RayForm) -> dict[str, Any]:
    form.note_code(checkpoint.policy_mapping_fn, "policy_mapping_fn")
    form.note_code(checkpoint.policies_to_train, "policies_to_train")
    for key in checkpoint.extra:
        form.note(f"extra.{key}", "Ray's form has no place for it; kept for rllib-compat only")
    return {
        "algorithm_class": _full_class_name(checkpoint.algorithm),
        "config": form.config(checkpoint.config, "config"),
        "worker": {
            "policy_ids": list(checkpoint.policies),
            "policy_mapping_fn": NOT_SERIALIZABLE,
            "is_policy_to_train": NOT_SERIALIZABLE,
            # Ray wants live filter objects here, which msgpack has no form for.
            "filters": {},
        },
        "counters": form.convert(checkpoint.counters.raw, "counters"),
        "training_iteration": checkpoint.counters.iteration or 0,
        "checkpoint_version": VERSION,
    }


def _full_class_name(name: str | None) -> str | None:
    """The dotted name by which Ray 2.x finds a registered algorithm's class."""
    if name is None or "." in name:
        return name
    return f"ray.rllib.algorithms.{name.lower()}.{name.lower()}.{name}"


def _make_policy_state(
    policy: PolicyState, checkpoint: LegacyCheckpoint, form: _RayForm
) -> dict[str, Any]:
    path = f"policies.{policy.policy_id}"
    extra = {
        key: form.convert(value, f"{path}.{key}")
        for key, value in policy.extra.items()
        if key not in (OWN_KEY, "checkpoint_version")
    }
    state = {
        "weights": form.convert(policy.weights, f"{path}.weights"),
        "global_timestep": policy.global_timestep or 0,
        "num_grad_updates": extra.pop("num_grad_updates", 0),
        "policy_spec": {
            "policy_class": policy.policy_class and policy.policy_class.rsplit(".", 1)[-1],
            "observation_space": form.observation_space(policy.observation_space, path),
            "action_space": policy.action_space and {"space": to_ray_dict(policy.action_space)},
            "config": _make_policy_config(policy, checkpoint, form),
        },
        "connector_configs": extra.pop("connector_configs", {}),
        "_optimizer_variables": form.optimizer(policy.optimizer, f"{path}.optimizer"),
        "_exploration_state": form.convert(policy.exploration, f"{path}.exploration"),
        "current_kl_coeff": policy.kl_coeff,
        **extra,
        "checkpoint_version": VERSION,
    }
    _note_what_ray_misses(policy, form, path)
    optional = ("_optimizer_variables", "_exploration_state", "current_kl_coeff")
    return {k: part for k, part in state.items() if part is not None or k not in optional}


def _make_policy_config(
    policy: PolicyState, checkpoint: LegacyCheckpoint, form: _RayForm
) -> dict[str, Any]:
    """The policy's whole config; old ones hold only what differs from the algorithm's."""
    inner = _RayForm(form.budget)
    own = inner.config(policy.config, "config")
    prefix = f"policies.{policy.policy_id}."
    # What was said of the algorithm's config need not be said once more for each policy.
    new = (finding for finding in inner.findings if finding not in form.said)
    form.findings += [replace(finding, path=prefix + finding.path) for finding in new]
    if "framework" in own:
        return own
    if form.shared is None:  # each policy has it, written out
        alone = _without_policies(checkpoint.config) if len(checkpoint.policies) > 1 else None
        form.shared = _RayForm(form.budget).config(alone or checkpoint.config, "config")
    return {**form.shared, **own}


def _without_policies(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without what it says of each policy, of which there may be thousands."""
    kept = dict(config)
    kept.pop("policies", None)
    if isinstance(inner := kept.get("multiagent"), Mapping):
        kept["multiagent"] = {k: v for k, v in inner.items() if k not in _POLICIES}
    return kept


def _note_what_ray_misses(policy: PolicyState, form: _RayForm, path: str) -> None:
    if not isinstance(policy.weights, dict):
        form.warn(
            f"{path}.weights",
            "without names, as the old Ray kept them; Ray's own restore of torch wants names",
        )
    if policy.observation_filter is not None and policy.observation_filter.stats:
        form.warn(
            f"{path}.observation_filter",
            "kept for rllib-compat; Ray's msgpack form has no place for it, so that Ray's own "
            "restore starts it from zero",
        )
    for name in ("learner_weights", "learner_optimizer"):
        if getattr(policy, name) is not None:
            form.note(f"{path}.{name}", "kept for rllib-compat; version 1.1 has no learner")
    for name in ("policy_class", "observation_space", "action_space"):
        if getattr(policy, name) is None:
            message = "not in the source; Ray's `Policy.from_checkpoint` can't do without it"
            form.warn(f"{path}.{name}", message, Verdict.ABSENT)


class _RayForm:
    """Turns parts of the neutral state into what Ray reads, and notes what that changes.

    Attributes:
        findings: What was noted.
        said: What of it was noted of the algorithm, not of a policy.
        shared: The algorithm's config, as policies have it; None until one needs it.
    """

    def __init__(self, budget: Budget) -> None:
        self.findings: list[Finding] = []
        self.budget = budget
        self.said: frozenset[Finding] = frozenset()
        self.shared: dict[str, Any] | None = None

    def note(self, path: str, message: str, verdict: Verdict = Verdict.NOTE) -> None:
        """Adds a finding."""
        self.findings.append(Finding("msgpack", Severity.INFO, verdict, path, message))

    def warn(self, path: str, message: str, verdict: Verdict = Verdict.NOTE) -> None:
        """Adds a finding that needs attention."""
        self.findings.append(Finding("msgpack", Severity.WARNING, verdict, path, message))

    def note_code(self, value: Any, path: str) -> None:
        """Notes a function that Ray's form never holds, if there is one."""
        if is_stand_in(value):
            message = "is code: give it to `Algorithm.from_checkpoint` when restoring"
            self.note(path, f"{value.qualified} {message}", Verdict.DROPPED)

    def config(self, config: Mapping[str, Any], path: str) -> dict[str, Any]:
        """A config as `AlgorithmConfig.serialize` gives it."""
        named = {DICT_KEYS.get(k, k): v for k, v in config.items() if k not in _RAYS_OWN}
        return {key: self.convert(value, f"{path}.{key}", key) for key, value in named.items()}

    def observation_space(self, space: Space | None, path: str) -> dict[str, Any] | None:
        """What the model sees of a space, and the space itself."""
        if space is None:
            return None
        try:
            return to_preprocessed_dict(space)
        except ValueError as error:
            self.warn(f"{path}.observation_space", f"{error}; kept for rllib-compat only")
            return None

    def optimizer(self, state: object, path: str) -> Any:
        """An optimizer's state, with the parameters' ids of torch as text."""
        converted = self.convert(state, path)
        for part in converted if isinstance(converted, list) else ():
            groups = part.get("param_groups") if isinstance(part, dict) else None
            for group in groups if isinstance(groups, list) else ():
                if isinstance(group, dict) and isinstance(group.get("params"), list):
                    group["params"] = [str(number) for number in group["params"]]
        return converted

    def convert(self, value: object, path: str, key: object = None, depth: int = 0) -> Any:
        """A value without code, sets, and keys other than text."""
        self.budget.spend("outputs", 1, path[:200])
        if depth > msgpack_codec.MAX_DEPTH // 2:
            raise budget_error("depth", path[:200])
        if isinstance(value, Mapping):
            if not all(isinstance(k, str) for k in value):
                self.note(path, "keys that are not text became text", verdict=Verdict.DERIVED)
            return {
                str(name): self.convert(part, f"{path}.{name}", name, depth + 1)
                for name, part in value.items()
            }
        if isinstance(value, (list, tuple, set, frozenset, deque)):
            items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            return [self.convert(v, f"{path}[{i}]", None, depth + 1) for i, v in enumerate(items)]
        if isinstance(value, StandIn) and value.qualified == _TEXT_ENUM and len(value.args) == 1:
            value = value.args[0]
        if isinstance(value, StandIn) and value.qualified == _POLICY_SPEC:
            return self._policy_spec(value, path)
        if isinstance(value, GlobalRef) and key in _CLASS_KEYS:
            self.note(path, f"the class {value.qualified} is named; whoever reads it imports it")
            return value.qualified
        if isinstance(value, (bytes, bytearray, memoryview)) and _is_pickle(value):
            self.note(path, "a pickle; kept for rllib-compat, not given to Ray", Verdict.DROPPED)
            return None
        if isinstance(value, Space):
            self.note(
                path, f"{value!r}; kept for rllib-compat, Ray asks the env for it", Verdict.DROPPED
            )
            return None
        try:
            return msgpack_codec.canonical(value)
        except CheckpointError:
            self.note(
                path,
                f"{_describe(value)} has no form in msgpack; kept for rllib-compat",
                Verdict.DROPPED,
            )
            return NOT_SERIALIZABLE

    def _policy_spec(self, spec: StandIn, path: str) -> list[Any]:
        """A policy's entry in the config: class, both spaces and what it overrides."""
        state = spec.state if isinstance(spec.state, Mapping) else {}
        if any(state.get(k) is not None for k in ("policy_class", "observation_space")):
            self.note(path, "class and spaces are in the policy's own state, not in the config")
        return [None, None, None, self.convert(state.get("config"), f"{path}.config")]


def _is_pickle(data: bytes | bytearray | memoryview) -> bool:
    return bytes(data[:1]) == b"\x80" and bytes(data[-1:]) == b"."


def _describe(value: Any) -> str:
    return value.qualified if is_stand_in(value) else f"a value of type {type(value).__name__}"
