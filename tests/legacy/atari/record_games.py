"""Records real Atari games in the wrappers of an old Ray; runs where one is installed, with ROMs.

    python -m tests.legacy.atari.record_games OUT.json
"""

import json
import sys
import warnings

import gym
import numpy as np
import ray

from tests.legacy.atari.record import _in_lines, played
from tests.legacy.atari.worlds import Draws

GAMES = ("PongNoFrameskip-v4", "BreakoutNoFrameskip-v4", "SpaceInvadersDeterministic-v4", "QbertDeterministic-v4")
STEPS = 60


def make(name):
    """A game that waits for as many frames as it is told to."""
    env = gym.make(name)
    env.unwrapped.seed(1)
    env.unwrapped.np_random = Draws((5, 9))
    env.unwrapped.seed = lambda seed=None: [seed]
    return env


def main(out):
    found = {"ray": ray.__version__, "gym": gym.__version__, "numpy": np.__version__, "cases": {}}
    for name in GAMES:
        found["cases"][name] = played(lambda _, name=name: make(name), {}, {}, STEPS)
        print(name, str(found["cases"][name])[:150])
    with open(out, "w") as file:
        file.write(_in_lines(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
