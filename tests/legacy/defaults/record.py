#!/usr/bin/env python
"""Writes what each algorithm of the old Ray of the running Python has as its default config.

    python record.py OUT

`OUT/<ray>.json` has the config of each algorithm by its registered name. What JSON can't hold
(classes, functions, spaces) is `{"$": <its type>}`. Keys that all algorithms of a Ray share are
below `common`, where most have the same value.
"""

import collections
import importlib
import json
import sys
from pathlib import Path

import ray


def plain(value):
    """A value as JSON has it; `{"$": …}` stands for what it has not."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and abs(value) != float("inf") and value == value:
        return value
    return {"$": "float" if isinstance(value, float) else type(value).__name__}


def classes():
    """The trainers and algorithms that this Ray knows, as far as what is installed lets them."""
    try:
        registry = importlib.import_module("ray.rllib.algorithms.registry")
        find = getattr(importlib.import_module("ray.tune.registry"), "get_trainable_cls", None)
        names, find = registry.ALGORITHMS, find or registry.get_algorithm_class
    except ImportError:
        try:
            registry = importlib.import_module("ray.rllib.agents.registry")
            names = registry.ALGORITHMS
            find = getattr(registry, "get_trainer_class", None) or registry.get_agent_class
        except ImportError:  # Ray 0.5
            names = ["PPO", "ES", "ARS", "DQN", "APEX", "A3C", "A2C", "BC", "PG", "DDPG"]
            names += ["APEX_DDPG", "IMPALA"]
            find = importlib.import_module("ray.rllib.agents.agent").get_agent_class
    for name in sorted(names):
        try:
            cls = find(name)
        except Exception as error:  # the name is none of this Ray
            print(name, repr(error)[:200])
            continue
        if "ImportFailed" not in cls.__name__:  # a library is missing, torch say
            yield name, cls


def default_config(cls):
    """The config of a class before anybody has changed it."""
    found = cls.get_default_config() if hasattr(cls, "get_default_config") else cls._default_config
    return plain(found if isinstance(found, dict) else found.to_dict())


def main(out):
    """Writes the file."""
    configs = {name: default_config(cls) for name, cls in classes()}
    common = {}
    for key in set.intersection(*map(set, configs.values())):
        texts = collections.Counter(
            json.dumps(one[key], sort_keys=True) for one in configs.values()
        )
        common[key] = json.loads(sorted(texts.items(), key=lambda pair: (-pair[1], pair[0]))[0][0])
    own = {
        name: {key: value for key, value in one.items() if common.get(key, common) != value}
        for name, one in configs.items()
    }
    lines = [f"{json.dumps(name)}: {json.dumps(own[name], sort_keys=True)}" for name in sorted(own)]
    lines.insert(0, '"common": ' + json.dumps(common, sort_keys=True))
    Path(out, ray.__version__ + ".json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
