"""Records what networks an old Ray makes of configs: names and shapes, first weights, outputs.

Usage: `python record.py OUT.json`, with the Python of an environment that has a Ray of 0.8.5 –
1.13.0 and torch. `tests/unit/networks/test_new_networks.py` compares.

By case:

    weights    name → shape, of all arrays of the torch model
    first      name → (mean length of a row, greatest deviation from that, greatest number, standard
               deviation) of the first weights; a row is what makes one output
    outputs    what the model gives for made inputs and weights (`made`): `logits`, and `values`
               where it has a value function
    error      what the Ray said instead
"""

import copy
import json
import sys
import zlib
from importlib import import_module
from pathlib import Path

import cases
import gym
import numpy as np
import torch
from ray.rllib.models import ModelCatalog


def made(name, shape):
    """Weights or inputs that depend on nothing but their name and shape."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
    return np.asarray(drawn * scale, np.float32)


#: Algorithm → the module below `ray.rllib.agents` and the names of its torch policy, newest first.
POLICIES = {
    "A2C": ("a3c.a3c_torch_policy", "A3CTorchPolicy"),
    "A3C": ("a3c.a3c_torch_policy", "A3CTorchPolicy"),
    "APPO": ("ppo.appo_torch_policy", "APPOTorchPolicy AsyncPPOTorchPolicy"),
    "DQN": ("dqn.dqn_torch_policy", "DQNTorchPolicy"),
    "IMPALA": ("impala.vtrace_torch_policy", "VTraceTorchPolicy"),
    "MARWIL": ("marwil.marwil_torch_policy", "MARWILTorchPolicy"),
    "PG": ("pg.pg_torch_policy", "PGTorchPolicy"),
    "PPO": ("ppo.ppo_torch_policy", "PPOTorchPolicy"),
    "SAC": ("sac.sac_torch_policy", "SACTorchPolicy"),
    "SimpleQ": ("dqn.simple_q_torch_policy", "SimpleQTorchPolicy"),
}


def trainer_class(name):
    try:
        from ray.rllib.agents.registry import get_trainer_class as find
    except ImportError:  # until Ray 1.1
        from ray.rllib.agents.registry import get_agent_class as find
    return find(name)


def policy_class(algorithm):
    home, names = POLICIES[algorithm]
    module = import_module(f"ray.rllib.agents.{home}")
    return next(getattr(module, name) for name in names.split() if hasattr(module, name))


def record(case):
    algorithm, seen, acts, config = case
    trainer = trainer_class(algorithm)
    getter = getattr(trainer, "get_default_config", None)
    whole = copy.deepcopy(getter() if getter else trainer._default_config)
    unknown = set(config.get("model", ())) - set(whole["model"])
    if unknown:
        raise KeyError(f"this Ray has no {sorted(unknown)}")
    for key, value in config.items():
        both = isinstance(value, dict) and key != "exploration_config"
        whole[key] = {**whole.get(key, {}), **value} if both else value
    whole.update(num_gpus=0, framework="torch", use_pytorch=True, worker_index=0, num_workers=0)
    made_for = cases.space(seen, gym.spaces)
    before = ModelCatalog.get_preprocessor_for_space(made_for, whole["model"])
    policy = policy_class(algorithm)(before.observation_space, cases.space(acts, gym.spaces), whole)
    return recorded(policy, algorithm, acts)


def recorded(policy, algorithm, acts):
    model = policy.model
    state = model.state_dict()
    found = {"weights": {k: list(v.shape) for k, v in state.items()}}
    found["first"] = {k: first(v.numpy()) for k, v in state.items() if v.numel() > 1}
    model.load_state_dict({k: torch.from_numpy(made(k, tuple(v.shape))) for k, v in state.items()})
    if algorithm in ("DQN", "SimpleQ", "SAC"):
        return found
    shape = policy.observation_space.shape
    batch = {"obs": torch.from_numpy(made("inputs", (2, *shape))), "is_training": False}
    actions = {"discrete": (), "several": (2,)}.get(acts, (2,))
    batch["prev_actions"] = torch.zeros((2, *actions))
    batch["prev_rewards"] = torch.from_numpy(made("rewards", (2,)))
    states = [
        torch.from_numpy(np.stack([s, s])) for s in map(np.asarray, model.get_initial_state())
    ]
    model.eval()
    with torch.no_grad():
        logits, _ = model(batch, states, torch.ones(2, dtype=torch.int32))
        values = model.value_function()
    found["outputs"] = {"logits": logits.numpy().tolist(), "values": values.numpy().tolist()}
    return found


def first(array):
    rows = array.reshape(len(array), -1)
    lengths = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1))
    told = lengths.mean(), np.abs(lengths - lengths.mean()).max(), np.abs(array).max(), array.std()
    return [float(f"{number:.4g}") for number in told]


def main(out):
    found = {}
    for name, case in cases.cases().items():
        try:
            found[name] = record(case)
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {str(error)[:160]}"}
        print(name, found[name].get("error", "ok"), flush=True)
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    Path(out).write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1])
