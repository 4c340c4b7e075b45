"""Records what an old Ray's preprocessor makes of lists of varying length; runs inside one.

    python -m tests.legacy.atari.record_lists OUT.json

The lists are made of nothing but their space and their length.
"""

import json
import sys

try:
    import gymnasium as gym
except ImportError:
    import gym
import numpy as np
from ray.rllib.utils.spaces.repeated import Repeated


def spaces():
    """Spaces by name."""
    box, discrete = gym.spaces.Box, gym.spaces.Discrete
    items = Repeated(gym.spaces.Dict({"b": discrete(3), "a": box(-1, 1, (2,), np.float32)}), 3)
    vectors = Repeated(box(-1, 1, (2, 2), np.float32), 3)
    return {
        "vectors": vectors,
        "choices": Repeated(gym.spaces.MultiDiscrete([2, 3]), 4),
        "items": items,
        "lists": Repeated(Repeated(discrete(2), 2), 3),
        "pairs": Repeated(gym.spaces.Tuple([discrete(2), box(-1, 1, (1,), np.float32)]), 3),
        "beside": gym.spaces.Dict({"z": items, "a": box(-1, 1, (2,), np.float32)}),
        "in_tuple": gym.spaces.Tuple([discrete(2), vectors]),
    }


def value(space, length):
    """A value of a space, whose lists have a length, or less if they may not."""
    kind = type(space).__name__
    if kind == "Repeated":
        longest = min(length, space.max_len)
        return [value(space.child_space, length - i) for i in range(longest)]
    if kind == "Dict":
        return {key: value(part, length) for key, part in space.spaces.items()}
    if kind == "Tuple":
        return tuple(value(part, length) for part in space.spaces)
    if kind == "Discrete":
        return length % space.n
    if kind == "MultiDiscrete":
        return np.array([length % int(n) for n in space.nvec])
    return (np.arange(int(np.prod(space.shape)), dtype=np.float32) / 8 - length / 4).reshape(
        space.shape
    )


def main(out):
    from ray.rllib.models.catalog import ModelCatalog

    found = {}
    for name, space in spaces().items():
        preprocessor = ModelCatalog.get_preprocessor_for_space(space)
        made = [preprocessor.transform(value(space, length)) for length in range(4)]
        found[name] = [np.asarray(array, float).tolist() for array in made]
    with open(out, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
