"""Recordings of an old Ray's outputs, which prove that a checkpoint was read correctly.

A recording is a `.npz` of arrays named `<policy>/<what>`, which this package's `record.py` writes
in any old Ray. The names of arrays are below.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.formats.files import read_bytes
from rllib_compat.networks import AnyNetwork, CustomNetwork, Network
from rllib_compat.networks.graph import EVERYONE, OF_CRITICS
from rllib_compat.networks.observation_filter import STEP as FILTER
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, CompatError
from rllib_compat.neutral.frozen import frozen

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: A policy's arrays by their names in the file.
Arrays: TypeAlias = Mapping[str, Array]

#: The names of each output of a network in recordings.
OUTPUTS = {
    "action_dist_inputs": (
        "out/action_dist_inputs",
        "action_dist_inputs",
        "behaviour_logits",
        "logits",
    ),
    "vf_preds": ("out/vf_preds", "vf_preds", "values"),
    "q_values": (
        "noisefree/out/q_values",  # of noisy nets
        "out/q_values",
        "q_values",
        "extra/get_q_values",
        "out/q/value",
    ),
    "twin_q_values": ("out/twin_q_values", "twin_q_values", "extra/get_twin_q_values"),
    "actions": ("action",),
}
#: The names of inputs in recordings, if they differ from the input's own.
INPUTS = {
    "obs": ("net_in", "obs_in", "obs_pre", "obs", "obs_raw"),
    "actions": ("q_actions", "extra/q_actions"),
    EVERYONE: ("q_inputs",),
}
#: The name of preprocessed observations before the filter.
UNFILTERED = ("obs_pre", "obs", "obs_raw")
#: The names of the states of modules with two LSTMs on the new API stack.
_STATES = {
    f"{ours}{state}": f"{{}}/{theirs}/{state}"
    for ours, theirs in (("", "actor"), ("critic_", "critic"))
    for state in "hc"
}

#: The id of a single policy in Ray 0.5, and in later Rays.
_ONLY = ("default_policy", "default")


@frozen
class Recording:
    """The inputs and outputs of a policy's network in the old Ray.

    Attributes:
        inputs: The inputs, in the graph's form.
        outputs: The recorded outputs, in the graph's form.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]


def load(file: Path) -> dict[str, Array]:
    """Reads a `.npz` of plain arrays.

    Raises:
        CheckpointError: The file is something else.
        BudgetExceededError: It is larger than a recording when unpacked.
    """
    try:
        budget = Budget()
        data = read_bytes(file, budget, str(file))
        _require_bounded(data, budget)
        with np.load(io.BytesIO(data), allow_pickle=False) as members:
            arrays = {name: members[name] for name in members.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufU":
                raise ValueError(f"{name} holds no numbers")
        # Text only describes a recording.
        return {name: array for name, array in arrays.items() if array.dtype.kind != "U"}
    except CompatError:
        raise
    # numpy and zipfile raise many kinds of errors for damage: tokenize's, zlib's, RuntimeError, ….
    except Exception as error:
        raise CheckpointError(
            f"Not a .npz of plain arrays: {error}",
            where=str(file),
            fix="Write the file with the script of `rllib-compat recorder`, or with numpy.savez.",
        ) from error


def _require_bounded(data: memoryview, budget: Budget) -> None:
    """Checks that a small file does not unpack to gigabytes.

    Raises:
        BudgetExceededError: It does.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            packed = info.compress_type != zipfile.ZIP_STORED
            budget.spend("unpacked" if packed else "unfolded", info.file_size, info.filename)


def arrays_of(arrays: Arrays, policy: PolicyState) -> dict[str, Array]:
    """Returns the arrays of one policy, without its prefix."""
    names = [policy.old_id, policy.policy_id]
    names += _ONLY if policy.policy_id in _ONLY else ()
    for name in names:
        found = {
            k.removeprefix(f"{name}/"): v for k, v in arrays.items() if k.startswith(f"{name}/")
        }
        if found:
            return found
    return {}


def find_recording(arrays: Arrays, network: AnyNetwork) -> Recording | None:
    """Returns a network's recording; None if an input is missing, or there are no outputs.

    For a custom model, only observations and its module's outputs are used.

    Raises:
        CheckpointError: An array has another shape than the network's.
    """
    if isinstance(network, CustomNetwork):
        return _recording_of_custom(arrays, network)
    try:
        inputs = inputs_of(arrays, network)
        if inputs is None:
            return None
        shapes = {name: np.shape(out) for name, out in network.forward(inputs).items()}
        outputs = {
            name: array.reshape(shapes[name])
            for name, array in _outputs(arrays, network).items()
            # Old attention nets returned only the newest row of their memory.
            if name in shapes
            and not (name in network.graph.states and array.size != math.prod(shapes[name]))
        }
    except ValueError as error:
        raise CheckpointError(
            f"The recording does not fit the network ({error}).",
            where="--recorded",
            fix="Record the policy of this checkpoint.",
        ) from error
    return Recording(inputs, outputs) if outputs else None


def _recording_of_custom(arrays: Arrays, network: CustomNetwork) -> Recording | None:
    observations = _first(arrays, INPUTS["obs"])
    outputs = {
        name: found
        for name, theirs in OUTPUTS.items()
        if name != "actions" and (found := _first(arrays, theirs)) is not None
    }
    if observations is None or not outputs:
        return None
    return Recording({"obs": observations.reshape(len(observations), *network.inputs)}, outputs)


def _first(arrays: Arrays, names: tuple[str, ...]) -> Array | None:
    return next((np.asarray(arrays[name]) for name in names if name in arrays), None)


def _outputs(arrays: Arrays, network: Network) -> dict[str, Array]:
    """Returns the recorded outputs and next states."""
    names: dict[str, tuple[str, ...]] = {**OUTPUTS}
    names |= {ours: (theirs,) for ours, theirs in _states(arrays, network, "state_out").items()}
    found = {ours: _first(arrays, theirs) for ours, theirs in names.items()}
    return {
        name: array
        for name, array in found.items()
        if array is not None and not _depends_on_unknown(network, name, arrays)
    }


def _depends_on_unknown(network: Network, output: str, arrays: Arrays) -> bool:
    """Whether an output depends on an input of critics that was not recorded."""
    graph = network.graph
    if output not in graph.outputs:
        return False
    taken = {name for step in graph.needed([output]) for name in step.takes}
    return any(name in taken and _first(arrays, INPUTS[name]) is None for name in OF_CRITICS)


def _states(arrays: Arrays, network: Network, kind: str) -> dict[str, str]:
    """Returns a recording's names of a network's states: `state_in` or `state_out`."""
    states = list(network.graph.states)
    new = {name: _STATES[name].format(kind) for name in states if name in _STATES}
    if len(new) == len(states) and set(new.values()) <= arrays.keys():
        return new
    numbered = sorted(name for name in arrays if re.fullmatch(rf"{kind}_\d+", name))
    return dict(zip(states, numbered, strict=True)) if len(numbered) == len(states) else {}


def inputs_of(arrays: Arrays, network: Network) -> dict[str, Array] | None:
    """Returns the recorded inputs in the graph's form; None if one is missing."""
    graph, inputs = network.graph, dict[str, Array]()
    states = _states(arrays, network, "state_in")
    if len(states) != len(graph.states):
        return None
    whole = any(step.name == FILTER for step in graph.steps)
    for name, shape in graph.inputs.items():
        if name in graph.states:
            found = _first(arrays, (states[name],))
        elif name == "obs" and whole:  # the network contains the filter
            found = _first(arrays, UNFILTERED)
        else:
            found = _first(arrays, INPUTS.get(name, (name,)))
        if found is None and name in OF_CRITICS:
            found = np.zeros((len(inputs["obs"]), *shape))
        if found is None:
            return None
        if not found.ndim or found.size != len(found) * math.prod(shape):
            raise CheckpointError(
                f"The recording of {name} has the shape {found.shape}, and the network takes "
                f"{shape}.",
                where="--recorded",
                fix="Pass a recording of this checkpoint.",
            )
        time = (1,) if graph.recurrent and name not in graph.states else ()
        inputs[name] = found.reshape(len(found), *time, *shape)
    return inputs
