"""PPO, IMPALA and DQN on images of 84 × 84 × 4 bytes on one GPU, beside Ray and Stable-Baselines3.

    python benchmarks/bench_gpu.py --write
    python benchmarks/bench_gpu.py --rows ppo-4096 --sides ours --memory-by-line

Each side trains in a process of its own, one seed after the other: the same batches, minibatches,
epochs and environments, which cost nothing, and the CNN of Nature with the padding of old Rays (the
parameters are counted). Ray alone is its new API stack as its documents set it
up. Measured are whole iterations after a first one, and the memory of the learner's process.
`gpu.json` has all numbers; each row is written as soon as it is there, rows of earlier runs stay.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from guide_tables import END, GUIDE, begin, put
from images import env_class

RESULTS = Path(__file__).with_name("gpu.json")
PAGE = GUIDE / "gpus.md"
LR, EPOCHS = 2.5e-4, 4
#: The CNN of Nature as old Rays had it: with padding; the last filter is the dense layer.
FILTERS = [[32, [8, 8], 4], [64, [4, 4], 2], [64, [3, 3], 1], [512, [11, 11], 1]]
REPLAYED, BEFORE_LEARNING, TARGET_EVERY, EPSILON = 10_000, 1_000, 1_000, 0.05


class Row(NamedTuple):
    """What all sides train alike.

    Attributes:
        fragment: How many steps of each environment are sampled at once.
    """

    algorithm: str
    batch: int
    workers: int
    envs: int
    fragment: int

    @property
    def all_envs(self) -> int:
        return max(1, self.workers) * self.envs

    @property
    def minibatch(self) -> int:
        return min(512, self.batch // 4)

    def small(self) -> Row:
        """What a machine without a GPU can try."""
        smaller = {"batch": self.batch // 16, "fragment": max(4, self.fragment // 4)}
        return self._replace(workers=min(1, self.workers), **smaller)


ROWS = {
    "ppo-4096": Row("PPO", 4_096, 4, 8, 128),
    "ppo-12288": Row("PPO", 12_288, 12, 8, 128),
    "impala-512": Row("IMPALA", 512, 4, 8, 32),
    "impala-2048": Row("IMPALA", 2_048, 12, 8, 32),
    "dqn-256": Row("DQN", 256, 0, 8, 4),
    "dqn-1024": Row("DQN", 1_024, 0, 8, 4),
}
SIDES = {"ours": "rllib-compat", "ray": "Ray alone", "sb3": "Stable-Baselines3"}


class Training(NamedTuple):
    """A side that is ready to train.

    Attributes:
        train: Makes an iteration.
        steps: How many steps were sampled so far, and how many were learned from, if it says so.
        learner: Calls a function in the learner's process.
        parameters: How many numbers are trained.
        learning: Its one item is how many seconds learning took so far; none: it is not known.
        stop: Frees what it has.
    """

    train: Callable[[], object]
    steps: Callable[[], tuple[int, int | None]]
    learner: Callable[[Callable[..., Any]], Any]
    parameters: int
    learning: list[float]
    stop: Callable[[], object]


def timed(function: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    """The function, which adds what it took to the seconds."""
    seconds.append(0.0)

    def call(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        found = function(*args, **kwargs)
        synchronize()
        seconds[0] += time.perf_counter() - start
        return found

    return call


def synchronize() -> None:
    """Waits for the GPU, if this process has used one."""
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def of_algorithm(algorithm: Any, train: Callable[[], object], row: Row) -> Training:
    """What is measured of an Algorithm of Ray's."""
    learning: list[float] = []
    group = algorithm.learner_group
    if row.algorithm != "IMPALA":  # which learns beside sampling
        group.update = timed(group.update, learning)

    def steps() -> tuple[int, int]:
        def logged(*key: str) -> int:
            return int(algorithm.metrics.peek(key, default=0))

        return (
            logged("env_runners", "num_env_steps_sampled_lifetime"),
            logged("learners", "__all_modules__", "num_env_steps_trained_lifetime"),
        )

    def in_learner(function: Callable[..., Any]) -> Any:
        (answer,) = group.foreach_learner(lambda learner, **_: function(learner))
        return answer.get()

    return Training(train, steps, in_learner, in_learner(trained_numbers), learning, algorithm.stop)


def trained_numbers(learner: Any) -> int:
    """How many numbers a learner trains."""
    parameters = learner.module["default_policy"].unwrapped().parameters()
    return sum(p.numel() for p in parameters if p.requires_grad)


def ours(row: Row, seed: int, gpus: int) -> Training:
    """A Trainer with a legacy config."""
    import gymnasium

    import rllib_compat as compat

    config: dict[str, Any] = {
        "env": env_class(gymnasium, old=False),
        "framework": "torch",
        "num_gpus": gpus,
        "num_workers": row.workers,
        "num_envs_per_worker": row.envs,
        "rollout_fragment_length": row.fragment,
        "train_batch_size": row.batch,
        "lr": LR,
        "seed": seed,
        "model": {"conv_filters": FILTERS, "vf_share_layers": row.algorithm != "DQN"},
    }
    if row.algorithm == "PPO":
        config |= {"sgd_minibatch_size": row.minibatch, "num_sgd_iter": EPOCHS}
    if row.algorithm == "IMPALA":
        config["min_time_s_per_reporting"] = 1
    if row.algorithm == "DQN":
        config |= {
            "hiddens": [],
            "dueling": False,
            "double_q": False,
            "replay_buffer_config": {"type": "MultiAgentReplayBuffer", "capacity": REPLAYED},
            "learning_starts": BEFORE_LEARNING,
            "target_network_update_freq": TARGET_EVERY,
            "exploration_config": {
                "type": "EpsilonGreedy",
                "initial_epsilon": EPSILON,
                "final_epsilon": EPSILON,
                "epsilon_timesteps": 1,
            },
        }
    trainer = getattr(compat, f"{row.algorithm}Trainer")(config=config, legacy_ray="1.13.0")
    return of_algorithm(trainer.algorithm, trainer.train, row)._replace(stop=trainer.stop)


def ray_alone(row: Row, seed: int, gpus: int) -> Training:
    """An Algorithm as Ray's own documents set it up: its CNNs take images as floats only."""
    import gymnasium
    from ray import tune
    from ray.rllib.algorithms.dqn import DQNConfig
    from ray.rllib.algorithms.impala import IMPALAConfig
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.rllib.env.wrappers.atari_wrappers import NormalizedImageEnv

    images = env_class(gymnasium, old=False)
    tune.register_env("images", lambda _: NormalizedImageEnv(images()))
    network = DefaultModelConfig(conv_filters=[*FILTERS[:-1], [*FILTERS[-1], "valid"]])
    classes = {"PPO": PPOConfig, "IMPALA": IMPALAConfig, "DQN": DQNConfig}
    config = (
        classes[row.algorithm]()
        .environment("images")
        .env_runners(
            num_env_runners=row.workers,
            num_envs_per_env_runner=row.envs,
            rollout_fragment_length=row.fragment,
        )
        .learners(num_learners=int(row.algorithm == "IMPALA"), num_gpus_per_learner=gpus)
        .training(lr=LR, train_batch_size_per_learner=row.batch)
        .rl_module(model_config=network)
        .debugging(seed=seed)
    )
    if row.algorithm == "PPO":
        config.training(minibatch_size=row.minibatch, num_epochs=EPOCHS)
    if row.algorithm == "IMPALA":
        config.reporting(min_time_s_per_iteration=1)
    if row.algorithm == "DQN":
        config.training(
            dueling=False,
            double_q=False,
            epsilon=EPSILON,
            replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": REPLAYED},
            num_steps_sampled_before_learning_starts=BEFORE_LEARNING,
            target_network_update_freq=TARGET_EVERY,
        )
    algorithm = config.build_algo()
    return of_algorithm(algorithm, algorithm.train, row)


def padded_cnn() -> type:
    """What `FILTERS` says, for Stable-Baselines3, whose own CNN pads no images."""
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import nn

    class PaddedCNN(BaseFeaturesExtractor):  # type: ignore[misc]
        def __init__(self, observation_space: Any) -> None:
            super().__init__(observation_space, features_dim=512)
            first = nn.Conv2d(observation_space.shape[0], 32, 8, stride=4, padding=2), nn.ReLU()
            second = nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU()
            third = nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()
            dense = nn.Flatten(), nn.Linear(64 * 11 * 11, 512), nn.ReLU()
            self.net = nn.Sequential(*first, *second, *third, *dense)

        def forward(self, observations: Any) -> Any:
            return self.net(observations)

    return PaddedCNN


def sb3(row: Row, seed: int, gpus: int) -> Training:
    """A model of Stable-Baselines3, whose environments are in its process, as is its default."""
    import gymnasium
    import stable_baselines3
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(env_class(gymnasium, old=False), n_envs=row.all_envs, seed=seed)
    settings: dict[str, Any] = {"batch_size": row.minibatch, "n_epochs": EPOCHS}
    settings["n_steps"] = row.batch // row.all_envs
    a_turn = row.batch
    if row.algorithm == "DQN":
        a_turn = 32 * row.all_envs * row.fragment
        settings = {
            "batch_size": row.batch,
            "buffer_size": REPLAYED,
            "learning_starts": BEFORE_LEARNING,
            "train_freq": row.fragment,
            "gradient_steps": 1,
            "target_update_interval": TARGET_EVERY,
            "exploration_initial_eps": EPSILON,
            "exploration_final_eps": EPSILON,
        }
    model = getattr(stable_baselines3, row.algorithm)(
        "CnnPolicy",
        envs,
        learning_rate=LR,
        seed=seed,
        device="cuda" if gpus else "cpu",
        policy_kwargs={"features_extractor_class": padded_cnn(), "net_arch": []},
        **settings,
    )
    learning: list[float] = []
    model.train = timed(model.train, learning)
    net = model.q_net if row.algorithm == "DQN" else model.policy
    return Training(
        lambda: model.learn(a_turn, reset_num_timesteps=False, log_interval=1_000_000),
        lambda: (model.num_timesteps, None),
        lambda function: function(model),
        sum(p.numel() for p in net.parameters() if p.requires_grad),
        learning,
        envs.close,
    )


MAKERS = {"ours": ours, "ray": ray_alone, "sb3": sb3}


def forget_peaks(_: object) -> None:
    """Lets this process count the most memory anew."""
    import torch

    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    Path("/proc/self/clear_refs").write_text("5", "ascii")


def peaks(_: object) -> dict[str, float]:
    """The most memory of this process so far, in MB, and what is in use on the whole GPU."""
    import torch

    status = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines()
    )
    found = {"host": int(status["VmHWM"].split()[0]) / 1e3}
    if torch.cuda.is_initialized():
        free, total = torch.cuda.mem_get_info()
        found |= {
            "allocated": torch.cuda.max_memory_allocated() / 1e6,
            "reserved": torch.cuda.max_memory_reserved() / 1e6,
            "whole_gpu": (total - free) / 1e6,
        }
    return found


def measure(side: str, row: Row, seed: int, gpus: int, seconds: float) -> dict[str, Any]:
    """What a side does with a seed."""
    start = time.perf_counter()
    forget_peaks(None)
    training = MAKERS[side](row, seed, gpus)
    training.learner(forget_peaks)  # of a process that has been made just now, too
    training.train()
    ready = 2 * BEFORE_LEARNING if row.algorithm == "DQN" else row.batch
    while (training.steps()[0] < ready or training.steps()[1] == 0) and not is_late(start):
        training.train()
    (sampled, learned), learning = training.steps(), sum(training.learning)
    begin_of_window = time.perf_counter()
    while (wall := time.perf_counter() - begin_of_window) < seconds:
        training.train()
    now_sampled, now_learned = training.steps()
    steps = now_sampled - sampled
    found: dict[str, Any] = {"seed": seed, "sampled_per_s": steps / wall}
    if row.algorithm == "IMPALA":  # which may drop what it has sampled
        steps = (now_learned or 0) - (learned or 0)
    found["steps_per_s"] = steps / wall
    if training.learning:
        found["learning_s_per_1000"] = (sum(training.learning) - learning) / steps * 1e3
        found["else_s_per_1000"] = wall / steps * 1e3 - found["learning_s_per_1000"]
    found |= {"mb": training.learner(peaks), "parameters": training.parameters}
    training.stop()
    found["all_s"] = time.perf_counter() - start
    return found


def is_late(start: float) -> bool:
    """Whether a side that has not learned yet is given up."""
    return time.perf_counter() - start > 60.0


def start_ray(gpus: int) -> None:
    """Starts a Ray of this process."""
    import logging

    import ray

    ray.init(
        num_cpus=max(16, os.cpu_count() or 1),
        num_gpus=gpus,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )


def measure_here(given: argparse.Namespace) -> None:
    """Prints a line of JSON for each seed, in a process of a side's own."""
    if given.side != "sb3":
        start_ray(given.gpus)
    row = ROWS[given.row] if given.gpus else ROWS[given.row].small()
    for seed in given.seeds:
        found = measure(given.side, row, seed, given.gpus, given.seconds)
        print("RESULT", json.dumps(found), flush=True)


def memory_by_line(row: Row, top: int = 15) -> None:
    """Prints which lines had allocated what a GPU held at its peak, of our side's two iterations.

    Both the lines of this package and Ray and, behind them, those of torch are printed.
    """
    import torch

    torch.cuda.memory._record_memory_history(stacks="python", max_entries=2_000_000)  # noqa: SLF001
    start_ray(1)
    training = ours(row, 0, 1)
    for _ in range(2):
        training.train()
    snapshot = torch.cuda.memory._snapshot()  # noqa: SLF001 - no public name
    torch.cuda.memory._record_memory_history(enabled=None)  # noqa: SLF001
    training.stop()
    total, lines = at_peak(snapshot["device_traces"][0])
    print(f"{total / 1e6:.0f} MB at the peak")
    for place, size in sorted(lines.items(), key=lambda item: -item[1])[:top]:
        print(f"{size / 1e6:9.1f} MB  {place}")


def at_peak(trace: Iterable[dict[str, Any]]) -> tuple[int, dict[str, int]]:
    """How many bytes were allocated at the peak of a trace, and by which lines."""
    held: dict[int, tuple[int, str]] = {}
    found: dict[str, int] = {}
    total = most = 0
    events = list(trace)
    for look in (False, True):  # a first pass finds the peak, a second one what was held
        held.clear()
        total = 0
        for event in events:
            if event["action"] == "alloc":
                held[event["addr"]] = event["size"], place(event["frames"])
                total += event["size"]
            elif event["action"] == "free_completed" and event["addr"] in held:
                total -= held.pop(event["addr"])[0]
            if look and total == most:
                for size, where in held.values():
                    found[where] = found.get(where, 0) + size
                return most, found
            most = most if look else max(most, total)
    return most, found


def place(frames: Iterable[dict[str, Any]]) -> str:
    """The innermost line of this package or Ray, and the one that it was called by."""
    lines = [
        (frame["filename"], frame["line"], frame["name"])
        for frame in frames
        if frame["filename"].endswith(".py")
    ]
    names = ("rllib_compat/", "ray/rllib/", "torch/optim/")
    known = [
        (name[name.rindex(part) :], line, function)
        for name, line, function in lines
        for part in names
        if part in name
    ]
    chosen = known[:2] or [(Path(n).name, line, function) for n, line, function in lines[:2]]
    return " < ".join(f"{name}:{line} {function}" for name, line, function in chosen) or "?"


def machine(gpus: int) -> dict[str, Any]:
    """What the numbers were measured on."""
    packages = ("ray", "torch", "stable-baselines3", "gymnasium", "numpy")
    found: dict[str, Any] = {"cpus": os.cpu_count(), "python": platform.python_version()}
    found |= {name: importlib.metadata.version(name) for name in packages}
    if gpus:
        command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        found["gpu"], found["driver"] = told.stdout.splitlines()[0].split(", ")
    return found


def measure_side(side: str, name: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """What a process of the side's own measures; prints why, if it fails."""
    command = [sys.executable, __file__, "--side", side, "--row", name]
    command += ["--seconds", str(given.seconds), "--device", given.device]
    command += ["--seeds", *map(str, given.seeds)]
    root = str(Path(__file__).parents[1])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    try:
        told = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=given.limit,
        )
        out, errors, code = told.stdout, told.stderr, told.returncode
    except subprocess.TimeoutExpired as late:
        out, errors = (text.decode() if text else "" for text in (late.stdout, late.stderr))
        code = 124
    lines = [line for line in out.splitlines() if line.startswith("RESULT ")]
    if code:
        print(f"{name} {side}: exit {code}\n{errors[-3000:]}", flush=True)
    return [json.loads(line.removeprefix("RESULT ")) for line in lines]


def median(measured: list[dict[str, Any]], *key: str) -> float | None:
    """The median of a number over seeds; None where a side does not have it."""
    found = []
    for one in measured:
        value: Any = one
        for part in key:
            value = value.get(part) if value else None
        if value is not None:
            found.append(value)
    return statistics.median(found) if found else None


HEAD = """\
| | | steps/s (three seeds) | ours / this | learning, ms a step | GPU, MB allocated | ours / this \
| reserved | host, MB | parameters |
|---|---|---|---|---|---|---|---|---|---|
"""


def lines_of(name: str, sides: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The lines of the table for a row."""
    made = []
    for side, measured in sides.items():
        speeds = [one["steps_per_s"] for one in measured]
        if not speeds:
            continue

        def times(*key: str, measured: list[dict[str, Any]] = measured) -> str:
            mine, its = median(sides.get("ours", []), *key), median(measured, *key)
            return f"{mine / its:.2f}" if mine and its else ""

        def number(*key: str, measured: list[dict[str, Any]] = measured, form: str = ",.0f") -> str:
            found = median(measured, *key)
            return "" if found is None else format(found, form)

        cells = [
            name,
            SIDES[side],
            f"{statistics.median(speeds):,.0f} ({min(speeds):,.0f} – {max(speeds):,.0f})",
            times("steps_per_s"),
            number("learning_s_per_1000", form=".3f"),
            number("mb", "allocated"),
            times("mb", "allocated"),
            number("mb", "reserved"),
            number("mb", "host"),
            number("parameters"),
        ]
        made.append("| " + " | ".join(cells) + " |")
    return made


def table(results: dict[str, Any]) -> str:
    """The guide's table."""
    on = results["machine"]
    lines = [line for name in ROWS for line in lines_of(name, results["rows"].get(name, {}))]
    return (
        f"Measured on {on.get('gpu', 'a machine without a GPU')} and {on['cpus']} CPUs, Ray "
        f"{on['ray']}, torch {on['torch']}, Stable-Baselines3 {on['stable-baselines3']}.\n\n"
        + HEAD
        + "\n".join(lines)
    )


def write_page(results: dict[str, Any]) -> None:
    """Puts the table into the guide's page, at its end the first time."""
    page = PAGE.read_text("utf-8") if PAGE.exists() else "# GPUs\n"
    if begin("bench_gpu") not in page:
        PAGE.write_text(f"{page}\n## Memory and speed\n\n{begin('bench_gpu')}{END}", "utf-8")
    put("bench_gpu", table(results), PAGE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement, at least")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a side's process")
    parser.add_argument(
        "--device",
        choices=("cuda", "cpu"),
        default="cuda",
        help="cpu: tries a 16th of each batch",
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help="put the table into the guide")
    parser.add_argument("--memory-by-line", action="store_true", help="of our side, on a GPU")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.gpus = int(given.device == "cuda")
    if given.side:
        measure_here(given)
        return
    if given.memory_by_line:
        memory_by_line(ROWS[given.rows[0]])
        return
    results: dict[str, Any] = {"rows": {}}
    if given.results.exists():
        results = json.loads(given.results.read_text("utf-8"))
    results["machine"] = machine(given.gpus)
    start = time.perf_counter()
    print(HEAD, end="")
    for name in given.rows:
        for side in given.sides:
            if side == "sb3" and ROWS[name].algorithm == "IMPALA":
                continue  # which it does not have
            sides = results["rows"].setdefault(name, {})
            sides[side] = measure_side(side, name, given)
            given.results.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
            for line in lines_of(name, {k: v for k, v in sides.items() if k in ("ours", side)}):
                if SIDES[side] in line:
                    print(line, f"<!-- {time.perf_counter() - start:.0f} s -->", flush=True)
    if given.write:
        write_page(results)


if __name__ == "__main__":
    main()
