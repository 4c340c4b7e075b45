"""What `EpisodeRecorder` writes against what environments said, and what it costs.

First, environments on four env runners write down themselves what they say, over at least 1,000
episodes; the files have to hold all of it, once. Then runners with and without the recorder sample
in turn in one process, so that whatever else the machine does meets both; the cost is the median of
the ratios of neighbours. The environment does nothing and the network is small: the worst case.
"""

from __future__ import annotations

import argparse
import collections
import json
import logging
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

EPISODES, RUNNERS, LENGTH = 1000, 4, 20


class Plant(gym.Env):
    """Says five values a step."""

    def __init__(self, config: Any) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (4,))
        self.action_space = gym.spaces.Discrete(2)
        self.own = config.get("own")
        self.name = f"{config.worker_index}-{config.vector_index}-{id(self)}"
        self.says = config.get("says", True)
        self.seen = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.said: list[Any] = []
        return self.seen, {}

    def step(self, action: Any) -> Any:
        del action
        values = [float(v) for v in self.np_random.random(3)]
        self.said.append(values)
        done = len(self.said) == LENGTH
        info = {
            "data": {"running": {"a": values[0], "b": values[1]}, "final": {"n": len(self.said)}},
            "media": {"place": values, "at": len(self.said)},
        }
        if done and self.own:
            with (Path(self.own) / self.name).open("a") as file:
                file.write(json.dumps(self.said) + "\n")
        return self.seen, 1.0, done, False, info


def config(**more: Any) -> dict[str, Any]:
    return {
        "env": Plant,
        "rollout_fragment_length": 500,
        "train_batch_size": 2000,
        "sgd_minibatch_size": 1000,
        "num_sgd_iter": 1,
        "model": {"fcnet_hiddens": [32, 32]},
        **more,
    }


def prove() -> None:
    import rllib_compat
    from rllib_compat.episode_data import EpisodeRecorder, read_episodes

    with tempfile.TemporaryDirectory() as own:
        trainer = rllib_compat.PPOTrainer(
            config=config(
                num_workers=RUNNERS,
                num_cpus_per_worker=0.25,
                env_config={"own": own},
                callbacks=EpisodeRecorder(),
            )
        )
        ended = 0
        while ended < EPISODES:
            ended += trainer.train()["episodes_this_iter"]
        trainer.stop()
        said = collections.Counter(
            line.strip() for file in Path(own).iterdir() for line in file.open()
        )
    found: collections.Counter[str] = collections.Counter()
    workers = set()
    for episode in read_episodes(trainer.logdir):
        place = episode["media"]["place"]
        found[json.dumps(place)] += 1
        workers.add(episode["worker"])
        assert episode["running"]["a"]["values"] == [p[0] for p in place]
        assert episode["running"]["b"]["values"] == [p[1] for p in place]
        assert episode["media"]["at"] == [*range(1, LENGTH + 1)]
        assert episode["final"]["n"] == episode["length"] == LENGTH
    assert found == said, (len(found - said), len(said - found))
    assert workers == set(range(1, RUNNERS + 1)), workers
    print(f"{len(said)} episodes on {RUNNERS} env runners: the files hold what was said, once")


def measure(rounds: int) -> None:
    import rllib_compat
    from rllib_compat.episode_data import EpisodeRecorder

    contenders = {
        "none": rllib_compat.PPOTrainer(config=config(num_workers=0)),
        "EpisodeRecorder": rllib_compat.PPOTrainer(
            config=config(num_workers=0, callbacks=EpisodeRecorder())
        ),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, trainer in contenders.items():
            start = time.perf_counter(), time.process_time()
            result = trainer.train()
            if number:
                took = time.perf_counter() - start[0], time.process_time() - start[1]
                times[name].append(took)
    steps = result["timesteps_this_iter"]
    without, with_it = times.values()
    for index, clock in enumerate(("wall clock", "CPU")):
        ratio = statistics.median(
            b[index] / a[index] for a, b in zip(without, with_it, strict=True)
        )
        extra = statistics.median(
            b[index] - a[index] for a, b in zip(without, with_it, strict=True)
        )
        print(f"  {clock}: {ratio - 1:+.1%}, {extra / steps * 1e6:+.0f} µs a step of five values")
    for trainer in contenders.values():
        trainer.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    prove()
    print(f"{options.rounds} iterations of 2,000 steps, with the recorder against none, in turn:")
    measure(options.rounds)


if __name__ == "__main__":
    main()
