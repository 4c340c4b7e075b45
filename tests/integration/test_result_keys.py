"""Results have the keys that those of old Rays had, but for what the guide names.

`tests/legacy/results/record.py` recorded them, for all algorithms of Ray 0.8.5 and 1.13.0.
"""

import fnmatch
import re
from pathlib import Path

import gymnasium as gym
import pytest
from ray.rllib.env.multi_agent_env import MultiAgentEnv

import rllib_compat as compat
from tests import matrix_inputs
from tests.legacy import results
from tests.legacy.results.worlds import environments, from_text, policies, tree
from tests.marks import TRAINERS
from tests.training_matrix import Steps

pytestmark = [*TRAINERS, pytest.mark.nightly, pytest.mark.usefixtures("one_ray")]

RECORDED = {
    f"{file.stem} {case}": (file.stem, told)
    for file in sorted(Path(results.__file__).parent.glob("*.json"))
    for case, told in from_text(file.read_text("utf-8")).items()
    if "keys" in told
}
#: The guide's table of what results have no more: a pattern of paths, and whose results lack them.
GUIDE = Path("migration_guide/results.md").read_text("utf-8").partition("## What is not there")[2]
NAMED = [
    (path, of.strip())
    for paths, of in re.findall(r"^\| (`[^|]+) \|([^|]+)\|", GUIDE, re.MULTILINE)
    for path in re.findall("`([^`]+)`", paths)
]


def is_named(path, algorithm):
    """Whether the guide says that results of an algorithm lack a path."""
    return any(
        fnmatch.fnmatchcase(path, pattern) and (of == "all" or algorithm in of.split(", "))
        for pattern, of in NAMED
    )


def result_of(ray, algorithm, config, **how):
    """The result of a recorded config's second iteration."""
    config = dict(config)
    for name, creator in environments(MultiAgentEnv, gym.spaces).items():
        compat.tune.register_env(name, creator)
    if config.get("multiagent") == "pair":
        config["multiagent"] = policies(gym.spaces)
    if str(config.get("input")).startswith("recorded"):
        acts = "discrete" if config["input"] == "recorded" else "continuous"
        config["input"] = matrix_inputs.recorded("vector", acts)
        config |= {"env": Steps, "env_config": {"seen": "vector", "acts": acts}}
    trainer = compat.Trainer(algorithm=algorithm, config=config, legacy_ray=ray, **how)
    try:
        trainer.train()
        return trainer.train()
    finally:
        trainer.stop()


def missing(keys, here):
    """What was recorded and is not here, or is something else here."""
    for path, kind in keys.items():
        is_dict = kind == "dict" and any(other.startswith(f"{path}/") for other in here)
        is_unset = kind == "none" and path in here
        if not (is_dict or is_unset) and here.get(path) != kind:
            yield path


@pytest.mark.parametrize("case", RECORDED)
def test_results_have_the_keys_of_old_rays_or_the_guide_names_them(case):
    ray, told = RECORDED[case]
    found = missing(told["keys"], tree(result_of(ray, told["algorithm"], told["config"])))
    assert [path for path in found if not is_named(path, told["algorithm"])] == []
