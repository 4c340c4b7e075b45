"""Observations inside and outside of their space: which an old Ray refused, and where.

It runs on Python 3.7 in an old Ray, and here.
"""

import numpy as np

#: The number of observations that a case gives, the first of which is that of `reset`.
LENGTH = 205
#: What a config says about the checks of Ray 1.12 and later.
SWITCHES = {
    "default": {},
    "without env check": {"disable_env_checking": True},
    "without preprocessors": {"disable_env_checking": True, "_disable_preprocessor_api": True},
}
#: Those that come at more places, and to a second agent.
OFTEN = ("above", "nan", "longer", "a key less")


def cases(gym, agents=1):
    """Names of wrong observations, their places, spaces, and what environments show.

    Args:
        gym: The module with `spaces`.
        agents: The number of agents.
    """
    for name, (space, right, wrong) in observations(gym).items():
        if agents == 1 or name in OFTEN:
            for place in (0, 1, 100, 150) if name in OFTEN else (0, 1):
                yield name, place, space, (right, wrong, place)


def observations(gym):
    """A space, a right observation and a wrong one, by name."""
    box = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    column = gym.spaces.Box(-1.0, 1.0, (2, 1), np.float32)
    one = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    infinite = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    whole = gym.spaces.Box(0, 255, (2,), np.uint8)
    three, nine = gym.spaces.Discrete(3), gym.spaces.MultiDiscrete([3, 3])
    bits = gym.spaces.MultiBinary(2)
    parts = gym.spaces.Dict({"near": box, "which": three})
    pair = gym.spaces.Tuple([box, three])
    zeros = np.zeros(2, np.float32)
    sevens = np.full(2, 7, np.float32)
    return {
        "above": (box, zeros, sevens),
        "above in float64": (box, zeros, np.full(2, 7.0)),
        "inside in float64": (box, zeros, np.full(2, 0.1)),
        "inside in int64": (box, zeros, np.zeros(2, int)),
        "nan": (box, zeros, np.full(2, np.nan, np.float32)),
        "nan without bounds": (infinite, zeros, np.full(2, np.nan, np.float32)),
        "infinite without bounds": (infinite, zeros, np.full(2, np.inf, np.float32)),
        "longer": (box, zeros, np.zeros(3, np.float32)),
        "shorter": (box, zeros, np.zeros(1, np.float32)),
        "a column": (box, zeros, np.zeros((2, 1), np.float32)),
        "a row for a column": (column, np.zeros((2, 1), np.float32), zeros),
        "in a batch": (box, zeros, np.zeros((1, 2), np.float32)),
        "a list": (box, zeros, [0.0, 0.0]),
        "a tuple": (box, zeros, (0.0, 0.0)),
        "a list above": (box, zeros, [7.0, 7.0]),
        "a longer list": (box, zeros, [0.0, 0.0, 0.0]),
        "a number": (one, np.zeros(1, np.float32), 0.0),
        "an array without dimensions": (one, np.zeros(1, np.float32), np.float32(0)),
        "none": (box, zeros, None),
        "text": (box, zeros, "ab"),
        "a dict": (box, zeros, {"near": zeros}),
        "reset of gymnasium": (box, zeros, (zeros, {})),
        "bytes above": (whole, np.zeros(2, np.uint8), np.full(2, 300)),
        "bytes below": (whole, np.zeros(2, np.uint8), np.full(2, -1)),
        "bytes with a fraction": (whole, np.zeros(2, np.uint8), np.full(2, 0.5)),
        "discrete above": (three, 0, 3),
        "discrete below": (three, 0, -1),
        "discrete as float": (three, 0, 1.0),
        "discrete as an array": (three, 0, np.array(1)),
        "discrete as an array of one": (three, 0, np.array([1])),
        "discrete as bool": (three, 0, True),
        "multi-discrete above": (nine, np.zeros(2, int), np.array([0, 3])),
        "multi-discrete as float": (nine, np.zeros(2, int), np.zeros(2)),
        "multi-discrete as a list": (nine, np.zeros(2, int), [0, 1]),
        "multi-discrete longer": (nine, np.zeros(2, int), np.zeros(3, int)),
        "multi-binary above": (bits, np.zeros(2, np.int8), np.full(2, 2, np.int8)),
        "multi-binary as float": (bits, np.zeros(2, np.int8), np.zeros(2)),
        "multi-binary longer": (bits, np.zeros(2, np.int8), np.zeros(3, np.int8)),
        "a part above": (
            parts,
            {"near": zeros, "which": 0},
            {"near": sevens, "which": 0},
        ),
        "a part as a list": (
            parts,
            {"near": zeros, "which": 0},
            {"near": [0.0, 0.0], "which": 0},
        ),
        "a part in float64": (
            parts,
            {"near": zeros, "which": 0},
            {"near": np.full(2, 0.1), "which": 0},
        ),
        "a part longer": (
            parts,
            {"near": zeros, "which": 0},
            {"near": np.zeros(3, np.float32), "which": 0},
        ),
        "a key less": (parts, {"near": zeros, "which": 0}, {"near": zeros}),
        "a key more": (
            parts,
            {"near": zeros, "which": 0},
            {"near": zeros, "which": 0, "why": 0},
        ),
        "an array for a dict": (parts, {"near": zeros, "which": 0}, np.zeros(3, np.float32)),
        "a tuple's part above": (pair, (zeros, 0), (sevens, 0)),
        "a tuple as a list": (pair, (zeros, 0), [zeros, 0]),
        "a tuple less": (pair, (zeros, 0), (zeros,)),
    }


class Showing:
    """What an environment does that gives observations, one of which is wrong.

    Attributes:
        newest: The environment that was made last.
        given: The number of observations of the last episode.
    """

    newest = None

    def show(self, right, wrong, place):
        Showing.newest = self
        self.right, self.wrong, self.place, self.given = right, wrong, place, 0

    def next(self):
        self.given += 1
        return self.wrong if self.given - 1 == self.place else self.right


def make_env(gym, space, *shown):
    """One agent's environment, whose episode does not end."""

    class Shown(gym.Env, Showing):
        observation_space, action_space = space, gym.spaces.Discrete(2)

        def __init__(self, context=None):
            self.show(*shown)

        def reset(self):
            self.given = 0
            return self.next()

        def step(self, action):
            return self.next(), 1.0, False, {}

    return Shown


def make_pair(base, gym, space, *shown):
    """An environment of two agents, the second of which gives the wrong observation."""

    class Pair(base, Showing):
        observation_space, action_space = space, gym.spaces.Discrete(2)

        def __init__(self, context=None):
            base.__init__(self)
            self._agent_ids = {"left", "right"}
            self.show(*shown)

        def reset(self):
            self.given = 0
            return {"left": self.right, "right": self.next()}

        def step(self, actions):
            obs = {"left": self.right, "right": self.next()}
            rewards, dones = dict.fromkeys(obs, 1.0), dict.fromkeys((*obs, "__all__"), False)
            return obs, rewards, dones, {}

    return Pair
