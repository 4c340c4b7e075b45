"""What simulators' folders in checkpoints cost, on a cluster of two nodes; and whether all arrives.

The nodes are Ray's own (`ray.cluster_utils.Cluster`), with temporary folders of their own. Each of
the environments writes its megabytes in each iteration. A trial of Tune without the folders and one
with them save a checkpoint in each iteration; then all files of the checkpoints are compared with
what the simulators wrote, and an env runner is killed in the midst of a save.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from ray.cluster_utils import Cluster
from ray.rllib.env.external_env import ExternalEnv

import rllib_compat as compat
from rllib_compat.artifacts import SimulatorFolders, read_manifest, verify
from rllib_compat.ray_versions import env_runners

STEPS, EPISODE = 100, 20


class Results:
    """A simulator's folder; it is written when an iteration's last step is done."""

    def __init__(self, megabytes: int) -> None:
        self.bytes, self.steps = megabytes * 10**6, 0
        self.folder = Path(tempfile.gettempdir()) / f"simulator-{uuid.uuid4().hex}"
        self.folder.mkdir()

    def step(self) -> None:
        """Counts a step; after the last one, writes as many random bytes as it was told."""
        self.steps += 1
        if self.steps % STEPS == 0:
            content = os.urandom(self.bytes)
            (self.folder / "results.sql").write_bytes(content)
            digest = hashlib.sha256(content).hexdigest()
            with (self.folder / "digests.txt").open("a") as file:
                file.write(digest + "\n")


class Simulator(gym.Env):
    """Is stepped."""

    observation_space, action_space = gym.spaces.Box(-1, 1, (4,)), gym.spaces.Discrete(2)

    def __init__(self, config: Any) -> None:
        self.results = Results(config["mb"])
        self.output_folder = self.results.folder

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> Any:
        self.results.step()
        return np.zeros(4, np.float32), 1.0, self.results.steps % EPISODE == 0, False, {}


class Outside(ExternalEnv):  # type: ignore[misc]  # Ray has no types
    """Steps itself, in a thread, and asks for actions."""

    def __init__(self, config: Any) -> None:
        super().__init__(Simulator.action_space, Simulator.observation_space)
        self.results = Results(config["mb"])
        self.output_folder = self.results.folder

    def run(self) -> None:
        seen = np.zeros(4, np.float32)
        while True:
            episode = self.start_episode()
            for _ in range(EPISODE):
                self.get_action(episode, seen)
                self.results.step()
                self.log_returns(episode, 1.0)
            self.end_episode(episode, seen)


def config(options: argparse.Namespace, *, folders: bool) -> dict[str, Any]:
    envs = options.runners * options.envs
    return {
        "env": Outside if options.external else Simulator,
        "env_config": {"mb": options.mb},
        "num_workers": options.runners,
        "num_envs_per_worker": options.envs,
        "rollout_fragment_length": STEPS,
        "train_batch_size": STEPS * envs,
        "sgd_minibatch_size": STEPS,
        "num_sgd_iter": 1,
        "model": {"fcnet_hiddens": [16]},
        **({"callbacks": SimulatorFolders("output_folder")} if folders else {}),
    }


def trial(options: argparse.Namespace, storage: Path, *, folders: bool) -> tuple[float, list[Path]]:
    """Runs a trial; the seconds from one of its checkpoints to the next, and the checkpoints."""
    from rllib_compat import tune

    found = tune.run(
        "PPO",
        config=config(options, folders=folders),
        stop={"training_iteration": options.iterations},
        checkpoint_freq=1,
        storage_path=str(storage),
        verbose=0,
    )
    (one,) = found.trials
    checkpoints = sorted(Path(one.path).glob("checkpoint_*"))
    written = [(path / "rllib_checkpoint.json").stat().st_mtime for path in checkpoints]
    return (written[-1] - written[0]) / (len(written) - 1), checkpoints


def arrived(checkpoint: Path) -> tuple[int, int]:
    """How many bytes of how many nodes a checkpoint has; all as the simulators wrote them."""
    manifest = read_manifest(checkpoint)
    assert verify(checkpoint) == manifest.complaints == []
    for folder in manifest.folders:
        files = checkpoint / "artifacts/files" / folder.place
        written = (files / "digests.txt").read_text().split()
        stored = hashlib.sha256((files / "results.sql").read_bytes()).hexdigest()
        assert written[-1] == stored, folder.place
    total = sum(file.size for folder in manifest.folders for file in folder.files)
    return total, len({Path(folder.folder).parent for folder in manifest.folders})


def killed(options: argparse.Namespace, folder: Path) -> None:
    """Kills an env runner while a checkpoint is saved, and says what the manifest tells."""
    trainer = compat.PPOTrainer(config=config(options, folders=True))
    trainer.train()
    victim = dict(env_runners.numbered_env_runners(trainer.algorithm.env_runner_group))[2]
    files = folder / "artifacts/files/runner-2"

    def kill() -> None:
        while not files.exists():
            time.sleep(0.001)
        ray.kill(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    path = Path(trainer.save(str(folder.parent)))
    assert path == folder, path
    thread.join()
    manifest = read_manifest(path)
    assert verify(path) == [], "what is there is whole"
    print("a runner is killed while its files are sent; the checkpoint is there, and says:")
    for sentence in manifest.complaints:
        print("  ", sentence)
    trainer.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runners", type=int, default=4)
    parser.add_argument("--envs", type=int, default=2)
    parser.add_argument("--mb", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--external", action="store_true", help="simulators that step themselves")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = [folder / "head", folder / "second"]
        for place in places:
            place.mkdir()
        half = options.runners // 2
        os.environ["TMPDIR"] = str(places[0])
        tempfile.tempdir = None
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": half + 1})
        cluster.add_node(num_cpus=options.runners - half, env_vars={"TMPDIR": str(places[1])})
        ray.init(address=cluster.address, log_to_driver=False)
        without, _ = trial(options, folder / "without", folders=False)
        seconds, checkpoints = trial(options, folder / "with", folders=True)
        counted = [arrived(checkpoint) for checkpoint in checkpoints]
        print(f"{len(checkpoints)} checkpoints, bytes and nodes of each: {counted}")
        print(f"seconds an iteration: {without:.2f} without, {seconds:.2f} with the folders")
        megabytes = options.mb * options.runners * options.envs
        print(f"{(seconds - without) / megabytes * 1000:.1f} ms for each of {megabytes} MB")
        killed(options, folder / "killed/checkpoint_000001")
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main()
