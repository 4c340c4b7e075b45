"""Versions 1.0, 1.1 and 1.2: a folder with a state file and one folder a policy (Ray 2.1 – 2.x).

::

    rllib_checkpoint.json                      type, checkpoint_version, format, state_file
    algorithm_state.pkl | .msgpck              config, counters, the worker without its policies
    policies/<id>/policy_state.pkl | .msgpck   weights, spec, config, optimizer, exploration
    learner/module_state/<id>/…                1.2 only (Learner API): the RLModules once more
    learner/optimizer_state/<id>_….pt          1.2 only: their optimizers

The first form had `state.pkl` and `checkpoint_version.txt` (`v1`) in the place of the first two.
A policy's folder is a checkpoint of its own, and so is `policies`. `state_file` holds a path as it
was on the machine that wrote it; only the file of that name beside it is read.
Sources: `ray/rllib/algorithms/algorithm.py` (`save_checkpoint`), `ray/rllib/policy/policy.py`
(`export_checkpoint`), `ray/rllib/utils/checkpoints.py`, of Ray 2.1, 2.3, 2.7 and 2.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any

from rllib_compat.formats import pickles
from rllib_compat.formats.files import list_folders
from rllib_compat.formats.layouts.configs import config_dict, read_params
from rllib_compat.formats.layouts.folder import Folder, LayoutMismatch, as_mapping, with_text_keys
from rllib_compat.formats.layouts.policies import (
    integer,
    named_arrays,
    network_class,
    read_policy_state,
    text,
    with_connector_filter,
    with_filters,
)
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import Counters, LegacyCheckpoint, PolicyState, Source
from rllib_compat.neutral.errors import CorruptCheckpointError, MissingFileError
from rllib_compat.neutral.policy_id import ONLY_POLICY, PolicyId, PolicyIds
from rllib_compat.neutral.records import GlobalRef
from rllib_compat.neutral.report import Finding, Verdict

name = "1.x"

_METADATA = "rllib_checkpoint.json"
_ENDINGS = (".pkl", ".msgpck")
#: What the file was called between Ray 2.0 and 2.1 (nightly builds).
_FIRST_STATE = "state.pkl"
_OPTIMIZER = "_default_optimizer.pt"


def read(path: Path, budget: Budget) -> LegacyCheckpoint:
    """Reads an algorithm's checkpoint folder, that of one policy, or of several."""
    if not path.is_dir():
        raise LayoutMismatch("not a folder")
    folder = Folder(path, budget)
    algorithm_file = folder.state_file("algorithm_state", _ENDINGS)
    if algorithm_file is None and folder.has(_FIRST_STATE) and (path / "policies").is_dir():
        algorithm_file = _FIRST_STATE
    policy_file = folder.state_file("policy_state", _ENDINGS)
    if algorithm_file and not (path / "learner_group").exists():
        return _read_algorithm(path, folder, algorithm_file)
    if policy_file:
        return _read_policies_alone(path, folder, [folder])
    if _is_incomplete(folder):
        return _read_algorithm(path, folder, "algorithm_state.pkl")
    inner = [Folder(p, budget) for p in (*list_folders(path), *list_folders(path / "policies"))]
    if alone := [one for one in inner if one.state_file("policy_state", _ENDINGS)]:
        return _read_policies_alone(path, folder, alone)
    raise LayoutMismatch(
        "no `algorithm_state` or `policy_state` (.pkl, .msgpck) of the old API stack"
    )


def _is_incomplete(folder: Folder) -> bool:
    """Whether what is left shows that a checkpoint of this layout was here."""
    if not folder.has(_METADATA) or (folder.root / "learner_group").exists():
        return False
    metadata = as_mapping(folder.try_side_file(_METADATA))
    return (
        str(metadata.get("checkpoint_version")).startswith("1.")
        and metadata.get("type") == "Algorithm"
    )


def _read_algorithm(path: Path, folder: Folder, state_file: str) -> LegacyCheckpoint:
    metadata = _read_metadata(folder, state_file)
    state = {} if _lacks_state(folder, state_file) else _read_state(folder, state_file)
    worker = dict(as_mapping(state.get("worker")))
    version = _name_version(metadata, state, state_file)
    algorithm = _short_class_name(state.pop("algorithm_class", None))
    config, is_complete = (
        config_dict(state.pop("config", None), f"{state_file} → config", folder.findings),
        True,
    )
    if not config:
        config, is_complete = read_params(folder), False
    policies, ids = _read_policies(worker, folder, state_file)
    if not policies and not folder.missing:
        fix = "Copy the checkpoint again, with the folder `policies`."
        folder.missing.append(
            MissingFileError("The checkpoint has no policies.", where="policies", fix=fix)
        )
    _check_listed(worker.pop("policy_ids", None), ids, folder)
    policies = _with_learners(policies, folder)
    policies = with_filters(policies, ids, worker.pop("filters", None))
    mapping = worker.pop("policy_mapping_fn", None)
    to_train = worker.pop("is_policy_to_train", None)
    tune = with_text_keys(folder.try_side_file(".tune_metadata"))
    counters = _read_counters(state, tune)
    beside = {
        "tune_metadata": tune,
        "ray_commit": metadata.get("ray_commit"),
        "learner": folder.try_side_file("learner/learner_state.json"),
    }
    state.pop("worker", None)
    state.pop("checkpoint_version", None)
    checkpoint = LegacyCheckpoint(
        Source(path, version, text(metadata.get("ray_version")), folder.digests),
        algorithm=algorithm,
        config=config,
        config_is_complete=is_complete,
        policies=policies,
        policy_mapping_fn=mapping,
        policies_to_train=to_train,
        counters=counters,
        extra={**state, **worker, **{name: value for name, value in beside.items() if value}},
    )
    return folder.finish(checkpoint)


def _lacks_state(folder: Folder, state_file: str) -> bool:
    """Whether the algorithm's state is not there; policies that are there can be read alone."""
    if not folder.lacks(state_file):
        return False
    lost = folder.missing.pop()
    inner = folder.root / "policies"
    fix = f"{lost.fix} Its policies alone are in {inner}." if inner.is_dir() else lost.fix
    folder.missing.append(MissingFileError(lost.found, where=lost.where, fix=fix))
    return True


def _read_policies(
    worker: dict[str, Any], folder: Folder, state_file: str
) -> tuple[dict[str, PolicyState], PolicyIds]:
    """Reads the policies from their folders, or from the worker's state where there are none."""
    policies: dict[str, PolicyState] = {}
    inline = worker.pop("policy_states", None) or worker.pop("state", None)
    folders = {path.name: path for path in folder.folders("policies")}
    if folders:
        ids = folder.policy_ids(folders, "policies")
        for name, path in folders.items():
            policies[ids[name]] = _read_policy(Folder(path, folder.budget), ids[name], folder)
    else:
        states = as_mapping(inline)
        ids = folder.policy_ids(states, state_file)
        for found, state in states.items():
            where = f"{state_file} → worker → {ids[found]}"
            policies[ids[found]] = read_policy_state(
                ids[found], folder.nested(state, where), where, folder.findings
            )
    return {k: replace(p, found_as=ids.found_as(PolicyId(k))) for k, p in policies.items()}, ids


def _read_policies_alone(path: Path, outer: Folder, inner: list[Folder]) -> LegacyCheckpoint:
    """Policies without the algorithm's state: each has its config and spaces itself."""
    read, metadata, version = list[PolicyState](), dict[str, Any](), ""
    for one in inner:
        state_file = one.state_file("policy_state", _ENDINGS) or "policy_state.pkl"
        metadata = _read_metadata(one, state_file)
        path_of_one = one.root.resolve()
        is_named = path_of_one.parent.name == "policies" or len(inner) > 1
        id_by_folder = path_of_one.name if is_named else ONLY_POLICY
        policy = _read_policy(one, PolicyId(id_by_folder), outer)
        read.append(replace(policy, policy_id=_id_of(policy)))
        _check_filter(read[-1], outer)
        version = _name_version(metadata, policy.extra, state_file)
    names = [policy.policy_id for policy in read]
    if len(set(names)) < len(names):  # the same policy, exported several times
        names = [one.root.relative_to(path).as_posix() for one in inner]
    ids = outer.policy_ids(names, "policies")
    policies = dict[str, PolicyState]()
    for policy_id, policy in zip(ids, read, strict=True):
        policies[policy_id] = replace(policy, policy_id=policy_id, found_as=ids.found_as(policy_id))
    first = read[0]
    kind = "policy" if len(policies) == 1 else "policies"
    checkpoint = LegacyCheckpoint(
        Source(path, f"{version} {kind}", text(metadata.get("ray_version")), outer.digests),
        config=first.config,
        config_is_complete=bool(first.config),
        policies=policies,
        counters=Counters(env_steps=first.global_timestep),
    )
    return outer.finish(checkpoint)


def _id_of(policy: PolicyState) -> str:
    """A policy's id by its state, which `Policy.export_checkpoint` writes under any name."""
    if isinstance(policy_id := policy.config.get("__policy_id"), str):  # from Ray 2.5 on
        return policy_id
    if isinstance(policy.weights, Mapping):  # TensorFlow's variables have the id in their names
        scopes = {name.partition("/")[0] for name in policy.weights if "/" in name}
        if len(scopes) == 1:
            return scopes.pop()
    return policy.policy_id


def _check_filter(policy: PolicyState, folder: Folder) -> None:
    """Says that the statistics of a filter are elsewhere, as they were until Ray 2.2."""
    kind = policy.config.get("observation_filter")
    if kind in (None, "NoFilter") or policy.observation_filter is not None:
        return
    message = (
        f"the config has {kind!r}, and this policy's folder has no statistics; observations go to "
        "the network as they are, and its actions are not those of the old policy"
    )
    hint = "convert the whole checkpoint, which has them, and not the folder of one policy"
    path = f"policies.{policy.policy_id}.observation_filter"
    folder.findings.append(Finding.warning("policy.filter", Verdict.ABSENT, path, message, hint))


def _read_policy(folder: Folder, policy_id: PolicyId, outer: Folder) -> PolicyState:
    state_file = folder.state_file("policy_state", _ENDINGS) or "policy_state.pkl"
    where = f"policies/{folder.root.name}"
    if folder.lacks(state_file):
        policy = PolicyState(policy_id, {})
    else:
        file = f"{where}/{state_file}"
        policy = read_policy_state(
            policy_id, _read_state(folder, state_file), file, folder.findings
        )
        policy = with_connector_filter(policy, folder.budget, file)
    if folder is not outer:
        outer.include(where, folder)
    return policy


def _read_state(folder: Folder, file: str) -> dict[str, Any]:
    if file.endswith(".pkl") and not pickles.looks_like_pickle(folder.path(file)):
        raise CorruptCheckpointError("The state file is not a pickle.", where=file)
    state = folder.read(file)
    if not isinstance(state, Mapping):
        raise CorruptCheckpointError(
            f"The state is {type(state).__name__}, not a dict.", where=file
        )
    return with_text_keys(state)


def _read_metadata(folder: Folder, state_file: str) -> dict[str, Any]:
    metadata = dict(as_mapping(folder.try_side_file(_METADATA)))
    stored = str(metadata.get("state_file") or state_file)
    if stored != state_file:
        message = f"the stored name {stored!r} is not the file that is here, {state_file}"
        if PureWindowsPath(stored).name == state_file:
            message = f"the stored path {stored!r} is not followed; {state_file} beside it was read"
        path = f"{_METADATA} → state_file"
        folder.findings.append(Finding.info("stored-path", Verdict.DROPPED, path, message))
    return metadata


def _name_version(metadata: Mapping[str, Any], state: Mapping[str, Any], state_file: str) -> str:
    version = str(metadata.get("checkpoint_version") or state.get("checkpoint_version") or "1.x")
    return f"{version} msgpack" if state_file.endswith(".msgpck") else version


def _short_class_name(value: object) -> str | None:
    """`PPO`, of the class or its dotted name."""
    if isinstance(value, GlobalRef):
        return value.name
    return value.rsplit(".", 1)[-1] if isinstance(value, str) else None


def _check_listed(listed: object, ids: PolicyIds, folder: Folder) -> None:
    listed = listed if isinstance(listed, (list, tuple, set)) else ()
    missing = sorted({str(found) for found in listed if ids.get(found) is None})
    if missing:
        message = f"listed, but not there: {', '.join(missing)}"
        hint = "copy the checkpoint again if they are needed"
        folder.findings.append(
            Finding.warning("policies", Verdict.ABSENT, "policies", message, hint)
        )


def _with_learners(policies: Mapping[str, PolicyState], folder: Folder) -> dict[str, PolicyState]:
    """With the RLModules and optimizers of a 1.2 checkpoint, which the Learner trained."""
    by_name = {policy.old_id: policy for policy in policies.values()}
    for module_folder in folder.folders("learner/module_state"):
        policy = by_name.get(module_folder.name)
        if policy is not None and (own := _own_module(folder, module_folder.name)):
            policy = by_name[module_folder.name] = replace(policy, policy_class=own, is_module=True)
        file = f"learner/module_state/{module_folder.name}/module_state_dir/module_state.pt"
        if policy is not None and folder.has(file):
            weights = folder.torch(file)
            if isinstance(weights, Mapping):
                named = named_arrays(weights, file)
                by_name[module_folder.name] = replace(policy, learner_weights=named)
    for file_name in folder.files("learner/optimizer_state"):
        name = file_name.removesuffix(_OPTIMIZER)
        if name in by_name and file_name.endswith(_OPTIMIZER):
            state = folder.try_side_file(f"learner/optimizer_state/{file_name}")
            by_name[name] = replace(by_name[name], learner_optimizer=state)
    return {policy.policy_id: policy for policy in by_name.values()}


def _own_module(folder: Folder, name: str) -> str | None:
    """Somebody's own class of a module, or of the catalog that made its layers; None: Ray's."""
    read = folder.try_side_file(f"learner/module_state/{name}/rl_module_metadata.json")
    spec = as_mapping(as_mapping(read).get("module_spec_dict"))
    config = as_mapping(spec.get("module_config"))
    found = network_class(spec.get("module_class"), config.get("catalog_class_path"))
    return None if found is None or found.startswith("ray.rllib.") else found


def _read_counters(state: dict[str, Any], tune: Mapping[str, Any]) -> Counters:
    raw = with_text_keys(state.pop("counters", None))

    def first(*values: object) -> int | None:
        return next((n for value in values if (n := integer(value)) is not None), None)

    return Counters(
        iteration=first(state.pop("training_iteration", None), tune.get("iteration")),
        env_steps=first(raw.get("num_env_steps_sampled"), tune.get("timesteps_total")),
        agent_steps=first(raw.get("num_agent_steps_sampled")),
        trained_steps=first(raw.get("num_env_steps_trained")),
        episodes=first(tune.get("episodes_total")),
        seconds=tune["time_total"] if type(tune.get("time_total")) is float else None,
        raw=raw,
    )
