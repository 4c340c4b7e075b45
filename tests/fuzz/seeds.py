"""What the fuzzer begins with: small files of the museum, and some like those that people have."""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import json
import os
import pickle
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rllib_compat.errors import CompatError
from rllib_compat.formats import manifest
from tests.fuzz.mutate import FOLDER, LINK, PIPE, Files
from tests.legacy.cases import MUSEUM

_LARGEST = 150_000
_CONFIGS = MUSEUM.parent / "legacy_configs"
_SCRIPTS = MUSEUM.parent / "scripts"


def lay_down(files: Files, folder: Path) -> None:
    """Writes files, links and pipes below a folder; what can't be is left out."""
    folder.mkdir(parents=True)
    for name, data in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if data.startswith(LINK):
                path.symlink_to(data.removeprefix(LINK).decode())
            elif data == PIPE:
                os.mkfifo(path)
            elif data == FOLDER:
                path.mkdir()
            else:
                path.write_bytes(data)
        except (OSError, ValueError):
            continue


def files_of(folder: Path) -> Files:
    """The files of a checkpoint, but those that others have put there."""
    names = (p for p in sorted(folder.rglob("*")) if p.is_file())
    # By its manifest, a mutant would be refused before anything of it was read.
    skipped = ("expected", "recipe", "case.json", "result.json", "progress.csv", manifest.NAME)
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in names
        if not p.name.startswith(skipped) and p.suffix != ".npz"
    }


@functools.cache
def checkpoints(most: int = 40) -> tuple[Files, ...]:
    """Small checkpoints of all layouts: of the museum, and of our own making."""
    found = []
    for release in sorted(p for p in MUSEUM.iterdir() if p.is_dir() and p.name[0].isdigit()):
        cases = sorted((sum(map(len, files_of(c).values())), c) for c in release.iterdir())
        largest = _LARGEST if release.name != "2.40.0" else 3 * _LARGEST
        found += [files_of(case) for size, case in cases[:3] if size <= largest]
    return tuple(found[:most]) + tuple(_own(found[::5]))


def _own(found: list[Files]) -> Iterator[Files]:
    from rllib_compat import convert

    for files in found:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lay_down(files, folder / "old")
            try:
                convert(checkpoint_in(folder / "old"), folder / "new", to="msgpack", prove=False)
            except CompatError:
                continue
            yield files_of(folder / "new")


@functools.cache
def policy_files() -> tuple[Files, ...]:
    """One-file policies in two parts: a tree of what the file says, and the bytes of its arrays."""
    from rllib_compat import convert

    made = []
    for files in checkpoints()[::4]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lay_down(files, folder / "old")
            with contextlib.suppress(CompatError):
                convert(checkpoint_in(folder / "old"), folder / "new", to="safetensors")
            for file in list(folder.glob("new/*.safetensors"))[:1]:
                data = file.read_bytes()
                size = 8 + int.from_bytes(data[:8], "little")
                header = json.loads(data[8:size])
                told = header["__metadata__"]
                for part in ("graph", "acting"):
                    told[part] = json.loads(told.get(part, "{}"))
                made.append({"header.json": json.dumps(header).encode(), "arrays": data[size:]})
    return tuple(made)


def pack_policy(header: bytes, arrays: bytes) -> bytes:
    """A `.rlpolicy` of the two parts, whatever the first says."""
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        tree = json.loads(header)
        told = tree.get("__metadata__", {})
        text = {k: v if isinstance(v, str) else json.dumps(v) for k, v in told.items()}
        header = json.dumps({**tree, "__metadata__": text}).encode()
    content = len(header).to_bytes(8, "little") + header + arrays
    return _zipped({"policy.safetensors": content})


def checkpoint_in(folder: Path) -> Path:
    """What a person would give: the trial's folder, or the one checkpoint folder in it."""
    inner = [
        p for p in folder.iterdir() if p.is_dir() and p.name.startswith(("checkpoint", "ckpt"))
    ]
    return inner[0] if len(inner) == 1 else folder


@functools.cache
def checkpoints_with(part: str) -> tuple[Files, ...]:
    """Those that have this text in them."""
    return tuple(s for s in checkpoints() if any(part.encode() in data for data in s.values()))


@functools.cache
def custom_models() -> tuple[Files, ...]:
    """Checkpoints with networks that no Ray made."""
    cases = [p.parent for p in MUSEUM.glob("*/*custom*/case.json")] or MUSEUM.glob("*/*custom*")
    return tuple(files_of(case) for case in sorted(cases))


@functools.cache
def configs() -> tuple[Files, ...]:
    """A file of a config each: JSON, YAML, a pickle, a dict in a program."""
    found: list[Files] = []
    for file in sorted(_CONFIGS.glob("*.json"), key=lambda p: p.stat().st_size)[:30]:
        told = json.loads(file.read_text())
        spec = {"run": told["run"], "env": told["env"], "config": told["config"]}
        found.append({"params.json": json.dumps(told["config"]).encode()})
        found.append({"x.yaml": yaml.safe_dump({"cartpole": spec}, sort_keys=False).encode()})
        found.append({"params.pkl": pickle.dumps(told["config"], 2)})
        found.append({"x.py": f"import ray\nCONFIG = {told['config']!r}\n".encode()})
    for file in sorted(MUSEUM.glob("*/*/**/params.pkl"), key=lambda p: p.stat().st_size)[:20]:
        found.append({"params.pkl": file.read_bytes()})
    return tuple(found)


@functools.cache
def given_configs() -> tuple[Files, ...]:
    """Those that `--config` takes."""
    return tuple(s for s in configs() if next(iter(s)).startswith("params."))


@functools.cache
def experiments() -> tuple[Files, ...]:
    """Experiment files of `rllib train`."""
    found: list[Files] = []
    for number, file in enumerate(sorted(_CONFIGS.glob("*.json"))):
        told = json.loads(file.read_text())
        spec = {key: told[key] for key in ("run", "env", "config")}
        spec |= {"stop": {"timesteps_total": 100, "episode_reward_mean": 150.5}}
        spec |= {"num_samples": 2, "checkpoint_freq": 1, "local_dir": "results", "repeat": 1}
        if number % 2:
            found.append({"x.json": json.dumps({"x": spec, "y": spec}).encode()})
        else:
            found.append({"x.yaml": yaml.safe_dump({"x": spec}, sort_keys=False).encode()})
    return tuple(found)


@functools.cache
def requests() -> tuple[Files, ...]:
    """What policy clients of old Rays sent, a request each."""
    recorded = [json.loads(f.read_text())["sessions"] for f in MUSEUM.glob("clients/*.json")]
    sent = {r for sessions in recorded for session in sessions.values() for r in session}
    return tuple({"request.pkl": base64.b64decode(request)} for request in sorted(sent))


@functools.cache
def trials() -> tuple[Files, ...]:
    """Folders of trials with what was logged."""
    logged = sorted(MUSEUM.glob("*/*/**/result.json"), key=lambda p: p.stat().st_size)
    found: list[Files] = [{"trial/result.json": p.read_bytes()} for p in logged[:25]]
    found += [{"progress.csv": p.read_bytes()} for p in sorted(MUSEUM.glob("*/*/**/progress.csv"))]
    rows = [
        {"training_iteration": i, "timesteps_total": 200 * i, "time_total_s": 1.5 * i}
        | {f"episode_reward_{part}": i + 0.5 for part in ("mean", "min", "max")}
        | {"evaluation": {"episode_reward_mean": 2.0}, "info": {"learner": {"lr": 0.1}}}
        | {"custom_metrics": {f"speed_{part}": 0.5 for part in ("mean", "min", "max")}}
        for i in range(1, 5)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    found += [{"a/result.json": lines, "b/result.json": lines, "b/checkpoint_1/x": b""}] * 5
    return tuple(found)


@functools.cache
def scripts() -> tuple[Files, ...]:
    """Old programs."""
    found: list[Files] = [{f"project/{p.name}": p.read_bytes()} for p in _SCRIPTS.glob("*.py")]
    found += [{"train.py": source.encode()} for source in _SOURCES]
    found += [{f"{n}.py": s.encode() for n, s in enumerate(_SOURCES)}]
    return tuple(found)


_SOURCES = (
    """\
import gym
import numpy as np
import ray
from ray import tune
from ray.rllib.agents.ppo import PPOTrainer, DEFAULT_CONFIG
from ray.rllib.env.multi_agent_env import MultiAgentEnv

config = DEFAULT_CONFIG.copy()
config["num_workers"] = 2
config.update({"lr": 1e-4, "sgd_minibatch_size": 128, "model": {"fcnet_hiddens": [64]}})
ray.init()
trainer = PPOTrainer(config=config, env="CartPole-v0")
for i in range(10):
    result = trainer.train()
    print(result["episode_reward_mean"], result["info"]["learner"])
path = trainer.save()
tune.run("DQN", config={"env": "CartPole-v0", "eager": True}, stop={"timesteps_total": 100})
""",
    """\
import gym
from gym import spaces
import numpy as np
from ray.tune.registry import register_env


class Env(gym.Env):
    def __init__(self, env_config):
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.Box(-1, 1, (3,), dtype=np.float)

    def reset(self):
        return np.zeros(3, np.bool)

    def step(self, action):
        return np.zeros(3), 1.0, self.steps > 3, {}

    def seed(self, seed=None):
        pass


register_env("mine", lambda c: Env(c))
""",
    """\
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.agents import ppo as p
import ray.rllib.agents.dqn.apex
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


class Mine(DefaultCallbacks):
    def on_episode_end(self, *, worker, base_env, policies, episode, **kwargs):
        episode.custom_metrics["x"] = episode.last_info_for()["x"]


config = (
    p.PPOConfig().rollouts(num_rollout_workers=2).framework("torch").resources(num_gpus=0)
)
algo = config.build()
algo.evaluate()["evaluation"]["episode_reward_mean"]
""",
)


def _zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


@functools.cache
def simulators() -> tuple[Files, ...]:
    """Checkpoints with what simulators wrote."""
    content = {"log.txt": b"a line\n" * 20, "sub/data.bin": bytes(range(256))}
    found: list[Files] = []
    for archive in (False, True):
        stored = [
            {"path": name, "size": len(data), "sha256": sha256(data).hexdigest(), "mtime": 1.5}
            | {"changed": False, "iteration": None}
            for name, data in content.items()
        ]
        folder = {"runner": 1, "evaluation": False, "env": 0, "node": "n1", "folder": "/tmp/x"}
        folder |= {"episodes": [1, 2], "files": stored, "archive": archive, "uri": None}
        folder |= {"left_out": [{"path": "core", "why": "too large"}]}
        told = {"version": 1, "time": 1.5, "iteration": 2, "folders": [folder]}
        told["problems"] = [{"runner": "runner-2", "why": "it did not answer"}]
        place = "artifacts/files/runner-1/env-0"
        files = {f"{place}/{name}": data for name, data in content.items()}
        if archive:
            files = {f"{place}.zip": _zipped(content)}
        files["artifacts/manifest.json"] = json.dumps(told).encode()
        later = json.loads(json.dumps(told))
        later["iteration"] = 3
        later["folders"][0] |= {"files": [f | {"iteration": 2} for f in stored], "archive": False}
        both = {f"checkpoint_2/{name}": data for name, data in files.items()}
        both["checkpoint_3/artifacts/manifest.json"] = json.dumps(later).encode()
        found += [{f"checkpoint_2/{n}": d for n, d in files.items()}, both]
    return tuple(found)


def packed(value: Any) -> str:
    """A column as RLlib packed it."""
    import lz4.frame

    return base64.b64encode(lz4.frame.compress(pickle.dumps(value, 4))).decode()


@functools.cache
def recordings() -> tuple[Files, ...]:
    """Steps as an `output` of old Rays."""

    def batch(pack: bool, **more: Any) -> dict[str, Any]:
        observations = np.arange(12, dtype=np.float32).reshape(4, 3)
        column = packed if pack else np.ndarray.tolist
        return {
            "type": "SampleBatch",
            "obs": column(observations),
            "new_obs": column(observations + 1),
            "actions": [0, 1, 0, 1],
            "rewards": [1.0, 0.5, 1.0, 0.0],
            "dones": [False, True, False, False],
            "infos": [{}, {"x": 1}, {}, {}],
            "t": [0, 1, 0, 1],
            "eps_id": [1, 1, 2, 2],
            "unroll_id": [0] * 4,
            "agent_index": [0] * 4,
            "action_prob": [0.5] * 4,
        } | more

    both = {
        "type": "MultiAgentBatch",
        "count": 4,
        "policy_batches": {"default_policy": batch(False)},
    }
    terminated = {"dones": None, "terminateds": [False] * 4, "truncateds": [False, True] * 2}
    new = {k: v for k, v in batch(False, **terminated).items() if v is not None}
    parts = {k: v for k, v in batch(False).items() if k not in ("infos", "t", "eps_id", "dones")}
    lines = [batch(True), batch(False), both, new, parts]
    found: list[Files] = [{"output-1.json": json.dumps(one).encode() + b"\n"} for one in lines]
    found.append({"output-1.json": "".join(json.dumps(line) + "\n" for line in lines[:2]).encode()})
    return tuple(found)


@functools.cache
def recorded() -> tuple[Files, ...]:
    """What an old Ray computed, as `rllib-compat recorder` writes it."""
    demo = resources.files("rllib_compat") / "demo_data" / "expected.npz"
    with np.load(io.BytesIO(demo.read_bytes())) as arrays:
        few = {name: array[:2] if array.ndim else array for name, array in arrays.items()}
    file = io.BytesIO()
    np.savez(file, **few)
    return ({"recorded.npz": file.getvalue()},)


@functools.cache
def episodes() -> tuple[Files, ...]:
    """What an `EpisodeRecorder` wrote."""
    from rllib_compat.episode_data.files import EpisodeFiles

    head = {"worker": 1, "env": 0, "episode": 3, "time": 1.5, "length": 4, "reward": 2.5}
    data = {
        "running": {"speed": {"count": 2, "mean": 0.5, "min": 0.0, "max": 1.0, "values": [0, 1]}},
        "final": {"place": [1.5, 2], "name": "x"},
        "media": {"frames": [[[0, 1], [2, 3]]]},
        "media_left_out": {"frames": 2},
    }
    agents = {name: {**data, "policy": "p0", "reward": 1.0} for name in ("a", "b")}
    found: list[Files] = []
    for kind in ("jsonl", "parquet"):
        for one in ({**head, **data}, {**head, "agents": agents}):
            with tempfile.TemporaryDirectory() as folder:
                written = EpisodeFiles(None, folder, "episode_data", kind)
                for iteration in (1, 2):
                    lines = [json.dumps(one), json.dumps({**one, "episode": 4})]
                    written.write(lines, iteration=iteration, evaluation=iteration == 2)
                found.append(files_of(Path(folder)))
    return tuple(found)


@functools.cache
def wheels() -> tuple[Files, ...]:
    """An old Ray with examples, as `run --old-ray` takes it."""
    members = {
        f"ray/rllib/examples/{part}/__init__.py": b"" for part in ("env", "models", "policy")
    }
    members["ray/rllib/examples/env/mine.py"] = b"class Mine:\n    pass\n"
    return (
        {
            "ray.whl": _zipped(members),
            "script.py": b"from ray.rllib.examples.env.mine import Mine\n",
        },
        {f"site/{name}": data for name, data in members.items()} | {"script.py": b"import ray\n"},
    )


@functools.cache
def everything() -> tuple[Files, ...]:
    """One folder with something for each verb, and modules that fail when they are imported."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "x"
        demo = resources.files("rllib_compat") / "demo_data"
        shutil.copytree(str(demo), folder / "demo", ignore=shutil.ignore_patterns("*.pyc"))
        files = {
            p.relative_to(folder).as_posix(): p.read_bytes()
            for p in folder.rglob("*")
            if p.is_file()
        }
    files |= {f"trial/{n}": d for n, d in trials()[-1].items()} | simulators()[0] | scripts()[1]
    files |= {f"config/{n}": d for n, d in configs()[0].items()}
    files |= {f"experiment/{n}": d for n, d in experiments()[0].items()}
    files |= {
        "raising.py": b"raise ZeroDivisionError('x')\n",
        "exiting.py": b"raise SystemExit(3)\n",
        "recursing.py": b"def f(): f()\nf()\n",
        "wrong.py": b"def f(:\n",
        "text.py": b"x = '\xff'\n",
        "plain.py": b"Thing = 5\ndef f(): raise ValueError('f')\n\n\ndef __getattr__(n): 1 / 0\n",
    }
    return (files,)
