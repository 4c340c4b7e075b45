"""Made environments for recordings, for any Ray: a game like an Atari one, and a list of values.

They need gym or gymnasium, whichever there is; where there is gymnasium, they have its API. All
they give is the same everywhere, so what an old Ray made of it can be held against what this
package makes of it.
"""

import hashlib

import numpy as np

try:
    import gymnasium as gym
except ImportError:
    import gym

#: Whether `reset` and `step` are gymnasium's.
TODAYS = gym.__name__ == "gymnasium"

MEANINGS = ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")


class Draws:
    """The random generator of a game, which draws what it is told to, whatever its era."""

    def __init__(self, numbers):
        self._numbers, self._drawn = numbers, 0

    def integers(self, low, high):
        number = self._numbers[self._drawn % len(self._numbers)]
        self._drawn += 1
        assert low <= number < high
        return number

    randint = integers


class Memory:
    """Stands where a game has its emulator."""

    def __init__(self, game):
        self._game = game

    def lives(self):
        return self._game.lives()


class Spec:
    """What RLlib asked of a registered environment."""

    def __init__(self, name):
        self.id, self.max_episode_steps, self.kwargs = name, None, {}


class Game(gym.Env):
    """Looks like an Atari game; each frame shows all actions of the episode up to it.

    Args:
        name: Its id.
        lost: The frames after which a life is lost.
        end: The frame that is the last.
        cut: Whether the episode is cut there and not over; gym of old had no difference.
        fire: Whether an action is called FIRE.
        noops: How many steps are waited at the begin of each episode, in turn.
    """

    metadata = {"render.modes": [], "render_modes": []}
    reward_range = (-float("inf"), float("inf"))

    def __init__(
        self, name="MadeNoFrameskip-v4", lost=(), end=200, cut=False, fire=True, noops=(3, 7)
    ):
        self.observation_space = gym.spaces.Box(0, 255, (210, 160, 3), np.uint8)
        self.action_space = gym.spaces.Discrete(6 if fire else 4)
        self.spec = Spec(name)
        self.ale = Memory(self)
        self.gym_env = self  # gymnasium 0.26 had games of gym behind an adapter
        self._draws = Draws(noops)
        self._lost, self._end, self._cut, self._fire = tuple(lost), end, cut, fire
        self._episode, self._frame, self._seen = -1, 0, 0

    def __str__(self):
        return "<AtariEnv<ALE/%s>>" % self.spec.id

    @property
    def np_random(self):
        return self._draws

    @np_random.setter
    def np_random(self, _):
        """It stays what it is."""

    def get_action_meanings(self):
        return list(MEANINGS if self._fire else ("NOOP", "UP", "RIGHT", "LEFT"))

    def lives(self):
        return len(self._lost) + 1 - sum(frame <= self._frame for frame in self._lost)

    def seed(self, seed=None):
        return [seed]

    def reset(self, **_):
        self._episode, self._frame = self._episode + 1, 0
        self._seen = self._episode + 1
        return (self._picture(), {}) if TODAYS else self._picture()

    def step(self, action):
        self._frame += 1
        self._seen = (self._seen * 31 + int(action) + 1) % 2**32
        reward = float(self._frame % 7 - 2) if self._frame % 5 == 0 else 0.0
        over = self._frame >= self._end
        if TODAYS:
            return self._picture(), reward, over and not self._cut, over and self._cut, {}
        return self._picture(), reward, over, {}

    def _picture(self):
        noise = np.frombuffer(np.random.RandomState(self._seen).bytes(210 * 160 * 3), np.uint8)
        picture = noise.reshape(210, 160, 3).copy()
        picture[:, 40:] //= 64  # a dark place, and a plain one, which has ties in its means
        picture[:, 80:] = picture[40, 80:]
        return picture

    def render(self, *_, **__):
        """Shows nothing."""

    def close(self):
        """Has nothing open."""


class Given(gym.Env):
    """Gives one observation after the other."""

    metadata = {"render.modes": [], "render_modes": []}
    reward_range = (-float("inf"), float("inf"))

    def __init__(self, space, observations):
        self.observation_space, self.action_space = space, gym.spaces.Discrete(2)
        self.spec = Spec("Given-v0")
        self._observations, self._step = observations, 0

    def seed(self, seed=None):
        return [seed]

    def reset(self, **_):
        self._step = 0
        return (self._observations[0], {}) if TODAYS else self._observations[0]

    def step(self, _):
        self._step += 1
        observation = self._observations[self._step % len(self._observations)]
        over = self._step == len(self._observations) - 1
        return (observation, 1.0, over, False, {}) if TODAYS else (observation, 1.0, over, {})

    def render(self, *_, **__):
        """Shows nothing."""

    def close(self):
        """Has nothing open."""


def noise(seed, shape):
    """Bytes that are the same everywhere."""
    size = int(np.prod(shape))
    return np.frombuffer(np.random.RandomState(seed).bytes(size), np.uint8).reshape(shape).copy()


def spaces_and_values():
    """Observation spaces of all kinds by name, and five observations of each."""
    box, discrete = gym.spaces.Box, gym.spaces.Discrete

    def floats(seed, *shape):
        return (noise(seed, shape).astype(np.float32) - 100) / 64

    def both(key):
        return {
            "discrete": discrete(5),
            "multi_discrete": gym.spaces.MultiDiscrete([3, 4]),
            "multi_binary": gym.spaces.MultiBinary(4),
            "vector": box(-5, 5, (3,), np.float32),
            "table": box(-5, 5, (2, 3), np.float32),
            "bytes": box(0, 255, (6,), np.uint8),
            "ram": box(0, 255, (128,), np.uint8),
            "ram_of_floats": box(-5, 5, (128,), np.float32),
            "frame": box(0, 255, (210, 160, 3), np.uint8),
            "image": box(0, 255, (42, 42, 3), np.uint8),
        }[key]

    def one(key, i):
        return {
            "discrete": lambda: i % 5,
            "multi_discrete": lambda: np.array([i % 3, (i + 2) % 4]),
            "multi_binary": lambda: np.array([i & 1, i >> 1 & 1, 1, 0], np.int8),
            "vector": lambda: floats(i, 3),
            "table": lambda: floats(i, 2, 3),
            "bytes": lambda: noise(i, (6,)),
            "ram": lambda: noise(i, (128,)),
            "ram_of_floats": lambda: floats(i, 128),
            "frame": lambda: noise(i, (210, 160, 3)),
            "image": lambda: noise(i, (42, 42, 3)),
        }[key]()

    simple = "discrete multi_discrete multi_binary vector table bytes ram ram_of_floats".split()
    found = {k: (both(k), [one(k, i) for i in range(5)]) for k in [*simple, "image"]}
    parts = {
        "tuple": ("vector", "discrete"),
        "tuple_of_many": ("multi_discrete", "multi_binary", "table", "ram"),
        "tuple_with_frame": ("discrete", "frame"),
    }
    for name, keys in parts.items():
        values = [tuple(one(k, i) for k in keys) for i in range(5)]
        found[name] = gym.spaces.Tuple([both(k) for k in keys]), values
    named = {"z": "vector", "a": "discrete", "m": "table"}
    found["dict"] = (
        gym.spaces.Dict({n: both(k) for n, k in named.items()}),
        [{n: one(k, i) for n, k in named.items()} for i in range(5)],
    )
    found["nested"] = (
        gym.spaces.Dict({"b": gym.spaces.Tuple([both("discrete"), both("vector")]), "a": both("bytes")}),
        [{"b": (one("discrete", i), one("vector", i)), "a": one("bytes", i)} for i in range(5)],
    )
    return found


def digest(array):
    """An array in few letters: its kind, shape, and a hash of its bytes."""
    array = np.ascontiguousarray(array)
    return "%s %s %s" % (
        array.dtype,
        "x".join(map(str, array.shape)),
        hashlib.sha256(array.tobytes()).hexdigest()[:16],
    )
