"""What algorithms learn in whose results are recorded. Old Rays (Python 3.7) and tests read it."""

import json

import numpy as np

#: The agents of QMIX, which are a group, and of MADDPG.
AGENTS = (0, 1)


class Pair:
    """Two agents act at each of ten steps; the base class comes with the Ray.

    Args:
        spaces: The module of spaces that the Ray takes.
    """

    def __init__(self, spaces):
        self.observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        self.action_space = spaces.Discrete(2)

    def seen(self):
        return {agent: np.full(3, self.at / 10, np.float32) for agent in AGENTS}

    def reset(self):
        self.at = 0
        return self.seen()

    def step(self, actions):
        self.at += 1
        rewards = dict.fromkeys(AGENTS, 1.0)
        return self.seen(), rewards, {"__all__": self.at == 10}, {agent: {} for agent in AGENTS}


def environments(multi_agent_env, spaces):
    """Returns name → creator of those that are registered, with a Ray's base class and spaces."""

    class Env(Pair, multi_agent_env):
        def __init__(self, _=None):
            multi_agent_env.__init__(self)
            Pair.__init__(self, spaces)
            self._agent_ids = set(AGENTS)

    def group(_):
        one = Env()
        both = [spaces.Tuple([one.observation_space] * 2), spaces.Tuple([one.action_space] * 2)]
        return one.with_agent_groups({"both": list(AGENTS)}, obs_space=both[0], act_space=both[1])

    return {"pair": lambda _: Env(), "group": group}


def policies(spaces):
    """Returns the config of a policy for each agent."""
    env = Pair(spaces)
    seen, acts = env.observation_space, env.action_space
    return {
        "policies": {f"p{agent}": (None, seen, acts, {"agent_id": agent}) for agent in AGENTS},
        "policy_mapping_fn": lambda agent, *_, **__: f"p{agent}",
    }


def tree(result):
    """Returns path → kind of all that a result holds, but for its config."""
    found = {}

    def add(path, value):
        if isinstance(value, dict):
            if not value:
                found[path] = "dict"
            for name, part in value.items():
                add(f"{path}/{name}" if path else str(name), part)
        elif isinstance(value, (list, tuple)) or np.ndim(value):
            found[path] = "list"
        elif isinstance(value, str):
            found[path] = "text"
        else:
            found[path] = "none" if value is None else "number"

    add("", {name: value for name, value in result.items() if name != "config"})
    return found


#: What a path holds in a case, as a file has it: a letter for each case, a space where it is not.
LETTERS = {"number": "n", "text": "t", "list": "l", "dict": "d", "none": "0"}


def as_text(recorded):
    """Returns cases as a file has them: each path once, with what it holds in all of them."""
    paths = sorted({path for told in recorded.values() for path in told.get("keys", ())})
    kinds = {
        path: "".join(
            LETTERS.get(told.get("keys", {}).get(path), " ") for told in recorded.values()
        )
        for path in paths
    }
    cases = {
        name: {key: told[key] for key in told if key != "keys"} for name, told in recorded.items()
    }
    parts = []
    for name, part in (("cases", cases), ("keys", kinds)):
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(part[key])}" for key in part)
        parts.append(f'"{name}": {{\n{lines}\n}}')
    return "{" + ",\n".join(parts) + "}\n"


def from_text(text):
    """Returns case → what it is and its keys, from the text of a file."""
    stored, kinds = json.loads(text), {letter: kind for kind, letter in LETTERS.items()}
    for at, told in enumerate(stored["cases"].values()):
        if "error" not in told:
            held = stored["keys"].items()
            told["keys"] = {path: kinds[all_[at]] for path, all_ in held if all_[at] != " "}
    return stored["cases"]
