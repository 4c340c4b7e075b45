"""Whether what is converted on one Ray release loads on the later ones.

    python -m tests.ray_releases.travel write FOLDER    # on each: converts
    python -m tests.ray_releases.travel load FOLDER     # on each: loads what older ones wrote

`load` looks at the weights in the loaded algorithm, trains a step, and adds to `travels.json` what
became of each tree. One that Ray cannot load is converted on this release, and the new tree has to
do the same. `python -m tests.ray_releases.page` makes a table of that.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np

from rllib_compat import Given, convert
from rllib_compat.errors import CompatError
from rllib_compat.ray_versions import learners, startup
from tests.legacy.cases import find
from tests.ray_releases.record_all import age

RESULTS = Path(__file__).with_name("travels.json")
GOES_ON = "goes on"
TREES = {
    "PPO": ("0.8.5/ppo-tf-worker1", None),
    "DQN": ("1.13.0/dqn-torch-hiddens2", "CartPole-v1"),
    "SAC": ("1.13.0/sac-tf-cont", "Pendulum-v1"),
}


def here() -> str:
    """The installed release, as `2.48`."""
    return ".".join(metadata.version("ray").split(".")[:2])


def write(folder: Path) -> None:
    """Converts each tree, and notes beside it the weights that it should have."""
    for name, (case_name, env) in TREES.items():
        (case,) = [case for case in find(algorithm=name) if str(case) == case_name]
        target = folder / here() / name
        done = convert(case.checkpoint, target, given=Given(algorithm=name, env=env), inputs=50)
        (network,) = done.networks.values()
        np.savez(target.with_suffix(".npz"), **network.target.arrays(network.arrays))


def load(folder: Path) -> dict[str, dict[str, list[str]]]:
    """What became of the trees of older releases, and of this one's own, by algorithm.

    A second outcome is that after a conversion, where Ray could not load the tree as it is.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for name in TREES:
        for tree in sorted(folder.glob(f"*/{name}"), key=lambda p: age(p.parent.name)):
            if age(tree.parent.name) > age(here()):
                continue
            outcomes = [what_became_of(tree, tree.with_suffix(".npz"))]
            if outcomes != [GOES_ON]:
                outcomes.append(what_becomes_of_a_conversion(tree, folder / here() / f"{name}.npz"))
            found.setdefault(name, {})[tree.parent.name] = outcomes
            print(here(), name, tree.parent.name, *outcomes, flush=True)
    return found


def what_becomes_of_a_conversion(tree: Path, weights: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "converted"
        env = TREES[tree.name][1]
        try:
            convert(tree, target, given=Given(env=env), inputs=50)
        except CompatError as error:
            return shortly(error, tree)
        return what_became_of(target, weights)


def what_became_of(tree: Path, weights: Path) -> str:
    """What an algorithm that is loaded from a tree does, which should have these weights."""
    from ray.rllib.algorithms.algorithm import Algorithm

    try:
        algorithm = Algorithm.from_checkpoint(str(tree))
    except Exception as error:
        return shortly(error, tree)
    try:
        with np.load(weights) as arrays:
            state = learners.local_learner(algorithm).module["default_policy"].get_state()
            lost = [key for key, array in arrays.items() if not np.array_equal(state[key], array)]
        if lost:
            return f"other weights in {len(lost)} arrays"
        before = algorithm.iteration
        result = algorithm.train()
        return GOES_ON if result["training_iteration"] == before + 1 else "counts anew"
    except Exception as error:
        return f"loads; {shortly(error, tree)}"
    finally:
        algorithm.stop()


def shortly(error: Exception, tree: Path) -> str:
    """The beginning of an error, the same for all pairs that it happens to."""
    text = f"{type(error).__name__}: {error}".replace(str(tree), "…")
    return text.split("\n")[0].split("!")[0][:120]


def main(verb: str, folder: str) -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("ray").setLevel(logging.ERROR)
    # What Ray fails to load leaves its env runner alive.
    with startup.quiet_ray(num_cpus=64):
        if verb == "write":
            write(Path(folder))
            return
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        for name, by_release in load(Path(folder)).items():
            for writer, outcome in by_release.items():
                known.setdefault(name, {}).setdefault(writer, {})[here()] = outcome
        RESULTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
