"""Writes networks for other libraries, as ONNX or safetensors, without Ray or torch.

`<policy>.onnx` is the model of a network (see `networks/onnx.py`). `<policy>.safetensors`, which is
written beside it for `load_policy`, has every array by its name in the network's graph
(`hidden.0.kernel`); kernels are `[in, out]` and `[h, w, in, out]`. Its metadata has the graph as
JSON. The arrays of unknown networks, such as custom models, keep their names.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.conversion.compare import WEIGHTS, OutputDifference
from rllib_compat.conversion.plan import Plan
from rllib_compat.formats.layouts.exported import ARCHIVE, MEMBER
from rllib_compat.formats.spaces import to_ray_dict
from rllib_compat.networks import AnyNetwork, ModelSettings, Network, known
from rllib_compat.networks.actions import find_fitting, make_chooser, module_settings
from rllib_compat.networks.mapping import Array
from rllib_compat.networks.onnx import Acting, outputs_without_critics, to_onnx
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.choices import Form
from rllib_compat.neutral.errors import CheckpointError, NotYetError, VerificationError
from rllib_compat.neutral.extras import import_optional
from rllib_compat.neutral.report import Finding, Verdict

#: The key of safetensors' own part of a file.
_RESERVED = "__metadata__"


def write_onnx(plan: Plan, target: Path) -> list[Finding]:
    """Writes `<policy>.onnx` for each policy, and `<policy>.safetensors` for `load_policy`.

    Returns:
        Findings about the parts that the files lack.

    Raises:
        CompatError: The package onnx or safetensors is not installed.
    """
    onnx = import_optional("onnx", extra="onnx", where="--to onnx")
    findings = _dropped_parts(plan)
    for policy_id, network in known(plan.networks).items():
        acting = find_acting(plan, policy_id, network)
        made = to_onnx(network, _facts(plan, policy_id), acting)
        if acting is None:
            findings.append(_no_action(policy_id))
        onnx.checker.check_model(made)
        (target / f"{policy_id}.onnx").write_bytes(made.SerializeToString())
        _write_arrays(plan, target, policy_id)
        if left := sorted(network.graph.outputs.keys() - set(outputs_without_critics(network))):
            findings.append(
                Finding.info(
                    "onnx",
                    Verdict.DROPPED,
                    f"policies.{policy_id}.network",
                    f"{', '.join(left)}: critics that take an action; the model is the policy",
                    f"`{policy_id}.safetensors` beside it has their arrays",
                )
            )
    return findings


def find_acting(plan: Plan, policy_id: str, network: Network) -> Acting | None:
    """Returns how a policy acts; None if its action cannot be an output of a model.

    That is so if it has several parts, is not known, or needs a filter outside of the network.
    """
    policy = plan.checkpoint.policies[policy_id]
    if policy.action_space is None or _filter_is_left_out(policy, network):
        return None
    try:
        settings = ModelSettings.of(plan.checkpoint, policy)
        chooser = make_chooser(network, policy, settings)
    except NotYetError:
        return None
    fitting, _ = find_fitting(plan.checkpoint, policy, network)
    acting = Acting(chooser, fitting, policy.action_space)
    return acting if acting.in_onnx else None


def _filter_is_left_out(policy: PolicyState, network: AnyNetwork | None) -> bool:
    found = policy.observation_filter
    held = network is not None and "filter.mean" in network.arrays
    return found is not None and bool(found.stats) and not held


def _no_action(policy_id: str) -> Finding:
    return Finding.info(
        "onnx",
        Verdict.DROPPED,
        f"policies.{policy_id}.action",
        "the model has no output `action`: actions have several parts, or need data that the "
        "network does not have",
        "compute it from the other outputs, or use compat.load_policy",
    )


def write_safetensors(plan: Plan, target: Path) -> list[Finding]:
    """Writes a file for each policy.

    Returns:
        Findings about the parts that the files lack.

    Raises:
        CompatError: The package safetensors is not installed.
        CheckpointError: It cannot store an array or a string.
    """
    for policy_id in plan.checkpoint.policies:
        _write_arrays(plan, target, policy_id)
    return _dropped_parts(plan)


def _write_arrays(plan: Plan, target: Path, policy_id: str) -> None:
    # The writer of safetensors would raise its own errors for a full disk.
    data = _to_safetensors(plan, policy_id, _metadata(plan, policy_id))
    _file(target, policy_id).write_bytes(data)


def write_policy(plan: Plan, target: Path) -> list[Finding]:
    """Writes a single policy as a zip archive of its safetensors, and its metadata as JSON.

    Raises:
        CompatError: The package safetensors is not installed.
        CheckpointError: There are several policies, or its actions need more than the network.
    """
    if len(plan.checkpoint.policies) != 1:
        raise CheckpointError(
            f"The checkpoint has {len(plan.checkpoint.policies)} policies, and a file can have "
            "only one.",
            where=str(plan.checkpoint.source.path),
            fix=f"Choose one: --policy {next(iter(plan.checkpoint.policies), 'ID')}.",
        )
    (policy_id,) = plan.checkpoint.policies
    facts = _metadata(plan, policy_id)
    if "acting" not in facts:
        raise NotYetError(
            "The policy's actions need more than its network.",
            where=f"policies.{policy_id}",
            fix="Use `--to msgpack`, which keeps all data.",
        )
    with zipfile.ZipFile(target / f"{policy_id}{ARCHIVE}", "w") as archive:
        archive.writestr("policy.json", json.dumps(facts, indent=2))
        archive.writestr(MEMBER, _to_safetensors(plan, policy_id, facts))
    return _dropped_parts(plan)


def _to_safetensors(plan: Plan, policy_id: str, facts: Mapping[str, Any]) -> bytes:
    import_optional("safetensors", extra="safetensors", where=f"--to {plan.form.value}")
    from safetensors import SafetensorError
    from safetensors.numpy import save

    metadata = {k: v if isinstance(v, str) else json.dumps(v) for k, v in facts.items()}
    arrays = _exported_arrays(plan, policy_id)
    try:
        if _RESERVED in arrays:
            raise ValueError(f"an array is called {_RESERVED}")
        data: bytes = save(arrays, metadata)
    except (SafetensorError, LookupError, ValueError) as error:
        raise CheckpointError(
            f"safetensors cannot store the arrays: {error!r:.200}.",
            where=f"policies.{policy_id}",
            fix="Use `--to msgpack`, which keeps all data.",
        ) from error
    return data


def _exported_arrays(plan: Plan, policy_id: str) -> dict[str, Array]:
    """Returns the arrays of a policy's network, or its weights if the network is unknown."""
    network = plan.networks.get(policy_id)
    found: Any = network.arrays if network else _named(plan.checkpoint, policy_id)
    # A view of another array's memory would be written with that array.
    return {
        name: np.array(array, array.dtype.newbyteorder("="), order="C")
        for name, array in found.items()
    }


def _named(checkpoint: LegacyCheckpoint, policy_id: str) -> dict[str, Array]:
    weights = checkpoint.policies[policy_id].weights
    if isinstance(weights, dict):
        return weights
    listed = weights if isinstance(weights, list) else [weights]
    return {f"weights.{i}": array for i, array in enumerate(listed)}


def compare_safetensors(plan: Plan, target: Path) -> list[OutputDifference]:
    """Reads the files back, and compares all bits.

    Raises:
        VerificationError: An array is missing, or differs.
    """
    from safetensors.numpy import load_file

    rows = []
    for policy_id in plan.checkpoint.policies:
        old, new = _exported_arrays(plan, policy_id), load_file(_file(target, policy_id))
        same = {name for name in old.keys() & new.keys() if _same(old[name], new[name])}
        if different := sorted((old.keys() | new.keys()) - same):
            raise VerificationError(
                f"Read back, these arrays differ: {', '.join(different)}.",
                where=f"policies.{policy_id}",
            )
        numbers = sum(array.size for array in old.values())
        rows.append(OutputDifference(policy_id, WEIGHTS, 0.0, 0.0, numbers, ok=True, kind="stored"))
    return rows


def _same(old: Array, new: Array) -> bool:
    alike = old.dtype == new.dtype and old.shape == new.shape
    return alike and old.tobytes() == new.tobytes()


def _file(target: Path, policy_id: str) -> Path:
    return target / f"{policy_id}.safetensors"


def describe(plan: Plan, policy_id: str) -> dict[str, Any]:
    """Returns a short description of a policy as plain data."""
    return {"network": "unknown", **_facts(plan, policy_id)}


def _facts(plan: Plan, policy_id: str) -> dict[str, Any]:
    checkpoint = plan.checkpoint
    policy, network = checkpoint.policies[policy_id], plan.networks.get(policy_id)
    facts: dict[str, Any] = {
        "policy": policy_id,
        "algorithm": checkpoint.algorithm or "",
        "ray_version": checkpoint.source.ray_version or "",
        "observation_space": str(policy.observation_space or ""),
        "action_space": str(policy.action_space or ""),
    }
    if network is not None:
        facts["network"] = network.summary
        if "distribution" in network.target.model_config:
            facts["distribution"] = network.target.model_config["distribution"]
    return facts


def _metadata(plan: Plan, policy_id: str) -> dict[str, Any]:
    """Returns the metadata of a policy's safetensors file, as text or plain data."""
    checkpoint, facts = plan.checkpoint, _facts(plan, policy_id)
    policy, network = checkpoint.policies[policy_id], plan.networks.get(policy_id)
    if isinstance(network, Network):
        facts["graph"] = network.graph.to_plain()
        if not _filter_is_left_out(policy, network) and policy.action_space is not None:
            facts["acting"] = _acting(checkpoint, policy, network)
    return facts


#: Keys of the config that change a policy's actions.
_DECIDING = {
    *("_disable_preprocessor_api", "exploration_config", "exploration_final_eps", "model"),
    *("parameter_noise", "soft_q", "softmax_temp"),
}


def _acting(checkpoint: LegacyCheckpoint, policy: PolicyState, network: Network) -> dict[str, Any]:
    """Returns the settings of a policy's actions, for `formats/layouts/exported.py`."""
    seen, actions = policy.observation_space, policy.action_space
    assert seen is not None, "a network is not known without its observations"
    assert actions is not None, "asked before"
    settings = ModelSettings.of(checkpoint, policy)
    fitting, _ = find_fitting(checkpoint, policy, network)
    said = {key: value for key, value in settings.config.items() if key in _DECIDING}
    model = {k: v for k, v in network.target.model_config.items() if k not in ("graph", "shapes")}
    return {
        "observation_space": to_ray_dict(seen.original_space or seen),
        "action_space": to_ray_dict(actions),
        "config": {
            **plain(said),
            "normalize_actions": fitting.unsquash,
            "clip_actions": fitting.clip,
        },
        "exploration": plain(policy.exploration),
        "module": plain({**model, **module_settings(policy)}),
    }


def plain(found: object) -> Any:
    """Returns the part of a file's value that JSON can represent."""
    match found:
        case Mapping():
            names = [name for name in found if isinstance(name, str)]
            made = {name: plain(found[name]) for name in names}
            return {name: made[name] for name in names if made[name] is not None}
        case list() | tuple():
            return list(map(plain, found))
        case np.generic():
            return plain(found.item())
        case bool() | int() | float() | str():
            return found
    return None


def _dropped_parts(plan: Plan) -> list[Finding]:
    """Returns findings about the parts that such a file lacks."""
    parts = [("config", "the config"), ("counters", "the counters")]
    if any(policy.optimizer is not None for policy in plan.checkpoint.policies.values()):
        parts.append(("policies.*.optimizer", "the optimizers' states"))
    for policy_id, policy in plan.checkpoint.policies.items():
        if _filter_is_left_out(policy, plan.networks.get(policy_id)):
            parts.append((f"policies.{policy_id}.observation_filter", "the observation filter"))
    return [
        Finding.info(
            "weights-only",
            Verdict.DROPPED,
            path,
            f"{what}: the new files have only networks",
            "`--to msgpack` keeps all data, and needs no Ray",
        )
        for path, what in parts
    ]


#: The writer of each form, which returns findings about the parts that the files lack.
WRITERS: dict[Form, Callable[[Plan, Path], list[Finding]]] = {
    Form.ONNX: write_onnx,
    Form.SAFETENSORS: write_safetensors,
    Form.POLICY: write_policy,
}
