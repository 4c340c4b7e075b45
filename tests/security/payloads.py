"""Hostile checkpoints of every layout, built by code.

Each place of a checkpoint that a file fills gets each payload: pickles that name functions, texts
that name code, ids that are paths. What is around it is as a real Ray wrote it.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from tests.security.canary import CALLED, MODULE

_WEIGHTS = {
    f"default_policy/{name}": np.zeros(shape, np.float32)
    for name, shape in {
        "fc_1/kernel": (4, 8),
        "fc_1/bias": (8,),
        "fc_out/kernel": (8, 2),
        "fc_out/bias": (2,),
    }.items()
}


class Call:
    """Pickles as a call of the stranger's function."""

    def __reduce__(self) -> Any:
        return _Name(), ()


class _Name:
    """Stands for `stranger_code.touch`; `dumps` writes it by name."""


class _Pickler(pickle._Pickler):  # the one that can be told how to save
    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, _Name):
            self.write(b"c" + MODULE.encode() + b"\n" + CALLED.encode() + b"\n")
        elif isinstance(obj, Call):
            self.write(b"c" + MODULE.encode() + b"\n" + CALLED.encode() + b"\n)R")
        else:
            super().save(obj, save_persistent_id)


def dumps(value: Any, protocol: int = 2) -> bytes:
    """A pickle in which every `Call` is a call, and runs where Python's `pickle` loads it."""
    file = io.BytesIO()
    _Pickler(file, protocol).dump(value)
    return file.getvalue()


#: Texts and values that name code, as configs of RLlib may.
TEXTS: dict[str, Any] = {
    "a dotted name": f"{MODULE}.{CALLED}",
    "a name with a colon": f"{MODULE}:{CALLED}",
    "a name behind a blank": f"{MODULE}.{CALLED} x",
    "a name before a line feed": f"{MODULE}.{CALLED}\n",
    "an environment of a module": f"{MODULE}:Env-v0",
    "yaml that calls": f"!!python/object/apply:{MODULE}.{CALLED} []",
    "yaml of a type": f"{{type: {MODULE}.{CALLED}}}",
    "a dict of a type": {"type": f"{MODULE}.{CALLED}"},
    "a nested type": {"exploration_config": {"type": f"{MODULE}.Env"}},
    "a file of yaml": "/proc/self/environ.yaml",
    "a script": f"import {MODULE}",
}

#: Keys under which some Ray imports, looks up or opens what the value says.
KEYS = (
    "callbacks", "env", "worker_cls", "sample_collector", "replay_buffer_config",
    "exploration_config", "optimizer", "policy_class", "custom_eval_function", "input",
    "output", "logger_config", "evaluation_config", "model", "multiagent", "env_config",
    "custom_resources_per_worker", "extra_python_environs_for_driver", "tf_session_args",
)  # fmt: skip

#: Ids that are paths.
IDS = ("/tmp/rllib-compat-escape", "../../escape", "..", "a/../../escape", "\0", "x" * 5000, "")


def v0_1(folder: Path, *, params: Any = None, ids: tuple[str, ...] = (), call: str = "") -> Path:
    """A file of Ray 0.8, with a call at the given place."""

    def at(place: str, value: Any) -> Any:
        return Call() if place == call else value

    policy = at("policy", dict(_WEIGHTS))
    state = dict.fromkeys(ids or ("default_policy",), policy)
    inner = dumps({"state": at("state", state), "filters": at("filters", {})})
    worker = at("worker", inner)
    if call == "nested worker":
        worker = dumps(Call())
    folder.mkdir(parents=True)
    (folder / "checkpoint-1").write_bytes(dumps({"worker": worker, "optimizer": at("outer", None)}))
    metadata = {"iteration": at("metadata", 1), "ray_version": "0.8.5"}
    (folder / "checkpoint-1.tune_metadata").write_bytes(dumps(metadata))
    _write_params(folder, at("params", params if params is not None else {"env": "CartPole-v0"}))
    return folder / "checkpoint-1"


def _write_params(folder: Path, params: Any) -> None:
    if isinstance(params, Call):
        (folder / "params.pkl").write_bytes(dumps({"env": params, "callbacks": params}))
    else:
        (folder / "params.json").write_text(json.dumps(params))


def v1(folder: Path, *, params: Any = None, ids: tuple[str, ...] = (), call: str = "") -> Path:
    """A folder of Ray 2.1 – 2.10; policies stand in the state where their ids are no folders."""

    def at(place: str, value: Any) -> Any:
        return Call() if place == call else value

    (folder / "policies" / "default_policy").mkdir(parents=True)
    policy = {"weights": at("policy", dict(_WEIGHTS)), "policy_spec": at("spec", None)}
    worker: dict[str, Any] = {
        "filters": at("filters", {}),
        "is_policy_to_train": at("worker", None),
    }
    if ids:
        worker["state"] = {name: dumps(policy) for name in ids}
        (folder / "policies" / "default_policy").rmdir()
    else:
        file = folder / "policies" / "default_policy" / "policy_state.pkl"
        file.write_bytes(dumps(at("state", policy)))
    state = {
        "worker": worker,
        "config": at("config", params if params is not None else {"env": "CartPole-v0"}),
        "algorithm_class": at("outer", None),
        "counters": {},
    }
    (folder / "algorithm_state.pkl").write_bytes(dumps(state))
    (folder / "rllib_checkpoint.json").write_text(
        json.dumps({"checkpoint_version": "1.1", "state_file": "/etc/passwd", "type": "Algorithm"})
    )
    return folder


def v1_msgpack(
    folder: Path, *, params: Any = None, ids: tuple[str, ...] = (), call: str = ""
) -> Path:
    """The same as msgpack, in which objects would be pickles inside of arrays."""
    hidden = {
        b"nd": True, b"type": b"|O", b"kind": b"O", b"shape": [1], b"data": dumps([Call()])
    }  # fmt: skip
    folder.mkdir(parents=True)
    state: dict[str, Any] = {
        "worker": {"state": {name: {"weights": {}} for name in ids or ("default_policy",)}},
        "config": params if params is not None else {"env": "CartPole-v0"},
        "counters": hidden if call else {},
    }
    (folder / "algorithm_state.msgpck").write_bytes(msgpack.packb(state))
    return folder


def v2(folder: Path, *, params: Any = None, ids: tuple[str, ...] = (), call: str = "") -> Path:
    """A Checkpointable tree."""

    def at(place: str, value: Any) -> Any:
        return Call() if place == call else value

    module = folder / "learner_group" / "learner" / "rl_module" / "default_policy"
    module.mkdir(parents=True)
    (module / "module_state.pkl").write_bytes(dumps(at("policy", {"w": np.zeros(2)})))
    (module / "class_and_ctor_args.pkl").write_bytes(
        dumps(at("spec", {"class": at("worker", None)}))
    )
    config = params if params is not None else {"env": "CartPole-v0"}
    made = {"class": at("outer", None), "ctor_args_and_kwargs": ((at("config", config),), {})}
    (folder / "class_and_ctor_args.pkl").write_bytes(dumps(made))
    (folder / "algorithm_state.pkl").write_bytes(dumps(at("state", {"training_iteration": 1})))
    (folder / "rllib_checkpoint.json").write_text('{"checkpoint_version": "2.1"}')
    return folder


#: What a layout needs to be built, and the places in it where a call can stand.
LAYOUTS: dict[str, tuple[Callable[..., Path], tuple[str, ...]]] = {
    "0.1": (
        v0_1,
        ("outer", "worker", "nested worker", "state", "policy", "filters", "metadata", "params"),
    ),
    "1.x": (v1, ("outer", "config", "worker", "state", "policy", "spec", "filters")),
    "1.x msgpack": (v1_msgpack, ("array",)),
    "2.x": (v2, ("outer", "config", "worker", "state", "policy", "spec")),
}


def torch_zip(member: bytes) -> bytes:
    """A file of `torch.save` whose pickle is `member`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", member)
        archive.writestr("archive/data/0", bytes(64))
        archive.writestr("archive/version", "3\n")
    return file.getvalue()


def torch_tar_style(value: bytes) -> bytes:
    """A file of `torch.save` before 1.6: pickles after one another."""
    magic = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
    parts = [pickle.dumps(1001, 2), pickle.dumps({"little_endian": True}, 2), value]
    return magic + b"".join(parts) + pickle.dumps([], 2)


def long_bytes(data: bytes) -> bytes:
    """The opcode that pushes bytes."""
    return b"B" + struct.pack("<I", len(data)) + data


def named(module: str, name: str) -> bytes:
    """The opcodes that name something, whatever characters are in it."""
    texts = (text.encode("utf-8", "surrogatepass") for text in (module, name))
    return b"".join(b"X" + struct.pack("<I", len(text)) + text for text in texts) + b"\x93"
