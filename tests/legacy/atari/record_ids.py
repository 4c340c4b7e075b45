"""Records what old gyms registered of Atari games; runs where one is installed.

    python -m tests.legacy.atari.record_ids OUT.json
"""

import json
import re
import sys

import gym

GAMES = ("Pong", "SpaceInvaders", "ElevatorAction", "MontezumaRevenge")


def main(out):
    specs = gym.envs.registry.env_specs if hasattr(gym.envs.registry, "env_specs") else gym.envs.registry
    found = {}
    for name in sorted(specs):
        game = re.match(r"(ALE/)?([A-Za-z]+?)(-ram)?(Deterministic|NoFrameskip)?-v\d$", name)
        if game and game.group(2) in GAMES:
            spec = specs[name]
            kwargs = getattr(spec, "_kwargs", None) or getattr(spec, "kwargs", {})
            found[name] = dict(kwargs, max_episode_steps=spec.max_episode_steps)
    with open(out, "w") as file:
        lines = [json.dumps(name) + ": " + json.dumps(one, sort_keys=True) for name, one in found.items()]
        file.write('{"gym": "%s",\n' % gym.__version__ + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main(sys.argv[1])
