"""Records what networks Ray 0.5 and 0.6 make of configs, whose policies stored one vector.

Usage: `python record_early.py OUT.json`, with the Python of an environment that has Ray 0.5.3 or
0.6.6, and TensorFlow 1. `tests/unit/networks/test_early_networks.py` compares.

By case, with made weights and inputs (`record.made`):

    weights    name → shape, in the order of the vector
    outputs    `logits`, and `values` where the policy tells them; of DQN `q_values`
    error      what the Ray said instead
"""

import copy
import json
import re
import sys
import zlib
from collections import OrderedDict
from importlib import import_module
from pathlib import Path

import cases
import gym
import numpy as np
import tensorflow as tf
from ray.rllib.models import catalog

#: Algorithm → the module below `ray.rllib.agents`, and its policy's.
POLICIES = {
    "PPO": ("ppo.ppo", "ppo.ppo_policy_graph:PPOPolicyGraph"),
    "A3C": ("a3c.a3c", "a3c.a3c_tf_policy_graph:A3CPolicyGraph"),
    "PG": ("pg.pg", "pg.pg_policy_graph:PGPolicyGraph"),
    "DQN": ("dqn.dqn", "dqn.dqn_policy_graph:DQNPolicyGraph"),
}
Q_VALUES = "q_values"


def made(name, shape):
    """As `record.made`, which needs torch."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
    return np.asarray(drawn * scale, np.float32)


def record(case):
    algorithm, seen, acts, config = case
    home, place = POLICIES[algorithm]
    whole = copy.deepcopy(import_module("ray.rllib.agents." + home).DEFAULT_CONFIG)
    if "model" in config:
        unknown = set(config["model"]) - set(known_keys())
        if unknown:
            raise KeyError(f"this Ray has no {sorted(unknown)}")
    for key, value in config.items():
        if key not in whole:
            raise KeyError("this Ray has no " + key)
        whole[key] = dict(whole[key], **value) if isinstance(value, dict) else value
    env = gym.Env()
    env.observation_space, env.action_space = (
        cases.space(told, gym.spaces) for told in (seen, acts)
    )
    before = catalog.ModelCatalog.get_preprocessor(env, whole["model"])
    space = getattr(before, "observation_space", None)
    if space is None:
        space = gym.spaces.Box(-1.0, 1.0, before.shape, np.float32)
        space.original_space = env.observation_space
    module, name = place.split(":")
    cls = getattr(import_module("ray.rllib.agents." + module), name)
    with tf.Graph().as_default(), tf.Session().as_default() as session:
        policy = cls(space, env.action_space, whole)
        return recorded(policy, session, space.shape, env.action_space)


def known_keys():
    """What a `model` may hold."""
    return getattr(catalog, "MODEL_DEFAULTS", None) or catalog.MODEL_CONFIGS


def recorded(policy, session, shape, acts):
    found = policy._variables
    shapes = OrderedDict((k, v.get_shape().as_list()) for k, v in found.variables.items())
    # What is no array is a coefficient of the loss, which stays what it is.
    found.set_weights({name: made(name, size) for name, size in shapes.items() if size})
    out = {"weights": shapes}
    observations = made("inputs", (2, *shape))
    if hasattr(policy, "q_func_vars"):
        values = getattr(policy, Q_VALUES, None)
        if values is None:
            with tf.variable_scope("q_func", reuse=True):
                values = policy._build_q_network(policy.cur_observations)[0]
        told = {Q_VALUES: session.run(values, {policy.cur_observations: observations})}
    else:
        fetches = {"logits": policy.model.outputs}
        for name in ("value_function", "vf"):
            if isinstance(getattr(policy, name, None), tf.Tensor):
                fetches["values"] = getattr(policy, name)
        feed = {policy._obs_input: observations}
        if policy.model.state_in:
            feed[policy.model.seq_lens] = np.ones(2, np.int32)
            for place, first in zip(policy.model.state_in, policy.model.state_init):  # noqa: B905 - Python 3.6
                feed[place] = np.stack([first, first])
        before = getattr(policy, "_prev_action_input", None)
        if before is not None:
            several = before.get_shape().as_list()[1:]
            feed[before] = np.zeros([2, *several])
            feed[policy._prev_reward_input] = made("rewards", (2,))
        told = session.run(fetches, feed)
    out["outputs"] = {name: value.tolist() for name, value in told.items()}
    return out


def asked():
    """The cases, with the key that said of PPO alone whether layers are shared."""
    for name, (algorithm, seen, acts, config) in cases.cases().items():
        if algorithm in POLICIES:
            model = dict(config.get("model", {}))
            shares = model.pop("vf_share_layers", None)
            own = {} if shares is None else {"vf_share_layers": shares}
            yield name, (algorithm, seen, acts, dict(config, model=model, **own))


def main(out):
    found = {}
    for name, case in asked():
        try:
            found[name] = record(case)
        except Exception as error:
            said = re.sub(r"/\S*/", "", str(error)).strip().splitlines()
            found[name] = {"error": ": ".join([type(error).__name__, *said[:1]])[:160]}
        print(name, found[name].get("error", "ok"), flush=True)
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    Path(out).write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1])
