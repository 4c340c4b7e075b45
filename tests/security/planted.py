"""Modules that libraries try to import, planted in a folder where somebody works with a checkpoint.

`python -m tests.security.planted` starts every verb in such a folder, as `rllib-compat` and as
`python -m rllib_compat`, and prints what of the folder was imported, in the command's own process
and in those that Ray starts for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from tests.security import payloads

ROOT = Path(__file__).parents[2]

#: What Ray 2.60, gymnasium, torch and others ask for where it is not installed, as recorded by a
#: finder behind all others; what is installed; and parts of Python that few have imported already.
_NAMES = """
GPUtil IPython acl aim aiodns aiohttp ale_py amdsmi backports backports_abc boto3 bottleneck
brotli brotlicffi chardet colorful comet_ml compression crc32c cuda cv2 cython datasketches dill
dm_control dm_env dpctl flax flint fqdn furiosa_smi_py fx2trt_oss gmpy gmpy2 grpc gym
habana_frameworks isal isoduration jax jsonpointer kubernetes lzmaffi mlflow monkeytype msvcrt
nt numexpr onnx_tf onnxruntime opentelemetry opt_einsum org prometheus_client pydot pymxsml
pynvml pytz qbruntime rebel rfc3339_validator rfc3986_validator rfc3987 rfc3987_syntax
simplejson sklearn smart_open snappy socks starlette tabulate tensorboard tensorflow
tensorflow_probability tensorrt torch2trt torchcomms torchdistx tqdm triton tvm uri_template
uvloop wandb wcwidth webcolors winreg xarray zstandard _winapi aiosignal attr click cloudpickle
colorama filelock fsspec gymnasium jinja2 jsonschema libcst lz4 matplotlib mpmath msgpack
networkx numpy onnx packaging pandas PIL psutil pyarrow pydantic ray requests rich safetensors
scipy setproctitle sympy tensorboardX torch tree yaml asyncio cProfile csv ctypes decimal
fractions http multiprocessing optparse pdb secrets sqlite3 uuid xml
"""
NAMES = tuple(_NAMES.split())
_SOURCE = """import os, sys
os.close(os.open({mark!r} + "-" + os.path.basename(sys.argv[0] or "c"), os.O_CREAT | os.O_WRONLY))
raise ImportError("planted")
"""
_ENV = """import gymnasium as gym
open({mark!r}, "w").close()
class Env(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (4,))
    action_space = gym.spaces.Discrete(2)
    def __init__(self, *args, **kwargs):
        pass
    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {{}}
    def step(self, action):
        return self.observation_space.sample(), 1.0, False, True, {{}}
def f():
    pass
"""
_TRAIN = """x:
  run: PPO
  env: "own_env:Env"
  stop: {training_iteration: 1}
  config: {num_workers: 1, train_batch_size: 20, sgd_minibatch_size: 20, num_sgd_iter: 1,
           rollout_fragment_length: 20, model: {fcnet_hiddens: [4]}}
"""
_PLAYS = ["evaluate", "real", "--run", "PPO", "--env", "CartPole-v1", "--episodes", "1"]

#: What is started in the folder, and which need a Ray that runs.
STARTS = {
    "artifacts": ["artifacts", "real"],
    "config": ["config", "real/params.json"],
    "config FILE.py": ["config", "given.py:CONFIG"],
    "convert": ["convert", "real", "new", "--algorithm", "PPO"],
    "convert --env": ["convert", "checkpoint-1", "new1", "--env", "own_env:Env", "--trust",
                      "own_env:f"],
    "convert --model": ["convert", "checkpoint-1", "new2", "--model", "own_env:Env"],
    "convert --recursive": ["convert", "real", "many", "--recursive", "--to", "msgpack"],
    "convert --to onnx": ["convert", "real", "new.onnx", "--to", "onnx", "--algorithm", "PPO"],
    "doctor": ["doctor"],
    "evaluate": ["evaluate", "checkpoint-1", "--run", "PPO"],
    "evaluate --config": [*_PLAYS, "--config", '{"explore": false}'],
    "evaluate --config FILE": [*_PLAYS, "--config", "odd.json"],
    "evaluate --env": ["evaluate", "checkpoint-1", "--run", "PPO", "--env", "own_env:Env"],
    "evaluate --video": [*_PLAYS, "--video-dir", "videos"],
    "inspect": ["inspect", "real"],
    "plot": ["plot", "trial", "--out", "plot.png"],
    "recorder": ["recorder"],
    "run": ["run", "../script.py"],
    "train --dry-run": ["train", "-f", "train.yaml", "--dry-run"],
    "upgrade": ["upgrade", "given.py"],
    "verify": ["verify", "checkpoint-1", "checkpoint-1", "--env", "own_env:Env"],
}  # fmt: skip
WITH_RAY = {
    "demo": ["demo"],
    "train": ["train", "-f", "train.yaml", "--local-dir", "results", "--ray-num-cpus", "2"],
}
WAYS = {
    "rllib-compat": ["-c", "import sys; sys.path.pop(0); sys.argv[0] = 'rllib-compat'\n"
                     "from rllib_compat.cli import main; main()"],
    "python -m": ["-m", "rllib_compat"],
}  # fmt: skip


def plant(folder: Path) -> Path:
    """Makes a folder with checkpoints and planted modules."""
    here = payloads.v0_1(folder / "here").parent
    for name in NAMES:
        (here / f"{name}.py").write_text(_SOURCE.format(mark=str(here / f"imported-{name}")))
    (here / "own_env.py").write_text(_ENV.format(mark=str(here / "asked for")))
    shutil.copytree(resources.files("rllib_compat") / "demo_data", here / "real")
    (here / "odd.json").write_text('{"model": {"custom_options": {"x": "tensorflow.x"}}}')
    (here / "train.yaml").write_text(_TRAIN)
    (here / "given.py").write_text("from ray.rllib.agents import ppo\nCONFIG = {'lr': 0.1}\n")
    (here / "trial").mkdir()
    (here / "trial" / "result.json").write_text(
        '{"training_iteration": 1, "episode_reward_mean": 1.0}\n'
    )
    (folder / "script.py").write_text("from ray.rllib.agents.ppo import DEFAULT_CONFIG\n")
    return here


def start(here: Path, verb: str, way: str) -> tuple[int, set[str], bool]:
    """Starts a verb in a folder.

    Returns:
        Its exit code, the names of the planted modules that were imported with the programs that
        did, and whether the module that a flag names was.
    """
    command = [sys.executable, *WAYS[way], *{**STARTS, **WITH_RAY}[verb]]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    environ.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        command, cwd=here, env=environ, capture_output=True, timeout=180, check=False
    )
    imported = {path.name.removeprefix("imported-") for path in here.glob("imported-*")}
    asked = (here / "asked for").exists()
    for mark in (*here.glob("imported-*"), here / "asked for"):
        mark.unlink(missing_ok=True)
    return done.returncode, imported, asked


def all_of_them() -> Iterator[tuple[str, str, int, set[str], bool]]:
    """Starts every verb in each way."""
    for verb in [*STARTS, *WITH_RAY]:
        for way in WAYS:
            with tempfile.TemporaryDirectory() as folder:
                yield verb, way, *start(plant(Path(folder)), verb, way)


def main() -> None:
    """Prints what was imported."""
    total = 0
    for verb, way, code, imported, asked in all_of_them():
        total += len(imported)
        shown = ", ".join(sorted(imported)) or "nothing"
        own = ", and the module that was named" if asked else ""
        print(f"{way} {verb}: exit {code}, imported {shown}{own}", flush=True)
    print(f"{len(NAMES)} names planted, imported {total}")


if __name__ == "__main__":
    main()
