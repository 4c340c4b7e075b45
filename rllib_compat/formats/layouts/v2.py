"""Versions 2.0 and 2.1: the Checkpointable tree of the new API stack (Ray 2.3x – today).

::

    rllib_checkpoint.json
    class_and_ctor_args.pkl                       the algorithm's class and its config
    algorithm_state.(pkl|msgpack)                 iteration and metrics
    learner_group/learner/rl_module/<id>/
        class_and_ctor_args.pkl                   the module's class, spaces and model config
        module_state.(pt|pkl|msgpack)             its weights as numpy arrays
    learner_group/learner/state.(pkl|msgpack)     optimizers
    env_runner/…                                  connectors: filters, and noise on weights
    coefficients.json                             what learners keep in no state (`Trainer.save`)

A module's folder is a checkpoint of its own, and so is `rl_module`. 2.0 (Ray 2.3x – 2.43) named
the weights' file `module_state.pt`, though it is a pickle.
Source: `ray/rllib/utils/checkpoints.py` (`Checkpointable.save_to_path`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_compat.formats import files
from rllib_compat.formats.layouts.configs import config_dict
from rllib_compat.formats.layouts.folder import Folder, LayoutMismatch, as_mapping, with_text_keys
from rllib_compat.formats.layouts.policies import (
    integer,
    named_arrays,
    network_class,
    number,
    read_filter,
    text,
    with_filters,
)
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import (
    Counters,
    LegacyCheckpoint,
    ObservationFilter,
    PolicyState,
    Source,
    Weights,
)
from rllib_compat.neutral.errors import CorruptCheckpointError, MissingFileError
from rllib_compat.neutral.policy_id import PolicyId, PolicyIds
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Space

name = "2.x"

_METADATA = "rllib_checkpoint.json"
_MADE = "class_and_ctor_args.pkl"
_STATES = ("algorithm_state.msgpack", "algorithm_state.pkl")
#: What a component calls its state: an algorithm, a module (`.pt` until Ray 2.43), all others.
STEMS = ("algorithm_state", "module_state", "state")
#: Deeper trees of folders than Ray's own are not looked into; its own are six deep.
_DEEPEST = 12
#: Where a tree keeps its modules, a folder for each.
MODULES = "learner_group/learner/rl_module"

#: What trainers of this package write: what learners compute losses with, by where they have it.
COEFFICIENTS = "coefficients.json"
#: ... and what a policy's state calls it.
_COEFFICIENTS = {"curr_log_alpha": "log_alpha", "curr_kl_coeffs_per_module": "kl_coeff"}

#: What is read of a learner's state.
_PARTS_OF_LEARNER = ("optimizer", "rl_module")

#: The optimizers of modules that have several (SAC, CQL; DDPG, TD3).
_OPTIMIZERS = ("policy", "qf", "qf_twin", "alpha", "actor", "critic")
#: What lies between environment and module.
_PIPELINE = "env_runner/env_to_module_connector"
#: Ray's own filter, with an entry an agent (None for all); and ours, with an entry a policy.
_FILTERS = tuple(f"{_PIPELINE}/{name}" for name in ("MeanStdFilter", "PolicyMeanStdFilter"))
#: Where the connectors between environment and module have a folder each.
_PIPELINES = (_PIPELINE, "env_runner/module_to_env_connector")
#: Those of Ray that change what a module sees, beside the filter and what flattens.
_CHANGING = re.compile(r"FrameStacking\w*|PrevActionsPrevRewards|\w*ObservationPreprocessor")
#: The connector that knows how large noise on weights is.
_WEIGHT_NOISE = f"{_PIPELINE}/ParameterNoise"
#: A module of this package with the network of Ray's default one.
_RAYS_NETWORK = "rllib_compat.modules.ExploringQModule"
_ITERATION = "training_iteration"
_STEPS = ("env_runners", "num_env_steps_sampled_lifetime")
_STEPS_READ = _STEPS[1:]  # of an algorithm that learns from recordings
_EPISODES = ("env_runners", "num_episodes_lifetime")


def read(path: Path, budget: Budget) -> LegacyCheckpoint:
    """Reads an algorithm's Checkpointable tree, or its modules alone."""
    folder = Folder(path, budget)
    if path.is_dir() and not (path / MODULES).is_dir():
        return _read_modules_alone(path, budget)
    if not path.is_dir():
        raise LayoutMismatch(f"no folder `{MODULES}`")
    metadata = folder.try_side_file(_METADATA)
    alone = not any(map(folder.has, (_METADATA, _MADE, *_STATES)))
    if metadata is None:
        metadata = folder.try_side_file(f"{MODULES}/metadata.json")
    metadata = as_mapping(metadata)
    is_complete = not folder.has(_MADE) or not folder.lacks(_MADE)
    made = folder.try_side_file(_MADE) if is_complete else None
    state = _read_state(folder, "algorithm_state") or {}
    cls, config = _read_class_and_config(made, folder)
    policies, ids = _read_modules(folder, MODULES, [p.name for p in folder.folders(MODULES)])
    filters, other_filters = _read_filters(folder, policies, ids)
    connectors = _read_other_connectors(folder)
    policies = with_filters(policies, ids, filters)
    noise = _read_state(folder, f"{_WEIGHT_NOISE}/state") or {}
    coefficients = as_mapping(folder.try_side_file(COEFFICIENTS))
    learner = _read_state(folder, "learner_group/learner/state") or {}
    if not alone:
        folder.missing += missing_states(folder, config, learner)
    policies = {
        policy_id: replace(
            policy,
            **_read_weight_noise(policy, noise),
            **_read_coefficients(policy, coefficients),
            optimizer=_read_optimizers(as_mapping(learner.get("optimizer")), policy.old_id),
        )
        for policy_id, policy in policies.items()
    }
    version = str(metadata.get("checkpoint_version", "2.x"))[:100]
    beside = {
        "ray_commit": metadata.get("ray_commit"),
        "learner": {name: learner[name] for name in learner if name not in _PARTS_OF_LEARNER},
    }
    checkpoint = LegacyCheckpoint(
        Source(path, version, text(metadata.get("ray_version")), folder.digests),
        algorithm=cls,
        config=config,
        config_is_complete=True,
        modules_alone=alone,
        policies=policies,
        policy_mapping_fn=config.get("policy_mapping_fn") or config.get("_policy_mapping_fn"),
        policies_to_train=config.get("policies_to_train"),
        counters=_read_counters(state, folder),
        extra={
            **with_text_keys({name: state[name] for name in state if name != _ITERATION}),
            **other_filters,
            **connectors,
            **{name: found for name, found in beside.items() if found},
        },
    )
    return folder.finish(checkpoint)


def _read_modules_alone(path: Path, budget: Budget) -> LegacyCheckpoint:
    """Reads the folder of one module, or one with folders of several."""
    folder = Folder(path, budget)
    names = [p.name for p in files.list_folders(path)]
    names = [name for name in names if folder.state_file(f"{name}/module_state")]
    if not names and folder.state_file("module_state"):
        folder, names = Folder(path.resolve().parent, budget), [path.resolve().name]
    if not names:
        raise LayoutMismatch(f"no folder `{MODULES}`, and no module's state")
    metadata = as_mapping(folder.try_side_file(f"{names[0]}/metadata.json"))
    policies, _ = _read_modules(folder, "", names)
    version = text(metadata.get("ray_version"))
    checkpoint = LegacyCheckpoint(
        Source(path, "2.x modules", version, folder.digests),
        config_is_complete=True,
        modules_alone=True,
        policies=policies,
    )
    return folder.finish(checkpoint)


def _read_modules(
    folder: Folder, place: str, names: list[str]
) -> tuple[dict[str, PolicyState], PolicyIds]:
    ids = folder.policy_ids(names, "policies")
    modules = [
        (ids[name], _read_module(folder, f"{place}/{name}".lstrip("/"), ids[name]))
        for name in names
    ]
    policies: dict[str, PolicyState] = {
        policy_id: replace(policy, found_as=ids.found_as(policy_id))
        for policy_id, policy in modules
        if policy is not None
    }
    if not policies:
        folder.missing.append(
            MissingFileError(
                f"No module has a state (`module_state`); there are {', '.join(names) or 'none'}.",
                where=MODULES,
                fix="Copy the checkpoint again, with all files of this folder.",
            )
        )
    return policies, ids


def _read_weight_noise(policy: PolicyState, state: Mapping[str, Any]) -> dict[str, Any]:
    """How large the noise on a policy's weights was, as old policies said it."""
    stored = as_mapping(state.get("deviations"))
    deviation = number(stored.get(policy.old_id, stored.get("")))
    return {} if deviation is None else {"exploration": {"cur_stddev": deviation}}


def missing_states(
    folder: Folder, config: Mapping[str, Any], learner: Mapping[str, Any]
) -> list[MissingFileError]:
    """An error for each component of an algorithm's tree that has no state.

    Ray restores those whose folders it finds. The others silently keep the state they had.
    """
    made = ("metadata.json", _METADATA, _MADE)
    needed = ["", "learner_group", "learner_group/learner", MODULES]
    needed += [n for n in list_folders(folder) if any(folder.has(f"{n}/{file}") for file in made)]
    if config.get("input_") == "sampler":
        # Some Rays have no env runner in the algorithm's process, and save its connectors alone.
        alone = (folder.root / "env_to_module_connector").is_dir()
        needed.append("env_to_module_connector" if alone else "env_runner")
    needed += _connectors(folder, needed[-1])
    needed += [f"{MODULES}/{inner.name}" for inner in folder.folders(MODULES)]
    endings = tuple(f"_{name}" for name in ("default_optimizer", *_OPTIMIZERS))
    for name in map(str, as_mapping(learner.get("optimizer"))):
        needed += [f"{MODULES}/{name.removesuffix(e)}" for e in endings if name.endswith(e)][:1]
    without = [
        name
        for name in dict.fromkeys(needed)
        if not any(folder.state_file(f"{name}/{stem}".lstrip("/")) for stem in STEMS)
    ]
    fix = "Copy the checkpoint again, with all its files, or take an earlier one."
    if not any(name.startswith(MODULES) for name in without):
        fix += f" The modules, which are for inference only, are in {folder.root / MODULES}."
    return [
        MissingFileError("A component has no state.", where=name or folder.root.name, fix=fix)
        for name in without
    ]


def _connectors(folder: Folder, runner: str) -> list[str]:
    """The pipelines of an env runner that was saved, and those of its connectors that keep a state.

    A pipeline's arguments list its connectors; later Rays write a folder only for those.
    """
    made = f"{_PIPELINE}/{_MADE}"
    has_own = runner == "env_runner" and folder.state_file("env_runner/state") is not None
    pipelines = [_PIPELINE] if has_own else []
    arguments = as_mapping(folder.try_side_file(made)).get("ctor_args_and_kwargs")
    pair = arguments if isinstance(arguments, tuple) and len(arguments) == 2 else ((), {})
    listed = as_mapping(pair[1]).get("connectors")
    listed = listed if isinstance(listed, (list, tuple)) else ()
    classes = (part[0] for part in listed if isinstance(part, tuple) and part)
    names = {part.name for part in classes if isinstance(part, GlobalRef)}
    return [*pipelines, *(p for p in (*_FILTERS, _WEIGHT_NOISE) if p.rpartition("/")[2] in names)]


def list_folders(folder: Folder, name: str = "", depth: int = 0) -> list[str]:
    """The folder itself, as the empty text, and all below it.

    Raises:
        CorruptCheckpointError: They are nested too deeply.
    """
    if depth > _DEEPEST:
        raise CorruptCheckpointError("The folders are nested too deeply.", where=name)
    inner = [p.relative_to(folder.root).as_posix() for p in folder.folders(name or ".")]
    return [name, *(found for path in inner for found in list_folders(folder, path, depth + 1))]


def _read_coefficients(policy: PolicyState, stored: Mapping[str, Any]) -> dict[str, Any]:
    """What a trainer has written of a policy's learner."""
    found = {
        own: as_mapping(stored.get(where)).get(policy.old_id)
        for where, own in _COEFFICIENTS.items()
    }
    # JSON has Infinity and NaN here, and its true would be 1.
    return {k: v for k, v in found.items() if isinstance(v, float) and math.isfinite(v)}


def _read_optimizers(stored: Mapping[str, Any], found: str) -> Any:
    """The state of a module's only optimizer, or those of several (SAC) by their names."""
    if f"{found}_default_optimizer" in stored:
        return _read_optimizer(stored[f"{found}_default_optimizer"])
    states = {name: stored.get(f"{found}_{name}") for name in _OPTIMIZERS}
    return {k: _read_optimizer(state) for k, state in states.items() if state is not None} or None


def _read_optimizer(stored: Any) -> Any:
    """The state of a torch optimizer; later releases put it beside the id of its module."""
    wrapped = isinstance(stored, Mapping) and "module_id" in stored
    return stored.get("state") if wrapped else stored


def _read_state(folder: Folder, stem: str) -> Mapping[str, Any] | None:
    file = folder.state_file(stem)
    if file is None:
        return None
    state = {} if folder.lacks(file) else folder.read(file)
    return state if isinstance(state, Mapping) else None


def _read_class_and_config(made: object, folder: Folder) -> tuple[str | None, dict[str, Any]]:
    if not isinstance(made, Mapping):
        return None, {}
    cls = made.get("class")
    arguments = made.get("ctor_args_and_kwargs")
    config: dict[str, Any] = {}
    if isinstance(arguments, tuple) and len(arguments) == 2:
        positional, named = arguments
        found = _find_argument(positional, named, "config")
        config = config_dict(found, f"{_MADE} → config", folder.findings)
    return cls.name if isinstance(cls, GlobalRef) else None, config


def _read_module(folder: Folder, place: str, module_id: PolicyId) -> PolicyState | None:
    weights = _read_state(folder, f"{place}/module_state")
    if weights is None:
        return None
    arrays: Weights = named_arrays(weights, f"{place}/module_state")
    made = folder.try_side_file(f"{place}/{_MADE}")
    if not isinstance(made, Mapping):
        return PolicyState(module_id, arrays)
    where = f"{place}/{_MADE}"
    named = _read_module_arguments(made.get("ctor_args_and_kwargs"), where, folder)
    policy_class = network_class(made.get("class"), named.get("catalog_class"))
    stored = named.get("model_config", named.get("model_config_dict"))
    model = config_dict(stored, f"{where} → model_config", folder.findings)
    # That of our own is a network's description, not a config; but where ours has Ray's network.
    is_ours = (policy_class or "").startswith("rllib_compat.") and policy_class != _RAYS_NETWORK
    return PolicyState(
        module_id,
        arrays,
        observation_space=_space(named.get("observation_space")),
        action_space=_space(named.get("action_space")),
        config={"model": {} if is_ours else model},
        policy_class=policy_class,
        is_module=policy_class is not None,
        extra={"module_config": model} if is_ours else {},
    )


def _space(value: object) -> Space | None:
    return value if isinstance(value, Space) else None


def _read_module_arguments(arguments: object, where: str, folder: Folder) -> Mapping[str, Any]:
    """The keyword arguments of a module; up to Ray 2.3x they came as one `RLModuleConfig`."""
    if not isinstance(arguments, tuple) or len(arguments) != 2:
        return {}
    positional, named = arguments
    return config_dict(_find_argument(positional, named, None), where, folder.findings)


def _find_argument(positional: object, named: object, name: str | None) -> Any:
    """The first positional argument, or the named one (all of them without a name)."""
    if isinstance(positional, (list, tuple)) and positional:
        return positional[0]
    return named.get(name) if name is not None and isinstance(named, Mapping) else named


def _read_filters(
    folder: Folder, policies: Mapping[str, PolicyState], ids: PolicyIds
) -> tuple[dict[str, ObservationFilter], dict[str, ObservationFilter]]:
    """The states of the filter's connector: by what the file calls policies, and all others."""
    known: dict[str, ObservationFilter] = {}
    others: dict[str, ObservationFilter] = {}
    states = {path: _read_state(folder, f"{path}/state") or {} for path in _FILTERS}
    entries: list[tuple[str, Any, Any]] = [
        (path, name, entry) for path in states for name, entry in states[path].items()
    ]
    for path, agent, entry in entries:
        if not isinstance(entry, Mapping):
            continue
        fix = "Copy the checkpoint again, with the folder `env_runner`."
        observation_filter = read_filter(entry, folder.budget, f"{path}/state", fix)
        if agent is None and len(policies) == 1:
            known |= {policy.old_id: observation_filter for policy in policies.values()}
        elif path == _FILTERS[1] and (ids.get(agent) or "") in policies:
            known[agent] = observation_filter
        else:
            name = agent if isinstance(agent, str) else type(agent).__name__
            others[f"MeanStdFilter of agent {name}"] = observation_filter
    return known, others


def _read_other_connectors(folder: Folder) -> dict[str, Any]:
    """The states of connectors that are not repeated where a policy acts without Ray."""
    states: dict[str, Any] = {}
    for pipeline in _PIPELINES:
        for place in folder.folders(pipeline):
            path = f"{pipeline}/{place.name}"
            cls = as_mapping(folder.try_side_file(f"{path}/{_MADE}")).get("class")
            label = cls.label if isinstance(cls, (GlobalRef, StandIn)) else place.name
            known = label.startswith(("ray.", "rllib_compat."))
            if known and not _CHANGING.fullmatch(label.rpartition(".")[2]):
                continue
            states[f"connector {place.name}"] = _read_state(folder, f"{path}/state") or {}
            message = f"the connector {label} is between environment and module; its state is "
            message += "kept, and a policy that acts without Ray goes past it"
            hint = "give such a policy what the connector makes of observations"
            folder.findings.append(Finding.warning("connector", Verdict.NOTE, path, message, hint))
    return states


def _read_counters(state: Mapping[str, Any], folder: Folder) -> Counters:
    """What was counted, by the algorithm's state or else that of its local env runner.

    Where there is no other runner, a converted checkpoint of Ray 2.40 – 2.52 has the steps in the
    runner's state alone: these Rays would add up both (`set_steps_of_env_runner`).
    """
    stats: Mapping[Any, Any] = as_mapping(as_mapping(state.get("metrics_logger")).get("stats"))

    def lifetime(path: tuple[str, ...]) -> int | None:
        # The path was a tuple (2.40), then a string with "--" between the parts (2.44 on).
        entry = as_mapping(stats.get(path) or stats.get("--".join(path)))
        # A list of parts to be summed (2.40), or the sum itself (later).
        values = entry.get("lifetime_sum", entry.get("values"))
        values = values if isinstance(values, (list, tuple)) else [values]
        numbers = [n for v in values if (n := number(v)) is not None and math.isfinite(n)]
        return integer(int(sum(numbers))) if numbers else None

    steps = lifetime(_STEPS) or lifetime(_STEPS_READ)
    if not steps and (runner := _read_state(folder, "env_runner/state")):
        steps = integer(runner.get(_STEPS[1])) or steps
    iteration = integer(state.get(_ITERATION))
    return Counters(iteration=iteration, env_steps=steps, episodes=lifetime(_EPISODES))
