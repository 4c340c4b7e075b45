"""Training beside what a user would pick instead: Stable-Baselines3, Ray's own, and Ray 1.13.0.

All sides of a row have the same environment, network sizes, batches and number of updates per
step. Each trains in a process of its own, on `--cores` cores with as many threads; sides take
turns, and rows share the machine, one for each `--cores`. What counts is steps a second of CPU time
of all processes, after a warm-up that fills buffers; where workers sample on several cores, it is
steps a second. The peak memory of all processes stands beside it. The limit of a row is what
`env.step` and the network's forward and backward passes cost alone, in plain torch::

    python benchmarks/peers.py --all --write --old-python old/bin/python --sb3-python sb3/bin/python
    python benchmarks/peers.py --all --cores 2 …      # the rows with workers
    python benchmarks/peers.py --write    # the table and the picture of what was recorded

Stable-Baselines3's environment needs `stable-baselines3`, `sb3-contrib` and `psutil`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from images import env_class

RESULTS = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[1] / "migration_guide" / "how_fast.md"
PICTURE = PAGE.with_suffix(".png")
SIDES = {
    "ours": "ours, on Ray 2.60",
    "ray": "Ray 2.60",
    "old": "Ray 1.13.0",
    "sb3": "Stable-Baselines3",
}


@dataclass(frozen=True)
class Network:
    """What a network computes for a step of the environment, beside choosing the action.

    Attributes:
        sizes: Of its layers.
        batch: The rows of a minibatch.
        updates: Minibatches that go forward and backward for each step.
        forward: Minibatches that go forward only.
    """

    sizes: tuple[int, ...]
    batch: int
    updates: float
    forward: float = 0


@dataclass(frozen=True)
class Row:
    """What all sides train.

    Attributes:
        algorithm: Its name in all libraries.
        env: A name of Gymnasium's, `Images` or `FourCartPoles`.
        steps: How many are not measured, and how many are.
        old: The config of Ray 1.13.0, which is ours, too.
        training: The arguments of `training()` of Ray's own config.
        runners: Those of `env_runners()`.
        model: Ray's own `DefaultModelConfig`.
        sb3: The arguments of Stable-Baselines3's class; none where it has no such thing.
        envs: How many environments each process that samples has.
        workers: How many processes sample; 0: the one that learns.
        networks: What is computed, where the limit is measured.
    """

    algorithm: str
    env: str
    steps: tuple[int, int]
    old: dict[str, Any]
    training: dict[str, Any]
    sb3: dict[str, Any] = field(default_factory=dict)
    runners: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    envs: int = 1
    workers: int = 0
    networks: tuple[Network, ...] = ()

    @property
    def iteration(self) -> int:
        """The steps of an iteration, after which results are logged: 1,000 is DQN's default."""
        return min(1000, self.steps[1])


def _ppo(env: str, envs: int, model: dict[str, Any], steps: tuple[int, int], **more: Any) -> Row:
    batch, minibatch, epochs = more.pop("batch", (2048, 64, 10))
    fragment = batch // envs // max(more.get("workers", 0), 1)
    sizes = {"n_steps": fragment, "batch_size": minibatch, "n_epochs": epochs}
    own = more.pop("sb3", {})
    new_names = {"vf_share_layers": model.get("vf_share_layers", False), **model}
    return Row(
        "PPO",
        env,
        steps,
        old={
            "train_batch_size": batch,
            "rollout_fragment_length": fragment,
            "sgd_minibatch_size": minibatch,
            "num_sgd_iter": epochs,
            "num_envs_per_worker": envs,
            "kl_coeff": 0.0,
            "model": model,
        },
        training={
            "train_batch_size_per_learner": batch,
            "minibatch_size": minibatch,
            "num_epochs": epochs,
            "kl_coeff": 0.0,
            "use_kl_loss": False,
        },
        sb3={} if own is None else {**sizes, **own},
        runners={"rollout_fragment_length": fragment},
        model=new_names,
        envs=envs,
        **more,
    )


_SMALL = {"fcnet_hiddens": [64, 64], "fcnet_activation": "tanh"}
_REPLAY = {"type": "EpisodeReplayBuffer", "capacity": 50_000}
_OLD_REPLAY = {
    "_enable_replay_buffer_api": True,
    "type": "MultiAgentReplayBuffer",
    "capacity": 50_000,
    "replay_sequence_length": 1,
}
_BIG = {"fcnet_hiddens": [256, 256], "fcnet_activation": "relu"}
_ACTOR_CRITIC = tuple(Network((4, 64, 64, outputs), 64, 10 / 64) for outputs in (2, 1))

ROWS = {
    "PPO, CartPole": _ppo(
        "CartPole-v1",
        1,
        _SMALL,
        (2048, 8192),
        networks=_ACTOR_CRITIC,
    ),
    "PPO, CartPole, 8 environments": _ppo(
        "CartPole-v1",
        8,
        _SMALL,
        (2048, 8192),
        networks=_ACTOR_CRITIC,
    ),
    "PPO with an LSTM, CartPole": _ppo(
        "CartPole-v1",
        1,
        {**_SMALL, "use_lstm": True, "lstm_cell_size": 64, "max_seq_len": 20},
        (2048, 4096),
        sb3={"policy": "MlpLstmPolicy", "policy_kwargs": {"lstm_hidden_size": 64}},
    ),
    "PPO, images": _ppo(
        "Images",
        1,
        {},
        (512, 1024),
        batch=(512, 128, 4),
        sb3={"policy": "CnnPolicy"},
    ),
    "PPO, CartPole, networks of 50 MB": _ppo(
        "CartPole-v1",
        1,
        {"fcnet_hiddens": [2500, 2500], "fcnet_activation": "tanh"},
        (512, 1024),
        batch=(512, 128, 4),
        sb3={"policy_kwargs": {"net_arch": [2500, 2500]}},
    ),
    "DQN, CartPole": Row(
        "DQN",
        "CartPole-v1",
        (1500, 4000),
        old={
            "train_batch_size": 32,
            "rollout_fragment_length": 4,
            "learning_starts": 1000,
            "target_network_update_freq": 500,
            "dueling": False,
            "double_q": False,
            "hiddens": [64],
            "model": {"fcnet_hiddens": [64], "fcnet_activation": "relu"},
            "replay_buffer_config": _OLD_REPLAY,
        },
        training={
            "train_batch_size_per_learner": 32,
            "num_steps_sampled_before_learning_starts": 1000,
            "target_network_update_freq": 500,
            "dueling": False,
            "double_q": False,
            "replay_buffer_config": _REPLAY,
        },
        runners={"rollout_fragment_length": 4},
        model={
            "fcnet_hiddens": [64],
            "fcnet_activation": "relu",
            "head_fcnet_hiddens": [64],
        },
        sb3={
            "train_freq": 4,
            "batch_size": 32,
            "buffer_size": 50_000,
            "learning_starts": 1000,
            "target_update_interval": 500,
            "policy_kwargs": {"net_arch": [64, 64]},
        },
        networks=(Network((4, 64, 64, 2), 32, 1 / 4, 1 / 4),),
    ),
    "SAC, Pendulum": Row(
        "SAC",
        "Pendulum-v1",
        (500, 500),
        old={
            "train_batch_size": 256,
            "rollout_fragment_length": 1,
            "learning_starts": 256,
            "Q_model": _BIG,
            "policy_model": _BIG,
            "replay_buffer_config": _OLD_REPLAY,
        },
        training={
            "train_batch_size_per_learner": 256,
            "num_steps_sampled_before_learning_starts": 256,
            "replay_buffer_config": _REPLAY,
        },
        runners={"rollout_fragment_length": 1},
        model={**_BIG, "head_fcnet_hiddens": []},
        sb3={"buffer_size": 50_000, "learning_starts": 256},
        networks=(Network((3, 256, 256, 2), 256, 1, 1), Network((4, 256, 256, 1), 256, 3, 2)),
    ),
    "TD3, Pendulum": Row(
        "TD3",
        "Pendulum-v1",
        (500, 500),
        old={
            "train_batch_size": 256,
            "rollout_fragment_length": 1,
            "learning_starts": 256,
            "actor_hiddens": [256, 256],
            "critic_hiddens": [256, 256],
            "exploration_config": {"random_timesteps": 256},
            "replay_buffer_config": _OLD_REPLAY,
        },
        training={},
        sb3={
            "buffer_size": 50_000,
            "learning_starts": 256,
            "batch_size": 256,
            "train_freq": 1,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
        networks=(
            Network((3, 256, 256, 1), 256, 1 / 2, 1),
            Network((4, 256, 256, 1), 256, 5 / 2, 2),
        ),
    ),
    "A2C, CartPole, 8 environments": Row(
        "A2C",
        "CartPole-v1",
        (2000, 16_000),
        old={
            "train_batch_size": 40,
            "rollout_fragment_length": 5,
            "num_envs_per_worker": 8,
            "model": _SMALL,
        },
        training={},
        sb3={"n_steps": 5},
        envs=8,
        networks=tuple(Network((4, 64, 64, outputs), 40, 1 / 40) for outputs in (2, 1)),
    ),
    "PPO, four agents, two policies": _ppo(
        "FourCartPoles", 1, _SMALL, (2048, 4096), sb3=None, networks=4 * _ACTOR_CRITIC
    ),
    **{
        f"PPO, CartPole, {count} workers": _ppo(
            "CartPole-v1", 1, _SMALL, (2048, 16_384), workers=count
        )
        for count in (2, 8)
    },
}


def environment(name: str, *, old: bool, scaled: bool = False) -> Any:
    """What makes an environment, of gym's API until 0.25 or of Gymnasium's."""
    if old:
        import gym
    else:
        import gymnasium as gym
    if name == "Images":
        return env_class(gym, old=old, scaled=scaled)
    if name == "FourCartPoles":
        from ray.rllib.env.multi_agent_env import make_multi_agent

        return lambda *_: make_multi_agent("CartPole-v1")({"num_agents": 4})
    return lambda *_: gym.make(name)


def trainer(row: Row, side: str, seed: int) -> Callable[[], int]:
    """What makes a step of training, and returns how many environment steps there were so far."""
    make = environment(row.env, old=side == "old", scaled=side == "ray")
    if side == "sb3":
        return _stable_baselines(row, make, seed)
    import ray
    from ray.tune.registry import get_trainable_cls, register_env

    ray.init(num_cpus=1 + row.workers, include_dashboard=False, log_to_driver=False)
    register_env(row.env, make)
    agents = {}
    if row.env == "FourCartPoles":
        agents = {"policies": {"even", "odd"}, "policy_mapping_fn": policy_of}
    if side == "ray":
        config = get_trainable_cls(row.algorithm).get_default_config()
        config.environment(row.env).debugging(seed=seed)
        config.env_runners(
            num_env_runners=row.workers, num_envs_per_env_runner=row.envs, **row.runners
        ).training(**row.training).rl_module(model_config=row.model)
        config.reporting(
            min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=row.iteration
        )
        algorithm = (config.multi_agent(**agents) if agents else config).build_algo()
        return lambda: int(algorithm.train()["num_env_steps_sampled_lifetime"])
    config = {
        "env": row.env,
        "num_workers": row.workers,
        "framework": "torch",
        "seed": seed,
        "min_time_s_per_reporting": 0,
        "timesteps_per_iteration": row.iteration,
        **row.old,
    }
    if agents:
        policies = {name: (None, None, None, {}) for name in agents["policies"]}
        config["multiagent"] = {**agents, "policies": policies}
    if side == "old":
        made = get_trainable_cls(row.algorithm)(config)
    else:
        import rllib_compat as compat

        made = compat.Trainer(config, algorithm=row.algorithm, legacy_ray="1.13.0")
    return lambda: int(made.train()["timesteps_total"])


def policy_of(agent: int, *_: Any, **__: Any) -> str:
    """The policy of one of four agents."""
    return "odd" if agent % 2 else "even"


def _stable_baselines(row: Row, make: Any, seed: int) -> Callable[[], int]:
    import sb3_contrib
    import stable_baselines3
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    settings = dict(row.sb3)
    policy = settings.pop("policy", "MlpPolicy")
    kind = getattr(stable_baselines3, row.algorithm)
    if policy == "MlpLstmPolicy":
        kind = sb3_contrib.RecurrentPPO
    count, vector = row.envs * max(row.workers, 1), SubprocVecEnv if row.workers else DummyVecEnv
    envs = make_vec_env(make, count, seed, vec_env_cls=vector)
    model = kind(policy, envs, device="cpu", seed=seed, **settings)

    def train() -> int:
        steps = max(row.iteration, settings.get("n_steps", 0) * count)
        model.learn(steps, reset_num_timesteps=False)
        return int(model.num_timesteps)

    return train


class Usage:
    """CPU seconds and memory of this process and of those that it has started."""

    def __init__(self) -> None:
        import psutil  # Ray brings one

        self._psutil, self.peak = psutil, 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _processes(self) -> list[Any]:
        this = self._psutil.Process()
        return [this, *this.children(recursive=True)]

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak, self._each(lambda process: process.memory_info().rss))
            time.sleep(0.5)

    def seconds(self) -> float:
        """CPU seconds so far."""
        return self._each(lambda process: sum(process.cpu_times()[:2]))

    def _each(self, measure: Callable[[Any], float]) -> float:
        total = 0.0
        for process in self._processes():
            try:
                total += measure(process)
            except self._psutil.NoSuchProcess:
                continue
        return total


def measure(name: str, side: str, seed: int, cores: int) -> dict[str, float]:
    """Trains a side of a row in this process."""
    import torch

    torch.set_num_threads(cores)
    row = ROWS[name]
    if side == "limit":
        return {"env": _steps_alone(row), "arithmetic": _arithmetic_alone(row)}
    train = trainer(row, side, seed)
    usage = Usage()
    warm, measured = row.steps
    steps = train()
    while steps < warm:
        steps = train()
    began, computed, clock = steps, usage.seconds(), time.perf_counter()
    while steps < began + measured:
        steps = train()
    return {
        "cpu": (steps - began) / (usage.seconds() - computed),
        "wall": (steps - began) / (time.perf_counter() - clock),
        "memory": usage.peak / 2**20,
    }


def _steps_alone(row: Row) -> float:
    """CPU seconds of a step of the environment, with random actions."""
    env = environment(row.env, old=False)()
    env.reset()
    several = {} if env.action_space else env.action_spaces
    actions = [
        {agent: space.sample() for agent, space in several.items()} or env.action_space.sample()
        for _ in range(1000)
    ]
    ended: set[int] = set()  # agents of this episode
    began = time.process_time()
    for action in actions:
        acting = {a: of for a, of in action.items() if a not in ended} if several else action
        _, _, terminated, truncated, _ = env.step(acting)
        if several:
            ended |= {agent for agent, ends in terminated.items() if ends}
            terminated, truncated = "__all__" in ended, truncated["__all__"]
        if terminated or truncated:
            ended.clear()
            env.reset()
    return (time.process_time() - began) / len(actions)


def _arithmetic_alone(row: Row) -> float:
    """CPU seconds that networks take for a step of the environment, acting and learning."""
    import torch

    seconds = 0.0
    for network in row.networks:
        layers = [torch.nn.Linear(a, b) for a, b in zip(network.sizes, network.sizes[1:])]  # noqa: B905
        net = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.ReLU())))
        acting = torch.zeros(row.envs, network.sizes[0])
        learning = torch.zeros(network.batch, network.sizes[0])
        with torch.no_grad():
            seconds += _cost(lambda net=net, rows=acting: net(rows)) / row.envs
            if network.forward:
                seconds += _cost(lambda net=net, rows=learning: net(rows)) * network.forward
        backward = _cost(lambda net=net, rows=learning: net(rows).sum().backward())
        seconds += backward * network.updates
    return seconds


def _cost(call: Callable[[], Any]) -> float:
    """CPU seconds of a call, the median of some."""
    times = []
    for _ in range(200):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return statistics.median(times)


def run(python: str, name: str, side: str, seed: int, cores: list[int]) -> dict[str, float]:
    """Measures in a process of its own, on some cores."""
    numbers = ",".join(map(str, cores))
    command = [python, __file__, "--measure", name, side, str(seed), numbers]
    environ = {**os.environ, "OMP_NUM_THREADS": str(len(cores)), "RAY_USAGE_STATS_ENABLED": "0"}
    if side in ("old", "sb3"):
        environ.pop("PYTHONPATH", None)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}, {side} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def run_all(
    names: list[str], given: argparse.Namespace
) -> Iterator[tuple[str, dict[str, list[dict[str, float]]]]]:
    """Measures rows, as many at a time as there are cores for; yields each with its figures."""
    free: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    places = max(1, (os.cpu_count() or 1) // given.cores)
    for place in range(places):
        free.put(list(range(place * given.cores, (place + 1) * given.cores)))

    def measured(name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        cores = free.get()
        for seed in given.seeds:
            for side, python in sides_of(ROWS[name], given).items():
                if side != "limit" or seed == given.seeds[0]:
                    found.setdefault(side, []).append(run(python, name, side, seed, cores))
        free.put(cores)
        print(table({name: found}), flush=True)
        return found

    with ThreadPoolExecutor(places) as pool:
        yield from zip(names, pool.map(measured, names), strict=True)


def median(runs: list[dict[str, float]], what: str) -> float:
    """The median of some runs."""
    return statistics.median(run[what] for run in runs)


def table(results: dict[str, dict[str, Any]]) -> str:
    """A line for each row: what ours makes, and how many times that of each peer.

    With workers, it is steps a second; without them, a second of CPU time.
    """
    peers = [side for side in SIDES if side != "ours"]
    names = ["training", "ours", *(f"ours / {SIDES[side]}" for side in peers), "limit / ours"]
    memory = ["memory, MiB: ours", *(SIDES[side] for side in peers)]
    lines = ["| " + " | ".join([*names, *memory]) + " |"]
    lines.append("|---|" + "--:|" * (len(names) + len(memory) - 1))
    for name, sides in results.items():
        what = "wall" if ROWS[name].workers else "cpu"
        ours = median(sides["ours"], what)
        cells = [name, f"{ours:,.0f}"]
        cells += [f"{ours / median(sides[s], what):.2f}" if s in sides else "–" for s in peers]
        limit = sides.get("limit")
        cells.append(f"{limit_of(limit) / ours:.1f}" if limit else "–")
        cells += [f"{median(sides[s], 'memory'):,.0f}" if s in sides else "–" for s in SIDES]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def limit_of(measured: list[dict[str, float]]) -> float:
    """The steps a CPU second of `env.step` and arithmetic alone."""
    return 1 / sum(measured[0].values())


def page(results: dict[str, Any]) -> str:
    """What the guide shows: for each number of cores the machine, its table and the picture."""
    parts = []
    for cores, measured in results.items():
        machine, runs = measured["machine"], max(len(r["ours"]) for r in measured["rows"].values())
        parts.append(f"{cores} core(s) and thread(s) of {machine}; the median of {runs} run(s):\n")
        parts.append(
            table({name: measured["rows"][name] for name in ROWS if name in measured["rows"]})
        )
    parts.append(f"![Steps a CPU second of each side, and the limit]({PICTURE.name})\n")
    return "\n".join(parts)


def draw(rows: dict[str, dict[str, Any]]) -> None:
    """Draws the steps a CPU second of each side, a group of bars for each row."""
    from matplotlib import pyplot

    names = [name for name in ROWS if name in rows]
    figure, axis = pyplot.subplots(figsize=(7, 0.6 * len(names) + 1), layout="constrained")
    sides = {**SIDES, "limit": "env.step and arithmetic alone"}
    for place, (side, label) in enumerate(sides.items()):
        found = [(at, rows[name][side]) for at, name in enumerate(names) if side in rows[name]]
        steps = [limit_of(runs) if side == "limit" else median(runs, "cpu") for _, runs in found]
        axis.barh([at + 0.17 * (place - 2) for at, _ in found], steps, height=0.16, label=label)
    axis.set(xscale="log", xlabel="steps a CPU second", yticks=range(len(names)))
    axis.set_yticklabels(names, fontsize=8)
    axis.invert_yaxis()
    figure.legend(fontsize=7, ncols=3, loc="outside upper center")
    figure.savefig(PICTURE, dpi=100)
    pyplot.close(figure)


def sides_of(row: Row, given: argparse.Namespace) -> dict[str, str]:
    """The Pythons of the sides that have the algorithm."""
    pythons = {"ours": sys.executable}
    if row.training:
        pythons["ray"] = sys.executable
    if given.old_python:
        pythons["old"] = given.old_python
    if row.sb3 and given.sb3_python:
        pythons["sb3"] = given.sb3_python
    if row.networks:
        pythons["limit"] = sys.executable
    return pythons


def main() -> None:
    """Measures the rows that were named, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="their names; without any, only the table is made")
    parser.add_argument(
        "--all", action="store_true", help="all rows; with several cores, those with workers"
    )
    parser.add_argument("--old-python", help="of an environment with Ray 1.13.0 and torch")
    parser.add_argument("--sb3-python", help="of an environment with Stable-Baselines3")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--cores", type=int, default=1, help="and threads, of each process")
    parser.add_argument(
        "--write", action="store_true", help="puts table and picture into the guide"
    )
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        name, side, seed, numbers = given.measure
        cores = [*map(int, numbers.split(","))]
        os.sched_setaffinity(0, cores)
        print("\n" + json.dumps(measure(name, side, int(seed), len(cores))))
        return
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    workers = given.cores > 1
    every = [name for name, row in ROWS.items() if bool(row.workers) == workers]
    if names := every if given.all else given.rows:
        kept = results.setdefault(str(given.cores), {"rows": {}})
        kept["machine"] = f"{os.cpu_count()} × {platform.processor() or platform.machine()}"
        for name, figures in run_all(names, given):
            kept["rows"][name] = figures
            RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if not results:
        sys.exit("Nothing was recorded yet: python benchmarks/peers.py --all --old-python …")
    print(page(results))
    if given.write:
        import guide_tables

        guide_tables.put("peers", page(results), PAGE)
        draw(results["1" if "1" in results else next(iter(results))]["rows"])


if __name__ == "__main__":
    main()
